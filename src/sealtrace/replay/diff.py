"""Two recorded runs, side by side: what is the same, and what made them part.

The first difference in the order of events is the cause; most of what comes after it is its
consequence. So one difference is named, with its class, and the rest is counted.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from ..errors import NotComparable
from ..event import Kind, RunEvent
from ..run import Run, RunStatus
from .align import Pair, align
from .attribution import Attributor
from .cause import Cause
from .comparable import VERSIONS, Subject, by_kind_only, subject
from .jsondiff import Difference, differences, is_ignored, same
from .shape import JSON, at

__all__ = ["Change", "Diff", "Row", "diff"]


class Change(StrEnum):
    """What became of an event of the first run."""

    SAME = "same"
    CHANGED = "changed"
    CARRIED = "carried"
    """Differs only in what an earlier event already differed in: the same history, quoted again."""
    MOVED = "moved"
    ADDED = "added"
    REMOVED = "removed"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One line of a comparison.

    Attributes:
        change: What became of it.
        a: The event of the first run, None where it was added.
        b: The event of the second run, None where it was removed.
        cause: Why they differ; a guess on all rows but the first that differs. None where they do not.
        shown: The difference that shows the cause, where there is one inside the event.
        differences: All of them.
    """

    change: Change
    a: RunEvent | None
    b: RunEvent | None
    cause: Cause | None = None
    shown: Difference | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def event(self) -> RunEvent:
        """The event of the first run, or of the second where the first has none."""
        event = self.a or self.b
        assert event is not None
        return event

    @property
    def title(self) -> str:
        """Kind, agent and tool, for example `tool_call refund_agent issue_refund`."""
        event = self.event
        names = (at(event.payload, "tool"), at(event.payload, "name"), at(event.payload, "server"))
        return " ".join([str(event.kind), *(str(name) for name in (event.agent, *names) if name)])

    def to_json(self) -> dict[str, JSON]:
        """As plain JSON; events by number, content only where it differs."""
        out: dict[str, JSON] = {"change": str(self.change), "kind": str(self.event.kind), "title": self.title}
        for side, event in (("a", self.a), ("b", self.b)):
            if event is not None:
                out[side] = {"record": event.record_id, "seq": event.seq, "frame": event.frame}
        if self.cause is not None:
            out["class"] = str(self.cause)
        if self.shown is not None:
            out["shown"] = self.shown.to_json()
        if self.differences:
            out["differences"] = [difference.to_json() for difference in self.differences]
        return out


