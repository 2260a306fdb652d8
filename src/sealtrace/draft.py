"""An event on its way from the agent's thread to the vault."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

from .event import EventStatus, Kind, RunEvent, timestamp
from .record import Record

__all__ = ["Draft", "SpanIds"]


class SpanIds(Protocol):
    """The span an event happened in."""

    @property
    def trace_id(self) -> str | None:
        """32 hex digits."""
        ...

    @property
    def span_id(self) -> str | None:
        """16 hex digits."""
        ...

    @property
    def sdk_span_id(self) -> str | None:
        """The Agents SDK's id."""
        ...


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class Draft:
    """What the agent's thread leaves: raw, not redacted, not yet an event.

    One object from start to end, and nothing computed that the background thread can compute: what
    the agent's thread allocates here it pays for again in garbage collection.

    Attributes:
        started_ns: When it happened, nanoseconds since the epoch.
        duration_ns: How long it took, or None.
        payload: The raw snapshot; empty once `dropped` for want of room.
        digest: Raw values to digest, by field name; a list is digested item by item.
        size: About how many bytes the snapshot holds.
        tool: Tool name, for redaction rules by tool.
        span: The span it happened in.
    """

    record: Record
    seq: int
    kind: Kind
    ordinal: int
    started_ns: int
    payload: dict[str, Any]
    frame: str = ""
    agent: str | None = None
    digest: dict[str, Any] | None = None
    size: int = 0
    duration_ns: int | None = None
    call_id: str | None = None
    parent_seq: int | None = None
    model: str | None = None
    config: dict[str, Any] | None = None
    actor: dict[str, Any] | None = None
    tool: str | None = None
    error_type: str | None = None
    span: SpanIds | None = None
    dropped: bool = False

    def drop(self) -> None:
        """There is no room for the payload; the envelope stays."""
        self.payload = {}
        self.digest = None
        self.size = 0
        self.dropped = True

    def event(
        self,
        payload: Any,
        status: EventStatus,
        *,
        digests: dict[str, Any] | None = None,
        redactions: dict[str, int] | None = None,
    ) -> RunEvent:
        """The event, with a payload that is safe to store."""
        span = self.span
        return RunEvent(
            run_id=self.record.run_id,
            record_id=self.record.record_id,
            seq=self.seq,
            ts=timestamp(self.started_ns),
            kind=self.kind,
            frame=self.frame,
            ordinal=self.ordinal,
            agent=self.agent,
            model=self.model,
            parent_seq=self.parent_seq,
            call_id=self.call_id,
            trace_id=span.trace_id if span is not None else None,
            span_id=span.span_id if span is not None else None,
            sdk_span_id=span.sdk_span_id if span is not None else None,
            duration_ms=round(self.duration_ns / 1e6, 3) if self.duration_ns is not None else None,
            error_type=self.error_type,
            actor=self.actor,
            config=self.config,
            digests=digests or {},
            redactions=redactions or {},
            status=status,
            payload=payload,
        )
