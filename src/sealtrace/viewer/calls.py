"""Which event asked for which: model call, tool call, result, and the model call that read it.

All of it is in the envelopes, so none of it needs a payload.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from ..event import Kind, RunEvent
from ..run.findings import facts, items

__all__ = ["Calls", "new_items"]


class Calls:
    """The ties between a run's events.

    Args:
        events: All events, in order.
    """

    def __init__(self, events: Iterable[RunEvent]) -> None:
        self._calls: dict[tuple[str, str, str], RunEvent] = {}
        self._results: dict[tuple[str, str, str], RunEvent] = {}
        self._by_id: dict[str, RunEvent | None] = {}
        self._by_seq: dict[tuple[str, int], RunEvent] = {}
        self._generations: dict[tuple[str, str], list[RunEvent]] = {}
        for event in events:
            self._by_seq[event.record_id, event.seq] = event
            if event.kind is Kind.GENERATION:
                self._generations.setdefault((event.record_id, event.frame), []).append(event)
            elif event.call_id and event.kind in (Kind.TOOL_CALL, Kind.HANDOFF):
                self._calls.setdefault((event.record_id, event.frame, event.call_id), event)
            if event.call_id and event.kind in (Kind.TOOL_RESULT, Kind.HANDOFF):
                self._results.setdefault((event.record_id, event.frame, event.call_id), event)
                # The same id in two places says nothing to a third.
                self._by_id[event.call_id] = None if event.call_id in self._by_id else event

    def call(self, event: RunEvent, call_id: str | None = None) -> RunEvent | None:
        """The tool call or handoff with an id, seen from an event of the same frame."""
        return self._calls.get((event.record_id, event.frame, call_id or event.call_id or ""))

    def result(self, event: RunEvent, call_id: str | None = None) -> RunEvent | None:
        """Where a call's result came about: in the same frame, or in a record before this one."""
        wanted = call_id or event.call_id or ""
        return self._results.get((event.record_id, event.frame, wanted)) or self._by_id.get(wanted)

    def cause(self, event: RunEvent) -> RunEvent | None:
        """The event that an event says caused it."""
        return self._by_seq.get((event.record_id, event.parent_seq)) if event.parent_seq is not None else None

    def earlier_generation(self, event: RunEvent) -> RunEvent | None:
        """The model call before this one in the same frame."""
        calls = self._in_frame(event)
        at = bisect_left(calls, event.seq, key=_seq)
        return calls[at - 1] if at else None

    def next_generation(self, event: RunEvent) -> RunEvent | None:
        """The model call after this event in the same frame: it was told of what happened in between."""
        calls = self._in_frame(event)
        at = bisect_right(calls, event.seq, key=_seq)
        return calls[at] if at < len(calls) else None

    def _in_frame(self, event: RunEvent) -> list[RunEvent]:
        return self._generations.get((event.record_id, event.frame), [])


def _seq(event: RunEvent) -> int:
    return event.seq


def new_items(event: RunEvent, payload: object) -> int:
    """How many of a request's last items the model had not been given before.

    The recorder counts them: each has a digest in the envelope. Where there are none, what follows the
    model's last words but one is taken for new.
    """
    given = items(facts(facts(payload).get("request")).get("input"))
    digests = items(event.digests.get("input_new"))
    if digests:
        return min(len(digests), len(given))
    if event.ordinal == 0:
        return len(given)
    position = len(given)
    for from_model in (False, True):
        while position and _from_model(given[position - 1]) is from_model:
            position -= 1
    return len(given) - position


def _from_model(item: object) -> bool:
    fields = facts(item)
    kind = str(fields.get("type", "message"))
    return fields.get("role") == "assistant" or (kind != "message" and not kind.endswith("_output"))
