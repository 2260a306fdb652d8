"""A run as a tree: from its spans where there are any, else from the frames of its events."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from ..event import EventStatus, Kind, RunEvent
from ..telemetry.sources import SpanRecord
from .findings import HELD_BY_SERVER, facts, held_by_server

__all__ = ["Node", "tree"]

_FOLDED: Final = frozenset({"task", "turn", "seal"})
"""Spans of the SDK's own bookkeeping: their children take their place."""

_OWN_LINE: Final = frozenset(
    {Kind.INPUT, Kind.OUTPUT, Kind.ERROR, Kind.APPROVAL, Kind.RETRIEVAL, Kind.CHECKPOINT, Kind.CUSTOM}
)
"""Events that are no span's own business and get a line under the span they happened in."""


_DEEPEST: Final = 100
"""Levels of the tree."""


@dataclasses.dataclass(slots=True)
class Node:
    """A line of the tree.

    Attributes:
        kind: What it is: a span kind of ours, an event kind, `span` for a foreign span, or `frame`.
        label: What to call it; content of nobody, but not safe for a terminal as it is.
        events: The events that belong to the line, by seq.
        start_ns: For order; nanoseconds since the epoch, or a sequence number without spans.
        duration_ms: How long it took.
        tokens: Input and output tokens.
        cached: How many of the input tokens came from the provider's cache.
        error_type: Class name of the exception it ended with.
        marks: What a reader has to know: statuses other than joined, server-held context.
        children: Lines under it, in order.
    """

    kind: str
    label: str
    events: list[RunEvent] = dataclasses.field(default_factory=list[RunEvent])
    start_ns: int = 0
    duration_ms: float | None = None
    tokens: tuple[int, int] | None = None
    error_type: str | None = None
    marks: list[str] = dataclasses.field(default_factory=list[str])
    children: list[Node] = dataclasses.field(default_factory=list["Node"])
    cached: int = 0


def tree(events: Sequence[RunEvent], spans: Sequence[SpanRecord]) -> list[Node]:
    """The run's lines. Every event is on exactly one of them."""
    nodes = _from_spans(events, spans) if spans else _from_frames(events)
    for node in nodes:
        _flatten(node)
        _mark(node)
    return nodes


def _flatten(root: Node) -> None:
    """What is nested deeper than any run is moves up, so that no reader runs out of stack."""
    level = [root]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in node.children]
    for node in level:
        below, node_children = list(node.children), node.children
        node_children.clear()
        while below:
            child = below.pop(0)
            node_children.append(child)
            below[:0] = child.children
            child.children = []


def _mark(node: Node) -> None:
    marks = [event.status.value for event in node.events if event.status not in _QUIET]
    if any(held_by_server(event) for event in node.events):
        marks.append(HELD_BY_SERVER)
    marks += [word for event in node.events for word in _remarks(event)]
    node.marks = list(dict.fromkeys([*node.marks, *marks]))
    for child in node.children:
        _mark(child)


_QUIET: Final = frozenset({EventStatus.JOINED, EventStatus.RECORDED})


def _remarks(event: RunEvent) -> list[str]:
    payload = facts(event.payload)
    if event.kind is Kind.GUARDRAIL and payload.get("tripped") is True:
        return ["tripped"]
    if event.kind is Kind.APPROVAL and payload:
        approved = payload.get("approved")
        return ["approved" if approved is True else "rejected" if approved is False else "waiting for approval"]
    return []


# from spans


def _from_spans(events: Sequence[RunEvent], spans: Sequence[SpanRecord]) -> list[Node]:
    kept = {span.span_id: span for span in spans if _kind(span) not in _FOLDED}
    nodes = {identifier: _span_node(span) for identifier, span in kept.items()}
    all_spans = {span.span_id: span for span in spans}
    roots: list[Node] = []
    for identifier, node in nodes.items():
        parent = None if _loops(identifier, all_spans) else _nearest(kept[identifier].parent_span_id, all_spans, nodes)
        (parent.children if parent is not None else roots).append(node)
    homeless: list[RunEvent] = []
    for event in events:
        home = nodes.get(event.span_id or "") or _nearest(event.span_id, all_spans, nodes)
        if home is None:
            homeless.append(event)
        elif event.kind in _OWN_LINE:
            home.children.append(_event_node(event, all_spans))
        else:
            home.events.append(event)
    for node in nodes.values():
        node.children.sort(key=lambda child: child.start_ns)
    roots.sort(key=lambda node: node.start_ns)
    return [*roots, *_from_frames(homeless)]


def _nearest(identifier: str | None, spans: dict[str, SpanRecord], nodes: dict[str, Node]) -> Node | None:
    seen: set[str] = set()
    while identifier is not None and identifier not in seen:
        if identifier in nodes:
            return nodes[identifier]
        seen.add(identifier)
        span = spans.get(identifier)
        identifier = span.parent_span_id if span is not None else None
    return None


