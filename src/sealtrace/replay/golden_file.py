"""The file of a golden run.

Made to be read in a review: one event after the other, what repeats pointed at, what a reader cannot
see written out. A digest shows edits of the events made by hand.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
import unicodedata
from pathlib import Path
from typing import Final, Literal

from .._version import __version__
from ..errors import GoldenError
from ..event import Kind, RunEvent
from ..run import JoinedRecord, Run
from ..vault import RecordHeader
from .compact import compact, expand
from .shape import JSON, at, is_array, is_object

__all__ = ["HEADER_LEFT_OUT", "LEFT_OUT", "Allowed", "Change", "Golden", "is_golden", "load", "record_of", "write"]

_FORMAT: Final = 1
_UNSEEN: Final = frozenset({"Cf", "Cs", "Co", "Zl", "Zp"})

LEFT_OUT: Final = frozenset(
    {"run_id", "record_id", "trace_id", "span_id", "sdk_span_id", "duration_ms", "digests", "status", "schema"}
)
"""Of an event: ids of spans, durations and digests say nothing about what the agent did and make noise."""

HEADER_LEFT_OUT: Final[dict[str, JSON]] = {"trace_ids": (), "root_span_id": None, "group_tag": None}
"""Of a record's header, with what stands in its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One line of a golden's history.

    Attributes:
        at: When, RFC 3339.
        action: `added` or `accepted`.
        reason: Why, in the words of whoever did it.
        sealtrace: Version that wrote it.
        what: What changed: `event 3 $.request.instructions`.
    """

    at: str
    action: str
    reason: str
    sealtrace: str = __version__
    what: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Allowed:
    """What may differ in a rerun; part of the file and so of its review.

    Attributes:
        ignore: JSON paths, as for `sealtrace.rerun`.
        pin: Regular expressions, as for `sealtrace.rerun`.
        guardrails: `run`, or `served` for guardrails that reach the outside.
    """

    ignore: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    guardrails: Literal["run", "served"] = "run"

    @property
    def options(self) -> dict[str, JSON]:
        """As arguments of `sealtrace.rerun`."""
        return {"ignore": self.ignore, "pin": self.pin, "guardrails": self.guardrails}

    def to_json(self) -> dict[str, JSON]:
        """As plain JSON, what is usual left out."""
        out = {name: list(value) for name, value in (("ignore", self.ignore), ("pin", self.pin)) if value}
        return out if self.guardrails == "run" else {**out, "guardrails": self.guardrails}


@dataclasses.dataclass(frozen=True)
class Golden:
    """A golden run.

    Attributes:
        name: Its name, and the file's.
        entry: The code it is a run of, `package.module:agent_or_function`.
        run: The recorded run, as `sealtrace.load` would give it, without spans.
        history: Why it is as it is, oldest first.
        path: Its file.
        allowed: What may differ.
    """

    name: str
    entry: str
    run: Run
    history: tuple[Change, ...]
    path: Path
    allowed: Allowed = Allowed()

    @property
    def input(self) -> JSON:
        """The first run's input, redacted: text or a list of items."""
        return next((at(event.payload, "input") for event in self.run.events if event.kind is Kind.INPUT), None)


def record_of(record_id: str, header: RecordHeader | None, events: list[RunEvent]) -> JoinedRecord:
    """A whole record of these events."""
    return JoinedRecord(record_id, header, tuple(events), (), stored=len(events), in_vault=True)


