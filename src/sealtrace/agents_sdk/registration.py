"""Our place in the SDK's tracing: taken at `instrument()`, re-checked at each run, given back whole."""

from __future__ import annotations

import logging
from typing import Any, Final

from agents.tracing import get_trace_provider, set_trace_provider
from agents.tracing.provider import DefaultTraceProvider

from . import seams
from .processor import SealtraceProcessor
from .provider import CurrentSpanProvider
from .spanbook import SpanBook

__all__ = ["Registration"]

_log: Final = logging.getLogger("sealtrace")


class Registration:
    """Registers the processor and the provider wrap; removes the vendor's exporter unless told not to.

    Args:
        processor: Ours.
        book: Knows which OpenTelemetry context belongs to an SDK span.
        keep_vendor_exporter: Leave the SDK's own exporter in place.
    """

    def __init__(self, processor: SealtraceProcessor, book: SpanBook, *, keep_vendor_exporter: bool) -> None:
        self._processor = processor
        self._book = book
        self._keep = keep_vendor_exporter
        self._before: Any = None
        self._processors_before: tuple[Any, ...] | None = None
        self._wrap: CurrentSpanProvider | None = None
        self._warned: set[str] = set()

    def register(self) -> None:
        """Take our place."""
        self._before = seams.existing_provider()
        provider: Any = self._before
        if provider is None:
            provider = get_trace_provider() if self._keep else DefaultTraceProvider()
        self._processors_before = seams.registered_processors(provider)
        self._add_to(provider)
        self._wrap = CurrentSpanProvider(provider, self._context_of, self.ensure)
        set_trace_provider(self._wrap)

    def _add_to(self, provider: Any) -> None:
        processors = seams.registered_processors(provider)
        if processors is None or self._keep:
            provider.register_processor(self._processor)
            return
        kept = [processor for processor in processors if not seams.is_vendor_exporter(processor)]
        provider.set_processors([*kept, self._processor])

    def unregister(self) -> None:
        """Put everything back, displaced processors included; what others added since stays."""
        wrap = self._wrap
        if wrap is None:
            return
        inner = wrap.inner
        now = seams.registered_processors(inner)
        if now is not None and self._processors_before is not None:
            added = [item for item in now if item is not self._processor and item not in self._processors_before]
            inner.set_processors([*self._processors_before, *added])
        if seams.existing_provider() is wrap:
            if self._before is None and not now_has_others(now, self._processor):
                seams.forget_provider()
            else:
                set_trace_provider(inner)
        self._wrap = None

    def ensure(self) -> None:
        """At a run's start: somebody may have replaced the processors or the provider since."""
        wrap = self._wrap
        if wrap is None:
            return
        current = seams.existing_provider()
        if current is not wrap and current is not None:
            self._warn("another library replaced the SDK's trace provider; sealtrace put itself back around it")
            wrap = self._wrap = CurrentSpanProvider(current, self._context_of, self.ensure)
            set_trace_provider(wrap)
        processors = seams.registered_processors(wrap.inner)
        if processors is not None and self._processor not in processors:
            self._warn("another library replaced the SDK's trace processors; sealtrace registered itself again")
            wrap.inner.register_processor(self._processor)
        if processors and not self._keep and any(map(seams.is_vendor_exporter, processors)):
            self._warn("the SDK's exporter to its vendor was registered after instrument(): content leaves the process")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            _log.warning("%s", message)

    def tracing_off(self) -> bool:
        """Whether the SDK's tracing is switched off for the whole process."""
        wrap = self._wrap
        return wrap is not None and seams.tracing_disabled(wrap.inner)

    def _context_of(self, sdk: Any) -> Any:
        span_id = getattr(sdk, "span_id", None)
        if span_id is not None:
            entry = self._book.find(span_id)
        else:
            root = self._book.root_of(sdk, sdk.trace_id)
            entry = root.entry if root is not None else None
        return entry.context if entry is not None else None


def now_has_others(processors: tuple[Any, ...] | None, ours: Any) -> bool:
    """Whether anybody else registered a processor."""
    return any(processor is not ours for processor in processors or ())
