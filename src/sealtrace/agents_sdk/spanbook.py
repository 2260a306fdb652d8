"""Which OpenTelemetry span belongs to which SDK span, while they are open.

The SDK's own ids do not fit OpenTelemetry's (a span id of 96 bits, a trace id that may be any
string), and an incoming trace must win, so ids are never forced: both kinds are kept side by side.
"""

from __future__ import annotations

import dataclasses
import time
from collections import OrderedDict
from typing import Any, Final

from agents.tracing import Span as SdkSpan
from agents.tracing import Trace as SdkTrace
from agents.tracing import get_current_span, get_current_trace
from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.context import Context

from ..lifetime import fresh_lock
from ..record import Record
from ..telemetry import SpanWriter

__all__ = ["Root", "SpanBook", "SpanEntry"]

_MAX_ENDED: Final = 1024
"""Ended spans whose children may still come."""

_MAX_OPEN: Final = 20_000
"""Spans that never end (abandoned streams, killed tasks) are let go beyond this, oldest first."""


@dataclasses.dataclass(slots=True, eq=False)
class SpanEntry:
    """One open OpenTelemetry span and what is still to be written on it."""

    span: otel.Span
    context: Context
    kind: str
    sdk_span_id: str | None
    record: Record | None
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    error_type: str | None = None
    seq: int | None = None
    deferred: bool = False
    """A model span ends when both the SDK's span and the seam's call have ended; see `finish`."""
    ended_ns: int | None = None

    @property
    def trace_id(self) -> str | None:
        """32 hex digits; None where there is no valid span (no SDK configured)."""
        found = self.span.get_span_context()
        return f"{found.trace_id:032x}" if found.is_valid else None

    @property
    def span_id(self) -> str | None:
        """16 hex digits, or None."""
        found = self.span.get_span_context()
        return f"{found.span_id:016x}" if found.is_valid else None


@dataclasses.dataclass(slots=True, eq=False)
class Root:
    """The span a trace hangs from; `sdk_trace` is None where the SDK announced no trace."""

    entry: SpanEntry
    record: Record
    sdk_trace_id: str


