"""A long run stays under the default limits of the span SDK and the exporter."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import sealtrace

TURNS, TOOLS = 100, 60


def _tool(number: int) -> object:
    async def look_up(order: str) -> str:
        """Looks something up."""
        return "x" * 2000

    return function_tool(look_up, name_override=f"look_up_{number}")


def test_a_hundred_turns_and_sixty_tools(tmp_path: Path) -> None:
    """No attribute is evicted or cut, no span has more than 40 of them or more than 3 KB on the wire."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    steps = [
        ModelStep(output=[function_call(f"look_up_{turn % TOOLS}", {"order": str(turn)}, call_id=f"call_{turn}")])
        for turn in range(TURNS - 1)
    ]
    model = ScriptedModel([*steps, ModelStep(output=[assistant_message("done")])])
    agent = Agent("clerk", tools=[_tool(number) for number in range(TOOLS)], model=model)  # type: ignore[misc]
    settings = {"trace_metadata_keys": tuple(f"key{number}" for number in range(20)), "raw_group_id": True}
    sealtrace.instrument(tmp_path.as_uri(), tracer_provider=provider, replay_url="https://replay.example/x", **settings)
    config = RunConfig(group_id="g", trace_metadata={f"key{number}": "v" * 100 for number in range(20)})
    asyncio.run(Runner.run(agent, "go", max_turns=TURNS, run_config=config))
    assert sealtrace.flush()
    sealtrace.uninstrument()

    spans = exporter.get_finished_spans()
    assert sum(span.attributes["sealtrace.span.kind"] == "tool" for span in spans) == TURNS - 1
    assert [span.name for span in spans if span.dropped_attributes or span.dropped_events or span.dropped_links] == []
    assert max(len(span.attributes) for span in spans) < 40
    assert max(encode_spans([span]).ByteSize() for span in spans) < 6000
    ordinary = [span for span in spans if span.attributes["sealtrace.span.kind"] != "trace"]
    assert max(encode_spans([span]).ByteSize() for span in ordinary) < 3000
