"""Turns SDK spans into OpenTelemetry spans: the tree, the timing, and named metadata.

No value is taken from an SDK span but the ones named here; input, output, data and error texts are
never read. Payloads come from the seams.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final, cast

from agents.tracing import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    MCPListToolsSpanData,
    ResponseSpanData,
    Span,
    SpeechGroupSpanData,
    SpeechSpanData,
    TaskSpanData,
    Trace,
    TracingProcessor,
    TranscriptionSpanData,
    TurnSpanData,
    get_current_trace,
)

from .._guard import safely
from ..record import Record
from ..recorder import Recorder
from ..redaction import IdentifierGate
from ..settings import Settings
from .frames import FRAME, Frame
from .spanbook import Root, SpanBook, SpanEntry

__all__ = ["MODEL_CALL", "SealtraceProcessor", "TraceListener"]

_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (AgentSpanData, "agent"),
    (TaskSpanData, "task"),
    (TurnSpanData, "turn"),
    (ResponseSpanData, "model"),
    (GenerationSpanData, "model"),
    (FunctionSpanData, "tool"),
    (HandoffSpanData, "handoff"),
    (GuardrailSpanData, "guardrail"),
    (MCPListToolsSpanData, "mcp_tools"),
    (SpeechGroupSpanData, "speech_group"),
    (SpeechSpanData, "speech"),
    (TranscriptionSpanData, "transcription"),
    (CustomSpanData, "custom"),
)

_KIND_OF: Final = dict(_KINDS)

MODEL_CALL: Final[ContextVar[Any]] = ContextVar("sealtrace_model_call", default=None)
"""The model call in progress in this context; the SDK's model span that starts in it is its span."""


class TraceListener:
    """What the capture wants to hear of traces and spans; see `capture.Capture`."""

    def trace_known(self, frame: Frame, record: Record) -> None:
        """The record that this frame's events go to is known now."""

    def model_span(self, call: Any, entry: SpanEntry) -> None:
        """The SDK started the span of this model call."""

    def agent_started(self, record: Record, name: str) -> None:
        """An agent's turn in this run has begun."""

    def custom_span(self, record: Record, entry: SpanEntry, name: Any, data: Any) -> None:
        """A custom span has ended."""


