"""OTLP in its several dresses to `SpanRecord`.

OTLP JSON has ids in hex, 64-bit numbers as text or numbers and enums as numbers or names; protobuf
has bytes. Tempo's JSON is protobuf's own mapping (base64 ids), which is why ids are never guessed:
32 and 16 hex digits, or the span is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from ...errors import TelemetryFormatError
from .span import SpanRecord

__all__ = ["from_document", "from_json", "from_protobuf"]

_Object: TypeAlias = dict[str, Any]

_TRACE_ID: Final = re.compile(r"[0-9a-fA-F]{32}\Z")
_SPAN_ID: Final = re.compile(r"[0-9a-fA-F]{16}\Z")
_MAX_ATTRIBUTES: Final = 1024
_MAX_DEPTH: Final = 8
_KIND_NAMES: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_KINDS: Final = {f"SPAN_KIND_{name}": number for number, name in enumerate(_KIND_NAMES)}
_STATUS: Final = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_OTHER_SIGNALS: Final = ("resourceLogs", "resourceMetrics", "resourceProfiles")


def from_json(text: str | bytes) -> list[SpanRecord]:
    """Spans of one OTLP JSON document.

    Logs and metrics, which exporters put beside traces, have no spans and give none.

    Raises:
        TelemetryFormatError: It is not OTLP JSON.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TelemetryFormatError(f"not JSON: {type(error).__name__}") from None
    return from_document(document)


def from_document(document: Any) -> list[SpanRecord]:
    """Spans of one OTLP JSON document that is parsed already.

    Raises:
        TelemetryFormatError: It is not OTLP JSON.
    """
    if not isinstance(document, dict):
        raise TelemetryFormatError("this is not an OTLP document")
    found: _Object = document  # pyright: ignore[reportUnknownVariableType]
    if any(name in found for name in _OTHER_SIGNALS):
        return []
    if not isinstance(found.get("resourceSpans"), list):
        raise TelemetryFormatError("no `resourceSpans`: this is not an OTLP trace document")
    try:
        return list(_json_spans(found["resourceSpans"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TelemetryFormatError(f"an OTLP span could not be read ({type(error).__name__}: {error})") from None


def _json_spans(resources: list[_Object]) -> Iterator[SpanRecord]:
    for resource in resources:
        about = _json_attributes(_child(resource, "resource").get("attributes"))
        scopes: list[_Object] = resource.get("scopeSpans") or []
        for scope in scopes:
            name = str(_child(scope, "scope").get("name", ""))
            spans: list[_Object] = scope.get("spans") or []
            for span in spans:
                yield _json_span(span, about, name)


def _json_span(span: _Object, resource: _Object, scope: str) -> SpanRecord:
    return SpanRecord(
        trace_id=_checked(_TRACE_ID, span["traceId"]),
        span_id=_checked(_SPAN_ID, span["spanId"]),
        parent_span_id=_checked(_SPAN_ID, span["parentSpanId"]) if span.get("parentSpanId") else None,
        name=str(span.get("name", "")),
        kind=_enum(span.get("kind", 0), _KINDS),
        start_ns=int(span.get("startTimeUnixNano", 0)),
        end_ns=int(span.get("endTimeUnixNano", 0)),
        attributes=_json_attributes(span.get("attributes")),
        resource=resource,
        scope=scope,
        status_code=_enum(_child(span, "status").get("code", 0), _STATUS),
    )


def _child(parent: _Object, name: str) -> _Object:
    return parent.get(name) or {}


def _checked(pattern: re.Pattern[str], value: str) -> str:
    if not pattern.match(value):
        raise ValueError("an id is not hex of the right length")
    return value.lower()


def _enum(value: Any, names: dict[str, int]) -> int:
    return names[value] if isinstance(value, str) and not value.isdigit() else int(value)


def _json_attributes(pairs: list[_Object] | None) -> _Object:
    return {str(pair["key"]): _json_value(pair.get("value") or {}, 0) for pair in (pairs or [])[:_MAX_ATTRIBUTES]}


def _json_value(value: _Object, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError("a value is nested too deeply")
    if "stringValue" in value:
        return str(value["stringValue"])
    if "intValue" in value:
        return int(value["intValue"])
    if "doubleValue" in value:
        return float(value["doubleValue"])
    if "boolValue" in value:
        return bool(value["boolValue"])
    if "arrayValue" in value:
        items: list[_Object] = value["arrayValue"].get("values") or []
        return [_json_value(item, depth + 1) for item in items]
    return None


def from_protobuf(data: bytes) -> list[SpanRecord]:
    """Spans of one `TracesData` message (`ExportTraceServiceRequest` has the same form on the wire).

    Raises:
        TelemetryFormatError: It is not such a message.
    """
    try:
        message = TracesData.FromString(data)
    except DecodeError:
        raise TelemetryFormatError("not an OTLP protobuf message") from None
    if data and not message.resource_spans:
        # Most short byte strings parse as some protobuf message, made of unknown fields alone.
        raise TelemetryFormatError("not an OTLP protobuf message")
    return list(_proto_spans(message))


def _proto_spans(message: TracesData) -> Iterator[SpanRecord]:
    for resource in message.resource_spans:
        about = _proto_attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _proto_span(span, about, scope.scope.name)


def _proto_span(span: Any, resource: _Object, scope: str) -> SpanRecord:
    if len(span.trace_id) != 16 or len(span.span_id) != 8 or len(span.parent_span_id) not in (0, 8):
        raise TelemetryFormatError("a span's ids have the wrong length")
    return SpanRecord(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex() or None,
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_proto_attributes(span.attributes),
        resource=resource,
        scope=scope,
        status_code=span.status.code,
    )


def _proto_attributes(pairs: Any) -> _Object:
    return {pair.key: _proto_value(pair.value) for pair in pairs[:_MAX_ATTRIBUTES]}


def _proto_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind in ("string_value", "int_value", "double_value", "bool_value"):
        return getattr(value, kind)
    if kind == "array_value":
        return [_proto_value(item) for item in value.array_value.values]
    return None