class SpanBook:
    """Starts, finds and ends spans; the only caller of the span writer on the live path."""

    def __init__(self, output: SpanWriter) -> None:
        self._output = output
        self._lock = fresh_lock()
        self._open: OrderedDict[str, SpanEntry] = OrderedDict()
        self._ended: OrderedDict[str, Context] = OrderedDict()
        self._roots: dict[int, Root] = {}
        self._root_of: dict[str, Root] = {}
        self._rooted: dict[Record, list[Root]] = {}

    # roots

    def open_root(
        self, sdk_trace: SdkTrace | None, sdk_trace_id: str, record: Record, attributes: dict[str, Any]
    ) -> Root:
        """Start the root span: under the application's current span if it has one, else a new trace."""
        parent = otel_context.get_current()
        span = self._output.start("trace", {**attributes, **_ids(record)}, parent=parent)
        entry = SpanEntry(span, _context_with(span, parent), "trace", None, record)
        root = Root(entry, record, sdk_trace_id)
        with self._lock:
            if sdk_trace is not None:
                self._roots[id(sdk_trace)] = root
            self._root_of[sdk_trace_id] = root
            self._rooted.setdefault(record, []).append(root)
        if entry.trace_id is not None:
            record.trace_ids.setdefault(entry.trace_id)
        if record.root is None:
            record.root = span.get_span_context()
        return root

    def root_of(self, sdk_trace: SdkTrace | None, sdk_trace_id: str) -> Root | None:
        """The open root of this trace: by the trace object first, since ids may be used twice at once."""
        with self._lock:
            found = self._roots.get(id(sdk_trace)) if sdk_trace is not None else None
            return found or self._root_of.get(sdk_trace_id)

    def root_entry(self, record: Record) -> SpanEntry | None:
        """The first root span of a record."""
        with self._lock:
            roots = self._rooted.get(record)
            return roots[0].entry if roots else None

    def trace_ended(self, root: Root, sdk_trace: SdkTrace) -> None:
        """The SDK's trace is over; the root ends with its record, which knows how the run went."""
        root.entry.ended_ns = time.time_ns()
        with self._lock:
            self._roots.pop(id(sdk_trace), None)

    def close_roots(self, record: Record) -> None:
        """End the root spans of a record with the run's totals."""
        with self._lock:
            roots = self._rooted.pop(record, [])
            for root in roots:
                if self._root_of.get(root.sdk_trace_id) is root:
                    del self._root_of[root.sdk_trace_id]
            for key in [key for key, root in self._roots.items() if root.record is record]:
                del self._roots[key]
        totals: dict[str, Any] = {
            "sealtrace.run.events": record.event_count,
            "sealtrace.run.status": record.status,
            "sealtrace.run.dropped": record.dropped,
            "sealtrace.fidelity": record.fidelity,
            "gen_ai.usage.input_tokens": record.input_tokens,
            "gen_ai.usage.output_tokens": record.output_tokens,
        }
        for root in roots:
            root.entry.attributes.update(totals)
            root.entry.error_type = None if record.status == "ok" else record.error_type or "_OTHER"
            self.end(root.entry)

    # spans

    def start(
        self, kind: str, sdk_span: SdkSpan[Any], record: Record | None, root: Root | None, attributes: dict[str, Any]
    ) -> SpanEntry:
        """Start the span that mirrors an SDK span, under the mirror of its parent."""
        parent = self._parent_context(sdk_span, root)
        ids = _ids(record) if record is not None else {}
        span = self._output.start(kind, {**attributes, **ids}, parent=parent, start_time=None)
        entry = SpanEntry(span, _context_with(span, parent), kind, sdk_span.span_id, record)
        with self._lock:
            self._open[sdk_span.span_id] = entry
            while len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
        return entry

    def _parent_context(self, sdk_span: SdkSpan[Any], root: Root | None) -> Context:
        base = self._context_of_parent(sdk_span.parent_id) or (root.entry.context if root else None)
        current = otel_context.get_current()
        if base is None:
            return current
        # A span of the application's own between ours (a decorator around a tool, say) stays in between.
        ours = otel_context.get_value(_MARK, base)
        if otel_context.get_value(_MARK, current) is ours and otel.get_current_span(current) is not ours:
            return current
        return base

    def _context_of_parent(self, sdk_span_id: str | None) -> Context | None:
        if sdk_span_id is None:
            return None
        with self._lock:
            entry = self._open.get(sdk_span_id)
            return entry.context if entry is not None else self._ended.get(sdk_span_id)

    def find(self, sdk_span_id: str | None) -> SpanEntry | None:
        """The entry of an open SDK span."""
        if sdk_span_id is None:
            return None
        with self._lock:
            return self._open.get(sdk_span_id)

    def finish(self, sdk_span_id: str, attributes: dict[str, Any], error_type: str | None) -> None:
        """The SDK's span has ended; ends ours too, unless its model call is still to be heard of."""
        with self._lock:
            entry = self._open.pop(sdk_span_id, None)
            if entry is None:
                return
            # A span finished elsewhere stays the SDK's current one here, and so the parent of what follows.
            self._ended[sdk_span_id] = entry.context
            while len(self._ended) > _MAX_ENDED:
                self._ended.popitem(last=False)
        entry.attributes.update(attributes)
        entry.error_type = entry.error_type or error_type
        entry.ended_ns = time.time_ns()
        if not entry.deferred:
            self.end(entry)

    def end(self, entry: SpanEntry) -> None:
        """Write what was gathered and end the span at the time the SDK's span ended."""
        self._output.end(entry.span, entry.attributes, error_type=entry.error_type, end_time=entry.ended_ns)

    def retroactive(
        self, kind: str, record: Record, attributes: dict[str, Any], start_ns: int, error_type: str | None, *, seq: int
    ) -> SpanEntry:
        """A span for something the SDK made no span for, from `start_ns` until now."""
        parent = self.current_context() or otel_context.get_current()
        span = self._output.start(
            kind, {**attributes, **_ids(record), "sealtrace.seq": seq}, parent=parent, start_time=start_ns
        )
        self._output.end(span, None, error_type=error_type)
        return SpanEntry(span, _context_with(span, parent), kind, None, record)

    def current(self) -> SpanEntry | None:
        """The entry of the SDK's current span, else of its current trace."""
        span = get_current_span()
        entry = self.find(span.span_id) if span is not None else None
        if entry is not None:
            return entry
        trace = get_current_trace()
        root = self.root_of(trace, trace.trace_id) if trace is not None else None
        return root.entry if root else None

    def current_context(self) -> Context | None:
        """The OpenTelemetry context in which the SDK's current span is current."""
        entry = self.current()
        return entry.context if entry else None

    def first_event(self, entry: SpanEntry | None, seq: int) -> None:
        """Write the seq of the first event that happened in this span."""
        if entry is not None and entry.seq is None:
            entry.seq = seq
            entry.attributes["sealtrace.seq"] = seq


_MARK: Final = otel_context.create_key("sealtrace-span")
"""Marks, in a context of ours, which of our spans is current, to tell the application's spans apart."""


def _context_with(span: otel.Span, parent: Context) -> Context:
    return otel_context.set_value(_MARK, span, otel.set_span_in_context(span, parent))


def _ids(record: Record) -> dict[str, str]:
    return {"sealtrace.run.id": record.run_id, "sealtrace.record.id": record.record_id}
