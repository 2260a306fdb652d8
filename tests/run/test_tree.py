"""The tree, from spans and from frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from run.halves import AGENT, ROOT, RUN, START, TRACE, Conversation, span, spans_of
from sealtrace.event import EventStatus, Kind, RunEvent, timestamp
from sealtrace.run.findings import HELD_BY_SERVER
from sealtrace.run.tree import Node, tree

RECORD = "aa" * 16


def walk(nodes: list[Node]) -> Iterator[Node]:
    """Every node, parents first."""
    for node in nodes:
        yield node
        yield from walk(node.children)


def event(seq: int, kind: Kind, **more: Any) -> RunEvent:
    """An event in frame `run:0`."""
    values: dict[str, Any] = {
        "frame": "run:0",
        "trace_id": TRACE,
        "payload": {},
        "ts": timestamp(START + seq * 1_000_000),
    }
    return RunEvent(run_id=RUN, record_id=RECORD, seq=seq, kind=kind, **(values | more))


def test_every_event_is_on_exactly_one_line() -> None:
    """With all spans, with some and with none, no event is lost or shown twice."""
    run = Conversation(4)
    for spans in (spans_of(run), spans_of(run, without=frozenset({1, 2, 5, 9})), []):
        seqs = [item.seq for node in walk(tree(run.events, spans)) for item in node.events]
        assert sorted(seqs) == [item.seq for item in run.events]


@given(st.sets(st.integers(0, 13)), st.sets(st.integers(0, 13)))
def test_no_loss_whatever_is_missing(spans: set[int], events: set[int]) -> None:
    """However spans and events are thinned out, each event that is left has one line."""
    run = Conversation(4)
    kept = [item for item in run.events if item.seq not in events]
    seqs = [item.seq for node in walk(tree(kept, spans_of(run, without=frozenset(spans)))) for item in node.events]
    assert sorted(seqs) == [item.seq for item in kept]


def test_the_sdks_bookkeeping_spans_are_folded() -> None:
    """Turn, task and seal spans give way to their children."""
    spans = [
        span(ROOT, "trace", "root"),
        span("01" * 8, "task", "task", ROOT),
        span("02" * 8, "turn", "turn 1", "01" * 8),
        span(AGENT, "agent", "invoke_agent A", "02" * 8),
        span("03" * 8, "seal", "sealtrace.seal", ROOT),
    ]
    (root,) = tree([], spans)
    assert [node.label for node in walk([root])] == ["root", "invoke_agent A"]


def test_spans_whose_parent_is_not_there_become_roots() -> None:
    """A trace of which parts were lost is still shown, without a loop."""
    spans = [
        span("01" * 8, "agent", "A", "ff" * 8),
        span("02" * 8, "turn", "t", "03" * 8),
        span("03" * 8, "turn", "u", "02" * 8),
        span("04" * 8, "tool", "T", "02" * 8),
    ]
    assert sorted(node.label for node in tree([], spans)) == ["A", "T"]


def test_the_run_hangs_under_the_applications_span() -> None:
    """An HTTP server's span is the root, the agent's spans are below it."""
    spans = [span("01" * 8, None, "POST /tickets"), span(ROOT, "trace", "invoke_workflow W", "01" * 8)]
    (root,) = tree([], spans)
    assert (root.kind, root.label, root.children[0].label) == ("span", "POST /tickets", "invoke_workflow W")


def test_call_and_result_share_the_tools_line() -> None:
    """A tool's two events are on the line of its span, with its error."""
    spans = [span("05" * 8, "tool", "execute_tool pay", attributes={"error.type": "ValueError"}, status_code=2)]
    events = [event(0, Kind.TOOL_CALL, span_id="05" * 8), event(1, Kind.TOOL_RESULT, span_id="05" * 8)]
    (line,) = tree(events, spans)
    assert ([item.seq for item in line.events], line.error_type) == ([0, 1], "ValueError")


