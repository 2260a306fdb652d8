"""Metrics through the OpenTelemetry API: what agents do (GenAI conventions) and how sealtrace itself fares.

Only the API is used: without a meter provider of the application's, everything here does nothing.
Attributes are those of the span, gated already, and of these only names of models, agents and tools.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter, MeterProvider, Observation

from .._guard import safely
from .._version import __version__
from ..lifetime import fresh_lock
from .metadata import SCHEMA_URL

__all__ = ["OBSERVED", "Metrics"]

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_SMALL: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_DURATION: Final = {
    "model": "gen_ai.client.inference.duration",
    "agent": "gen_ai.invoke_agent.duration",
    "trace": "gen_ai.invoke_agent.duration",
    "tool": "gen_ai.execute_tool.duration",
}
_BY: Final = {
    "model": ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"),
    "agent": ("gen_ai.operation.name", "gen_ai.agent.name"),
    "trace": ("gen_ai.operation.name", "gen_ai.agent.name"),
    "tool": ("gen_ai.operation.name", "gen_ai.tool.name"),
}
_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
_USAGE: Final = {
    f"gen_ai.usage.{name}": f"gen_ai.client.inference.usage.{name}"
    for name in (
        "input_tokens",
        "output_tokens",
        "cache_read.input_tokens",
        "cache_write.input_tokens",
        "reasoning.output_tokens",
    )
}

OBSERVED: Final = {
    "sealtrace.queue.events": (False, "{event}", "Events that wait in memory"),
    "sealtrace.queue.bytes": (False, "By", "Payload bytes that wait in memory to be redacted"),
    "sealtrace.spool.bytes": (False, "By", "Redacted bytes that wait for the vault"),
    "sealtrace.vault.records.waiting": (False, "{record}", "Records that are not wholly stored"),
    "sealtrace.vault.failing": (False, "1", "1 while the vault takes nothing, else 0"),
    "sealtrace.vault.records.recovered": (True, "{record}", "Records of dead processes stored from the spool"),
    "sealtrace.payloads.dropped": (True, "{payload}", "Payloads dropped because the queue or the spool was full"),
    "sealtrace.events.lost": (True, "{event}", "Events lost, envelope and all"),
    "sealtrace.attributes.refused": (True, "{attribute}", "Span attributes that the allow-list refused"),
    "sealtrace.failures": (True, "{failure}", "Failures of sealtrace's own that the run did not see"),
}
"""What is read when metrics are collected: whether it only grows, its unit, its meaning."""


class Metrics:
    """The metrics of one instrumented process.

    Args:
        provider: Where they go; None for the application's global meter provider.
        genai: Whether to record the GenAI metrics too; off where another instrumentation does.
    """

    def __init__(self, provider: MeterProvider | None = None, *, genai: bool = True) -> None:
        self._instruments = _instruments_of(provider)
        self.genai = genai

    def watch(self, reads: Mapping[str, Callable[[], int]]) -> None:
        """Read these when metrics are collected; they replace what was watched before.

        Args:
            reads: By name, see `OBSERVED`; called on the meter's thread.
        """
        self._instruments.reads = dict(reads)

    def unwatch(self) -> None:
        """Read nothing any more."""
        self._instruments.reads = {}

    def redacted(self, seconds: float, *, failed: bool) -> None:
        """A payload was redacted, or dropped because it could not be."""
        self._instruments.redaction.record(seconds)
        if failed:
            self._instruments.redaction_failures.add(1)

    def stored(self, seconds: float, size: int, error_type: str | None) -> None:
        """The vault took an object of this size, or did not.

        Args:
            seconds: How long it took.
            size: Bytes of the object.
            error_type: What the store calls the error, or its class name; None where the object is stored.
        """
        attributes = {"error.type": error_type} if error_type is not None else {}
        self._instruments.upload.record(seconds, attributes)
        if error_type is None:
            self._instruments.upload_bytes.add(size)

    def span_ended(self, kind: str, seconds: float, attributes: Mapping[str, Any]) -> None:
        """A span has ended; its GenAI metrics, if its kind has any.

        Args:
            kind: See `sealtrace.span.kind`.
            seconds: How long it took.
            attributes: The span's attributes, as they passed the gates.
        """
        name = _DURATION.get(kind)
        if name is None or not self.genai:
            return
        labels = {key: attributes[key] for key in (*_BY[kind], "error.type") if key in attributes}
        self._instruments.durations[name].record(seconds, labels)
        if kind != "model":
            return
        if _FIRST_CHUNK in attributes:
            self._instruments.first_chunk.record(attributes[_FIRST_CHUNK], labels)
        for key, counter in self._instruments.usage.items():
            if attributes.get(key, 0) > 0:
                counter.add(attributes[key], labels)


class _Instruments:
    """Instruments are made once per provider: an observed one cannot be taken back."""

    def __init__(self, meter: Meter) -> None:
        self.reads: dict[str, Callable[[], int]] = {}
        self.durations: dict[str, Histogram] = {
            name: _seconds(meter, name, "How long it took", _SECONDS) for name in dict.fromkeys(_DURATION.values())
        }
        self.first_chunk = _seconds(
            meter, "gen_ai.client.inference.time_to_first_chunk", "Until the first chunk of the answer", _SECONDS
        )
        self.usage: dict[str, Counter] = {
            key: meter.create_counter(name, "{token}", "Tokens used") for key, name in _USAGE.items()
        }
        self.redaction = _seconds(meter, "sealtrace.redaction.duration", "How long redacting a payload took", _SMALL)
        self.redaction_failures = meter.create_counter(
            "sealtrace.redaction.failures", "{payload}", "Payloads dropped because redaction failed"
        )
        self.upload = _seconds(meter, "sealtrace.vault.upload.duration", "How long the vault took", _SECONDS)
        self.upload_bytes = meter.create_counter("sealtrace.vault.upload.bytes", "By", "Bytes the vault took")
        for name, (grows, unit, meaning) in OBSERVED.items():
            make = meter.create_observable_counter if grows else meter.create_observable_up_down_counter
            make(name, [self._callback(name)], unit, meaning)

    def _callback(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            read = self.reads.get(name)
            value = safely(read) if read is not None else None
            return [Observation(value)] if value is not None else []

        return observe


def _seconds(meter: Meter, name: str, meaning: str, bounds: tuple[float, ...]) -> Histogram:
    return meter.create_histogram(name, "s", meaning, explicit_bucket_boundaries_advisory=bounds)


_lock: Final = fresh_lock()
_made: Final[weakref.WeakKeyDictionary[MeterProvider, _Instruments]] = weakref.WeakKeyDictionary()


def _instruments_of(provider: MeterProvider | None) -> _Instruments:
    provider = provider if provider is not None else metrics.get_meter_provider()
    with _lock:
        found = _made.get(provider)
        if found is None:
            found = _made[provider] = _Instruments(provider.get_meter("sealtrace", __version__, SCHEMA_URL))
        return found
