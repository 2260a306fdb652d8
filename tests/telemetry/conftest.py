"""What the telemetry tests share: a writer whose spans stay in memory."""

from __future__ import annotations

# The SDK's fork hook starts a thread pool in the child; where the pool's module is imported after the
# first tracer provider was made, its lock is still taken then, and the child hangs.
import concurrent.futures.thread  # noqa: F401
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sealtrace.keys import Keys
from sealtrace.redaction import IdentifierGate, Policy, Redactor
from sealtrace.settings import Settings
from sealtrace.telemetry import SpanWriter


@dataclasses.dataclass
class Written:
    """A span writer and what it has written."""

    writer: SpanWriter
    gate: IdentifierGate
    exporter: InMemorySpanExporter

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def one(
        self,
        kind: str,
        attributes: dict[str, Any],
        end_attributes: dict[str, Any] | None = None,
        error_type: Any = None,
    ) -> ReadableSpan:
        """Start and end one span; what came of it."""
        span = self.writer.start(kind, attributes, parent=None)
        self.writer.end(span, end_attributes, error_type=error_type)
        return self.spans[-1]


def gate() -> IdentifierGate:
    """The real identifier gate with a fixed key."""
    keys = Keys(b"a key for tests only")
    return IdentifierGate(keys, Redactor(Policy.load(Settings()), keys))


@pytest.fixture
def written() -> Callable[..., Written]:
    """A factory of span writers with these settings."""

    def make(**settings: Any) -> Written:
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        cleaner = gate()
        return Written(SpanWriter(provider, cleaner, Settings(**settings)), cleaner, exporter)

    return make