def load(path: Path) -> Golden:
    """Read a golden.

    Raises:
        GoldenError: There is none, it was edited by hand, or it was written by another version.
    """
    try:
        data: JSON = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoldenError(f"cannot read the golden {path}: {error.strerror}") from error
    except ValueError as error:
        raise GoldenError(f"{path} is not JSON: {error}") from error
    if at(data, "sealtrace_golden") != _FORMAT:
        raise GoldenError(f"{path} is no golden of a form this version reads ({_FORMAT})")
    try:
        return _read(data, path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise GoldenError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def write(golden: Golden) -> None:
    """Write a golden's file, whole or not at all."""
    records = [_record_json(record) for record in golden.run.records]
    data = {
        "sealtrace_golden": _FORMAT,
        "name": golden.name,
        "entry": golden.entry,
        **({"allowed": golden.allowed.to_json()} if golden.allowed != Allowed() else {}),
        "run_id": golden.run.id,
        "history": [_change_json(change) for change in golden.history],
        "sha256": _digest(records),
        "records": records,
    }
    text = _readable(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"
    golden.path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: a test run must never meet half a file.
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=golden.path.parent, prefix=".golden-", delete=False
    ) as file:
        file.write(text)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(golden.path)


def _readable(text: str) -> str:
    """JSON in which what a reader cannot see, or what turns text around, is written as an escape."""
    if text.isascii():
        return text
    return "".join(
        json.dumps(character)[1:-1] if unicodedata.category(character) in _UNSEEN else character for character in text
    )


def _digest(records: JSON) -> str:
    # Of the JSON, not of the file: line ends and indentation may change on the way through a repository.
    return hashlib.sha256(json.dumps(records, separators=(",", ":")).encode()).hexdigest()


def _change_json(change: Change) -> dict[str, JSON]:
    out = dataclasses.asdict(change)
    if not change.what:
        del out["what"]
    return out


def _record_json(record: JoinedRecord) -> dict[str, JSON]:
    header = dataclasses.asdict(record.header) if record.header is not None else None
    if header is not None:
        header = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in header.items()
            if name not in HEADER_LEFT_OUT
        }
    events = [
        {name: value for name, value in event.to_json().items() if name not in LEFT_OUT} for event in record.events
    ]
    return {"record_id": record.record_id, "header": header, "events": compact(events)}


def _read(data: dict[str, JSON], path: Path) -> Golden:
    records: JSON = data["records"]
    if _digest(records) != data["sha256"]:
        raise GoldenError(
            f"{path} was edited by hand (its digest does not fit); take it from version control again, "
            f"and change it with `sealtrace golden accept {data['name']} --reason …`"
        )
    run_id: str = data["run_id"]
    run = Run(run_id, tuple(_read_record(record, run_id) for record in records), (), ())
    history = tuple(map(_read_change, data["history"]))
    return Golden(data["name"], data["entry"], run, history, path, _read_allowed(data.get("allowed", {})))


def _read_allowed(data: dict[str, JSON]) -> Allowed:
    guardrails: Literal["run", "served"] = "served" if data.get("guardrails") == "served" else "run"
    allowed = Allowed(tuple(data.get("ignore", ())), tuple(data.get("pin", ())), guardrails)
    if allowed.to_json() != data:
        raise ValueError("`allowed` holds something else than ignore, pin and guardrails")
    return allowed


def _read_change(data: dict[str, JSON]) -> Change:
    return Change(data["at"], data["action"], data["reason"], data["sealtrace"], tuple(data.get("what", ())))


def _read_record(data: dict[str, JSON], run_id: str) -> JoinedRecord:
    record_id: str = data["record_id"]
    common = {"run_id": run_id, "record_id": record_id, "schema": 1}
    events = [RunEvent.from_json({**event, **common}) for event in expand(data["events"])]
    header: JSON = data["header"]
    return record_of(record_id, _read_header(header) if is_object(header) else None, events)


def _read_header(data: dict[str, JSON]) -> RecordHeader:
    values: dict[str, JSON] = dict(HEADER_LEFT_OUT)
    for name, value in data.items():
        values[name] = tuple(value) if is_array(value) else value
    return RecordHeader(**values)


def is_golden(path: Path) -> bool:
    """Whether a file says that it is a golden."""
    try:
        with path.open(encoding="utf-8") as file:
            return '"sealtrace_golden"' in file.read(64)
    except (OSError, UnicodeDecodeError):
        return False
