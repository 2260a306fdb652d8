"""A run opened without its payloads: each is read when somebody wants to see it.

A page about ten thousand events shows one of them at a time. What it needs of the others (order,
nesting, times, states) is in the envelopes and the spans.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ObjectNotFound, VaultDenied, VaultError
from ..event import EventStatus, RunEvent
from ..vault import Manifest, Store, StoredRecord, layout
from ..vault.excerpt import Excerpt
from ..vault.manifest import SegmentInfo
from .findings import NO_PAYLOAD
from .run import Run

__all__ = ["OpenedRun", "outlined"]


@dataclasses.dataclass(frozen=True)
class OpenedRun:
    """A run and where its payloads lie.

    Attributes:
        run: The run; the payloads of its events are None unless they had to be read to open it.
        stored: Its records in the vault, by id.
    """

    run: Run
    stored: Mapping[str, StoredRecord]

    def payload(self, event: RunEvent) -> Any:
        """The event's whole payload; by one ranged read, and more for what it quotes from elsewhere.

        Raises:
            ObjectNotFound: It has none, or none any more.
            VaultError: It cannot be read now, may not be, or is not what was stored.
        """
        return self.excerpt(event, None).payload

    def excerpt(self, event: RunEvent, newest: int | None) -> Excerpt:
        """The event's payload without the beginning of a long conversation; see `StoredRecord.excerpt`.

        Raises:
            ObjectNotFound: It has none, or none any more.
            VaultError: It cannot be read now, may not be, or is not what was stored.
        """
        if event.payload is not None:
            return Excerpt(event.payload)
        record = self.stored.get(event.record_id)
        if record is None or event.status in NO_PAYLOAD:
            raise ObjectNotFound(f"event {event.seq} has no payload here: {event.status.value}")
        return record.excerpt(event.seq, newest)


def outlined(record: StoredRecord, store: Store) -> list[RunEvent]:
    """Every event with its state but without its payload; reads as `StoredRecord.events` does.

    One byte of each retention class is asked for: whether these credentials may read it, and whether it
    is there, is known only by trying. A record without a manifest has to be read whole.

    Raises:
        RecordDamaged: What is stored is not what the manifest says.
        VaultError: The store cannot be read.
    """
    manifest = record.manifest
    if manifest is None:
        return record.events()
    states = {klass: _state(record, store, segments) for klass, segments in _by_class(manifest)}
    return [_outline(event, states, record) for event in record.envelopes()]


def _by_class(manifest: Manifest) -> Iterator[tuple[str, list[SegmentInfo]]]:
    for klass in layout.CLASSES:
        segments = [segment for segment in manifest.segments if segment.klass == klass]
        if segments and klass != layout.META:
            yield klass, segments


def _state(record: StoredRecord, store: Store, segments: list[SegmentInfo]) -> EventStatus:
    """What can be had of a class: its segments expire and are denied together."""
    first = segments[0]
    if record.expired(first.key):
        return EventStatus.PAYLOAD_EXPIRED
    try:
        store.get(first.key, start=0, length=1)
        return record.payload_state()
    except (VaultDenied, ObjectNotFound) as error:
        return record.lost(error)
    except VaultError as error:
        record.problems.append(str(error))
    return EventStatus.RECORDED


def _outline(event: RunEvent, states: Mapping[str, EventStatus], record: StoredRecord) -> RunEvent:
    if event.status is not EventStatus.RECORDED:
        return event
    return dataclasses.replace(event, status=states.get(record.class_of(event.kind), EventStatus.PAYLOAD_MISSING))
