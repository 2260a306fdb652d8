"""Spans from Grafana Tempo: traces by id over API v2, in protobuf; searches in TraceQL.

Tempo's JSON is protobuf's own mapping (base64 ids, enum names) and not OTLP, so traces are always
asked for in protobuf.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from ...errors import TelemetryFormatError
from ...event import canonical_run_id
from ...settings import Settings
from .decode import from_protobuf
from .http import Backend
from .span import RunHit, RunQuery, SpanRecord, hits

__all__ = ["TempoSource"]

_log: Final = logging.getLogger("sealtrace")
_PROTOBUF: Final = "application/protobuf"
_PARTIAL: Final = 1


class TempoSource:
    """A Tempo server (or the query frontend of a cluster).

    Args:
        url: `tempo://host:3200`, see `Backend`.
        settings: For the headers to send, for example `X-Scope-OrgID` where there are tenants.

    Raises:
        SettingsError: The URL cannot be used.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        self._backend = Backend(url, settings)
        self.partial: set[str] = set()
        """Traces of which Tempo said that it returned a part only."""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self._backend.name

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """All spans of a trace, by start time."""
        answer = self._backend.get(f"/api/v2/traces/{trace_id.lower()}", {}, accept=_PROTOBUF)
        if answer is None:
            return self._trace_v1(trace_id.lower())
        found = _Answer()
        try:
            found.ParseFromString(self._protobuf(*answer))
        except DecodeError:
            raise TelemetryFormatError(f"{self.name} sent a trace that is not protobuf") from None
        if found.status == _PARTIAL:
            self.partial.add(trace_id.lower())
            _log.warning("%s returned only a part of trace %s", self.name, trace_id.lower())
        return _sorted(found.trace)

    def _trace_v1(self, trace_id: str) -> list[SpanRecord]:
        """Releases before 2.7 have no v2; v1's `Trace` is `TracesData` on the wire."""
        answer = self._backend.get(f"/api/traces/{trace_id}", {}, accept=_PROTOBUF)
        return _sorted(self._protobuf(*answer)) if answer is not None else []

    def _protobuf(self, body: bytes, kind: str) -> bytes:
        if kind == "application/json":
            raise TelemetryFormatError(f"{self.name} sent JSON where protobuf was asked for; is a proxy in between?")
        return body

    def run(self, run_id: str) -> list[SpanRecord]:
        """All spans of all traces that carry this run id, as far back as `days` goes."""
        found = self._search(f"{{ span.sealtrace.run.id = {_quoted(canonical_run_id(run_id))} }}", None, 100)
        return [span for trace_id in found for span in self.trace(trace_id)]

    def runs(self, query: RunQuery, limit: int) -> list[RunHit]:
        """Runs, newest first, of those that Tempo found (it stops when it has `limit`)."""
        since = query.since.timestamp() if query.since is not None else None
        found = self._search(_traceql(query), since, limit)
        return list(hits((span for trace_id in found for span in self.trace(trace_id)), query))[:limit]

    def _search(self, traceql: str, since: float | None, limit: int) -> list[str]:
        end = time.time() + 60
        start = since if since is not None else end - self._backend.days * 86400
        # Without start and end Tempo looks at recent data only.
        query = {"q": traceql, "limit": limit, "spss": 1, "start": int(start), "end": int(end)}
        answer = self._backend.get("/api/search", query, accept="application/json")
        try:
            document: Any = json.loads(answer[0]) if answer is not None else None
            # Leading zeros of ids get lost on Tempo's way.
            return [str(trace["traceID"]).zfill(32) for trace in document.get("traces") or []]
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise TelemetryFormatError(f"{self.name} answered a search with something else; is it Tempo?") from None


def _sorted(data: bytes) -> list[SpanRecord]:
    once = {span.span_id: span for span in from_protobuf(data)}
    return sorted(once.values(), key=lambda span: span.start_ns)


def _traceql(query: RunQuery) -> str:
    root = {"span.sealtrace.span.kind": "trace"}
    if query.error:
        root["span.sealtrace.run.status"] = "error"
    if query.service is not None:
        root["resource.service.name"] = query.service
    sets = [root]
    if query.agent is not None:
        sets.append({"span.sealtrace.span.kind": "agent", "span.gen_ai.agent.name": query.agent})
    if query.tool is not None:
        sets.append({"span.sealtrace.span.kind": "tool", "span.gen_ai.tool.name": query.tool})
    return " && ".join(
        "{ " + " && ".join(f"{name} = {_quoted(value)}" for name, value in one.items()) + " }" for one in sets
    )


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _answer_class() -> type[Message]:
    """`tempopb.TraceByIDResponse`, as far as it is needed; the trace is left as bytes for the OTLP decoder."""
    file = descriptor_pb2.FileDescriptorProto(name="sealtrace/tempo.proto", package="sealtrace", syntax="proto3")
    message = file.message_type.add(name="TraceByIDResponse")
    field = descriptor_pb2.FieldDescriptorProto
    for name, number, kind in (("trace", 1, field.TYPE_BYTES), ("status", 3, field.TYPE_INT32)):
        message.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("sealtrace.TraceByIDResponse"))


_Answer: Final[Any] = _answer_class()
