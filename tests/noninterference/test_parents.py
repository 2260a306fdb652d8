"""The OpenTelemetry tree is the SDK's own tree, also where runs end in unusual ways."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import agents
import pytest
from agents import Agent, RunConfig, Runner, RunState, TracingProcessor, custom_span, function_tool, trace
from opentelemetry import trace as otel_trace

import sealtrace
from loopback import items
from loopback.items import Step, reply
from loopback.model import OwnModel
from loopback.otel import ExportedSpan, OtelCapture


class SdkTree(TracingProcessor):
    """What the SDK itself says of who is whose parent."""

    def __init__(self) -> None:
        self.parent_of: dict[str, str | None] = {}
        self.ended: set[str] = set()

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...

    def on_span_start(self, span: Any) -> None:
        self.parent_of[span.span_id] = span.parent_id

    def on_span_end(self, span: Any) -> None:
        self.ended.add(span.span_id)


class Watch:
    """Runs something under watch and compares the two trees."""

    def __init__(self, otel: OtelCapture, vault_url: str, caplog: pytest.LogCaptureFixture) -> None:
        self.sdk = SdkTree()
        self.tracer = otel.tracer_provider.get_tracer("application")
        self._otel = otel
        self._caplog = caplog
        agents.set_trace_processors([self.sdk])
        sealtrace.instrument(vault=vault_url)

    def run(self, main: Callable[[], Any]) -> list[ExportedSpan]:
        """Run it, check all that must always hold, and return the spans."""
        with self._caplog.at_level(logging.DEBUG):
            asyncio.run(main())
            gc.collect()
            assert sealtrace.flush(10)
            sealtrace.uninstrument()
        self._otel.flush()
        spans = self._otel.spans()
        complaints = [record.message for record in self._caplog.records if record.name.startswith("opentelemetry")]
        assert complaints == []
        assert [record.message for record in self._caplog.records if record.name == "sealtrace"] == []
        assert otel_trace.get_current_span() is otel_trace.INVALID_SPAN
        self._compare(spans)
        return spans

    def _compare(self, spans: list[ExportedSpan]) -> None:
        by_id = {span.span_id: span for span in spans}
        assert len(by_id) == len(spans)
        mirrored = {span.attributes["sealtrace.sdk.span_id"]: span for span in spans if sdk_id(span)}
        assert mirrored.keys() == self.sdk.ended
        for span_id, span in mirrored.items():
            expected = self.sdk.parent_of[span_id]
            parent = by_id.get(span.parent_id)
            while parent is not None and not parent.kind:
                parent = by_id.get(parent.parent_id)  # a span of the application's in between
            assert parent is not None, f"{span.name} hangs in the air"
            if expected is None:
                assert parent.kind == "trace", f"{span.name} is under {parent.name}"
            else:
                assert sdk_id(parent) == expected, f"{span.name} is under {parent.name}"
            assert span.trace_id == parent.trace_id
            assert span.start_ns <= span.end_ns


def sdk_id(span: ExportedSpan) -> str | None:
    """The SDK's id of the span it mirrors."""
    return span.attributes.get("sealtrace.sdk.span_id")


def named(spans: list[ExportedSpan], name: str) -> ExportedSpan:
    """The one span of that name."""
    (span,) = [span for span in spans if span.name == name]
    return span


@pytest.fixture
def watch(otel: OtelCapture, vault_url: str, caplog: pytest.LogCaptureFixture) -> Watch:
    """The recorder, watched."""
    return Watch(otel, vault_url, caplog)


def agent_with(script: list[Step], *tools: Any, name: str = "one") -> Agent[Any]:
    """An agent on a scripted model that opens spans as the SDK's models do."""
    return Agent(name, model=OwnModel(script, spans=True), tools=list(tools))


def looking_up(watch: Watch) -> Any:
    """A tool with a span of the application's inside, as a database driver makes them."""

    @function_tool
    async def lookup() -> str:
        """Look up."""
        with watch.tracer.start_as_current_span("select"):
            await asyncio.sleep(0)
        return "found"

    return lookup


