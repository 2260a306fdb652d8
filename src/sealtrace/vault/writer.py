"""Writes records: segments as they fill, the manifest last. One thread uses it."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections import deque
from typing import Final

from ..event import RunEvent, timestamp
from ..settings import Settings
from . import layout
from .lines import encode_line
from .manifest import Manifest, RecordHeader, SegmentInfo, pack_envelope
from .segment import Messages, SegmentBuilder
from .stores.base import Store

__all__ = ["Seal", "VaultWriter"]

_MAX_OBJECT: Final = 7 * 1024 * 1024
"""Raw bytes after which a segment is closed whatever the settings say: objects stay under 8 MB."""

_MAX_META_LINES: Final = 2_000
"""Envelopes beyond this go to a meta segment, so that a manifest stays small."""


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


class _Upload:
    """An object that is finished and not yet stored."""

    __slots__ = ("data", "key", "sha256")

    def __init__(self, key: str, data: bytes, sha256: bytes) -> None:
        self.key = key
        self.data = data
        self.sha256 = sha256


class _Open:
    """A record that is being written."""

    def __init__(self, run_id: str, record_id: str) -> None:
        self.run_id = run_id
        self.record_id = record_id
        self.opened_at = time.monotonic()
        self.messages: dict[str, Messages] = {}
        self.builders: dict[str, SegmentBuilder] = {}
        self.envelopes: list[RunEvent] = []
        self.segments: list[SegmentInfo] = []
        self.uploads: deque[_Upload] = deque()
        self.stored_bytes = 0
        self.events = 0
        self.manifest: tuple[Manifest, str] | None = None

    def builder(self, klass: str) -> SegmentBuilder:
        """The class's segment in progress."""
        if klass not in self.builders:
            self.builders[klass] = SegmentBuilder(self.messages.setdefault(klass, Messages()))
        return self.builders[klass]


class VaultWriter:
    """Stores redacted events, record by record.

    What the store does not take now stays here and is tried again: every method that raises
    `VaultUnavailable` may be called again.

    Args:
        store: Where to.
        settings: Sizes, times and retention.
        ruleset_hash: The redaction rules in force.
    """

    def __init__(self, store: Store, settings: Settings, *, ruleset_hash: str) -> None:
        self._store = store
        self._settings = settings
        self._ruleset = ruleset_hash
        self._open: dict[str, _Open] = {}

    def append(self, event: RunEvent) -> None:
        """Add an event whose payload is redacted; `Shared` values are stored once.

        Raises:
            VaultError: A segment was full and could not be stored; the event is kept.
        """
        record = self._open.get(event.record_id)
        if record is None:
            record = self._open[event.record_id] = _Open(event.run_id, event.record_id)
        record.events += 1
        if event.payload is not None:
            builder = record.builder(layout.class_of(event.kind, self._settings.retention))
            builder.add(event.kind, event.seq, event.payload)
        record.envelopes.append(dataclasses.replace(event, payload=None))
        if any(item.raw_bytes >= min(self._settings.segment_bytes, _MAX_OBJECT) for item in record.builders.values()):
            self._cut(record)
        if record.uploads:
            self._upload(record)

    def tick(self) -> None:
        """Store the segments of records that have been open for long.

        Raises:
            VaultError: Something could not be stored; it is kept.
        """
        now = time.monotonic()
        for record in list(self._open.values()):
            if now - record.opened_at >= self._settings.segment_seconds and record.manifest is None:
                record.opened_at = now
                self._cut(record)
            self._upload(record)

    def flush(self) -> bool:
        """Store everything gathered so far, also of records that are still open.

        Returns:
            True; what is left would have raised.

        Raises:
            VaultError: Something could not be stored; it is kept.
        """
        for record in list(self._open.values()):
            if record.manifest is None:
                self._cut(record)
            self._upload(record)
        return True

    def seal(self, header: RecordHeader) -> Seal:
        """Store what is left of the record, then its manifest.

        Raises:
            VaultError: Something could not be stored; it is kept, and `seal` may be called again.
        """
        record = self._open.get(header.record_id)
        if record is None:
            record = self._open[header.record_id] = _Open(header.run_id, header.record_id)
        if record.manifest is None:
            self._finish(record, header)
        self._upload(record)
        assert record.manifest is not None
        manifest, key = record.manifest
        del self._open[header.record_id]
        return Seal(
            record_id=header.record_id,
            events=record.events,
            bytes=record.stored_bytes,
            objects=len(record.segments) + 1,
            dropped=header.dropped,
            status=header.status,
            merkle_root=manifest.merkle_root,
            manifest_key=key,
        )

    def reset(self) -> None:
        """Forget every record: this is a forked child."""
        self._open.clear()

    def _finish(self, record: _Open, header: RecordHeader) -> None:
        self._cut_payloads(record, header.ended_at)
        if len(record.envelopes) > _MAX_META_LINES:
            self._cut_envelopes(record, header.ended_at)
        first_trace = header.trace_ids[0] if header.trace_ids else None
        lines = tuple(encode_line(pack_envelope(event, first_trace)) for event in record.envelopes)
        segments = tuple(record.segments)
        manifest = Manifest(
            header=header,
            segments=segments,
            envelopes=lines,
            ruleset_hash=self._ruleset,
            expires_at=layout.expiry(header.ended_at, self._settings.retention.meta),
            merkle_root=Manifest.root_of(segments, lines),
        )
        data = manifest.encode()
        digest = hashlib.sha256(data).digest()
        key = layout.manifest_key(record.run_id, record.record_id, digest)
        record.uploads.append(_Upload(key, data, digest))
        record.manifest = (manifest, key)

    def _cut(self, record: _Open) -> None:
        """Finish all segments in progress, envelopes too: a crash after this loses no envelope."""
        if not record.envelopes:
            return
        now = timestamp(time.time_ns())
        self._cut_payloads(record, now)
        self._cut_envelopes(record, now)

    def _cut_payloads(self, record: _Open, now: str) -> None:
        for klass, builder in record.builders.items():
            self._cut_one(record, klass, builder, now)
        record.builders.clear()

    def _cut_envelopes(self, record: _Open, now: str) -> None:
        builder = SegmentBuilder(Messages())
        for event in record.envelopes:
            builder.add_raw(event.seq, pack_envelope(event, None))
        record.envelopes.clear()
        self._cut_one(record, layout.META, builder, now)

    def _cut_one(self, record: _Open, klass: str, builder: SegmentBuilder, now: str) -> None:
        segment = builder.finish()
        key = layout.segment_key(klass, record.run_id, record.record_id, segment.first_seq, segment.sha256)
        record.segments.append(
            SegmentInfo(
                key=key,
                klass=klass,
                sha256=segment.sha256.hex(),
                bytes=len(segment.data),
                lines=segment.lines,
                root=segment.root.hex(),
                expires_at=layout.expiry(now, layout.days_of(klass, self._settings.retention)),
                groups=segment.groups,
            )
        )
        record.uploads.append(_Upload(key, segment.data, segment.sha256))

    def _upload(self, record: _Open) -> None:
        while record.uploads:
            upload = record.uploads[0]
            self._store.put(upload.key, upload.data, sha256=upload.sha256)
            record.stored_bytes += len(upload.data)
            record.uploads.popleft()
