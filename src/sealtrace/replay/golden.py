"""Golden runs: a recorded run as one file in the user's repository.

The file is made to be read in a review: redacted, one event after the other, what repeats pointed
at, with the reason it was added and each reason it was changed. It needs no vault and no network to
be loaded again. A digest shows edits made by hand: a golden is changed by accepting, with a reason.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import tempfile
import time
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .._version import __version__
from ..errors import GoldenError, NotComparable, RedactionFailed
from ..event import Kind, RunEvent, timestamp
from ..redaction import Redactor
from ..run import JoinedRecord, Run
from ..run.findings import NO_PAYLOAD
from ..vault import RecordHeader
from .compact import compact, expand
from .shape import JSON, at, is_array, is_object

__all__ = ["DIRECTORY", "Change", "Golden", "add", "find", "is_golden", "kept", "load", "refuse_in_ci", "save"]

DIRECTORY: Final = Path("tests/golden")
"""Where goldens are, unless the user says otherwise."""

_FORMAT: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}\Z")
_ENTRY: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")

_UNSEEN: Final = frozenset({"Cf", "Cs", "Co", "Zl", "Zp"})

# Ids of spans, durations and digests say nothing about what the agent did and would only make noise.
_LEFT_OUT: Final = frozenset(
    {"run_id", "record_id", "trace_id", "span_id", "sdk_span_id", "duration_ms", "digests", "status", "schema"}
)
_HEADER_LEFT_OUT: Final[dict[str, JSON]] = {"trace_ids": (), "root_span_id": None, "group_tag": None}


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


@dataclasses.dataclass(frozen=True)
class Golden:
    """A golden run.

    Attributes:
        name: Its name, and the file's.
        entry: The code it is a run of, `package.module:agent_or_function`.
        run: The recorded run, as `sealtrace.load` would give it, without spans.
        history: Why it is as it is, oldest first.
        path: Its file.
    """

    name: str
    entry: str
    run: Run
    history: tuple[Change, ...]
    path: Path

    @property
    def input(self) -> JSON:
        """The first run's input, redacted: text or a list of items."""
        return next((at(event.payload, "input") for event in self.run.events if event.kind is Kind.INPUT), None)

    @property
    def title(self) -> str:
        """Name, entry and size in one line."""
        return f"{self.name}: {self.entry}, {len(self.run.events)} events"


def add(
    run: Run,
    *,
    name: str,
    entry: str,
    reason: str,
    directory: Path = DIRECTORY,
    redactor: Redactor | None,
    when: str | None = None,
) -> Golden:
    """Write a recorded run as a golden.

    Args:
        run: A run with all its payloads.
        name: A new name: letters, digits, dots, dashes, underscores.
        entry: The code to rerun, `package.module:agent_or_function`.
        reason: Why this run is worth keeping.
        redactor: Applied once more to what the vault gave, since a repository is read by more people;
            None where that is not wanted.
        directory: Where goldens are kept.
        when: RFC 3339; now by default.

    Raises:
        GoldenError: The name is taken or no name, the entry is no entry, there is no reason.
        NotComparable: The run is not whole, so it could never rerun.
    """
    path = _path(directory, name)
    if not _ENTRY.match(entry):
        raise GoldenError(f"{entry!r} is no entry: name code as package.module:agent, as in shop.agents:triage")
    _refuse_empty_reason(reason)
    if path.exists():
        raise GoldenError(f"{path} exists; change it with `sealtrace golden accept {name} --reason …`")
    history = (Change(when or _now(), "added", reason),)
    golden = Golden(name, entry, kept(run, redactor), history, path)
    _write(golden)
    return golden


def save(golden: Golden, run: Run, *, reason: str, what: Iterable[str], when: str | None = None) -> Golden:
    """Replace a golden's run, and say why.

    Args:
        golden: As it was loaded.
        run: What to keep from now on.
        reason: Why the change is right.
        what: What changed, a line each.
        when: RFC 3339; now by default.

    Raises:
        GoldenError: There is no reason, or this is a CI job, where nobody can have looked at it.
        NotComparable: The run is not whole.
    """
    refuse_in_ci()
    _refuse_empty_reason(reason)
    _refuse_incomplete(run)
    history = (*golden.history, Change(when or _now(), "accepted", reason, what=tuple(what)))
    changed = dataclasses.replace(golden, run=run, history=history)
    _write(changed)
    return changed


