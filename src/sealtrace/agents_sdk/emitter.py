"""From something that happened to a draft in the recorder's queue."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from ..event import Kind, RunEvent, timestamp
from ..record import Record
from ..recorder import Draft, Recorder
from ..settings import Settings
from .codec import Snapshot
from .frames import ACTOR, FRAME, Frame
from .spanbook import SpanBook, SpanEntry

__all__ = ["Emitter", "Pending"]


@dataclasses.dataclass(slots=True, eq=False)
class Pending:
    """An event whose `seq` is taken and whose end is still to come; the token of a seam call."""

    frame: Frame
    record: Record
    seq: int
    ordinal: int
    kind: Kind
    started_ns: int
    entry: SpanEntry | None
    snapshot: Snapshot
    payload: dict[str, Any]
    digest: dict[str, Any]
    call_id: str | None = None
    parent_seq: int | None = None
    model: str | None = None
    config: dict[str, Any] | None = None
    tool: str | None = None
    error_type: str | None = None
    scope: list[Any] = dataclasses.field(default_factory=list[Any])


class Emitter:
    """Shared by the parts of the capture.

    Args:
        recorder: Where drafts go.
        book: The open spans.
        settings: The settings in force.
        clean: The identifier gate: lets a sane, secret-free name through, else gives a keyed tag.
    """

    def __init__(self, recorder: Recorder, book: SpanBook, settings: Settings, clean: Any) -> None:
        self.recorder = recorder
        self.book = book
        self.settings = settings
        self.clean = clean

    def begin(self, kind: Kind, frame: Frame, record: Record) -> Pending:
        """Take the event's place in the order, now."""
        record.hold()
        seq = record.reserve()
        entry = self.book.current() or self.book.root_entry(record)
        self.book.first_event(entry, seq)
        return Pending(
            frame, record, seq, record.ordinal(frame.path, kind), kind, time.time_ns(), entry, Snapshot(), {}, {}
        )

    def end(self, event: Pending, *, error_type: str | None = None) -> None:
        """Queue the event with what it has become, and let go of the record."""
        self._queue(event, error_type, (time.time_ns() - event.started_ns) / 1e6)
        self.recorder.release(event.record)

    def at_once(
        self,
        kind: Kind,
        frame: Frame,
        record: Record,
        payload: dict[str, Any],
        *,
        snapshot: Snapshot,
        digest: dict[str, Any] | None = None,
        entry: SpanEntry | None = None,
        error_type: str | None = None,
        **fields: Any,
    ) -> int:
        """Queue something that has no duration; returns its seq."""
        seq = record.reserve()
        entry = entry or self.book.current() or self.book.root_entry(record)
        self.book.first_event(entry, seq)
        event = Pending(
            frame,
            record,
            seq,
            record.ordinal(frame.path, kind),
            kind,
            time.time_ns(),
            entry,
            snapshot,
            payload,
            digest or {},
            **fields,
        )
        self._queue(event, error_type, None)
        return seq

    def _queue(self, event: Pending, error_type: str | None, duration_ms: float | None) -> None:
        if self.settings.vault is None:
            return
        entry = event.entry
        self.recorder.emit(
            Draft(
                RunEvent(
                    run_id=event.record.run_id,
                    record_id=event.record.record_id,
                    seq=event.seq,
                    ts=timestamp(event.started_ns),
                    kind=event.kind,
                    frame=event.frame.path,
                    ordinal=event.ordinal,
                    agent=event.frame.agent or None,
                    model=event.model,
                    parent_seq=event.parent_seq,
                    call_id=event.call_id,
                    trace_id=entry.trace_id if entry else None,
                    span_id=entry.span_id if entry else None,
                    sdk_span_id=entry.sdk_span_id if entry else None,
                    duration_ms=round(duration_ms, 3) if duration_ms is not None else None,
                    error_type=error_type,
                    actor=self._actor(),
                    config=event.config,
                    payload=event.payload,
                ),
                event.digest,
                event.snapshot.size,
                event.tool,
            ),
            event.record,
        )

    def _actor(self) -> dict[str, Any] | None:
        actor = ACTOR.get()
        if actor is None:
            return None
        return {
            name: [self.clean(item) for item in value] if isinstance(value, list) else self.clean(value)
            for name, value in actor.items()
        }

    @staticmethod
    def here() -> tuple[Frame, Record] | None:
        """The frame and record of this context, if this run is recorded."""
        frame = FRAME.get()
        if frame is None or frame.muted or frame.record is None:
            return None
        return frame, frame.record
