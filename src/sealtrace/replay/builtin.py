"""The checks that come with sealtrace: schema, identity, citations, freshness, tool scope.

Each is a function that makes a check, so that it can be given what only the application knows:

```python
checks = [identity(fields=("account",)), freshness(max_age=timedelta(days=30)), tool_scope({"lookup": {}})]
```

Without arguments each holds the run against what the record itself says. What redaction has taken
away is not guessed at: it is left out and the result says so.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from ..event import Kind, RunEvent
from ..run import Run
from .checks import Check, NotApplicable, Remark, Violation
from .comparable import PSEUDONYM, parsed_arguments
from .evidence import Retrieved, answer_text, cited_ids, retrieved, texts_in, user_texts
from .jsondiff import format_path
from .schema import misfits, unchecked
from .shape import JSON, at, is_array, is_object, objects

__all__ = ["citations", "defaults", "freshness", "identity", "schema", "tool_scope"]

IDENTITY_FIELDS: Final = frozenset(
    {"account", "account_id", "actor", "actor_id", "customer", "customer_id", "tenant", "tenant_id", "user", "user_id"}
)
"""Names of tool arguments that say on whose behalf a tool acts."""


def defaults() -> list[Check]:
    """All five, without arguments."""
    return [schema(), identity(), citations(), freshness(), tool_scope()]


def _at(event: RunEvent, message: str, path: str | None = None) -> Violation:
    return Violation(message, event.seq, event.record_id, path)


# schema


def schema(wanted: Mapping[str, JSON] | None = None) -> Check:
    """The final output fits its JSON Schema.

    Args:
        wanted: The schema; by default the one the last model call was told to answer in.
    """

    def check_schema(run: Run) -> Iterator[Violation | Remark]:
        output, answer = _outcome(run)
        value = at(output.payload, "final_output")
        asked = answer.payload if answer is not None else None
        chosen = dict(wanted) if wanted is not None else at(asked, "request", "output_schema", "schema")
        if not is_object(chosen):
            raise NotApplicable("the run has no output schema: its final output is plain text")
        if wanted is None:
            # What the model wrote; the SDK's object has its defaults left out.
            value = parsed_arguments(answer_text(asked)) or value
        elif isinstance(value, str) and "string" not in str(chosen.get("type")):
            value = parsed_arguments(value)
        for path, message in misfits(value, chosen):
            yield _at(output, f"the final output {message}", path)
        skipped = unchecked(chosen)
        if skipped:
            yield Remark(f"not looked at: {', '.join(sorted(skipped))}")

    return Check(check_schema, name="schema")


def _outcome(run: Run) -> tuple[RunEvent, RunEvent | None]:
    """The run's last final output and the model call it came from."""
    output = next((event for event in reversed(run.events) if _is_root(event, Kind.OUTPUT)), None)
    if output is None or output.payload is None:
        raise NotApplicable("the run has no final output")
    calls = [event for event in run.events if event.kind is Kind.GENERATION and event.frame == output.frame]
    calls = [event for event in calls if (event.record_id, event.seq) < (output.record_id, output.seq)]
    return output, calls[-1] if calls else None


def _is_root(event: RunEvent, kind: Kind) -> bool:
    return event.kind is kind and "/" not in event.frame


# identity


def identity(*, fields: Collection[str] = IDENTITY_FIELDS, expected: str | Collection[str] | None = None) -> Check:
    """Tools act for the one the run is for: ids in their arguments are the run's own.

    Args:
        fields: Argument names that carry such ids, at any depth.
        expected: The ids allowed. By default the acting identity set by `sealtrace.authority`
            (`user:4711` allows `4711` too), or where there is none, any id the user's input mentions.
    """
    allowed = {expected} if isinstance(expected, str) else set(expected) if expected is not None else None

    def check_identity(run: Run) -> Iterator[Violation | Remark]:
        found = [found for event in run.events if event.kind is Kind.TOOL_CALL for found in _ids(event, fields)]
        if not found:
            raise NotApplicable("no tool was called with an account or actor id")
        given = user_texts(run)
        redacted = 0
        for event, path, value in found:
            actor = at(event.actor, "id")
            mine = allowed if allowed is not None else _forms(actor) if isinstance(actor, str) else None
            if mine is None and not _mentions(given, value):
                yield _at(event, "acts for an id that the user's input does not mention", path)
            elif mine is not None and value not in mine:
                if PSEUDONYM.search(value) and not any(PSEUDONYM.search(one) for one in mine):
                    redacted += 1
                else:
                    yield _at(event, "acts for another id than the run's", path)
        if redacted:
            yield Remark(f"{redacted} ids are redacted and could not be compared")

    return Check(check_identity, name="identity")


