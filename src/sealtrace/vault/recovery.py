"""Stores what dead processes left in the spool."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .._version import __version__
from ..errors import VaultError
from ..event import RunEvent, timestamp
from .journal import About, RecoveryJournal, replay
from .manifest import RecordHeader
from .openrecord import OpenRecord
from .preparation import Preparation
from .spool import SpoolFile, SpoolKey, SpoolUnreadable, orphans
from .stores.base import Store
from .tombstones import Tombstones

__all__ = ["Recovered", "recover", "waiting"]

_log: Final = logging.getLogger("sealtrace")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A record that was found in the spool.

    Attributes:
        run_id: Its run; empty where the file cannot be read.
        record_id: Its record.
        events: Events found.
        complete: Its process had closed it, and only the storing was left.
        erased: Its run was erased meanwhile, so it was thrown away and not stored.
        problem: Why it could not be recovered; None where it was.
    """

    run_id: str
    record_id: str
    events: int
    complete: bool
    erased: bool = False
    problem: str | None = None


def recover(
    root: Path,
    key: SpoolKey,
    store: Store,
    *,
    preparation: Preparation | None = None,
    tombstones: Tombstones | None = None,
) -> Iterator[Recovered]:
    """Store, record by record, what dead processes left, and remove it from the spool.

    A record whose process did not close it gets a manifest with `complete` false and status
    `incomplete`. A file that can never be read, because its key died with its process, is removed;
    one of another named key stays for whoever has that key. A record whose run was erased is thrown
    away, if these credentials may list; if not it is stored, and the reader refuses it. One whose key
    cannot be wrapped, or whose manifest cannot be signed, stays, and the next is tried.

    Args:
        root: The spool's directory.
        key: Opens its files.
        store: Where to.
        preparation: Signs the manifests and wraps the data keys that are not wrapped yet.
        tombstones: Knows which runs were erased; by default what the store says.

    Raises:
        VaultError: The store does not take it; it stays in the spool.
    """
    preparation = preparation or Preparation(None, None)
    tombstones = tombstones or Tombstones(store)
    for orphan in orphans(root):
        for file in orphan.files(key):
            yield _recover(file, store, preparation, tombstones)


def waiting(root: Path) -> tuple[int, int]:
    """Records and bytes of dead processes that wait in the spool."""
    files = [path for orphan in orphans(root) for path in orphan.folder.glob("*.spool")]
    return len(files), sum(path.stat().st_size for path in files)


def _recover(file: SpoolFile, store: Store, preparation: Preparation, tombstones: Tombstones) -> Recovered:
    try:
        found = replay(file)
    except SpoolUnreadable as error:
        if error.mortal:
            file.remove()
            _log.warning("sealtrace lost a record: its process died and no `key` was set, so nobody can read its spool")
        return Recovered(run_id="", record_id=file.path.stem, events=0, complete=False, problem=str(error))
    record = found.record
    complete = record.finished and record.sealed[0].complete
    if tombstones.has_if_allowed(record.run_id, record.sealed[0].header if record.finished else None):
        file.remove()
        return _recovered(record, complete=complete, erased=True)
    journal = RecoveryJournal(file)
    if not record.finished:
        now = timestamp(time.time_ns())
        journal.cut(now, last=True)
        record.cut_last(now)
        journal.manifest(record.finish(_header(found.about, found.envelopes, now), now, complete=False))
    try:
        preparation.prepare(record, lambda tell: tell(journal))
    except VaultError as error:
        # One record's key or signature is not to be had now: that must not keep others from being stored.
        return _recovered(record, complete=complete, problem=str(error))
    while record.uploads:
        upload = record.uploads[0]
        store.put(upload.key, upload.data, sha256=upload.sha256)
        record.stored()
    file.remove()
    return _recovered(record, complete=complete)


def _recovered(record: OpenRecord, *, complete: bool, erased: bool = False, problem: str | None = None) -> Recovered:
    return Recovered(
        run_id=record.run_id,
        record_id=record.record_id,
        events=record.events,
        complete=complete,
        erased=erased,
        problem=problem,
    )


def _header(about: About, events: list[RunEvent], now: str) -> RecordHeader:
    """What the envelopes tell of the run; `fidelity` is `trace`, since nobody can vouch for more."""
    times = [event.ts for event in events] or [now]
    return RecordHeader(
        run_id=about.run_id,
        record_id=about.record_id,
        workflow_name=None,
        started_at=min(times),
        ended_at=max(times),
        trace_ids=_distinct(event.trace_id for event in events),
        root_span_id=None,
        fidelity="trace",
        status="incomplete",
        dropped=sum(str(event.status) == "payload dropped" for event in events),
        redaction_failed=sum(str(event.status) == "redaction failed" for event in events),
        open_events=0,
        agents=_distinct(event.agent for event in events),
        tools=(),
        models=_distinct(event.model for event in events),
        input_tokens=0,
        output_tokens=0,
        group_tag=None,
        sdk_version="",
        sealtrace_version=__version__,
        key_id=about.key_id,
        key_ephemeral=about.key_ephemeral,
        event_count=max((event.seq for event in events), default=-1) + 1,
    )


def _distinct(values: Iterator[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))
