"""Spans of an application that puts content everywhere OTLP has room for it."""

from __future__ import annotations

import uuid
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import Link, SpanContext, Status, StatusCode

PLACES = (
    "resource-attribute",
    "resource-schema",
    "scope-name",
    "scope-version",
    "scope-attribute",
    "scope-schema",
    "span-name",
    "span-attribute",
    "span-attribute-key",
    "span-attribute-of-a-convention",
    "status",
    "event-name",
    "event-attribute",
    "exception-message",
    "exception-stacktrace",
    "link-attribute",
    "link-state",
    "trace-state",
)


class Hostile:
    """One request with a canary of its own in every place.

    Attributes:
        canaries: By place.
        run_id: What the span says its run is; this must survive.
        request: What is sent.
    """

    def __init__(self) -> None:
        self.canaries = {place: f"canary{uuid.uuid4().hex}" for place in PLACES}
        self.run_id = f"trace_{uuid.uuid4().hex}"
        self.request = self._request()
        self.trace_id = self.request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex()

    def _request(self) -> ExportTraceServiceRequest:
        request = encode_spans([self._span()])
        span = request.resource_spans[0].scope_spans[0].spans[0]
        span.trace_state = f"vendor={self.canaries['trace-state']}"
        span.links[0].trace_state = f"vendor={self.canaries['link-state']}"
        span.attributes.add(key="nested").value.kvlist_value.values.add(key="a").value.string_value = self.canaries[
            "span-attribute"
        ]
        return request

    def _span(self) -> ReadableSpan:
        c = self.canaries
        provider = TracerProvider(
            resource=Resource(
                {"service.name": "hostile", "user.note": c["resource-attribute"]},
                schema_url=f"https://{c['resource-schema']}.example/",
            )
        )
        tracer = provider.get_tracer(
            f"scope {c['scope-name']}",
            f"1 {c['scope-version']}",
            schema_url=f"https://opentelemetry.io/schemas/1.0.0/{c['scope-schema']} x",
            attributes={"note": c["scope-attribute"]},
        )
        link = Link(SpanContext(7, 7, is_remote=True), {"note": c["link-attribute"]})
        attributes: dict[str, Any] = {
            "sealtrace.run.id": self.run_id,
            "sealtrace.span.kind": "tool",
            "sealtrace.seq": 3,
            "gen_ai.tool.name": "issue_refund",
            "gen_ai.request.temperature": 0.5,
            "sealtrace.guardrail.tripped": True,
            "gen_ai.response.finish_reasons": ["stop"],
            "note": c["span-attribute"],
            c["span-attribute-key"]: 1,
            "gen_ai.input.messages": f"[{c['span-attribute-of-a-convention']}]",
            "gen_ai.tool.call.arguments": c["span-attribute-of-a-convention"],
        }
        span = tracer.start_span(f"execute_tool {c['span-name']}", attributes=attributes, links=[link])
        span.add_event(c["event-name"], {"note": c["event-attribute"]})
        error = ValueError(c["exception-message"])
        span.record_exception(error, {"exception.stacktrace": c["exception-stacktrace"]})
        span.set_status(Status(StatusCode.ERROR, c["status"]))
        span.end()
        assert isinstance(span, ReadableSpan)
        return span

    def found_in(self, data: bytes | str) -> list[str]:
        """Places whose canary is in these bytes."""
        text = data if isinstance(data, bytes) else data.encode()
        return [place for place, canary in self.canaries.items() if canary.encode() in text]