ONE_CALL = [reply(items.call("lookup", {}, "call_1")), reply(items.message("one.\ntwo.\nthree."))]


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "run_streamed"])
def test_an_incoming_trace_wins(streamed: bool, watch: Watch) -> None:
    """A run in a request is under the request's span, its tool's database span under the tool; the rest stays put."""

    async def main() -> None:
        with watch.tracer.start_as_current_span("request"):
            agent = agent_with(ONE_CALL, looking_up(watch))
            if streamed:
                async for _ in Runner.run_streamed(agent, "go").stream_events():
                    with watch.tracer.start_as_current_span("consumer"):
                        pass
            else:
                await Runner.run(agent, "go")
            with watch.tracer.start_as_current_span("afterwards"):
                pass

    spans = watch.run(main)
    request = named(spans, "request")
    (root,) = [span for span in spans if span.kind == "trace"]
    assert root.parent_id == request.span_id
    assert {span.trace_id for span in spans} == {request.trace_id}
    assert named(spans, "select").parent_id == named(spans, "execute_tool lookup").span_id
    assert named(spans, "afterwards").parent_id == request.span_id
    assert {span.parent_id for span in spans if span.name == "consumer"} <= {request.span_id}


def test_cancelled_run(watch: Watch) -> None:
    """A task cancelled inside a tool leaves the SDK's tree, and the tool's span is under its turn."""
    inside = asyncio.Event()

    @function_tool
    async def slow() -> str:
        """Never come back."""
        with watch.tracer.start_as_current_span("select"):
            inside.set()
            await asyncio.Event().wait()
        return ""

    async def main() -> None:
        task = asyncio.create_task(Runner.run(agent_with([reply(items.call("slow", {}, "call_1"))], slow), "go"))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    spans = watch.run(main)
    tool = named(spans, "execute_tool slow")
    assert named(spans, "select").parent_id == tool.span_id
    assert tool.status_code == 2


def test_early_break(watch: Watch) -> None:
    """A consumer that stops reading leaves the SDK's tree, and what it does next is not inside it."""

    async def main() -> None:
        result = Runner.run_streamed(agent_with(ONE_CALL, looking_up(watch)), "go")
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                break
        with watch.tracer.start_as_current_span("afterwards"):
            pass
        while not result.is_complete:
            await asyncio.sleep(0.001)
        await result.run_loop_task

    spans = watch.run(main)
    assert named(spans, "afterwards").parent_id == ""


def test_cancelled_stream(watch: Watch) -> None:
    """`cancel()` on a streamed run leaves the SDK's tree."""

    async def main() -> None:
        result = Runner.run_streamed(agent_with(ONE_CALL, looking_up(watch)), "go")
        async for event in result.stream_events():
            if event.type == "run_item_stream_event":
                result.cancel()

    assert watch.run(main)


def test_abandoned_stream(watch: Watch) -> None:
    """A streamed run whose result is dropped at once leaves the SDK's tree."""
    done = asyncio.Event()

    async def main() -> None:
        @function_tool
        async def last() -> str:
            """Be the last thing that happens."""
            done.set()
            return ""

        Runner.run_streamed(agent_with([reply(items.call("last", {}, "c")), reply(items.message("."))], last), "go")
        await done.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*tasks, return_exceptions=True)

    assert watch.run(main)


def test_stream_closed_by_another_task(watch: Watch) -> None:
    """An event stream that is closed in another task than it was read in leaves the SDK's tree, without a log."""

    async def main() -> None:
        with trace("closed elsewhere"):
            result = Runner.run_streamed(agent_with(ONE_CALL, looking_up(watch)), "go")
            events = result.stream_events()
            await anext(events)
            await asyncio.create_task(events.aclose())
            await asyncio.gather(result.run_loop_task, return_exceptions=True)

    assert watch.run(main)


def test_generator_closed_by_another_task(watch: Watch) -> None:
    """A span in an async generator that another task closes is detached where it was attached, or not at all."""

    async def rows() -> AsyncGenerator[int, None]:
        with custom_span("in a generator"):
            yield 1

    async def main() -> None:
        with trace("closed elsewhere"):
            reading = rows()
            await anext(reading)
            await asyncio.create_task(reading.aclose())
            await Runner.run(agent_with(ONE_CALL, looking_up(watch)), "go")

    assert watch.run(main)


