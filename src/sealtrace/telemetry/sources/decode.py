"""OTLP in its several dresses to `SpanRecord`.

OTLP JSON has ids in hex, 64-bit numbers as text or numbers and enums as numbers or names; protobuf
has bytes. Tempo's JSON is protobuf's own mapping (base64 ids), which is why ids are never guessed:
32 and 16 hex digits, or the span is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from ...errors import TelemetryFormatError
from .span import SpanRecord

__all__ = ["from_json", "from_protobuf"]

_TRACE_ID: Final = re.compile(r"[0-9a-fA-F]{32}\Z")
_SPAN_ID: Final = re.compile(r"[0-9a-fA-F]{16}\Z")
_MAX_ATTRIBUTES: Final = 1024
_KIND_NAMES: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_KINDS: Final = {f"SPAN_KIND_{name}": number for number, name in enumerate(_KIND_NAMES)}
_STATUS: Final = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def from_json(text: str | bytes) -> Iterator[SpanRecord]:
    """Spans of one OTLP JSON document.

    Raises:
        TelemetryFormatError: It is not OTLP JSON.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TelemetryFormatError(f"not JSON: {type(error).__name__}") from None
    if not isinstance(document, dict) or not isinstance(document.get("resourceSpans"), list):
        raise TelemetryFormatError("no `resourceSpans`: this is not an OTLP trace document")
    try:
        yield from _json_spans(document["resourceSpans"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TelemetryFormatError(f"an OTLP span could not be read ({type(error).__name__}: {error})") from None


def _json_spans(resources: list[Any]) -> Iterator[SpanRecord]:
    for resource in resources:
        about = _json_attributes(resource.get("resource", {}).get("attributes"))
        for scope in resource.get("scopeSpans") or []:
            name = str(scope.get("scope", {}).get("name", ""))
            for span in scope.get("spans") or []:
                yield _json_span(span, about, name)


def _json_span(span: dict[str, Any], resource: dict[str, Any], scope: str) -> SpanRecord:
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
        status_code=_enum(span.get("status", {}).get("code", 0), _STATUS),
    )


def _checked(pattern: re.Pattern[str], value: str) -> str:
    if not pattern.match(value):
        raise ValueError("an id is not hex of the right length")
    return value.lower()


def _enum(value: Any, names: dict[str, int]) -> int:
    return names[value] if isinstance(value, str) and not value.isdigit() else int(value)


def _json_attributes(pairs: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for pair in (pairs or [])[:_MAX_ATTRIBUTES]:
        out[str(pair["key"])] = _json_value(pair.get("value") or {})
    return out


def _json_value(value: dict[str, Any]) -> Any:
    if "stringValue" in value:
        return str(value["stringValue"])
    if "intValue" in value:
        return int(value["intValue"])
    if "doubleValue" in value:
        return float(value["doubleValue"])
    if "boolValue" in value:
        return bool(value["boolValue"])
    if "arrayValue" in value:
        return [_json_value(item) for item in value["arrayValue"].get("values") or []]
    return None


def from_protobuf(data: bytes) -> Iterator[SpanRecord]:
    """Spans of one `TracesData` message (`ExportTraceServiceRequest` has the same form on the wire).

    Raises:
        TelemetryFormatError: It is not such a message.
    """
    try:
        message = TracesData.FromString(data)
    except DecodeError:
        raise TelemetryFormatError("not an OTLP protobuf message") from None
    for resource in message.resource_spans:
        about = _proto_attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _proto_span(span, about, scope.scope.name)


def _proto_span(span: Any, resource: dict[str, Any], scope: str) -> SpanRecord:
    if len(span.trace_id) != 16 or len(span.span_id) != 8:
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


def _proto_attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _proto_value(pair.value) for pair in pairs[:_MAX_ATTRIBUTES]}


def _proto_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or kind in ("kvlist_value", "bytes_value"):
        return None
    if kind == "array_value":
        return [_proto_value(item) for item in value.array_value.values]
    return getattr(value, kind)