def refuse_in_ci() -> None:
    """Goldens are accepted by a person who has seen the difference.

    Raises:
        GoldenError: The environment says this is a CI job.
    """
    if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
        raise GoldenError("CI is set: a golden is accepted on a developer's machine and committed, never in CI")


def _now() -> str:
    """The time, RFC 3339."""
    return timestamp(time.time_ns())


def find(directory: Path = DIRECTORY) -> Iterator[Path]:
    """Files of goldens in a directory and below, by path."""
    for path in sorted(directory.rglob("*.json")):
        if is_golden(path):
            yield path


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


def _path(directory: Path, name: str) -> Path:
    if not _NAME.match(name) or name.endswith("."):
        raise GoldenError(f"{name!r} is no name for a golden: use letters, digits, dots, dashes, underscores")
    return directory / f"{name}.json"


def _refuse_empty_reason(reason: str) -> None:
    if not reason.strip():
        raise GoldenError("say why, with --reason: whoever reads the golden next wants to know")


def _refuse_incomplete(run: Run) -> None:
    missing = [event for event in run.events if event.status in NO_PAYLOAD or event.payload is None]
    problems = [finding.message for finding in run.findings if finding.serious]
    if missing:
        problems.append(f"{len(missing)} of {len(run.events)} events are without payload ({missing[0].status})")
    if not run.events:
        problems.append("it has no events")
    problems += [f"record {record.record_id} has gaps" for record in run.records if record.gaps]
    if problems:
        raise NotComparable(f"run {run.id} is not whole, so it could never rerun: {'; '.join(dict.fromkeys(problems))}")


def kept(run: Run, redactor: Redactor | None) -> Run:
    """What a golden keeps of a run, redacted once more.

    Raises:
        NotComparable: The run is not whole.
        GoldenError: Something of it cannot be made safe for a repository.
    """
    _refuse_incomplete(run)
    records: list[JoinedRecord] = []
    for record in run.records:
        memory = redactor.memory() if redactor is not None else None
        events = [_kept(event, redactor, memory) for event in record.events]
        header = dataclasses.replace(record.header, **_HEADER_LEFT_OUT) if record.header is not None else None
        records.append(_record(record.record_id, header, events))
    return Run(run.id, tuple(records), (), ())


def _record(record_id: str, header: RecordHeader | None, events: list[RunEvent]) -> JoinedRecord:
    return JoinedRecord(record_id, header, tuple(events), (), stored=len(events), in_vault=True)


def _kept(event: RunEvent, redactor: Redactor | None, memory: JSON) -> RunEvent:
    defaults = {
        field.name: field.default for field in dataclasses.fields(RunEvent) if field.default is not dataclasses.MISSING
    }
    dropped = {name: defaults[name] for name in _LEFT_OUT if name in defaults}
    kept = dataclasses.replace(event, **dropped, digests={})
    if redactor is None:
        return kept
    try:
        tool = at(event.payload, "tool")
        done = redactor.redact(
            event.payload,
            memory=memory,
            kind=event.kind,
            agent=event.agent,
            tool=tool if isinstance(tool, str) else None,
        )
    except RedactionFailed as error:
        raise GoldenError(f"event {event.seq} cannot be made safe for a repository: {error}") from error
    return dataclasses.replace(kept, payload=done.value)


# the file


def _write(golden: Golden) -> None:
    records = [_record_json(record) for record in golden.run.records]
    data = {
        "sealtrace_golden": _FORMAT,
        "name": golden.name,
        "entry": golden.entry,
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
            if name not in _HEADER_LEFT_OUT
        }
    events = [
        {name: value for name, value in event.to_json().items() if name not in _LEFT_OUT} for event in record.events
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
    return Golden(data["name"], data["entry"], run, tuple(map(_read_change, data["history"])), path)


def _read_change(data: dict[str, JSON]) -> Change:
    return Change(data["at"], data["action"], data["reason"], data["sealtrace"], tuple(data.get("what", ())))


def _read_record(data: dict[str, JSON], run_id: str) -> JoinedRecord:
    record_id: str = data["record_id"]
    common = {"run_id": run_id, "record_id": record_id, "schema": 1}
    events = [RunEvent.from_json({**event, **common}) for event in expand(data["events"])]
    header: JSON = data["header"]
    return _record(record_id, _read_header(header) if is_object(header) else None, events)


def _read_header(data: dict[str, JSON]) -> RecordHeader:
    values: dict[str, JSON] = dict(_HEADER_LEFT_OUT)
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
