"""A recorded run, indexed for being served again.

What is asked for is found by its place, (frame, kind, ordinal), or by the model's call id, never by
when it finished; whether it is the right one is then compared, never assumed.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from ..errors import NotComparable
from ..event import EventStatus, Kind, RunEvent
from .shape import JSON, at, is_object, objects

__all__ = ["REPLAYED", "Recorded", "Tape", "TapeFrame", "open_tape"]

REPLAYED: Final = frozenset(
    {
        Kind.INPUT,
        Kind.GENERATION,
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
        Kind.HANDOFF,
        Kind.GUARDRAIL,
        Kind.MCP_TOOLS,
        Kind.APPROVAL,
        Kind.OUTPUT,
        Kind.ERROR,
    }
)
"""Kinds a rerun has to come to. The others are made by code inside tools, or by the user's own spans."""

COMPUTER: Final = "sealtrace.computer"


class Recorded(Protocol):
    """A run to replay: a loaded run, a golden."""

    @property
    def id(self) -> str:
        """The run's id."""
        ...

    @property
    def events(self) -> Sequence[RunEvent]:
        """Its events in order."""
        ...


class TapeFrame:
    """The events of one recorded `Runner.run` call.

    Attributes:
        record_id: Its record.
        path: Its path in the nesting, as recorded.
        events: Its events by seq.
        used: Numbers of the events that were come to.
        opened: Whether a run of the rerun answers to it.
    """

    def __init__(self, record_id: str, path: str, events: Iterable[RunEvent]) -> None:
        self.record_id = record_id
        self.path = path
        self.events = sorted(events, key=lambda event: event.seq)
        self.used: set[int] = set()
        self.opened = False
        self._lock = threading.Lock()
        self._by_kind: dict[Kind, list[RunEvent]] = {}
        for event in self.events:
            self._by_kind.setdefault(event.kind, []).append(event)
        self._results = {event.parent_seq: event for event in self.of(Kind.TOOL_RESULT) if event.parent_seq is not None}

    def of(self, kind: Kind) -> list[RunEvent]:
        """All events of a kind."""
        return self._by_kind.get(kind, [])

    def next(self, kind: Kind) -> RunEvent | None:
        """The first event of a kind that was not taken yet, without taking it."""
        return next((event for event in self.of(kind) if event.seq not in self.used), None)

    def take(self, event: RunEvent | None) -> RunEvent | None:
        """Mark an event as come to."""
        if event is not None:
            with self._lock:
                self.used.add(event.seq)
        return event

    def tool_call(self, call_id: str, name: str, arguments: JSON) -> RunEvent | None:
        """The call of this id, its next occurrence; else, where ids were redacted, the same call."""
        free = [event for event in self.of(Kind.TOOL_CALL) if event.seq not in self.used]
        found = next((event for event in free if event.call_id == call_id), None)
        if found is None:
            found = next(
                (
                    event
                    for event in free
                    if (event.call_id or "").startswith("tag:")
                    and at(event.payload, "tool") == name
                    and at(event.payload, "arguments") == arguments
                ),
                None,
            )
        return self.take(found)

    def result_of(self, call: RunEvent) -> RunEvent | None:
        """What a call gave."""
        return self._results.get(call.seq)

    def guardrail(self, stage: str, name: str, call_id: str | None) -> RunEvent | None:
        """The next recorded run of this guardrail; guardrails race, so only their own order counts."""
        for event in self.of(Kind.GUARDRAIL):
            if event.seq in self.used or at(event.payload, "stage") != stage or at(event.payload, "name") != name:
                continue
            if call_id is None or event.call_id in (None, call_id) or str(event.call_id).startswith("tag:"):
                return self.take(event)
        return None

    def mcp_tools(self, server: str) -> RunEvent | None:
        """The next recorded listing of this server."""
        for event in self.of(Kind.MCP_TOOLS):
            if event.seq not in self.used and at(event.payload, "server") == server:
                return self.take(event)
        return None

    def computer(self) -> dict[str, JSON] | None:
        """Environment and size of the recorded computer."""
        for event in self.of(Kind.CUSTOM):
            if at(event.payload, "name") == COMPUTER:
                data = at(event.payload, "data")
                return data if is_object(data) else None
        return None

    def hosted_approval(self, request_id: str) -> dict[str, JSON] | None:
        """How a request of a hosted MCP server was answered; told by the request that carried the answer."""
        for event in self.of(Kind.GENERATION):
            for item in objects(at(event.payload, "request", "input")):
                if item.get("type") == "mcp_approval_response" and item.get("approval_request_id") == request_id:
                    return item
        return None

    @property
    def outcome(self) -> RunEvent | None:
        """How the frame ended: its output or error event."""
        found = [*self.of(Kind.OUTPUT), *self.of(Kind.ERROR)]
        return max(found, key=lambda event: event.seq) if found else None

    @property
    def error(self) -> str | None:
        """Class name of the exception it ended with."""
        outcome = self.outcome
        if outcome is None or outcome.kind is not Kind.ERROR:
            return None
        return str(at(outcome.payload, "type") or outcome.error_type or "Exception")

    @property
    def raced(self) -> bool:
        """An input guardrail stopped it, or it was cancelled: how far the rest had come is chance."""
        if self.error in ("InputGuardrailTripwireTriggered", "CancelledError", "GeneratorExit"):
            return True
        return any(
            at(event.payload, "stage") == "input" and at(event.payload, "tripped") is True
            for event in self.of(Kind.GUARDRAIL)
        )

    @property
    def replayed(self) -> list[RunEvent]:
        """The events a rerun has to come to."""
        return [event for event in self.events if event.kind in REPLAYED]


