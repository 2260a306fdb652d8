"""Metrics: the GenAI conventions' and our own, read back from a real meter provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from sealtrace.settings import Settings
from sealtrace.telemetry import Metrics, SpanWriter
from sealtrace.telemetry.metrics import OBSERVED

from .conftest import gate


class Meter:
    """A meter provider and what it has collected."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """By metric name: attributes, and the value or (count, sum) of a histogram."""
        out: dict[str, list[tuple[dict[str, Any], Any]]] = {}
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        value = (point.count, point.sum) if hasattr(point, "count") else point.value
                        out.setdefault(metric.name, []).append((dict(point.attributes or {}), value))
        return out


@pytest.fixture
def meter() -> Iterator[Meter]:
    """A meter provider of this test's own."""
    made = Meter()
    yield made
    made.provider.shutdown()


WRITERS: dict[str, Callable[[Meter], SpanWriter]] = {
    "sampled": lambda meter: SpanWriter(TracerProvider(), gate(), Settings(), Metrics(meter.provider)),
    "unsampled": lambda meter: SpanWriter(
        TracerProvider(sampler=ALWAYS_OFF), gate(), Settings(), Metrics(meter.provider)
    ),
}


@pytest.mark.parametrize("sampling", WRITERS)
def test_model_calls(meter: Meter, sampling: str) -> None:
    """A model span leaves its duration, time to first chunk and tokens, by model, sampled or not."""
    writer = WRITERS[sampling](meter)
    span = writer.start("model", {}, parent=Context(), start_time=1_000_000_000)
    facts = {
        "gen_ai.request.model": "gpt-5",
        "gen_ai.agent.name": "triage",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.output_tokens": 0,
    }
    writer.end(span, facts, error_type="RateLimitError", end_time=3_000_000_000)
    points = meter.points()
    labels = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5", "error.type": "RateLimitError"}
    assert points == {
        "gen_ai.client.inference.duration": [(labels, (1, 2.0))],
        "gen_ai.client.inference.time_to_first_chunk": [(labels, (1, 0.25))],
        "gen_ai.client.inference.usage.input_tokens": [(labels, 100)],
        "gen_ai.client.inference.usage.cache_read.input_tokens": [(labels, 60)],
    }


def test_agents_runs_and_tools(meter: Meter) -> None:
    """Agents, runs and tools leave their durations by name; other kinds leave nothing."""
    writer = WRITERS["sampled"](meter)
    for kind, attributes in (
        ("trace", {"sealtrace.workflow.name": "Refunds"}),
        ("agent", {"gen_ai.agent.name": "triage"}),
        ("tool", {"gen_ai.tool.name": "find", "gen_ai.tool.call.id": "call_1"}),
        ("turn", {"sealtrace.turn.index": 1}),
        ("guardrail", {"sealtrace.guardrail.name": "g"}),
    ):
        writer.end(writer.start(kind, attributes, parent=None))
    names = {name: [labels for labels, _ in found] for name, found in meter.points().items()}
    assert names == {
        "gen_ai.invoke_agent.duration": [
            {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "Refunds"},
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "triage"},
        ],
        "gen_ai.execute_tool.duration": [{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"}],
    }


def test_tokens_are_counted_on_model_spans_only(meter: Meter) -> None:
    """Totals on the root are not added to the token counters a second time."""
    writer = WRITERS["sampled"](meter)
    writer.end(writer.start("trace", {}, parent=None), {"gen_ai.usage.input_tokens": 500})
    assert "gen_ai.client.inference.usage.input_tokens" not in meter.points()


def test_a_span_is_measured_once(meter: Meter) -> None:
    """A span that is ended twice counts once."""
    writer = WRITERS["sampled"](meter)
    span = writer.start("agent", {}, parent=None)
    writer.end(span)
    writer.end(span)
    (point,) = meter.points()["gen_ai.invoke_agent.duration"]
    assert point[1][0] == 1


def test_genai_metrics_can_be_left_to_others(meter: Meter) -> None:
    """Switched off, nothing of the conventions is recorded, and our own still is."""
    writer = SpanWriter(TracerProvider(), gate(), Settings(), found := Metrics(meter.provider, genai=False))
    writer.end(writer.start("model", {}, parent=None), {"gen_ai.usage.input_tokens": 5})
    found.redacted(0.001, failed=False)
    assert set(meter.points()) == {"sealtrace.redaction.duration"}


def test_redaction_and_uploads(meter: Meter) -> None:
    """Redactions and uploads leave durations, failures by class and stored bytes."""
    found = Metrics(meter.provider)
    found.redacted(0.002, failed=False)
    found.redacted(0.004, failed=True)
    found.stored(0.5, 1000, None)
    found.stored(1.5, 1000, "VaultUnavailable")
    assert meter.points() == {
        "sealtrace.redaction.duration": [({}, (2, 0.006))],
        "sealtrace.redaction.failures": [({}, 1)],
        "sealtrace.vault.upload.duration": [({}, (1, 0.5)), ({"error.type": "VaultUnavailable"}, (1, 1.5))],
        "sealtrace.vault.upload.bytes": [({}, 1000)],
    }


def test_what_is_watched(meter: Meter) -> None:
    """Watched values are read at collection; later ones replace them, and one that raises is left out."""
    first = Metrics(meter.provider)
    first.watch({name: lambda: 7 for name in OBSERVED})
    assert {name: found[0][1] for name, found in meter.points().items()} == dict.fromkeys(OBSERVED, 7)
    Metrics(meter.provider).watch({"sealtrace.queue.events": lambda: 1, "sealtrace.queue.bytes": lambda: 1 // 0})
    assert meter.points() == {"sealtrace.queue.events": [({}, 1)]}
    first.unwatch()
    assert meter.points() == {}


def test_without_a_provider_nothing_happens() -> None:
    """Where the application has no meter provider, everything can be called and does nothing."""
    found = Metrics()
    found.redacted(0.1, failed=True)
    found.stored(0.1, 1, None)
    found.watch({"sealtrace.queue.events": lambda: 1})
    found.unwatch()
    writer = SpanWriter(TracerProvider(), gate(), Settings(), found)
    writer.end(writer.start("model", {}, parent=None), {"gen_ai.usage.input_tokens": 5})