def _ids(event: RunEvent, fields: Collection[str]) -> Iterator[tuple[RunEvent, str, str]]:
    arguments = parsed_arguments(at(event.payload, "arguments"))
    for path, value in _leaves(arguments, ("arguments",)):
        if value is not None and not isinstance(value, bool) and _field(path) in fields:
            yield event, format_path(path), str(value)


def _field(path: tuple[str | int, ...]) -> str:
    return str(next((step for step in reversed(path) if isinstance(step, str)), ""))


def _leaves(value: JSON, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], JSON]]:
    if is_object(value):
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif is_array(value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _forms(actor: str) -> set[str]:
    return {actor, actor.rpartition(":")[2]}


def _mentions(texts: Iterable[str], value: str) -> bool:
    # As a word: 71 is not mentioned by "order 4711".
    pattern = re.compile(rf"(?<![\w]){re.escape(value)}(?![\w])")
    return any(pattern.search(text) for text in texts)


# citations

_BRACKETS: Final = re.compile(r"\[([\w.:/#-]+)\]")
_ENDS: Final = {"paragraph": re.compile(r"\n\s*\n"), "sentence": re.compile(r"(?<=[.!?])\s+(?=[A-Z\d])")}


def citations(
    *, per: Literal["answer", "paragraph", "sentence"] = "answer", pattern: re.Pattern[str] = _BRACKETS
) -> Check:
    """The answer cites documents the run has retrieved, and none that it has not.

    Args:
        per: How much text needs a citation of its own.
        pattern: How a citation looks; its first group is the document's or the chunk's id. The
            provider's own annotations count as well.
    """

    def check_citations(run: Run) -> Iterator[Violation | Remark]:
        output, answer = _outcome(run)
        documents = retrieved(run)
        text = "\n".join(texts_in(at(output.payload, "final_output")))
        cited = cited_ids(text, answer, pattern)
        if not documents and not cited:
            raise NotApplicable("nothing was retrieved and nothing is cited")
        known = {name for document in documents for name in document.names}
        for name in dict.fromkeys(cited):
            if name not in known:
                yield _at(output, f"cites {name!r}, which was not retrieved", "$.final_output")
        if per == "answer":
            if documents and not cited:
                yield _at(output, "cites nothing, though documents were retrieved", "$.final_output")
            return
        claims = [claim for claim in _ENDS[per].split(text) if claim.strip()]
        bare = [number for number, claim in enumerate(claims, 1) if not pattern.search(claim)]
        for number in bare:
            yield _at(output, f"{per} {number} of {len(claims)} cites nothing", "$.final_output")

    return Check(check_citations, name="citations")


# source freshness


def freshness(*, max_age: dt.timedelta | None = None, current: Mapping[str, str] | None = None) -> Check:
    """What was retrieved was in date when it was used.

    Args:
        max_age: How old a document may be at the time of the run, by the date that is its version.
        current: The version that counts, by document id; a document that is not named is not asked.

    Without arguments: no document was used in two versions, and none is from the run's future.
    """

    def check_freshness(run: Run) -> Iterator[Violation | Remark]:
        documents = retrieved(run)
        if not documents:
            raise NotApplicable("nothing was retrieved")
        seen: dict[str, str | None] = {}
        for document in documents:
            first = seen.setdefault(document.id, document.version)
            if first != document.version:
                yield _at(
                    document.event, f"document {document.id!r} was used in versions {first} and {document.version}"
                )
            wanted = (current or {}).get(document.id)
            if wanted is not None and document.version != wanted:
                yield _at(document.event, f"document {document.id!r} is version {document.version}, not {wanted}")
            yield from _age(document, max_age)

    return Check(check_freshness, name="freshness")


def _age(document: Retrieved, max_age: dt.timedelta | None) -> Iterator[Violation]:
    date, used = _date(document.version), _date(document.event.ts)
    if date is None or used is None:
        if max_age is not None:
            yield _at(document.event, f"document {document.id!r} has no date to tell its age by")
        return
    # A date without a time is that day somewhere on earth.
    if date - used > dt.timedelta(days=1):
        yield _at(document.event, f"document {document.id!r} is dated after it was used ({document.version})")
    elif max_age is not None and used - date > max_age:
        yield _at(document.event, f"document {document.id!r} was {(used - date).days} days old ({document.version})")


def _date(text: str | None) -> dt.datetime | None:
    try:
        date = dt.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=dt.UTC)