@dataclasses.dataclass(slots=True)
class Tape:
    """All frames of a run.

    Attributes:
        run_id: The run.
        roots: Frames that no other run opened, in order over all records.
        frames: All frames by (record id, path).
        key_id: Which key made its pseudonyms; None where the record does not say.
        ruleset: Hash of the redaction rules it was recorded under; None where it is not said.
    """

    run_id: str
    roots: list[TapeFrame]
    frames: dict[tuple[str, str], TapeFrame]
    key_id: str | None = None
    ruleset: str | None = None

    @property
    def total(self) -> int:
        """How many events a rerun has to come to."""
        return sum(len(frame.replayed) for frame in self.frames.values())

    def child(self, parent: TapeFrame, path: str) -> TapeFrame | None:
        """A frame of the same record by its path."""
        return self.frames.get((parent.record_id, path))

    def below(self, frame: TapeFrame, opener: str = "") -> list[TapeFrame]:
        """Frames nested in this one; only those that `opener` opened, where one is named."""
        prefix = f"{frame.path}/{opener}/" if opener else f"{frame.path}/"
        return [
            other
            for (record_id, path), other in self.frames.items()
            if record_id == frame.record_id and path.startswith(prefix)
        ]


def open_tape(run: Recorded) -> Tape:
    """Index a run for being replayed.

    Raises:
        NotComparable: Something of it is missing; the message says what.
    """
    events = list(run.events)
    if not events:
        raise NotComparable(f"{run.id} has no events: there is nothing to rerun")
    _refuse_what_is_missing(run, events)
    grouped: dict[tuple[str, str], list[RunEvent]] = {}
    for event in events:
        grouped.setdefault((event.record_id, event.frame), []).append(event)
    frames = {key: TapeFrame(*key, found) for key, found in grouped.items() if key[1]}
    roots = [frame for key, frame in frames.items() if "/" not in key[1]]
    if not roots:
        raise NotComparable(f"{run.id} has no run in it: only events outside of any `Runner.run` were recorded")
    return Tape(run.id, roots, frames, _said(run, "key_id"), _said(run, "ruleset_hash"))


_LOST: Final = {
    EventStatus.PAYLOAD_DROPPED: "was dropped because the queue was full",
    EventStatus.REDACTION_FAILED: "was dropped because it could not be redacted",
    EventStatus.PAYLOAD_EXPIRED: "has expired",
    EventStatus.PAYLOAD_DENIED: "may not be read with these credentials",
    EventStatus.PAYLOAD_ERASED: "was erased: its key is gone",
    EventStatus.PAYLOAD_MISSING: "is not in the vault",
}


def _refuse_what_is_missing(run: Recorded, events: list[RunEvent]) -> None:
    for record in _records(run):
        header = getattr(record, "header", None)
        if getattr(header, "fidelity", "full") == "trace":
            raise NotComparable(
                f"{run.id} was recorded from traces alone (fidelity trace: seams were missing in that version of the"
                " Agents SDK), so it has no requests and results to rerun on; `sealtrace doctor` says which seams"
            )
        if getattr(record, "partial", False):
            raise NotComparable(
                f"{run.id} is only partly there: record {record.record_id} has no manifest (its process was killed,"
                " still runs, or could not reach the vault); it can be viewed with `sealtrace show`"
            )
        gaps = tuple(getattr(record, "gaps", ()) or ())
        if gaps:
            raise NotComparable(f"{run.id} lacks events of record {record.record_id}: {', '.join(map(str, gaps[:10]))}")
    for event in events:
        if event.kind in REPLAYED and event.payload is None:
            why = _LOST.get(event.status, "is not there")
            raise NotComparable(f"{run.id} cannot be rerun: the payload of event {event.seq} ({event.kind}) {why}")


def _records(run: Recorded) -> Sequence[Any]:
    return getattr(run, "records", ()) or ()


def _said(run: Recorded, name: str) -> str | None:
    """One value that all records agree on, from their headers, or the run's own attribute."""
    own = getattr(run, name, None)
    if isinstance(own, str):
        return own
    found = {getattr(getattr(record, "header", None), name, None) for record in _records(run)}
    only = found.pop() if len(found) == 1 else None
    return only if isinstance(only, str) else None
