"""Writes records: segments as they fill, the manifest last. One thread uses it."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from ..errors import VaultDenied, VaultError, VaultUnavailable
from ..event import EventStatus, RunEvent, timestamp
from ..keys import Keys
from ..settings import Settings
from . import layout
from .breaker import Breaker
from .envelope import DataKey
from .journal import About, Journal, replay
from .manifest import RecordHeader
from .openrecord import OpenRecord, Upload
from .outcome import Seal, WriterState
from .preparation import Preparation
from .recovery import recover
from .segment import Line, PayloadTooLarge
from .signing import Signer
from .spool import Spool
from .stores.base import Store
from .tombstones import Tombstones
from .wrapping import Keyring

__all__ = ["VaultWriter"]

_MAX_OBJECT: Final = 3 * 1024 * 1024
"""Raw bytes after which a segment is closed whatever the settings say: with one line more, objects stay under 8 MB."""

_RECOVER_SECONDS: Final = 30.0
_RECOVER_AT_ONCE: Final = 1.0
"""Seconds one tick may spend on dead processes' records: the living ones come first."""

_log: Final = logging.getLogger("sealtrace")


class _Writing:
    """An open record and its side in the spool."""

    __slots__ = ("journal", "record")

    def __init__(self, record: OpenRecord, journal: Journal | None) -> None:
        self.record = record
        self.journal = journal


