"""The only place where a span of ours gets a name or an attribute."""

from __future__ import annotations

import dataclasses
import time
import weakref
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider

from .._guard import safely
from .._version import __version__
from ..settings import Settings
from .gates import Gates, IdentifierCleaner
from .metadata import SCHEMA_URL
from .metrics import Metrics

__all__ = ["SpanWriter"]

_OPERATION: Final = {
    "trace": "invoke_workflow",
    "agent": "invoke_agent",
    "model": "chat",
    "tool": "execute_tool",
    "speech": "speech",
    "transcription": "transcription",
}
_VERB: Final = {**_OPERATION, "mcp_tools": "tools/list", "seal": "sealtrace.seal"}
"""The first word of a span's name, by kind; the kind itself where it is not here."""

_DETAIL: Final = {
    "invoke_workflow": "sealtrace.workflow.name",
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
    "speech": "gen_ai.request.model",
    "transcription": "gen_ai.request.model",
    "task": "sealtrace.workflow.name",
    "turn": "sealtrace.turn.index",
    "handoff": "sealtrace.handoff.to",
    "guardrail": "sealtrace.guardrail.name",
    "tools/list": "sealtrace.mcp.server",
}
"""The attribute that follows the first word; a name holds nothing that is not an attribute too."""

_CLIENTS: Final = frozenset({"model", "speech", "transcription"})


@dataclasses.dataclass(slots=True)
class _Open:
    """What the metrics of a span need, whether it is sampled or not."""

    kind: str
    start_ns: int
    attributes: dict[str, Any]


class SpanWriter:
    """Starts, fills and ends spans; lets through only what the allow-list allows.

    It never raises, never asks a foreign object for its text, never sets a status description, an
    event or a link. What does not pass is left out and counted in `refused`.

    Args:
        tracer_provider: Where spans go; None for the global provider, whenever that is set.
        gate: The identifier gate.
        settings: The settings in force.
        metrics: Where durations and tokens are recorded when a span ends; None for nowhere.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        gate: IdentifierCleaner,
        settings: Settings,
        metrics: Metrics | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(
            "sealtrace", __version__, tracer_provider=tracer_provider, schema_url=SCHEMA_URL
        )
        self._gates = Gates(gate, settings)
        self._metrics = metrics
        self._open: weakref.WeakKeyDictionary[Span, _Open] = weakref.WeakKeyDictionary()

    @property
    def refused(self) -> int:
        """How many attributes did not pass."""
        return self._gates.refused

    def start(
        self, kind: str, attributes: Mapping[str, Any], *, parent: Context | None, start_time: int | None = None
    ) -> Span:
        """Start a span of this kind (see `sealtrace.span.kind`).

        Args:
            kind: What the span is in the SDK's tree.
            attributes: What is known at the start; samplers see it.
            parent: The context to hang it from; an empty one makes a new trace.
            start_time: Nanoseconds since the epoch; now by default.

        Returns:
            The span; where the application's span machinery failed, one that does nothing.
        """
        return safely(self._start, kind, attributes, parent, start_time) or INVALID_SPAN

    def _start(self, kind: str, attributes: Mapping[str, Any], parent: Context | None, start_time: int | None) -> Span:
        known = {**attributes, "sealtrace.span.kind": kind, "gen_ai.operation.name": _OPERATION.get(kind)}
        passed = self._gates.passed(known)
        if kind == "trace" and "sealtrace.workflow.name" in passed:
            # GenAI 0.1.0 merged workflows into agent spans: the workflow's name is the agent's there.
            passed.setdefault("gen_ai.agent.name", passed["sealtrace.workflow.name"])
        verb = _VERB.get(kind, kind)
        span = self._tracer.start_span(
            _name(verb, passed) or verb,
            context=parent,
            kind=SpanKind.CLIENT if kind in _CLIENTS else SpanKind.INTERNAL,
            attributes=passed,
            start_time=start_time,
            record_exception=False,
            set_status_on_exception=False,
        )
        if self._metrics is not None:
            safely(self._remember, span, _Open(kind, start_time or time.time_ns(), passed))
        return span

    def _remember(self, span: Span, known: _Open) -> None:
        # The span that does nothing is one object for all: it has nothing of its own to remember.
        if span.get_span_context().is_valid:
            self._open[span] = known

    def set(self, span: Span, attributes: Mapping[str, Any]) -> None:
        """Set attributes on an open span."""
        safely(self._set, span, attributes, None)

    def end(
        self,
        span: Span,
        attributes: Mapping[str, Any] | None = None,
        *,
        error_type: str | None = None,
        end_time: int | None = None,
    ) -> None:
        """Set what is known at the end, and end the span.

        Args:
            span: The span.
            attributes: More attributes.
            error_type: Class name of the exception it ended with; makes the status ERROR, without text.
            end_time: Nanoseconds since the epoch; now by default.
        """
        safely(self._set, span, attributes or {}, error_type)
        safely(span.end, end_time)
        if self._metrics is not None:
            safely(self._measure, self._metrics, span, end_time)

    def _measure(self, metrics: Metrics, span: Span, end_time: int | None) -> None:
        known = self._open.pop(span, None)
        if known is not None:
            seconds = max(0, (end_time or time.time_ns()) - known.start_ns) / 1e9
            metrics.span_ended(known.kind, seconds, known.attributes)

    def _set(self, span: Span, attributes: Mapping[str, Any], error_type: str | None) -> None:
        known = self._open.get(span) if self._metrics is not None else None
        recording = span.is_recording()
        if not recording and known is None:
            return
        passed = self._gates.passed(attributes)
        if error_type is not None:
            passed["error.type"] = self._gates.class_name(error_type)
        if known is not None:
            known.attributes.update(passed)
        if not recording:
            return
        if error_type is not None:
            span.set_status(Status(StatusCode.ERROR))
        if not passed:
            return
        span.set_attributes(passed)
        # The model is known once the seam was heard, the next agent once the handoff is done.
        given = getattr(span, "name", None)
        better = _name(given.partition(" ")[0], passed) if type(given) is str else None
        if better is not None and better != given:
            span.update_name(better)

    def seal(self, parent: SpanContext, attributes: Mapping[str, Any]) -> None:
        """The span that says a record's manifest is stored, under the run's root.

        It has no length of its own; one nanosecond, because Jaeger puts a warning on a span of none.

        Args:
            parent: The root span; where it is not valid there is no trace to witness, and nothing is done.
            attributes: What was stored.
        """
        if not parent.is_valid:
            return
        context = trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
        now = time.time_ns()
        self.end(self.start("seal", attributes, parent=context, start_time=now), end_time=now + 1)


def _name(verb: str, passed: Mapping[str, Any]) -> str | None:
    detail = passed.get(_DETAIL.get(verb, ""))
    return f"{verb} {detail}" if detail is not None else None
