"""A record while it is being written: lines become segments, segments become uploads."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from typing import Final, NamedTuple

from ..event import RunEvent
from ..settings import Retention
from . import layout
from .envelope import DataKey
from .lines import encode_line, storable
from .manifest import Manifest, RecordHeader, SegmentInfo, pack_envelope
from .segment import Line, Messages, SegmentBuilder

__all__ = ["OpenRecord", "Upload"]

_MAX_META_LINES: Final = 2_000
"""Envelopes beyond this go to a meta segment, so that a manifest stays small."""


class Upload(NamedTuple):
    """An object that is finished and not yet stored."""

    key: str
    data: bytes
    sha256: bytes


class OpenRecord:
    """Everything of one record that is not stored yet, and what is needed for its manifest.

    With a data key, payloads are encrypted before they become uploads: nothing in the clear can be stored.

    Nothing here fails for outside reasons, and the same calls in the same order give the same
    bytes: that is what lets a record be rebuilt from a spool without storing anything twice.

    Attributes:
        data_key: Encrypts the payloads; None where they are stored as they are.
        uploads: Finished objects, to be stored in this order, once nothing is `unwrapped` or `unsigned`.
        dropped: Payloads dropped here for want of room.
        events: Events added.
        cut_at: Monotonic time of the last cut, or of the beginning.
    """

    def __init__(
        self, run_id: str, record_id: str, retention: Retention, ruleset_hash: str, data_key: DataKey | None = None
    ) -> None:
        self.run_id = run_id
        self.record_id = record_id
        self.data_key = data_key
        self.uploads: deque[Upload] = deque()
        self.dropped = 0
        self.events = 0
        self.stored_bytes = 0
        self.stored_objects = 0
        self.cut_at = time.monotonic()
        self._retention = retention
        self._ruleset = ruleset_hash
        self._messages: dict[str, Messages] = {}
        self._builders: dict[str, SegmentBuilder] = {}
        self._envelopes: list[RunEvent] = []
        self._envelope_bytes = 0
        self._segments: list[SegmentInfo] = []
        self._sealed: tuple[Manifest, str] | None = None
        self._manifest = b""
        self._wrapped = False
        self._waiting = 0

    @property
    def finished(self) -> bool:
        """Whether the manifest has been made."""
        return self._sealed is not None

    @property
    def sealed(self) -> tuple[Manifest, str]:
        """The manifest and its key; only once `finished`."""
        assert self._sealed is not None
        return self._sealed

    @property
    def unwrapped(self) -> DataKey | None:
        """The data key, while something sealed is to be stored and its wrapped key has not been made."""
        return self.data_key if not self._wrapped and any(layout.is_sealed(key) for key in self.segment_keys) else None

    @property
    def unsigned(self) -> bytes:
        """The manifest's bytes, while it is to be stored and has no signature; else empty."""
        return self._manifest if self._sealed is not None and self._sealed[0].signature is None else b""

    @property
    def fullest(self) -> int:
        """Raw bytes of the largest segment in progress."""
        return max((builder.raw_bytes for builder in self._builders.values()), default=0)

    @property
    def held(self) -> int:
        """Bytes this record holds in memory, about."""
        return self._waiting + self._envelope_bytes + sum(item.raw_bytes for item in self._builders.values())

    def messages(self, klass: str) -> Messages:
        """The messages stored so far in a class."""
        return self._messages.setdefault(klass, Messages())

    def add(self, envelope: RunEvent, klass: str | None, lines: list[Line]) -> None:
        """Add an event: its envelope, and its payload's lines if it has any."""
        self.events += 1
        self._envelopes.append(envelope)
        self._envelope_bytes += 300
        if klass is not None:
            self.add_lines(klass, lines)

    def add_lines(self, klass: str, lines: list[Line]) -> None:
        """Add lines to the class's segment in progress."""
        if klass not in self._builders:
            self._builders[klass] = SegmentBuilder(self.data_key.sealer(klass) if self.data_key is not None else None)
        self._builders[klass].add(lines)

    def cut(self, now: str) -> None:
        """Finish all segments in progress, envelopes too: a crash after this loses no envelope."""
        self.cut_at = time.monotonic()
        self._cut_payloads(now)
        self._cut_envelopes(now)

    def cut_last(self, now: str) -> None:
        """Finish the last segments; envelopes only where they are too many for the manifest."""
        self._cut_payloads(now)
        if len(self._envelopes) > _MAX_META_LINES:
            self._cut_envelopes(now)

    @property
    def segment_keys(self) -> tuple[str, ...]:
        """Keys of the segments made so far."""
        return tuple(segment.key for segment in self._segments)

    def wrapped(self, data: bytes) -> None:
        """Take the wrapped data key: it is stored before anything that needs it."""
        digest = hashlib.sha256(data).digest()
        self.uploads.appendleft(Upload(layout.key_key(self.run_id, self.record_id, digest), data, digest))
        self._waiting += len(data)
        self._wrapped = True

    def finish(self, header: RecordHeader, now: str, *, complete: bool) -> bytes:
        """Make the manifest, after `cut_last`; its bytes, without a signature."""
        first_trace = header.trace_ids[0] if header.trace_ids else None
        lines = tuple(encode_line(storable(pack_envelope(event, first_trace))) for event in self._envelopes)
        self._envelopes.clear()
        self._envelope_bytes = 0
        segments = tuple(self._segments)
        manifest = Manifest(
            header=header,
            segments=segments,
            envelopes=lines,
            ruleset_hash=self._ruleset,
            merkle_root=Manifest.root_of(segments, lines),
            created_at=now,
            expires_at=layout.expiry(now, self._retention.meta),
            complete=complete,
            sealed_by=self._sealing_key(segments),
        )
        data = manifest.encode()
        self.finish_as(data, manifest)
        return data

    def _sealing_key(self, segments: tuple[SegmentInfo, ...]) -> str | None:
        sealed = self.data_key is not None and any(layout.is_sealed(segment.key) for segment in segments)
        return self.data_key.ident if sealed and self.data_key is not None else None

    def finish_as(self, data: bytes, manifest: Manifest) -> None:
        """Take a manifest as it was made before, or the same one signed."""
        if self._sealed is not None:
            self._waiting -= len(self.uploads.pop().data)
        digest = hashlib.sha256(data).digest()
        key = layout.manifest_key(self.run_id, self.record_id, digest)
        self._wait(Upload(key, data, digest))
        self._sealed = manifest, key
        self._manifest = data

    def signed(self, data: bytes) -> None:
        """Take the manifest with its signature."""
        key = layout.manifest_key(self.run_id, self.record_id, hashlib.sha256(data).digest())
        self.finish_as(data, Manifest.decode(data, key))

    def stored(self) -> Upload:
        """The first of `uploads` has been stored: let go of it."""
        upload = self.uploads.popleft()
        self._waiting -= len(upload.data)
        self.stored_bytes += len(upload.data)
        self.stored_objects += 1
        return upload

    def _cut_payloads(self, now: str) -> None:
        for klass, builder in self._builders.items():
            self._cut_one(klass, builder, now)
        self._builders.clear()

    def _cut_envelopes(self, now: str) -> None:
        if not self._envelopes:
            return
        builder = SegmentBuilder()
        for event in self._envelopes:
            builder.add([Line(encode_line(storable(pack_envelope(event, None))), event.seq)])
        self._envelopes.clear()
        self._envelope_bytes = 0
        self._cut_one(layout.META, builder, now)

    def _cut_one(self, klass: str, builder: SegmentBuilder, now: str) -> None:
        segment = builder.finish()
        sealed = self.data_key is not None and klass != layout.META
        key = layout.segment_key(klass, self.run_id, self.record_id, segment.first_seq, segment.sha256, sealed=sealed)
        self._segments.append(
            SegmentInfo(
                key=key,
                klass=klass,
                sha256=segment.sha256.hex(),
                bytes=len(segment.data),
                lines=segment.lines,
                root=segment.root.hex(),
                expires_at=layout.expiry(now, layout.days_of(klass, self._retention)),
                groups=segment.groups,
            )
        )
        self._wait(Upload(key, segment.data, segment.sha256))

    def _wait(self, upload: Upload) -> None:
        self.uploads.append(upload)
        self._waiting += len(upload.data)
