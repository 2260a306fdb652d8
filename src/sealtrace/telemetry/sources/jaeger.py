"""Spans from Jaeger: traces over HTTP API v3 (true OTLP), searches over the older `/api/traces`.

API v3 of the releases in use cannot search by attribute over HTTP, the older one can; every Jaeger
since 1.35 answers both.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any, Final, TypeAlias

from ...errors import TelemetryFormatError
from ...event import canonical_run_id
from ...settings import Settings
from .decode import from_document
from .http import Backend
from .span import RunHit, RunQuery, SpanRecord, hits

__all__ = ["JaegerSource"]

_Object: TypeAlias = dict[str, Any]

_JSON: Final = "application/json"
_MAX_SERVICES: Final = 200
_WARNINGS: Final = "@jaeger@warnings"
"""Jaeger's own remarks, which it puts among a span's attributes."""

_SPAN_KINDS: Final = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}


class JaegerSource:
    """A Jaeger query service.

    Args:
        url: `jaeger://host:16686`, see `Backend`.
        settings: For the headers to send.

    Raises:
        SettingsError: The URL cannot be used.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        self._backend = Backend(url, settings)

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self._backend.name

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """All spans of a trace, by start time; as they were sent, without Jaeger's clock adjustment."""
        document = self._json(f"/api/v3/traces/{trace_id.lower()}", {"raw_traces": "true"})
        if document is None:
            return []
        spans = _once(from_document(document.get("result")))
        for span in spans:
            span.attributes.pop(_WARNINGS, None)
        return sorted(spans, key=lambda span: span.start_ns)

    def run(self, run_id: str) -> list[SpanRecord]:
        """All spans of all traces that carry this run id, as far back as `days` goes."""
        tags = {"sealtrace.run.id": canonical_run_id(run_id)}
        found: dict[str, None] = {}
        for service in self._services():
            for trace in self._search(service, tags, since=None, limit=100):
                found.setdefault(str(trace.get("traceID", "")).zfill(32))
        return [span for trace_id in found for span in self.trace(trace_id)]

    def runs(self, query: RunQuery, limit: int) -> list[RunHit]:
        """Runs, newest first.

        Jaeger filters by one of the conditions, the rest is looked for in what it finds: a search by
        several conditions may miss runs where very many fit the first.
        """
        traces: dict[str, list[SpanRecord]] = {}
        for service in [query.service] if query.service is not None else self._services():
            for trace in self._search(service, _tags(query), since=query.since, limit=max(5 * limit, 100)):
                traces[str(trace.get("traceID"))] = _spans(trace)
        return list(hits((span for spans in traces.values() for span in spans), query))[:limit]

    def _services(self) -> list[str]:
        document = self._json("/api/v3/services", {})
        services: Any = (document or {}).get("services")
        if not isinstance(services, list):
            raise TelemetryFormatError(f"{self.name} lists no services; is it a Jaeger query service?")
        names: list[Any] = services[:_MAX_SERVICES]
        return [name for name in names if isinstance(name, str)]

    def _search(self, service: str, tags: dict[str, str], *, since: dt.datetime | None, limit: int) -> list[_Object]:
        end = time.time() + 60
        start = since.timestamp() if since is not None else end - self._backend.days * 86400
        query = {
            "service": service,
            "tags": json.dumps(tags),
            "start": int(start * 1e6),
            "end": int(end * 1e6),
            "limit": limit,
        }
        found: Any = (self._json("/api/traces", query) or {}).get("data")
        if not isinstance(found, list):
            raise TelemetryFormatError(f"{self.name} answered a search with something else than traces")
        traces: list[Any] = found
        return [trace for trace in traces if isinstance(trace, dict)]

    def _json(self, path: str, query: dict[str, Any]) -> _Object | None:
        answer = self._backend.get(path, query, accept=_JSON)
        if answer is None:
            return None
        try:
            document: Any = json.loads(answer[0])
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise TelemetryFormatError(f"{self.name} did not answer with JSON; is it a Jaeger query service?")
        return document  # pyright: ignore[reportUnknownVariableType]


def _tags(query: RunQuery) -> dict[str, str]:
    if query.tool is not None:
        return {"sealtrace.span.kind": "tool", "gen_ai.tool.name": query.tool}
    if query.agent is not None:
        return {"sealtrace.span.kind": "agent", "gen_ai.agent.name": query.agent}
    root = {"sealtrace.span.kind": "trace"}
    return {**root, "sealtrace.run.status": "error"} if query.error else root


def _once(spans: list[SpanRecord]) -> list[SpanRecord]:
    return list({span.span_id: span for span in spans}.values())


def _spans(trace: _Object) -> list[SpanRecord]:
    """The older API's form of a trace; times in microseconds, attributes as typed tags."""
    try:
        resources = {
            str(key): {"service.name": value.get("serviceName"), **_tag_values(value.get("tags"))}
            for key, value in trace["processes"].items()
        }
        return _once([_span(span, resources) for span in trace["spans"]])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TelemetryFormatError(f"a trace found by Jaeger could not be read ({type(error).__name__})") from None


def _span(span: _Object, resources: dict[str, _Object]) -> SpanRecord:
    tags = _tag_values(span.get("tags"))
    parents = [ref["spanID"] for ref in span.get("references") or [] if ref["refType"] == "CHILD_OF"]
    start = int(span["startTime"]) * 1000
    return SpanRecord(
        trace_id=str(span["traceID"]).zfill(32),
        span_id=str(span["spanID"]).zfill(16),
        parent_span_id=str(parents[0]).zfill(16) if parents else None,
        name=str(span["operationName"]),
        kind=_SPAN_KINDS.get(str(tags.pop("span.kind", "")), 0),
        start_ns=start,
        end_ns=start + int(span["duration"]) * 1000,
        attributes=tags,
        resource=resources.get(str(span.get("processID")), {}),
        scope=str(tags.pop("otel.scope.name", "")),
        status_code={"OK": 1, "ERROR": 2}.get(str(tags.pop("otel.status_code", "")), 0),
    )


def _tag_values(tags: list[_Object] | None) -> _Object:
    return {str(tag["key"]): tag["value"] for tag in tags or []}