def _loops(identifier: str, spans: dict[str, SpanRecord]) -> bool:
    """Whether the span is its own ancestor, which only a forged or broken trace has."""
    seen: set[str] = set()
    above = spans[identifier].parent_span_id
    while above in spans and above not in seen:
        if above == identifier:
            return True
        seen.add(above)
        above = spans[above].parent_span_id
    return False


def _kind(span: SpanRecord) -> str:
    kind = span.attributes.get("sealtrace.span.kind")
    return kind if isinstance(kind, str) else "span"


def _span_node(span: SpanRecord) -> Node:
    attributes = span.attributes
    kind = _kind(span)
    used = [attributes.get(f"gen_ai.usage.{side}_tokens") for side in ("input", "output")]
    marks: list[str] = []
    if kind == "guardrail" and attributes.get("sealtrace.guardrail.tripped") is True:
        marks.append("tripped")
    label = span.name
    if kind == "handoff" and "sealtrace.handoff.to" in attributes:
        label = f"handoff {attributes.get('sealtrace.handoff.from', '?')} → {attributes['sealtrace.handoff.to']}"
    error = attributes.get("error.type")
    return Node(
        kind,
        label,
        start_ns=span.start_ns,
        duration_ms=span.duration_ms,
        tokens=_pair(*used),
        error_type=error if isinstance(error, str) else "error" if span.status_code == 2 else None,
        marks=marks,
        cached=_count(attributes.get("gen_ai.usage.cache_read.input_tokens")),
    )


def _event_node(event: RunEvent, spans: dict[str, SpanRecord]) -> Node:
    span = spans.get(event.span_id or "")
    # Where the event's clock and the span's disagree by rounding, an input still comes first.
    start = _nanoseconds(event.ts)
    if span is not None and event.kind is Kind.INPUT:
        start = min(start, span.start_ns)
    return Node(event.kind.value, _label(event), [event], start, event.duration_ms, None, event.error_type)


def _nanoseconds(ts: str) -> int:
    try:
        return int(datetime.fromisoformat(ts).timestamp() * 1e9)
    except ValueError:
        return 0


# from frames


def _from_frames(events: Sequence[RunEvent]) -> list[Node]:
    roots: list[Node] = []
    frames: dict[tuple[str, str], Node] = {}
    calls: dict[tuple[str, str, str], Node] = {}
    by_seq: dict[tuple[str, int], Node] = {}
    for event in events:
        record = event.record_id
        if event.kind is Kind.TOOL_RESULT:
            call = calls.get((record, event.frame, event.call_id or ""))
            if call is not None:
                call.events.append(event)
                call.duration_ms, call.error_type = event.duration_ms, event.error_type
                continue
        node = Node(event.kind.value, _label(event), [event], 0, event.duration_ms, _tokens(event), event.error_type)
        node.cached = _count(_usage(event).get("cached_tokens"))
        parent = by_seq.get((record, event.parent_seq)) if event.parent_seq is not None else None
        if parent is None:
            parent = _frame(record, event.frame, frames, calls, roots)
        parent.children.append(node)
        by_seq[record, event.seq] = node
        if event.kind is Kind.TOOL_CALL:
            calls[record, event.frame, event.call_id or ""] = node
    return roots


def _frame(
    record: str,
    path: str,
    frames: dict[tuple[str, str], Node],
    calls: dict[tuple[str, str, str], Node],
    roots: list[Node],
) -> Node:
    found = frames.get((record, path))
    if found is not None:
        return found
    frame = frames[record, path] = Node("frame", path or "run")
    outer, _, via = path.rpartition("/run:")[0].rpartition("/")
    home = calls.get((record, outer, via.removeprefix("tool:"))) if via.startswith("tool:") else None
    (home.children if home is not None else roots).append(frame)
    return frame


def _label(event: RunEvent) -> str:
    payload = facts(event.payload)
    detail: Any = None
    if event.kind is Kind.GENERATION:
        detail = event.model
    elif event.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.APPROVAL):
        detail = payload.get("tool") or event.call_id
    elif event.kind is Kind.HANDOFF:
        detail = f"{payload.get('from', event.agent)} → {payload.get('to', '?')}"
    elif event.kind in (Kind.GUARDRAIL, Kind.CUSTOM):
        detail = payload.get("name")
    elif event.kind is Kind.MCP_TOOLS:
        detail = payload.get("server")
    return f"{event.kind.value} {detail}" if detail else event.kind.value


def _tokens(event: RunEvent) -> tuple[int, int] | None:
    if event.kind is not Kind.GENERATION:
        return None
    usage = _usage(event)
    return _pair(usage.get("input_tokens"), usage.get("output_tokens"))


def _usage(event: RunEvent) -> dict[str, Any]:
    return facts(facts(facts(event.payload).get("response")).get("usage"))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _pair(first: Any, second: Any) -> tuple[int, int] | None:
    return (first, second) if type(first) is int and type(second) is int else None