def test_marks_tell_what_a_reader_has_to_know() -> None:
    """Statuses that are not whole, server-held context, verdicts and decisions are marked."""
    events = [
        event(0, Kind.GENERATION, payload={"request": {"previous_response_id": "resp_1"}}),
        event(1, Kind.TOOL_CALL, payload=None, status=EventStatus.PAYLOAD_EXPIRED, call_id="c"),
        event(2, Kind.GUARDRAIL, payload={"name": "g", "tripped": True}),
        event(3, Kind.APPROVAL, payload={"tool": "pay", "approved": False}),
        event(4, Kind.APPROVAL, payload={"tool": "pay", "approved": None}),
    ]
    marks = {node.events[0].seq: node.marks for node in walk(tree(events, [])) if node.events}
    assert marks == {
        0: [HELD_BY_SERVER],
        1: ["payload expired"],
        2: ["tripped"],
        3: ["rejected"],
        4: ["waiting for approval"],
    }


def test_without_spans_nested_runs_hang_under_the_tool_that_opened_them() -> None:
    """The frame path of an agent used as a tool leads to its call."""
    events = [
        event(0, Kind.GENERATION, model="m"),
        event(1, Kind.TOOL_CALL, call_id="call_7", parent_seq=0, payload={"tool": "ask_expert"}),
        event(2, Kind.INPUT, frame="run:0/tool:call_7/run:0"),
        event(3, Kind.GENERATION, frame="run:0/tool:call_7/run:0", model="m"),
        event(4, Kind.TOOL_RESULT, call_id="call_7", parent_seq=1, duration_ms=7.0),
        event(5, Kind.OUTPUT),
    ]
    (outer,) = tree(events, [])
    generation, output = outer.children
    (call,) = generation.children
    assert ([item.seq for item in call.events], call.duration_ms) == ([1, 4], 7.0)
    (inner,) = call.children
    assert (inner.kind, [node.events[0].seq for node in inner.children]) == ("frame", [2, 3])
    assert output.events[0].seq == 5


def test_tokens_come_from_the_span_or_else_from_the_payload() -> None:
    """A model line says its tokens either way."""
    answered = event(0, Kind.GENERATION, payload={"response": {"usage": {"input_tokens": 7, "output_tokens": 3}}})
    (frame,) = tree([answered], [])
    assert frame.children[0].tokens == (7, 3)
    run = Conversation(1)
    lines = [node for node in walk(tree(run.events, spans_of(run))) if node.kind == "model"]
    assert [line.tokens for line in lines] == [(10, 2)]


def test_payloads_of_any_shape_are_survived() -> None:
    """A payload is content: no shape of it breaks the tree."""
    shapes: list[Any] = [{"request": 5}, {"request": {"prompt": "x"}}, [], "text", {"response": {"usage": []}}]
    for payload in shapes:
        for kind in Kind:
            assert list(walk(tree([event(0, kind, payload=payload)], [])))


def test_spans_that_are_their_own_ancestors_lose_no_event() -> None:
    """A forged loop of parents is cut, and what hangs from it stays visible."""
    spans = [
        span("01" * 8, "agent", "A", "02" * 8),
        span("02" * 8, "tool", "T", "01" * 8),
        span("03" * 8, "tool", "U", "02" * 8),
    ]
    nodes = list(walk(tree([event(0, Kind.TOOL_CALL, span_id="03" * 8)], spans)))
    assert sorted(node.label for node in nodes) == ["A", "T", "U"]
    assert [item.seq for node in nodes for item in node.events] == [0]


def test_a_chain_of_spans_without_end_is_cut_to_a_depth_one_can_walk() -> None:
    """2,000 levels of spans neither exhaust the stack nor lose an event."""
    spans = [span(f"{number:016x}", "tool", "T", f"{number - 1:016x}" if number else None) for number in range(2_000)]
    nodes = list(walk(tree([event(0, Kind.TOOL_CALL, span_id=f"{1_999:016x}")], spans)))
    assert len(nodes) == 2_000
    assert [item.seq for node in nodes for item in node.events] == [0]