@dataclasses.dataclass(frozen=True, slots=True)
class Diff:
    """The comparison of two runs.

    Attributes:
        a: Id of the first run.
        b: Id of the second run.
        rows: All events of both, in the order of the first.
        notes: What limits the comparison: lost payloads, other keys, ignored paths.
        outcome: Whether the final outputs are equal; None where a run has none.
    """

    a: str
    b: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    outcome: bool | None = None

    @property
    def first(self) -> Row | None:
        """The first row that differs: the cause."""
        return next((row for row in self.rows if row.change is not Change.SAME), None)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.first is None

    @property
    def matched(self) -> int:
        """How many events before the first difference are the same."""
        first = self.first
        return len(self.rows) if first is None else self.rows.index(first)

    @property
    def later(self) -> int:
        """How many rows after the first difference differ too."""
        return max(0, sum(row.change is not Change.SAME for row in self.rows) - 1)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows there are of each change."""
        found = collections.Counter(row.change for row in self.rows)
        return {str(change): found[change] for change in Change}

    @property
    def exit_code(self) -> int:
        """0 same, 2 different; a pair that cannot be compared raises instead and is 3."""
        return 0 if self.same else 2

    def to_json(self) -> dict[str, JSON]:
        """The whole comparison as plain JSON."""
        first = self.first
        return {
            "diff": 1,
            "a": self.a,
            "b": self.b,
            "same": self.same,
            "outcome_same": self.outcome,
            "matched": self.matched,
            "later": self.later,
            "counts": self.counts,
            "first": first.to_json() if first is not None else None,
            "notes": list(self.notes),
            "rows": [row.to_json() for row in self.rows],
        }


def diff(a: Run, b: Run, *, ignore: Iterable[str] = ()) -> Diff:
    """Compare two recorded runs event by event.

    Args:
        a: The run to compare with, for example the one that went well.
        b: The run that is held against it.
        ignore: Paths inside an event not to look at, as in `jsondiff.differences`:
            `$.request.instructions`, `$..timestamp`.

    Raises:
        NotComparable: A run has no events, or neither content nor digests to compare.
        ValueError: An ignored path cannot be read.
    """
    ignored = tuple(ignore)
    _refuse_empty(a)
    _refuse_empty(b)
    same_key = _same_key(a, b)
    rewrite = by_kind_only if same_key is False else None
    one, other = ([subject(event, i, rewrite=rewrite) for i, event in enumerate(run.events)] for run in (a, b))
    differ = _Differ(ignored, same_key=same_key)
    rows = tuple(differ.rows(align(one, other)))
    notes = tuple(_notes(a, b, ignored, same_key=same_key, by_digest=differ.by_digest))
    return Diff(a.id, b.id, rows, notes, _outcome(one, other))


class _Differ:
    """Goes through the pairs in order and remembers what it has seen."""

    def __init__(self, ignore: Sequence[str], *, same_key: bool | None) -> None:
        self._ignore = ignore
        self._same_key = same_key
        self._seen: set[str] = set()
        self._attributor = Attributor()
        self.by_digest = 0

    def rows(self, pairs: Iterable[Pair]) -> Iterator[Row]:
        for pair in pairs:
            row = self._row(pair)
            self._attributor.passed(pair, differed=row.change not in {Change.SAME, Change.MOVED})
            yield row

    def _row(self, pair: Pair) -> Row:
        a = pair.a.event if pair.a is not None else None
        b = pair.b.event if pair.b is not None else None
        if pair.a is None or pair.b is None:
            cause, _ = self._attributor.cause(pair, ())
            return Row(Change.ADDED if a is None else Change.REMOVED, a, b, cause)
        found = tuple(self._between(pair.a, pair.b))
        if not found and not pair.moved:
            return Row(Change.SAME, a, b)
        cause, shown = self._attributor.cause(pair, found)
        change = Change.MOVED if pair.moved else Change.CHANGED if self._is_news(pair, found) else Change.CARRIED
        return Row(change, a, b, cause, shown, found)

    def _between(self, a: Subject, b: Subject) -> Iterator[Difference]:
        with_payload = a.event.payload is not None and b.event.payload is not None
        if not with_payload:
            self.by_digest += 1
        shape_a, shape_b = (side.value if with_payload else _without_payload(side) for side in (a, b))
        for difference in differences(shape_a, shape_b, ignore=self._ignore):
            yield from _inside_text(difference, self._ignore)
        if self._same_key is not False:
            yield from _by_digest(a.event, b.event, with_payload=with_payload, ignore=self._ignore)

    def _is_news(self, pair: Pair, found: Sequence[Difference]) -> bool:
        """Whether any of it is more than what was seen before and is only sent again."""
        news = False
        for difference in found:
            if not difference.path.startswith("$.request."):
                news = True
            elif not self._attributor.quotes_a_difference(pair, difference):
                fingerprint = _fingerprint(difference)
                news |= fingerprint not in self._seen
                self._seen.add(fingerprint)
        return news


def _fingerprint(difference: Difference) -> str:
    # The index may grow with the history; the values and the field they are in stay.
    field = re.sub(r"^\$\.request\.input\[\d+\]", "", difference.path)
    return json.dumps([field, {name: value for name, value in difference.to_json().items() if name != "path"}])


def _inside_text(difference: Difference, ignore: Sequence[str]) -> Iterator[Difference]:
    """Two texts that are both JSON are compared inside, so that the field is named."""
    one, other = _parsed(difference.recorded), _parsed(difference.got)
    inside = list(differences(one, other)) if one is not None and other is not None else []
    if not inside:
        # Equal but for spaces, which the model has seen all the same.
        yield difference
    for found in inside:
        path = difference.path + found.path[1:]
        if not is_ignored(path, ignore):
            yield Difference(path, found.recorded, found.got)


def _parsed(value: JSON) -> JSON:
    if not isinstance(value, str) or value[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None


def _without_payload(side: Subject) -> dict[str, JSON]:
    """What is left to compare of an event whose content has expired on one side."""
    event = side.event
    facts = {"agent": event.agent, "actor": event.actor, "error_type": event.error_type, "config": event.config}
    kept = {name: value for name, value in facts.items() if value is not None}
    if event.config is not None:
        kept["config"] = {name: value for name, value in event.config.items() if name not in VERSIONS}
    return kept


# Digests of what holds random ids (a model's input and output) differ between any two runs.
_STABLE_DIGESTS: Final = frozenset(
    {"instructions", "tools", "handoffs", "output_schema", "settings", "result", "final_output", "query", "documents"}
)


def _by_digest(a: RunEvent, b: RunEvent, *, with_payload: bool, ignore: Sequence[str]) -> Iterator[Difference]:
    """Differences that only the digests of the raw values show: content expired, or hidden by redaction."""
    names = set(_STABLE_DIGESTS)
    if not with_payload:
        names |= {"arguments"} | ({"input"} if a.kind is Kind.INPUT else set())
    for name in sorted(names & a.digests.keys() & b.digests.keys()):
        path = f"$.digests.{name}"
        if a.digests[name] != b.digests[name] and not is_ignored(path, ignore):
            yield Difference(path, a.digests[name], b.digests[name])


_NOT_WHOLE: Final = frozenset({RunStatus.PARTIAL, RunStatus.DAMAGED, RunStatus.METADATA_ONLY, RunStatus.SPANS_ONLY})


def _refuse_empty(run: Run) -> None:
    if not run.events:
        raise NotComparable(f"run {run.id} has no events to compare; `sealtrace show {run.id}` says what is left of it")
    if all(event.payload is None and not event.digests for event in run.events):
        raise NotComparable(f"run {run.id} has neither payloads nor digests to compare: only its spans are left")


def _key_ids(run: Run) -> set[str]:
    """Which keys made the run's pseudonyms, as far as its records say."""
    return {record.header.key_id for record in run.records if record.header is not None}


