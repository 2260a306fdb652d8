"""Real runs of the Agents SDK, recorded, joined and read."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, ModelSettings, RunConfig, Runner, function_tool, gen_trace_id
from agents.exceptions import MaxTurnsExceeded
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import sealtrace
from sealtrace import EventStatus, Kind, Run, RunStatus
from sealtrace.run import HELD_BY_SERVER, Node
from sealtrace.run.text import console, render_payloads, render_run
from sealtrace.telemetry import OTLPFileSpanExporter


class Desk:
    """An instrumented process with a vault and an OTLP file of its own."""

    def __init__(self, folder: Path) -> None:
        self.vault = (folder / "vault").as_uri()
        self.traces = folder / "traces.jsonl"
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(OTLPFileSpanExporter(self.traces)))
        sealtrace.instrument(vault=self.vault, tracer_provider=self.provider)

    def load(self, run_id: str, **other: Any) -> Run:
        """Everything recorded of the run so far."""
        assert sealtrace.flush()
        return sealtrace.load(run_id, **({"vault": self.vault, "telemetry": f"otlp+{self.traces.as_uri()}"} | other))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """See `Desk`."""
    made = Desk(tmp_path)
    yield made
    sealtrace.uninstrument()
    made.provider.shutdown()


def play(agent: Agent[Any], given: str, **options: Any) -> None:
    """One run, in a loop of its own."""
    asyncio.run(Runner.run(agent, given, **options))


def labels(nodes: list[Node], depth: int = 0) -> list[str]:
    """The tree's labels, indented."""
    return [line for node in nodes for line in (f"{'  ' * depth}{node.label}", *labels(node.children, depth + 1))]


def text_of(run: Run) -> str:
    """Tree and payloads as a pipe gets them."""
    file = io.StringIO()
    out = console(file)
    out.print(render_run(run))
    out.print(render_payloads(run))
    return file.getvalue()


def test_an_agent_used_as_a_tool_is_nested_in_both_trees(desk: Desk) -> None:
    """The inner run hangs under the tool call, whether the tree comes from spans or from frames."""
    expert = Agent(name="Expert", model=ScriptedModel([[assistant_message("42")]]))
    model = ScriptedModel(
        [[function_call("ask", {"input": "why"}, call_id="call_1")], [assistant_message("It is 42.")]]
    )
    outer = Agent(name="Front", tools=[expert.as_tool("ask", "Ask the expert.")], model=model)
    run_id = gen_trace_id()
    play(outer, "why?", run_config=RunConfig(trace_id=run_id))
    run = desk.load(run_id)
    assert run.status is RunStatus.COMPLETE
    assert run.agents == ("Front", "Expert")
    lines = labels(run.tree())
    (tool,) = [line for line in lines if "execute_tool ask" in line]
    (inner,) = [line for line in lines if "invoke_agent Expert" in line]
    assert len(inner) - len(inner.lstrip()) > len(tool) - len(tool.lstrip())
    frames = labels(desk.load(run_id, telemetry=None).tree())
    assert any(line.strip() == "run:0/tool:call_1/run:0" for line in frames)
    assert frames.index(next(line for line in frames if "tool_call ask" in line)) < frames.index(
        next(line for line in frames if "run:0/tool:call_1/run:0" in line)
    )


def test_a_run_that_fails_says_so(desk: Desk) -> None:
    """The outcome is error, the record is whole, and the exception's class is in the tree."""
    loop = [[function_call("again", {}, call_id=f"call_{number}")] for number in range(5)]
    agent = Agent(name="Loop", tools=[function_tool(lambda: "more", name_override="again")], model=ScriptedModel(loop))
    run_id = gen_trace_id()
    with pytest.raises(MaxTurnsExceeded):
        play(agent, "go", max_turns=2, run_config=RunConfig(trace_id=run_id))
    run = desk.load(run_id)
    assert (run.status, run.outcome) == (RunStatus.COMPLETE, "error")
    assert run.events[-1].kind is Kind.ERROR
    assert "✗ MaxTurnsExceeded" in text_of(run)


def test_a_streamed_run_reads_like_any_other(desk: Desk) -> None:
    """The same events, whole, from `run_streamed`."""

    async def go(run_id: str) -> None:
        agent = Agent(name="Stream", model=ScriptedModel([[assistant_message("word by word")]]))
        result = Runner.run_streamed(agent, "talk", run_config=RunConfig(trace_id=run_id))
        async for _ in result.stream_events():
            pass

    run_id = gen_trace_id()
    asyncio.run(go(run_id))
    run = desk.load(run_id)
    assert run.status is RunStatus.COMPLETE
    assert [event.kind for event in run.events] == [Kind.INPUT, Kind.GENERATION, Kind.OUTPUT]
    assert run.event(1).payload["stream"]["chunks"] > 0


