"""From something that happened to a draft in the recorder's queue."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from ..draft import Draft
from ..event import Kind
from ..record import Record
from ..recorder import Recorder
from ..settings import Settings
from .codec import Snapshot, class_name, error_facts
from .frames import ACTOR, FRAME, Frame
from .spanbook import SpanBook, SpanEntry

__all__ = ["Emitter", "Pending"]


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class Pending(Draft):
    """A draft whose `seq` is taken and whose end is still to come; the token of a seam call."""

    within: Frame
    entry: SpanEntry | None
    snapshot: Snapshot
    scope: tuple[Any, ...] = ()


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
            record=record,
            seq=seq,
            kind=kind,
            ordinal=record.ordinal(frame.path, kind),
            started_ns=time.time_ns(),
            payload={},
            within=frame,
            entry=entry,
            snapshot=Snapshot(),
        )

    def end(self, event: Pending, *, error_type: str | None = None) -> None:
        """Queue the event with what it has become, and let go of the record."""
        event.duration_ns = time.time_ns() - event.started_ns
        event.error_type = error_type
        self._queue(event)
        self.recorder.release(event.record)

    def finish(self, event: Pending, error: BaseException | None) -> None:
        """End the event, with the exception that ended it if there was one."""
        if error is not None:
            event.payload["error"] = error_facts(error, event.snapshot)
        self.end(event, error_type=class_name(error) if error is not None else None)

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
            record=record,
            seq=seq,
            kind=kind,
            ordinal=record.ordinal(frame.path, kind),
            started_ns=time.time_ns(),
            payload=payload,
            digest=digest,
            within=frame,
            entry=entry,
            snapshot=snapshot,
            error_type=error_type,
            **fields,
        )
        self._queue(event)
        return seq

    def _queue(self, event: Pending) -> None:
        if self.settings.vault is None:
            return
        event.frame = event.within.path
        event.agent = event.within.agent or None
        event.actor = self._actor()
        event.span = event.entry
        event.size = event.snapshot.size
        self.recorder.emit(event, event.record)

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