# tool scope

Rule = Any
"""What an argument may be: a value, a collection of values, a pattern that matches whole, or a function."""


def tool_scope(
    allowed: Mapping[str, Mapping[str, Rule]] | Iterable[str] | None = None,
    *,
    scopes: Mapping[str, str] | None = None,
) -> Check:
    """Only tools that may be called were called, with arguments that they may be called with.

    Args:
        allowed: The tools, with rules for their arguments by name: a value, a collection of values, a
            pattern, or a function that says yes or no. A tool that is not named may not be called;
            an argument that is not named may be anything.
        scopes: The scope a tool needs, by tool; it has to be among those of `sealtrace.authority`.

    Without `allowed`: each tool was among those offered to the model in that turn, with arguments
    that fit the schema offered, and none ran whose approval was refused.
    """
    rules = dict(allowed) if isinstance(allowed, Mapping) else {name: {} for name in allowed or ()}

    def check_scope(run: Run) -> Iterator[Violation | Remark]:
        calls = [event for event in run.events if event.kind is Kind.TOOL_CALL]
        if not calls:
            raise NotApplicable("no tool was called")
        offers = {(event.record_id, event.seq): event for event in run.events if event.kind is Kind.GENERATION}
        refused = {
            (event.record_id, event.call_id)
            for event in run.events
            if event.kind is Kind.APPROVAL and at(event.payload, "approved") is False
        }
        for call in calls:
            tool = str(at(call.payload, "tool"))
            if allowed is not None:
                yield from _within_rules(call, tool, rules)
            else:
                yield from _within_offer(call, tool, offers.get((call.record_id, call.parent_seq or 0)))
            needed = (scopes or {}).get(tool)
            if needed is not None and needed not in (at(call.actor, "scopes") or ()):
                yield _at(call, f"{tool} needs the scope {needed!r}, which the authority in force does not have")
            if call.call_id and (call.record_id, call.call_id) in refused:
                yield _at(call, f"{tool} ran although its approval was refused")

    return Check(check_scope, name="tool_scope")


def _within_rules(call: RunEvent, tool: str, rules: Mapping[str, Mapping[str, Rule]]) -> Iterator[Violation]:
    if tool not in rules:
        yield _at(call, f"{tool} may not be called")
        return
    arguments = parsed_arguments(at(call.payload, "arguments"))
    for name, rule in rules[tool].items():
        value = arguments.get(name) if is_object(arguments) else None
        if not _fits(value, rule):
            yield _at(call, f"{tool} may not be called with this {name}", format_path(("arguments", name)))


def _fits(value: JSON, rule: Rule) -> bool:
    if isinstance(rule, re.Pattern):
        return isinstance(value, str) and rule.fullmatch(value) is not None
    if callable(rule):
        decide: Callable[[JSON], object] = rule
        return bool(decide(value))
    if isinstance(rule, Collection) and not isinstance(rule, str | Mapping):
        return value in rule
    return bool(value == rule)


def _within_offer(call: RunEvent, tool: str, turn: RunEvent | None) -> Iterator[Violation]:
    request = at(turn.payload, "request") if turn is not None else None
    if request is None or at(call.payload, "type") not in {"function", "mcp", "agent"}:
        return
    offered = {str(spec.get("name")): spec for spec in objects(at(request, "tools"))}
    if tool not in offered:
        yield _at(call, f"{tool} was not among the tools offered in that turn")
        return
    parameters = offered[tool].get("parameters")
    if is_object(parameters):
        arguments = parsed_arguments(at(call.payload, "arguments") or "{}")
        for path, message in misfits(arguments, parameters):
            yield _at(call, f"an argument of {tool} {message}", "$.arguments" + path[1:])
