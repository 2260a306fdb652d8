"""OpenTelemetry providers that export, over real OTLP, to the loopback collector."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from .server import LoopbackServer


@dataclass(frozen=True)
class ExportedSpan:
    """A span as the collector got it."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    attributes: dict[str, Any]
    start_ns: int
    end_ns: int
    status_code: int
    status_message: str
    events: int
    links: int

    @property
    def kind(self) -> str:
        """What it is in the SDK's tree; empty for a span that is not ours."""
        return self.attributes.get("sealtrace.span.kind", "")


class OtelCapture:
    """Fresh providers for the three signals; `flush` before looking."""

    def __init__(self, server: LoopbackServer) -> None:
        self._server = server
        resource = Resource({"service.name": "loopback"})
        base = f"{server.url}/otlp/v1"
        self.tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{base}/traces")))
        self._reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{base}/metrics"), 3_600_000)
        self.meter_provider = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False)
        self.logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{base}/logs")))

    def handler(self) -> logging.Handler:
        """A logging handler that sends what it is given over OTLP, traceback included."""
        return _OtlpHandler(self.logger_provider)

    def flush(self) -> None:
        """Send everything to the collector."""
        self.tracer_provider.force_flush()
        self.meter_provider.force_flush()
        self.logger_provider.force_flush()

    def raw(self) -> dict[str, list[bytes]]:
        """Raw OTLP bodies by signal."""
        return {signal: self._server.otlp(signal) for signal in ("traces", "metrics", "logs")}

    def spans(self) -> list[ExportedSpan]:
        """All spans sent so far."""
        out: list[ExportedSpan] = []
        for body in self._server.otlp("traces"):
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                out += [_span(span) for scope in resource.scope_spans for span in scope.spans]
        return out

    def close(self) -> None:
        """Stop the providers."""
        self.tracer_provider.shutdown()
        self.meter_provider.shutdown()
        self.logger_provider.shutdown()


class _OtlpHandler(logging.Handler):
    def __init__(self, provider: LoggerProvider) -> None:
        super().__init__(logging.DEBUG)
        self._logger = provider.get_logger("tests")
        self.setFormatter(logging.Formatter("%(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self._logger.emit(body=self.format(record), severity_number=SeverityNumber.INFO)


def _span(span: Any) -> ExportedSpan:
    return ExportedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        attributes={item.key: _value(item.value) for item in span.attributes},
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status_code=span.status.code,
        status_message=span.status.message,
        events=len(span.events),
        links=len(span.links),
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None
