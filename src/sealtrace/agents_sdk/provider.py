"""Makes the right OpenTelemetry span current whenever the SDK's own span is.

A trace processor is told of a span before the SDK makes it current, if it does at all, so a
processor that attaches OpenTelemetry context gets parents wrong (voice, Codex tool, spans finished
in another task). Wrapping the trace provider follows the SDK exactly: what the SDK makes current is
current, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from agents.tracing import Span, Trace, TraceProvider, TracingProcessor
from agents.tracing.config import TracingConfig
from opentelemetry import context as otel_context
from opentelemetry.context import Context

from .._guard import safely

__all__ = ["CurrentSpanProvider"]

T = TypeVar("T", Trace, Span[Any])
ContextOf = Callable[[Any], Context | None]

_probe: Final[ContextVar[object | None]] = ContextVar("sealtrace_attached", default=None)


class _Attachment:
    """One attached OpenTelemetry context; detaches only where it was attached.

    OpenTelemetry logs an error with a traceback when a token is returned in another context, which
    happens whenever an async generator is closed by someone else. The probe is set and reset beside
    it and says, without a log, whether this is the same context.
    """

    __slots__ = ("_probe_token", "_token")

    def __init__(self, context: Context) -> None:
        self._probe_token: Token[object | None] | None = _probe.set(self)
        self._token = otel_context.attach(context)

    def detach(self) -> None:
        token, self._probe_token = self._probe_token, None
        if token is None:
            return
        try:
            _probe.reset(token)
        except ValueError:
            return
        otel_context.detach(self._token)


class CurrentSpanProvider(TraceProvider):
    """The SDK's provider with OpenTelemetry context kept in step.

    Args:
        inner: The provider in force before.
        context_of: Gives the OpenTelemetry context for an SDK trace or span, once it has started.
        replaced: Called when somebody replaces the list of processors.
    """

    def __init__(self, inner: TraceProvider, context_of: ContextOf, replaced: Callable[[], None]) -> None:
        self.inner = inner
        self._context_of = context_of
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def register_processor(self, processor: TracingProcessor) -> None:
        self.inner.register_processor(processor)

    def set_processors(self, processors: list[TracingProcessor]) -> None:
        self.inner.set_processors(processors)
        safely(self._replaced)

    def get_current_trace(self) -> Trace | None:
        return self.inner.get_current_trace()

    def get_current_span(self) -> Span[Any] | None:
        return self.inner.get_current_span()

    def set_disabled(self, disabled: bool) -> None:  # noqa: FBT001 - the SDK's signature
        self.inner.set_disabled(disabled)

    def time_iso(self) -> str:
        return self.inner.time_iso()

    def gen_trace_id(self) -> str:
        return self.inner.gen_trace_id()

    def gen_span_id(self) -> str:
        return self.inner.gen_span_id()

    def gen_group_id(self) -> str:
        return self.inner.gen_group_id()

    def create_trace(
        self,
        name: str,
        trace_id: str | None = None,
        group_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        disabled: bool = False,  # noqa: FBT001, FBT002 - the SDK's signature
        tracing: TracingConfig | None = None,
    ) -> Trace:
        trace = self.inner.create_trace(name, trace_id, group_id, metadata, disabled, tracing)
        if trace.trace_id == "no-op":
            return trace
        return safely(_CurrentTrace, trace, self._context_of) or trace

    def create_span(
        self,
        span_data: Any,
        span_id: str | None = None,
        parent: Trace | Span[Any] | None = None,
        disabled: bool = False,  # noqa: FBT001, FBT002 - the SDK's signature
    ) -> Span[Any]:
        if isinstance(parent, _CurrentSpan | _CurrentTrace):
            parent = parent.inner
        span = self.inner.create_span(span_data, span_id, parent, disabled)
        if span.span_id == "no-op":
            return span
        return safely(_CurrentSpan, span, self._context_of) or span

    def force_flush(self) -> None:
        self.inner.force_flush()

    def shutdown(self, timeout: float | None = 5.0) -> None:
        # The SDK gives its own provider 5 s at exit and any other provider no limit at all.
        try:
            self.inner.shutdown(timeout=timeout)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
        except TypeError:
            self.inner.shutdown()


class _InStep(Generic[T]):
    """What the two wrappers share: attach after the SDK has, detach before it does."""

    def __init__(self, inner: T, context_of: ContextOf) -> None:
        self.inner: T = inner
        self._context_of = context_of
        self._attachment: _Attachment | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def _attach(self) -> None:
        context = self._context_of(self.inner)
        if context is not None and self._attachment is None:
            self._attachment = _Attachment(context)

    def _detach(self) -> None:
        attachment, self._attachment = self._attachment, None
        if attachment is not None:
            attachment.detach()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        safely(self._detach)
        self.inner.__exit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def start(self, mark_as_current: bool = False) -> None:  # noqa: FBT001, FBT002 - the SDK's signature
        self.inner.start(mark_as_current)
        if mark_as_current:
            safely(self._attach)

    def finish(self, reset_current: bool = False) -> None:  # noqa: FBT001, FBT002 - the SDK's signature
        if reset_current:
            safely(self._detach)
        self.inner.finish(reset_current)

    @property
    def trace_id(self) -> str:
        return self.inner.trace_id

    @property
    def tracing_api_key(self) -> str | None:
        return self.inner.tracing_api_key

    def export(self) -> dict[str, Any] | None:
        return self.inner.export()


class _CurrentTrace(_InStep[Trace], Trace):
    def __enter__(self) -> Trace:
        self.inner.__enter__()
        safely(self._attach)
        return self

    @property
    def name(self) -> str:
        return self.inner.name

    def to_json(self, *, include_tracing_api_key: bool = False) -> dict[str, Any] | None:
        return self.inner.to_json(include_tracing_api_key=include_tracing_api_key)


class _CurrentSpan(_InStep[Span[Any]], Span[Any]):
    def __enter__(self) -> Span[Any]:
        self.start(mark_as_current=True)
        return self

    @property
    def span_id(self) -> str:
        return self.inner.span_id

    @property
    def span_data(self) -> Any:
        return self.inner.span_data

    @property
    def parent_id(self) -> str | None:
        return self.inner.parent_id

    def set_error(self, error: Any) -> None:
        self.inner.set_error(error)

    @property
    def error(self) -> Any:
        return self.inner.error

    @property
    def started_at(self) -> str | None:
        return self.inner.started_at

    @property
    def ended_at(self) -> str | None:
        return self.inner.ended_at

    @property
    def trace_metadata(self) -> dict[str, Any] | None:
        return self.inner.trace_metadata