def _same_key(a: Run, b: Run) -> bool | None:
    one, other = _key_ids(a), _key_ids(b)
    return one == other if one and other else None


def _outcome(a: Sequence[Subject], b: Sequence[Subject]) -> bool | None:
    outputs = [[item.value for item in side if item.kind is Kind.OUTPUT] for side in (a, b)]
    if not all(outputs):
        return None
    return same(at(outputs[0][-1], "final_output"), at(outputs[1][-1], "final_output"))


def _notes(a: Run, b: Run, ignore: Sequence[str], *, same_key: bool | None, by_digest: int) -> Iterator[str]:
    for name, run in (("A", a), ("B", b)):
        if run.status in _NOT_WHOLE:
            yield f"{name} is {run.status}: what it lacks shows as a difference"
    if same_key is False:
        yield "pseudonyms were made with different keys and are compared by kind only"
    if by_digest:
        yield f"{by_digest} events are compared by their digests: the content of one side is not there"
    versions = [sorted({str(at(event.config, "sdk")) for event in run.events if event.config}) for run in (a, b)]
    if versions[0] != versions[1]:
        yield f"recorded with different Agents SDK versions: {', '.join(versions[0])} and {', '.join(versions[1])}"
    if ignore:
        yield f"not looked at: {', '.join(ignore)}"
