"""Writes records: segments as they fill, the manifest last. One thread uses it."""

from __future__ import annotations

import dataclasses
import time
from typing import Final

from ..errors import VaultDenied, VaultUnavailable
from ..event import EventStatus, RunEvent, timestamp
from ..settings import Settings
from . import layout
from .manifest import RecordHeader
from .openrecord import OpenRecord
from .segment import PayloadTooLarge
from .stores.base import Store

__all__ = ["Seal", "VaultWriter"]

_MAX_OBJECT: Final = 3 * 1024 * 1024
"""Raw bytes after which a segment is closed whatever the settings say: with one line more, objects stay under 8 MB."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What was stored of a record, said on the `sealtrace.seal` span."""

    record_id: str
    events: int
    bytes: int
    objects: int
    dropped: int
    status: str
    merkle_root: str
    manifest_key: str


class VaultWriter:
    """Stores redacted events, record by record.

    What the store does not take now stays here and is tried again, whatever the reason it gave:
    a policy that is repaired must not have cost the records of the meantime. Every method that
    raises `VaultUnavailable` may be called again. When more than `spool_bytes` wait, new payloads
    are dropped, their envelopes stay and the drops are counted in the record.

    Args:
        store: Where to.
        settings: Sizes, times and retention.
        ruleset_hash: The redaction rules in force.
    """

    def __init__(self, store: Store, settings: Settings, *, ruleset_hash: str) -> None:
        self._store = store
        self._settings = settings
        self._ruleset = ruleset_hash
        self._cut_at = min(settings.segment_bytes, _MAX_OBJECT)
        self._open: dict[str, OpenRecord] = {}
        self._held = 0

    @property
    def held_bytes(self) -> int:
        """Bytes that wait in memory."""
        return self._held

    def append(self, event: RunEvent) -> None:
        """Add an event whose payload is redacted; `Shared` values are stored once.

        Raises:
            VaultUnavailable: A segment was full and could not be stored; the event is kept.
        """
        record = self._record(event.run_id, event.record_id)
        before = record.held
        if event.payload is None and event.status is not EventStatus.RECORDED:
            record.add(event, None, [])
        elif self._held >= self._settings.spool_bytes:
            self._add_without_payload(record, event)
        else:
            self._add(record, event)
        if record.fullest >= self._cut_at:
            record.cut(timestamp(time.time_ns()))
        self._held += record.held - before
        if record.uploads:
            self._upload(record)

    def _add(self, record: OpenRecord, event: RunEvent) -> None:
        klass = layout.class_of(event.kind, self._settings.retention)
        try:
            lines = record.messages(klass).encode(event.kind, event.seq, event.payload)
        except PayloadTooLarge as error:
            if error.lines:
                record.add_lines(klass, error.lines)
            self._add_without_payload(record, event)
            return
        record.add(dataclasses.replace(event, payload=None), klass, lines)

    def _add_without_payload(self, record: OpenRecord, event: RunEvent) -> None:
        record.dropped += 1
        record.add(dataclasses.replace(event, payload=None, status=EventStatus.PAYLOAD_DROPPED), None, [])

    def tick(self) -> None:
        """Store the segments of records that have been open for long.

        Raises:
            VaultUnavailable: Something could not be stored; it is kept.
        """
        now = time.monotonic()
        for record in self._open.values():
            if now - record.cut_at >= self._settings.segment_seconds and not record.finished:
                self._cut(record)
        self._upload_all()

    def flush(self) -> bool:
        """Store everything gathered so far, also of records that are still open.

        Returns:
            True; what is left would have raised.

        Raises:
            VaultUnavailable: Something could not be stored; it is kept.
        """
        for record in self._open.values():
            if not record.finished:
                self._cut(record)
        self._upload_all()
        return True

    def seal(self, header: RecordHeader) -> Seal:
        """Store what is left of the record, then its manifest.

        Raises:
            VaultUnavailable: Something could not be stored; it is kept, and `seal` may be called again.
        """
        record = self._record(header.run_id, header.record_id)
        if not record.finished:
            before = record.held
            header = dataclasses.replace(header, dropped=header.dropped + record.dropped)
            record.finish(header, timestamp(time.time_ns()), complete=True)
            self._held += record.held - before
        self._upload(record)
        self.abandon(record.record_id)
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

    def abandon(self, record_id: str) -> None:
        """Forget a record; what of it is stored stays stored, and reads as partial."""
        record = self._open.pop(record_id, None)
        if record is not None:
            self._held -= record.held

    def reset(self) -> None:
        """Forget every record: this is a forked child, and they are the parent's."""
        self._open.clear()
        self._held = 0

    def _record(self, run_id: str, record_id: str) -> OpenRecord:
        record = self._open.get(record_id)
        if record is None:
            record = OpenRecord(run_id, record_id, self._settings.retention, self._ruleset)
            self._open[record_id] = record
        return record

    def _cut(self, record: OpenRecord) -> None:
        before = record.held
        record.cut(timestamp(time.time_ns()))
        self._held += record.held - before

    def _upload_all(self) -> None:
        failed: VaultUnavailable | None = None
        for record in self._open.values():
            try:
                self._upload(record)
            except VaultUnavailable as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _upload(self, record: OpenRecord) -> None:
        while record.uploads:
            upload = record.uploads[0]
            try:
                self._store.put(upload.key, upload.data, sha256=upload.sha256)
            except VaultUnavailable:
                raise
            except VaultDenied as error:
                raise VaultUnavailable(f"{error}; what was recorded is kept and tried again", key=error.key) from error
            record.stored()
            self._held -= len(upload.data)
