"""One internal form for a span, wherever it was read from."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

__all__ = ["RunHit", "RunQuery", "Source", "SpanRecord", "hits"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """A span as a backend gave it back.

    Attributes:
        trace_id: 32 hex digits.
        span_id: 16 hex digits.
        parent_span_id: 16 hex digits, or None for a root.
        name: The span's name.
        kind: OTLP's number for the span kind.
        start_ns: Nanoseconds since the epoch.
        end_ns: Nanoseconds since the epoch.
        attributes: Plain values.
        resource: The resource's attributes.
        scope: The instrumentation scope's name.
        status_code: 0 unset, 1 ok, 2 error.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    resource: dict[str, Any]
    scope: str
    status_code: int

    @property
    def duration_ms(self) -> float:
        """Milliseconds from start to end."""
        return (self.end_ns - self.start_ns) / 1e6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """What to look for among runs; None is no condition."""

    service: str | None = None
    agent: str | None = None
    tool: str | None = None
    error: bool | None = None
    since: dt.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunHit:
    """A run found by its spans."""

    run_id: str
    trace_id: str
    name: str
    service: str | None
    started_ns: int
    duration_ms: float
    status: str
    agents: tuple[str, ...]
    tools: tuple[str, ...]
    events: int | None

    @property
    def error(self) -> bool:
        """Whether the run ended with an error."""
        return self.status == "error"


class Source(Protocol):
    """A place spans can be read from."""

    @property
    def name(self) -> str:
        """What to call it in messages; holds no credentials."""
        ...

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """All spans of a trace, by start time; empty if it is not known.

        Raises:
            TelemetryError: The source cannot be read.
        """
        ...

    def run(self, run_id: str) -> list[SpanRecord]:
        """All spans of all traces that carry this run id."""
        ...

    def runs(self, query: RunQuery, limit: int) -> list[RunHit]:
        """Runs, newest first."""
        ...


def hits(spans: Iterable[SpanRecord], query: RunQuery) -> Iterator[RunHit]:
    """Runs that these spans belong to and that fit the query, newest first."""
    by_run: dict[str, list[SpanRecord]] = {}
    for span in spans:
        run_id = span.attributes.get("sealtrace.run.id")
        if isinstance(run_id, str):
            by_run.setdefault(run_id, []).append(span)
    found = [_hit(run_id, members) for run_id, members in by_run.items()]
    for hit in sorted(found, key=lambda item: item.started_ns, reverse=True):
        if _fits(hit, query):
            yield hit


def _hit(run_id: str, spans: list[SpanRecord]) -> RunHit:
    spans.sort(key=lambda span: span.start_ns)
    roots = [span for span in spans if span.attributes.get("sealtrace.span.kind") == "trace"] or spans[:1]
    root = roots[0]
    statuses = [str(item.attributes.get("sealtrace.run.status", "ok")) for item in roots]
    worst = next((status for status in ("incomplete", "error", "cancelled") if status in statuses), "ok")
    return RunHit(
        run_id=run_id,
        trace_id=root.trace_id,
        name=str(root.attributes.get("sealtrace.workflow.name", root.name)),
        service=_text(root.resource.get("service.name")),
        started_ns=root.start_ns,
        duration_ms=(max(span.end_ns for span in spans) - root.start_ns) / 1e6,
        status=worst,
        agents=_distinct(spans, "agent", "gen_ai.agent.name"),
        tools=_distinct(spans, "tool", "gen_ai.tool.name"),
        events=next(
            (value for item in roots if type(value := item.attributes.get("sealtrace.run.events")) is int), None
        ),
    )


def _distinct(spans: list[SpanRecord], kind: str, key: str) -> tuple[str, ...]:
    of_kind = (span.attributes for span in spans if span.attributes.get("sealtrace.span.kind") == kind)
    names = (str(attributes[key]) for attributes in of_kind if key in attributes)
    return tuple(dict.fromkeys(names))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _fits(hit: RunHit, query: RunQuery) -> bool:
    return (
        (query.service is None or hit.service == query.service)
        and (query.agent is None or query.agent in hit.agents)
        and (query.tool is None or query.tool in hit.tools)
        and (query.error is None or query.error == hit.error)
        and (query.since is None or hit.started_ns >= query.since.timestamp() * 1e9)
    )
