"""Both halves of made-up runs: records in a vault, and the spans a collector would have of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sealtrace.event import RunEvent
from sealtrace.telemetry.sources import SpanRecord
from sealtrace.vault import Seal
from vault.records import RUN, TRACE, Conversation

ROOT = "12" * 8
AGENT = "34" * 8
SEAL = "56" * 8
START = 1_796_000_000_000_000_000
_KINDS = {
    "input": "trace",
    "output": "trace",
    "generation": "model",
    "tool_call": "tool",
    "tool_result": "tool",
    "handoff": "handoff",
    "guardrail": "guardrail",
}

__all__ = [
    "AGENT",
    "ROOT",
    "RUN",
    "SEAL",
    "START",
    "TRACE",
    "Conversation",
    "seal_span",
    "span",
    "spans_of",
    "write_otlp",
]


def span(span_id: str, kind: str | None, name: str = "", parent: str | None = None, **more: Any) -> SpanRecord:
    """A span of run `RUN`; `kind` None makes it somebody else's."""
    attributes: dict[str, Any] = dict(more.pop("attributes", {}))
    record_id = more.pop("record_id", None)
    run_id = more.pop("run_id", RUN)
    if kind is not None:
        attributes |= {"sealtrace.span.kind": kind, "sealtrace.run.id": run_id}
    if record_id is not None:
        attributes["sealtrace.record.id"] = record_id
    values: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": span_id,
        "parent_span_id": parent,
        "name": name or str(kind),
        "kind": 1,
        "start_ns": START,
        "end_ns": START + 5_000_000,
        "attributes": attributes,
        "resource": {"service.name": "desk"},
        "scope": "sealtrace",
        "status_code": 0,
    }
    return SpanRecord(**(values | more))


def spans_of(run: Conversation, *, without: frozenset[int] = frozenset()) -> list[SpanRecord]:
    """The spans of a conversation: a root, an agent, and one for each event that is not left out."""
    record = {"record_id": run.record_id, "run_id": run.run_id}
    found = [
        span(ROOT, "trace", "invoke_workflow Support", **record),
        span(AGENT, "agent", "invoke_agent support", ROOT, attributes={"gen_ai.agent.name": "support"}, **record),
    ]
    for event in run.events:
        if event.seq not in without:
            found.append(_span_of(event, record))
    return found


def _span_of(event: RunEvent, record: dict[str, str]) -> SpanRecord:
    assert event.span_id is not None
    kind = _KINDS[event.kind.value]
    attributes: dict[str, Any] = {"sealtrace.seq": event.seq}
    if kind == "model":
        attributes |= {
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 2,
            "gen_ai.request.model": "gpt-x",
        }
    start = START + event.seq * 1_000_000
    times = {"start_ns": start, "end_ns": start + 500_000}
    return span(event.span_id, kind, f"{kind} {event.seq}", AGENT, attributes=attributes, **times, **record)


def seal_span(run: Conversation, seal: Seal, **changes: Any) -> SpanRecord:
    """What the collector was told when the record's manifest was stored."""
    attributes = {"sealtrace.run.events": seal.events, "sealtrace.run.merkle_root": seal.merkle_root}
    return span(SEAL, "seal", "sealtrace.seal", ROOT, record_id=run.record_id, attributes=attributes | changes)


def write_otlp(path: Path, spans: list[SpanRecord]) -> str:
    """Write spans as the collector's file exporter does; the address to read them from."""
    documents = [
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": [_attribute(*item) for item in found.resource.items()]},
                    "scopeSpans": [{"scope": {"name": found.scope}, "spans": [_json(found)]}],
                }
            ]
        }
        for found in spans
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return f"otlp+{path.as_uri()}"


def _json(found: SpanRecord) -> dict[str, Any]:
    out = {
        "traceId": found.trace_id,
        "spanId": found.span_id,
        "name": found.name,
        "kind": found.kind,
        "startTimeUnixNano": str(found.start_ns),
        "endTimeUnixNano": str(found.end_ns),
        "attributes": [_attribute(*item) for item in found.attributes.items()],
        "status": {"code": found.status_code},
    }
    return out if found.parent_span_id is None else {**out, "parentSpanId": found.parent_span_id}


def _attribute(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": value}}