def test_span_finished_in_another_task(watch: Watch) -> None:
    """A span that is finished in another task is detached by nobody, and what follows has the SDK's parent."""

    async def main() -> None:
        with trace("handed on"):
            span = custom_span("given away")
            span.start(mark_as_current=True)

            async def finish() -> None:
                span.finish(reset_current=False)

            await asyncio.create_task(finish())
            await Runner.run(agent_with(ONE_CALL, looking_up(watch)), "go")

    assert watch.run(main)


def test_span_that_is_never_made_current(watch: Watch) -> None:
    """A span started without being made current takes in none of what happens beside it."""

    async def main() -> None:
        with trace("beside"):
            span = custom_span("beside it")
            span.start(mark_as_current=False)
            with watch.tracer.start_as_current_span("application"):
                pass
            await Runner.run(agent_with(ONE_CALL, looking_up(watch)), "go")
            span.finish(reset_current=False)

    spans = watch.run(main)
    root = next(span for span in spans if span.kind == "trace")
    assert named(spans, "application").parent_id == root.span_id


def test_spans_that_end_in_the_wrong_order(watch: Watch) -> None:
    """Spans that do not end in the reverse order of their start leave nothing current that has ended."""

    async def main() -> None:
        with trace("crossed"):
            first, second = custom_span("first"), custom_span("second")
            first.start(mark_as_current=True)
            second.start(mark_as_current=True)
            first.finish(reset_current=True)
            second.finish(reset_current=True)
        with watch.tracer.start_as_current_span("afterwards"):
            pass

    spans = watch.run(main)
    assert named(spans, "afterwards").parent_id == ""


def test_agents_as_tools_side_by_side(watch: Watch) -> None:
    """Each nested agent is under the tool call that opened it, also when two run at the same time."""
    barrier = asyncio.Barrier(2)

    @function_tool
    async def meet() -> str:
        """Wait for the other."""
        await barrier.wait()
        return "met"

    def helper(name: str) -> Any:
        script = [reply(items.call("meet", {}, f"call_{name}")), reply(items.message(name))]
        return agent_with(script, meet, name=name).as_tool(f"ask_{name}", "Asks.")

    script = [
        reply(
            items.call("ask_left", {"input": "l"}, "call_l"),
            items.call("ask_right", {"input": "r"}, "call_r"),
        ),
        reply(items.message("done")),
    ]

    async def main() -> None:
        await Runner.run(agent_with(script, helper("left"), helper("right")), "go")

    spans = watch.run(main)
    by_id = {span.span_id: span for span in spans}

    def ancestors(span: ExportedSpan) -> list[str]:
        found = []
        while span.parent_id in by_id:
            span = by_id[span.parent_id]
            found.append(span.name)
        return found

    for name in ("left", "right"):
        above = ancestors(named(spans, f"invoke_agent {name}"))
        assert f"execute_tool ask_{name}" in above
        assert f"execute_tool ask_{'right' if name == 'left' else 'left'}" not in above


@pytest.mark.parametrize("other_process", [False, True], ids=["same process", "from json"])
def test_resumed_run(other_process: bool, watch: Watch) -> None:
    """What a resumed run does hangs from a root, and both halves are one run of one OpenTelemetry link."""

    @function_tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        with watch.tracer.start_as_current_span("select"):
            return "paid"

    run_id = "trace_" + "ab" * 16

    async def main() -> None:
        agent = agent_with([reply(items.call("pay", {}, "call_1")), reply(items.message("done"))], pay)
        config = RunConfig(trace_id=run_id)
        result = await Runner.run(agent, "go", run_config=config)
        state = result.to_state()
        if other_process:
            state = await RunState.from_json(agent, state.to_json())
        state.approve(state.get_interruptions()[0])
        result = await Runner.run(agent, state, run_config=config)
        assert result.final_output == "done"

    spans = watch.run(main)
    assert {span.attributes["sealtrace.run.id"] for span in spans if span.kind} == {run_id}
    tools = [span.span_id for span in spans if span.name == "execute_tool pay"]
    assert named(spans, "select").parent_id in tools
