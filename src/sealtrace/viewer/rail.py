"""A run as lines down the side of a page, on a true time axis.

The lines are those of `Run.tree`: spans, and the events that happened in them. Roots that overlap
share an axis; one that begins after all before it have ended begins an axis of its own, so a run
that was resumed a day later is not squeezed into two dots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from ..event import RunEvent
from ..run import Node, Run

__all__ = ["Axis", "Line", "Rail", "neighbours"]

_EPOCH: Final = 1_000_000_000_000_000_000
"""A smaller start is a number for order, not a time: a line made from frames."""


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of time that lines are drawn on.

    Attributes:
        start_ns: Where it begins.
        length_ns: How long it is, at least 1.
        after_ns: How long after the end of the stretch before it; 0 for the first.
    """

    start_ns: int
    length_ns: int
    after_ns: int


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        number: Which one it is, from 0.
        depth: How deep it is nested, from 0.
        node: What it is about.
        agent: The agent at work in it, if an event of it says so.
        start_ns: When it began; 0 where it is not known.
        end_ns: When it ended; the start where it has no duration.
        axis: Which stretch of time it is drawn on.
    """

    number: int
    depth: int
    node: Node
    agent: str | None
    start_ns: int
    end_ns: int
    axis: int

    @property
    def events(self) -> list[RunEvent]:
        """Its events, by seq."""
        return self.node.events

    @property
    def redactions(self) -> int:
        """How many values were replaced in its events."""
        return sum(sum(event.redactions.values()) for event in self.events)

    def has(self, wanted: str) -> bool:
        """Whether any of its words holds the given one, in either case."""
        words = [self.node.kind, self.node.label, self.agent or "", self.node.error_type or "", *self.node.marks]
        for event in self.events:
            words += [f"#{event.seq}", event.kind.value, event.status.value, event.call_id or "", event.frame]
            words += event.redactions
        return any(wanted.casefold() in word.casefold() for word in words)


class Rail:
    """All lines of a run.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self.axes: list[Axis] = []
        self.lines: list[Line] = []
        self._line_of: dict[tuple[str, int], int] = {}
        end = 0
        for root in run.tree():
            spans = _times(root)
            begin, last = spans[id(root)]
            if not self.axes or begin > end > 0:
                self.axes.append(Axis(begin, max(1, last - begin), begin - end if end and begin else 0))
            elif begin:
                axis = self.axes[-1]
                first = min(axis.start_ns, begin) if axis.start_ns else begin
                length = max(axis.start_ns + axis.length_ns, last) - first
                self.axes[-1] = dataclasses.replace(axis, start_ns=first, length_ns=max(1, length))
            end = max(end, last)
            self._add(root, spans)
        self.stops = tuple(event for line in self.lines for event in line.events)
        """Every event once, in the order of the lines."""

    def _add(self, root: Node, times: dict[int, tuple[int, int]]) -> None:
        waiting: list[tuple[Node, int, str | None]] = [(root, 0, None)]
        while waiting:
            node, depth, above = waiting.pop()
            agent = next((event.agent for event in node.events if event.agent), above)
            start, end = times[id(node)]
            line = Line(len(self.lines), depth, node, agent, start, end, len(self.axes) - 1)
            self.lines.append(line)
            for event in node.events:
                self._line_of[event.record_id, event.seq] = line.number
            waiting += [(child, depth + 1, agent) for child in reversed(node.children)]

    def line_of(self, event: RunEvent) -> Line:
        """The line an event is on."""
        return self.lines[self._line_of[event.record_id, event.seq]]

    def matching(self, wanted: str) -> list[Line]:
        """Lines that hold the given word; all where it is empty."""
        return [line for line in self.lines if line.has(wanted)] if wanted else self.lines


def neighbours(lines: Iterable[Line], event: RunEvent) -> tuple[RunEvent | None, RunEvent | None]:
    """The events before and after one, going down these lines."""
    before: RunEvent | None = None
    found = False
    for other in (event for line in lines for event in line.events):
        if found:
            return before, other
        if other.seq == event.seq and other.record_id == event.record_id:
            found = True
        else:
            before = other
    return (before, None) if found else (None, None)


def _times(root: Node) -> dict[int, tuple[int, int]]:
    """Start and end of every node under one, by `id`: its span's, its events', or its children's."""
    out: dict[int, tuple[int, int]] = {}
    for node in _from_below(root):
        start = node.start_ns if node.start_ns >= _EPOCH else 0
        end = start + int((node.duration_ms or 0) * 1e6) if start else 0
        for event in node.events:
            begun = _nanoseconds(event.ts)
            if begun and node.start_ns < _EPOCH:
                start = min(start, begun) if start else begun
                end = max(end, begun + int((event.duration_ms or 0) * 1e6))
        for child in node.children:
            begun, over = out[id(child)]
            if begun and node.start_ns < _EPOCH:
                start = min(start, begun) if start else begun
            end = max(end, over) if node.duration_ms is None else end
        out[id(node)] = (start, max(start, end))
    return out


def _from_below(root: Node) -> Iterator[Node]:
    order = [root]
    for node in order:
        order.extend(node.children)
    return reversed(order)


def _nanoseconds(ts: str) -> int:
    try:
        return max(0, int(datetime.fromisoformat(ts).timestamp() * 1e9))
    except (ValueError, OverflowError):
        return 0
