"""The lines of a run: every event once, nested, on a true time axis."""

from __future__ import annotations

import dataclasses

import pytest

from replay.handmade import Conversation, loaded
from run.halves import RUN, START, span
from run.halves import Conversation as Stored
from sealtrace.event import Kind, RunEvent
from sealtrace.run import JoinedRecord, Run
from sealtrace.viewer.rail import Line, Rail, neighbours

from .conftest import Demo

SECOND = 1_000_000_000
DAY = 86_400 * SECOND


def run_of(spans: list[object], events: list[RunEvent] | None = None) -> Run:
    """A run of these spans and events."""
    records = (JoinedRecord("ab" * 16, None, tuple(events or ()), (), in_vault=True),)
    return Run(RUN, records, tuple(spans), ())  # type: ignore[arg-type]


def at(name: str, kind: str, begin: float, length: float, parent: str | None = None, number: int = 1) -> object:
    """A span that begins so many seconds after the start."""
    start = START + int(begin * SECOND)
    return span(f"{number:016x}", kind, name, parent, start_ns=start, end_ns=start + int(length * SECOND))


def named(rail: Rail, name: str) -> Line:
    """The line of that label."""
    (line,) = [line for line in rail.lines if line.node.label == name]
    return line


def test_every_event_is_on_one_line(demo: Demo) -> None:
    """Going down the lines one meets each event of the run once, and each knows its line."""
    rail = Rail(demo.run)
    assert sorted(event.seq for event in rail.stops) == [event.seq for event in demo.run.events]
    for event in demo.run.events:
        assert event in rail.line_of(event).events


def test_parallel_tools_overlap(demo: Demo) -> None:
    """Two tools that ran side by side are drawn side by side, and the one after them begins later."""
    rail = Rail(demo.run)
    order, policy = named(rail, "execute_tool find_order"), named(rail, "execute_tool refund_policy")
    refund = named(rail, "execute_tool issue_refund")
    assert order.start_ns < policy.end_ns
    assert policy.start_ns < order.end_ns
    assert refund.start_ns >= order.end_ns
    axis = rail.axes[order.axis]
    for line in (order, policy, refund):
        assert axis.start_ns <= line.start_ns <= line.end_ns <= axis.start_ns + axis.length_ns


def test_a_resumed_run_has_two_axes() -> None:
    """What begins a day after everything before it had ended does not squeeze that into a dot."""
    first = [at("one", "trace", 0, 10, number=1), at("two", "trace", 5, 20, number=2)]
    rail = Rail(run_of([*first, at("three", "trace", 86_400, 4, number=3)]))
    assert [axis.length_ns for axis in rail.axes] == [25 * SECOND, 4 * SECOND]
    assert rail.axes[1].after_ns == DAY - 25 * SECOND
    assert [named(rail, name).axis for name in ("one", "two", "three")] == [0, 0, 1]


def test_a_run_without_spans_has_its_events_times() -> None:
    """From frames alone, each line lies where its events say, a nested run inside of the call that opened it."""
    made = Stored(2)
    record = JoinedRecord(made.record_id, None, tuple(made.events), (), in_vault=True)
    rail = Rail(Run(RUN, (record,), (), ()))
    (axis,) = rail.axes
    starts = [line.start_ns for line in rail.lines if line.events]
    assert min(starts) == axis.start_ns
    assert all(axis.start_ns <= start <= axis.start_ns + axis.length_ns for start in starts)
    assert len({line.start_ns for line in rail.lines if line.events}) > 1
    (result,) = [line for line in rail.lines if line.events and line.events[-1].kind is Kind.TOOL_RESULT][:1]
    assert result.end_ns - result.start_ns >= 12_500_000


@pytest.mark.parametrize(
    "ts", ["", "yesterday", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"]
)
def test_a_time_that_is_none_breaks_nothing(ts: str) -> None:
    """A forged record with impossible times still has its lines."""
    made = Stored(1)
    events = [dataclasses.replace(made.events[0], ts=ts), *made.events[1:]]
    rail = Rail(Run(RUN, (JoinedRecord(made.record_id, None, tuple(events), (), in_vault=True),), (), ()))
    assert len(rail.stops) == len(events)
    assert all(axis.length_ns >= 1 for axis in rail.axes)


def test_spans_that_end_before_they_begin() -> None:
    """A foreign span with its times the wrong way round has a line and no negative length."""
    rail = Rail(run_of([at("back", "span", 5, -3)]))
    assert named(rail, "back").end_ns >= named(rail, "back").start_ns


def test_narrowing_down(demo: Demo) -> None:
    """Lines are found by tool, agent, kind, number, error and mark, in either case; nothing by what nobody said."""
    rail = Rail(demo.run)
    assert {line.node.label for line in rail.matching("FIND_ORDER")} == {"execute_tool find_order"}
    assert {line.node.label for line in rail.matching("runtimeerror")} == {"execute_tool issue_refund"}
    assert rail.matching("#14")[0].events[0].kind is Kind.OUTPUT
    assert rail.matching("guardrail")
    assert rail.matching("EMAIL")
    assert rail.matching("") == rail.lines
    assert rail.matching("no such word") == []


def test_from_event_to_event(demo: Demo) -> None:
    """Before and after lead through all events, and through those that are shown alone where lines are narrowed."""
    rail = Rail(demo.run)
    here, walked = rail.stops[0], [rail.stops[0]]
    assert neighbours(rail.lines, here)[0] is None
    while (after := neighbours(rail.lines, here)[1]) is not None:
        assert neighbours(rail.lines, after)[0] == here
        here = after
        walked.append(here)
    assert tuple(walked) == rail.stops
    tools = rail.matching("execute_tool")
    first = tools[0].events[0]
    assert neighbours(tools, first)[0] is None
    assert neighbours(tools, rail.stops[0]) == (None, None)


def test_the_agent_at_work() -> None:
    """A line says whose it is."""
    talk = Conversation(agent="Desk").user("hello").says("hi")
    rail = Rail(loaded(talk))
    assert {line.agent for line in rail.lines if line.events} == {"Desk"}