class SealtraceProcessor(TracingProcessor):
    """Registered with the SDK; lives on the agent's thread, so it is short and guarded."""

    def __init__(
        self, recorder: Recorder, book: SpanBook, settings: Settings, listener: TraceListener, gate: IdentifierGate
    ) -> None:
        self._recorder = recorder
        self._book = book
        self._settings = settings
        self._listener = listener
        self._gate = gate

    # what the SDK calls

    def on_trace_start(self, trace: Trace) -> None:
        """Open the root span and the record."""
        safely(self._trace_start, trace)

    def on_trace_end(self, trace: Trace) -> None:
        """Let go of the record; it closes when nothing of it runs."""
        safely(self._trace_end, trace)

    def on_span_start(self, span: Span[Any]) -> None:
        """Start the span that mirrors this one."""
        safely(self._span_start, span)

    def on_span_end(self, span: Span[Any]) -> None:
        """End the span that mirrors this one."""
        safely(self._span_end, span)

    def shutdown(self) -> None:
        """Nothing: the recorder has its own exit handler, which does not share the SDK's five seconds."""

    def force_flush(self) -> None:
        """Store what waits, five seconds at most."""
        safely(self._recorder.flush, 5.0)

    # traces

    def _trace_start(self, trace: Trace) -> None:
        record = self._recorder.record(trace.trace_id)
        record.hold(run=True)
        self._open_root(trace, trace.trace_id, record)
        self._bind_frame(record)

    def _open_root(self, trace: Trace | None, trace_id: str, record: Record) -> Root:
        attributes: dict[str, Any] = {"sealtrace.sdk.trace_id": trace_id}
        if trace is not None:
            attributes |= self._trace_attributes(trace)
            record.workflow_name = record.workflow_name or self._gate.clean(trace.name)
            record.group_tag = record.group_tag or attributes.get("sealtrace.session.tag")
        if self._settings.replay_url:
            attributes["sealtrace.replay.url"] = f"{self._settings.replay_url.rstrip('/')}/runs/{record.run_id}"
        return self._book.open_root(trace, trace_id, record, attributes)

    def _trace_attributes(self, trace: Trace) -> dict[str, Any]:
        out: dict[str, Any] = {"sealtrace.workflow.name": trace.name}
        group = getattr(trace, "group_id", None)
        if group:
            out["sealtrace.session.tag"] = self._gate.tag(group)
            if self._settings.raw_group_id:
                out["gen_ai.conversation.id"] = group
        metadata = getattr(trace, "metadata", None)
        if type(metadata) is dict:
            for key in self._settings.trace_metadata_keys:
                if key in metadata:
                    out[f"sealtrace.metadata.{key}"] = metadata[key]
        return out

    def _trace_end(self, trace: Trace) -> None:
        root = self._book.root_of(trace, trace.trace_id)
        if root is not None:
            self._book.trace_ended(root, trace)
            self._recorder.release(root.record, run=True)

    def _bind_frame(self, record: Record) -> None:
        frame = FRAME.get()
        if frame is not None and frame.record is None and not frame.muted:
            self._listener.trace_known(frame, record)

    # spans

    def _span_start(self, span: Span[Any]) -> None:
        kind = _KIND_OF.get(type(span.span_data)) or _kind_of(span.span_data)
        record, root = self._home(span)
        self._bind_frame(record)
        attributes = {"sealtrace.sdk.span_id": span.span_id, **_start_facts(kind, span.span_data)}
        entry = self._book.start(kind, span, record, root, attributes)
        if kind == "agent":
            self._listener.agent_started(record, cast(AgentSpanData, span.span_data).name)
        if kind == "model":
            call = MODEL_CALL.get()
            if call is not None:
                self._listener.model_span(call, entry)

    def _home(self, span: Span[Any]) -> tuple[Record, Root | None]:
        trace = get_current_trace()
        root = self._book.root_of(trace, span.trace_id)
        if root is not None and not root.record.closed:
            return root.record, root
        record = self._recorder.record(span.trace_id)
        if root is None and span.parent_id is None:
            # A resumed trace announces no start in the process that began it.
            root = self._open_root(trace, span.trace_id, record)
        return record, root

    def _span_end(self, span: Span[Any]) -> None:
        entry = self._book.find(span.span_id)
        if entry is None:
            return
        data: Any = span.span_data
        if entry.kind == "custom" and entry.record is not None:
            self._listener.custom_span(entry.record, entry, data.name, data.data)
        error_type = "_OTHER" if span.error is not None else None
        self._book.finish(span.span_id, _end_facts(entry.kind, data), error_type)


def _kind_of(data: Any) -> str:
    return next((name for cls, name in _KINDS if isinstance(data, cls)), "custom")


def _start_facts(kind: str, data: Any) -> dict[str, Any]:
    if kind == "agent":
        return {"gen_ai.agent.name": data.name}
    if kind == "task":
        return {"sealtrace.workflow.name": data.name}
    if kind == "turn":
        return {"sealtrace.turn.index": data.turn, "gen_ai.agent.name": data.agent_name}
    if kind == "tool":
        return {"gen_ai.tool.name": data.name, "gen_ai.tool.type": "function"}
    if kind == "handoff":
        return {"sealtrace.handoff.from": data.from_agent}
    if kind == "guardrail":
        return {"sealtrace.guardrail.name": data.name}
    if kind == "custom":
        return {"sealtrace.custom.name": data.name}
    if kind == "mcp_tools":
        return {"sealtrace.mcp.server": data.server}
    if kind in ("speech", "transcription"):
        return {"gen_ai.request.model": data.model} if data.model else {}
    return {}


def _end_facts(kind: str, data: Any) -> dict[str, Any]:
    if kind == "handoff":
        return {"sealtrace.handoff.to": data.to_agent} if data.to_agent else {}
    if kind == "guardrail":
        return {"sealtrace.guardrail.tripped": bool(data.triggered)}
    if kind == "tool" and type(data.mcp_data) is dict:
        return {"mcp.method.name": "tools/call", "sealtrace.mcp.server": data.mcp_data.get("server")}
    if kind == "mcp_tools":
        tools = data.result
        return {"mcp.method.name": "tools/list", "sealtrace.mcp.tool_count": len(tools) if type(tools) is list else 0}
    if kind == "model" and data.type == "generation" and data.model:
        return {"gen_ai.request.model": data.model}
    if kind == "agent":
        return {
            "sealtrace.agent.tool_count": len(data.tools or []),
            "sealtrace.agent.handoff_count": len(data.handoffs or []),
        }
    return {}
