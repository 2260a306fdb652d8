"""Golden runs: a recorded run as one file in the user's repository.

It needs no vault and no network to be loaded again, and it is changed by accepting, with a reason.
"""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ..errors import GoldenError, NotComparable, RedactionFailed
from ..event import RunEvent, timestamp
from ..redaction import Redactor
from ..run import JoinedRecord, Run
from ..run.findings import NO_PAYLOAD
from .golden_file import (
    HEADER_LEFT_OUT,
    LEFT_OUT,
    Allowed,
    Change,
    Golden,
    is_golden,
    load,
    record_of,
    write,
)
from .shape import JSON, at

__all__ = ["DIRECTORY", "Allowed", "Change", "Golden", "add", "find", "kept", "load", "refuse_in_ci", "save"]

DIRECTORY: Final = Path("tests/golden")
"""Where goldens are, unless the user says otherwise."""

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}\Z")
_ENTRY: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")


def add(
    run: Run,
    *,
    name: str,
    entry: str,
    reason: str,
    redactor: Redactor | None,
    directory: Path = DIRECTORY,
    allowed: Allowed | None = None,
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
        allowed: What may differ in a rerun; nothing by default.
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
    golden = Golden(name, entry, kept(run, redactor), history, path, allowed or Allowed())
    write(golden)
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
    write(changed)
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
        header = dataclasses.replace(record.header, **HEADER_LEFT_OUT) if record.header is not None else None
        records.append(record_of(record.record_id, header, events))
    return Run(run.id, tuple(records), (), ())


def _kept(event: RunEvent, redactor: Redactor | None, memory: JSON) -> RunEvent:
    defaults = {
        field.name: field.default for field in dataclasses.fields(RunEvent) if field.default is not dataclasses.MISSING
    }
    dropped = {name: defaults[name] for name in LEFT_OUT if name in defaults}
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