class VaultWriter:
    """Stores redacted events, record by record.

    What the store does not take now stays here and is tried again, whatever the reason it gave:
    a policy that is repaired must not have cost the records of the meantime. Every method that
    raises `VaultUnavailable` may be called again. When more than `spool_bytes` wait, new payloads
    are dropped, their envelopes stay and the drops are counted in the record.

    With a spool every event is in it before `append` returns, a closed record that cannot be stored
    leaves memory, and what dead processes left is stored too. With `envelope_key` payloads are encrypted
    under a key of their record's own, and nothing is stored before that key has been wrapped.

    Args:
        store: Where to.
        settings: Sizes, times, retention and the spool.
        ruleset_hash: The redaction rules in force.

    Raises:
        SettingsError: The key, the signing key or the envelope key cannot be used.
        VaultError: The key is KMS ciphertext, and KMS refuses or does not answer.
    """

    def __init__(self, store: Store, settings: Settings, *, ruleset_hash: str) -> None:
        self._store = store
        self._settings = settings
        self._ruleset = ruleset_hash
        self._cut_at = min(settings.segment_bytes, _MAX_OBJECT)
        self._key_id = Keys.from_settings(settings).key_id if settings.key is not None else ""
        self._keyring = Keyring.from_settings(settings)
        self._preparation = Preparation(self._keyring, Signer.from_settings(settings))
        self._spool = Spool.from_settings(settings)
        self._breaker = Breaker()
        self._tombstones = Tombstones(store)
        self._open: dict[str, _Writing] = {}
        self._parked: dict[str, Journal] = {}
        self._held = 0
        self._dropped = 0
        self._recovered = 0
        self._recover_at = 0.0

    @property
    def held_bytes(self) -> int:
        """Bytes that wait in memory."""
        return self._held

    @property
    def state(self) -> WriterState:
        """How the writer is doing."""
        return WriterState(
            held_bytes=self._held,
            spool_bytes=self._spool.used if self._spool else 0,
            open_records=len(self._open),
            parked_records=len(self._parked),
            dropped=self._dropped,
            recovered=self._recovered,
            spooling=self._spool is not None,
            last_error=self._breaker.last_error or self._preparation.breaker.last_error,
        )

    def append(self, event: RunEvent) -> None:
        """Add an event whose payload is redacted; `Shared` values are stored once.

        Raises:
            VaultUnavailable: A segment was full and could not be stored; the event is kept.
        """
        writing = self._writing(event.run_id, event.record_id)
        record = writing.record
        before = record.held
        if event.payload is None and event.status is not EventStatus.RECORDED:
            self._add(writing, event, None, [])
        elif self._full():
            self._add_without_payload(writing, event)
        else:
            self._add_with_payload(writing, event)
        if record.fullest >= self._cut_at:
            self._cut(writing)
        self._held += record.held - before
        if record.uploads:
            self._upload(writing)

    def _full(self) -> bool:
        waiting = max(self._held, self._spool.used if self._spool is not None else 0)
        return waiting >= self._settings.spool_bytes

    def _add_with_payload(self, writing: _Writing, event: RunEvent) -> None:
        klass = layout.class_of(event.kind, self._settings.retention)
        try:
            lines = writing.record.messages(klass).encode(event.kind, event.seq, event.payload)
        except PayloadTooLarge as error:
            self._add_lines(writing, klass, error.lines)
            self._add_without_payload(writing, event)
            return
        self._add(writing, dataclasses.replace(event, payload=None), klass, lines)

    def _add_without_payload(self, writing: _Writing, event: RunEvent) -> None:
        writing.record.dropped += 1
        self._dropped += 1
        self._add(writing, dataclasses.replace(event, payload=None, status=EventStatus.PAYLOAD_DROPPED), None, [])

    def _add(self, writing: _Writing, envelope: RunEvent, klass: str | None, lines: list[Line]) -> None:
        self._note(writing, lambda journal: journal.event(envelope, klass, lines))
        writing.record.add(envelope, klass, lines)

    def _add_lines(self, writing: _Writing, klass: str, lines: list[Line]) -> None:
        self._note(writing, lambda journal: journal.lines(klass, lines))
        writing.record.add_lines(klass, lines)

    def _note(self, writing: _Writing, tell: Callable[[Journal], None]) -> None:
        """Tell the spool; where it takes no more of this record, that lives in memory only from here on."""
        if writing.journal is None:
            return
        try:
            tell(writing.journal)
        except OSError as error:
            _log.warning("sealtrace cannot write its spool (%s); records wait in memory only", error.strerror or error)
            writing.journal.discard()
            writing.journal = None

    def tick(self) -> None:
        """Store the segments of records that have been open for long, and what dead processes left.

        Raises:
            VaultUnavailable: Something could not be stored; it is kept.
        """
        now = time.monotonic()
        for writing in self._open.values():
            record = writing.record
            if now - record.cut_at >= self._settings.segment_seconds and not record.finished:
                self._cut_counted(writing)
        self._upload_all()
        if self._spool is not None and now >= self._recover_at:
            self._recover_at = now + _RECOVER_SECONDS
            self._recover(self._spool)

    def _recover(self, spool: Spool) -> None:
        self._breaker.check()
        deadline = time.monotonic() + _RECOVER_AT_ONCE
        try:
            for found in recover(
                spool.root, spool.key, self._store, preparation=self._preparation, tombstones=self._tombstones
            ):
                self._recovered += found.problem is None and not found.erased
                if time.monotonic() > deadline:
                    # What waits for a KMS that is away would be looked at again and again.
                    self._recover_at = self._recover_at if self._preparation.breaker.open else 0.0
                    break
        except VaultError as error:
            raise self._refused(error) from error
        except OSError as error:
            _log.warning("sealtrace cannot read its spool (%s)", error.strerror or error)

    def flush(self) -> bool:
        """Store everything gathered so far, also of records that are still open.

        Returns:
            True; what is left would have raised.

        Raises:
            VaultUnavailable: Something could not be stored; it is kept.
        """
        self._breaker.probe()
        self._preparation.breaker.probe()
        for writing in self._open.values():
            if not writing.record.finished:
                self._cut_counted(writing)
        self._upload_all()
        return True

    def seal(self, header: RecordHeader) -> Seal:
        """Store what is left of the record, then its manifest.

        Raises:
            VaultUnavailable: Something could not be stored; it is kept, and `seal` may be called again.
        """
        writing = self._unparked(header) or self._writing(header.run_id, header.record_id)
        record = writing.record
        if not record.finished:
            self._finish(writing, header)
        try:
            self._upload(writing)
        except VaultUnavailable:
            self._park(writing)
            raise
        if writing.journal is not None:
            writing.journal.discard()
        self._forget(record.record_id)
        manifest, key = record.sealed
        return Seal(
            record_id=record.record_id,
            events=record.events,
            bytes=record.stored_bytes,
            objects=record.stored_objects,
            dropped=manifest.header.dropped,
            status=manifest.header.status,
            merkle_root=manifest.merkle_root,
            manifest_key=key,
        )

    def _finish(self, writing: _Writing, header: RecordHeader) -> None:
        record, now = writing.record, timestamp(time.time_ns())
        before = record.held
        header = dataclasses.replace(header, dropped=header.dropped + record.dropped)
        self._cut(writing, now, last=True)
        data = record.finish(header, now, complete=True)
        self._note(writing, lambda journal: journal.manifest(data))
        self._held += record.held - before

    def _park(self, writing: _Writing) -> None:
        """Let a closed record that waits go from memory; the spool has it all."""
        if writing.journal is not None:
            self._parked[writing.record.record_id] = writing.journal
            self._forget(writing.record.record_id)

    def _unparked(self, header: RecordHeader) -> _Writing | None:
        journal = self._parked.get(header.record_id)
        if journal is None:
            return None
        self._breaker.check()
        record = replay(journal.file).record
        del self._parked[header.record_id]
        self._held += record.held
        self._open[header.record_id] = writing = _Writing(record, journal)
        return writing

    def abandon(self, record_id: str) -> None:
        """Forget a record; what of it is stored stays stored, and reads as partial."""
        writing = self._open.get(record_id)
        if writing is not None and writing.journal is not None:
            writing.journal.discard()
        self._forget(record_id)

    def _forget(self, record_id: str) -> None:
        writing = self._open.pop(record_id, None)
        if writing is not None:
            self._held -= writing.record.held

    def reset(self) -> None:
        """Forget every record: this is a forked child, and they are the parent's."""
        self._open.clear()
        self._parked.clear()
        self._held = 0
        self._breaker = Breaker()
        if self._spool is not None:
            self._spool.release()
            self._spool = Spool.from_settings(self._settings)

    def _writing(self, run_id: str, record_id: str) -> _Writing:
        writing = self._open.get(record_id)
        if writing is None:
            data_key = DataKey.new(record_id) if self._keyring is not None else None
            record = OpenRecord(run_id, record_id, self._settings.retention, self._ruleset, data_key)
            writing = self._open[record_id] = _Writing(record, self._journal(record))
        return writing

    def _journal(self, record: OpenRecord) -> Journal | None:
        if self._spool is None:
            return None
        about = About(
            run_id=record.run_id,
            record_id=record.record_id,
            ruleset_hash=self._ruleset,
            retention=self._settings.retention,
            key_id=self._key_id,
            key_ephemeral=self._settings.key is None,
            data_key=record.data_key.secret if record.data_key is not None else None,
        )
        try:
            return Journal.begin(self._spool, about)
        except OSError as error:
            _log.warning("sealtrace cannot write its spool (%s); records wait in memory only", error)
            return None

    def _cut_counted(self, writing: _Writing) -> None:
        before = writing.record.held
        self._cut(writing)
        self._held += writing.record.held - before

    def _cut(self, writing: _Writing, now: str | None = None, *, last: bool = False) -> None:
        now = now or timestamp(time.time_ns())
        moment = now
        self._note(writing, lambda journal: journal.cut(moment, last=last))
        if last:
            writing.record.cut_last(now)
        else:
            writing.record.cut(now)

    def _upload_all(self) -> None:
        failed: VaultUnavailable | None = None
        for writing in self._open.values():
            try:
                self._upload(writing)
            except VaultUnavailable as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _upload(self, writing: _Writing) -> None:
        record = writing.record
        if record.uploads:
            self._prepare(writing)
        while record.uploads:
            self._put(record.uploads[0])
            stored = record.stored()
            self._held -= len(stored.data)
            if record.uploads:
                self._note(writing, partial(Journal.stored, key=stored.key))

    def _put(self, upload: Upload) -> None:
        self._breaker.check()
        try:
            self._store.put(upload.key, upload.data, sha256=upload.sha256)
        except VaultError as error:
            raise self._refused(error) from error
        self._breaker.worked()

    def _prepare(self, writing: _Writing) -> None:
        before = writing.record.held
        try:
            self._preparation.prepare(writing.record, partial(self._note, writing))
        except VaultError as error:
            raise self._kept(error) from error
        finally:
            self._held += writing.record.held - before

    def _refused(self, error: VaultError) -> VaultUnavailable:
        self._breaker.failed(error)
        return self._kept(error)

    @staticmethod
    def _kept(error: VaultError) -> VaultUnavailable:
        if isinstance(error, VaultUnavailable):
            return error
        denied = "; what was recorded is kept and tried again" if isinstance(error, VaultDenied) else ""
        return VaultUnavailable(f"{error}{denied}", key=error.key)