def test_server_held_context_is_marked_in_every_view(desk: Desk) -> None:
    """A run that continues a previous response says what was not recorded: tree, payloads, JSON, findings."""
    agent = Agent(name="Memory", model=ScriptedModel([[assistant_message("as before")]]))
    run_id = gen_trace_id()
    play(agent, "and now?", previous_response_id="resp_earlier", run_config=RunConfig(trace_id=run_id))
    run = desk.load(run_id)
    assert run.status is RunStatus.COMPLETE
    assert run.event(1).payload["request"]["previous_response_id"] == "resp_earlier"
    assert run.event(1).payload["request"]["held_by_server"] is True
    assert text_of(run).count(HELD_BY_SERVER) == 3
    (finding,) = run.to_json()["findings"]
    assert (finding["code"], finding["seq"]) == ("held_by_server", 1)
    assert "resp_earlier" in finding["message"]


def test_an_approved_tool_reads_in_order(desk: Desk) -> None:
    """Asked, approved, called: a resumed run is one run with all of it, also in two records."""

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    script = [[function_call("pay", {"amount": 5}, call_id="call_1")], [assistant_message("Done.")]]
    agent = Agent(name="Cashier", tools=[pay], model=ScriptedModel(script))
    run_id = gen_trace_id()
    config = RunConfig(trace_id=run_id)

    async def go() -> None:
        first = await Runner.run(agent, "pay 5", run_config=config)
        state = first.to_state()
        state.approve(first.interruptions[0])
        await Runner.run(agent, state, run_config=config)

    asyncio.run(go())
    run = desk.load(run_id)
    assert run.status is RunStatus.COMPLETE
    kinds = [event.kind for event in run.events]
    decisions = [event.payload["approved"] for event in run.events if event.kind is Kind.APPROVAL]
    assert decisions == [None, True]
    assert kinds.index(Kind.APPROVAL) < kinds.index(Kind.TOOL_CALL)
    shown = text_of(run)
    assert "[waiting for approval]" in shown
    assert "[approved]" in shown


def test_spans_of_the_application_are_in_the_tree(desk: Desk) -> None:
    """The request above the run and the query below the tool are lines by name; their attributes are not shown."""
    tracer = trace.get_tracer("shop", tracer_provider=desk.provider)

    @function_tool
    def look() -> str:
        """Look."""
        with tracer.start_as_current_span("SELECT orders", attributes={"db.statement": "secret query"}):
            return "found"

    script = [[function_call("look", {}, call_id="call_1")], [assistant_message("Found.")]]
    run_id = gen_trace_id()
    with tracer.start_as_current_span("POST /tickets"):
        play(Agent(name="Desk", tools=[look], model=ScriptedModel(script)), "?", run_config=RunConfig(trace_id=run_id))
    run = desk.load(run_id)
    assert run.status is RunStatus.COMPLETE
    lines = labels(run.tree())
    assert lines[0] == "POST /tickets"
    (tool,) = [index for index, line in enumerate(lines) if "execute_tool look" in line]
    assert lines[tool + 1].strip() == "SELECT orders"
    assert "secret query" not in text_of(run)


def test_a_run_that_was_sampled_out_keeps_its_payloads(tmp_path: Path) -> None:
    """Sampling decides about spans; the payload half is whole and every event says that its span is missing."""
    provider = TracerProvider(sampler=ALWAYS_OFF)
    traces = tmp_path / "traces.jsonl"
    traces.touch()
    vault = (tmp_path / "vault").as_uri()
    sealtrace.instrument(vault=vault, tracer_provider=provider)
    run_id = gen_trace_id()
    agent = Agent(name="Quiet", model=ScriptedModel([[assistant_message("hush")]]))
    play(agent, "hi", run_config=RunConfig(trace_id=run_id))
    assert sealtrace.flush()
    run = sealtrace.load(run_id, vault=vault, telemetry=f"otlp+{traces.as_uri()}")
    assert run.status is RunStatus.PAYLOADS_ONLY
    assert {event.status for event in run.events} == {EventStatus.SPAN_MISSING}
    assert run.event(2).payload["final_output"] == "hush"


def test_tokens_and_settings_reach_the_reader(desk: Desk) -> None:
    """Totals are sums over the model calls; the configuration is on the event."""
    from agents.usage import Usage

    usage = Usage(requests=1, input_tokens=7, output_tokens=3, total_tokens=10)
    steps = [ModelStep(output=[assistant_message("ok")], usage=usage)]
    agent = Agent(name="Counter", model=ScriptedModel(steps), model_settings=ModelSettings(temperature=0.5))
    run_id = gen_trace_id()
    play(agent, "count", run_config=RunConfig(trace_id=run_id, workflow_name="Counting"))
    run = desk.load(run_id)
    assert run.usage == {"requests": 1, "input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    assert run.workflow == "Counting"
    config = run.event(1).config
    assert config is not None
    assert config["temperature"] == 0.5
