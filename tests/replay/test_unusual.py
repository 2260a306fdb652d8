"""Runs that are not as straight as most: nested approvals, nested streams, side by side, cut short."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, RunState, SessionSettings, SQLiteSession, function_tool
from pydantic import BaseModel

import sealtrace
from replay.test_surfaces import STREAM, same
from replay.world import KEY, RUN_ID, World, again, call, record, say, support
from sealtrace.replay.report import Outcome


class Quote(BaseModel):
    """A result of the user's own type."""

    price: float


@STREAM
@pytest.mark.parametrize("approve", [True, False], ids=["approved", "rejected"])
def test_an_approval_inside_an_agent_used_as_a_tool(vault_url: str, stream: bool, approve: bool) -> None:
    """The inner call interrupts the outer run; decided, the outer run goes on, and the tool stays unexecuted."""

    async def scenario(world: World) -> Any:
        @function_tool(needs_approval=True)
        def wire(amount: int) -> str:
            """Wire money."""
            world.done.append("wired")
            return "wired"

        inner = Agent(
            name="Inner",
            instructions="x",
            tools=[wire],
            model=world.model([call("wire", {"amount": 5}, "call_2")], [say("inner done")]),
        )
        outer = Agent(
            name="Outer",
            instructions="x",
            tools=[inner.as_tool("ask", "Ask.")],
            model=world.model([call("ask", {"input": "wire 5"}, "call_1")], [say("ok")]),
        )
        first = await world.run(outer, "wire 5")
        state = first.to_state()
        (item,) = state.get_interruptions()
        (state.approve if approve else state.reject)(item)
        return await world.run(outer, state)

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == []


@STREAM
def test_an_agent_used_as_a_tool_that_streams(vault_url: str, stream: bool) -> None:
    """The inner run is streamed to a callback of the user's, inside an outer run of either kind."""

    async def scenario(world: World) -> Any:
        inner = Agent(name="Inner", instructions="x", model=world.model([say("inner text")]))
        seen: list[str] = []
        tool = inner.as_tool("ask", "Ask.", on_stream=lambda event: seen.append(type(event).__name__))
        outer = Agent(
            name="Outer",
            instructions="x",
            tools=[tool],
            model=world.model([call("ask", {"input": "q"}, "call_1")], [say("ok")]),
        )
        await world.run(outer, "hi")
        world.done.append("streamed" if seen else "silent")

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == ["streamed"]


@STREAM
def test_a_tools_own_object_as_the_final_output(vault_url: str, stream: bool) -> None:
    """Recorded as the text the model would have seen; that it is served as text is no difference."""

    async def scenario(world: World) -> Any:
        @function_tool
        def quote() -> Quote:
            """Quote."""
            world.done.append("quoted")
            return Quote(price=1.5)

        agent = Agent(
            name="A",
            instructions="x",
            tools=[quote],
            tool_use_behavior="stop_on_first_tool",
            model=world.model([call("quote", {}, "call_1")]),
        )
        return await world.run(agent, "hi")

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == []


def test_runs_side_by_side_in_one_trace(vault_url: str) -> None:
    """They may start in another order in the rerun; each finds its own record by what it was given."""

    async def scenario(world: World) -> Any:
        dice = random.Random(1 if world.live else 2)

        async def one(number: int) -> Any:
            await asyncio.sleep(dice.random() * 0.05)
            agent = Agent(name=f"A{number}", instructions="x", model=world.model([say(f"answer {number}")]))
            return (await world.run(agent, f"question {number}")).final_output

        world.done += await asyncio.gather(*(one(number) for number in range(6)))

    _, after, run = same(scenario, vault_url)
    assert after.done == [f"answer {number}" for number in range(6)]
    asked = [event.payload["input"] for event in run.events if event.kind == "input"]
    assert asked != sorted(asked)  # else nothing raced


@STREAM
def test_a_run_that_its_caller_gave_up_on(vault_url: str, stream: bool) -> None:
    """Cut short by a time limit while the model thought; the rerun waits to be cut short, too."""

    async def scenario(world: World) -> Any:
        model = world.model([say("too late")])
        if world.live:
            for name in ("get_response", "stream_response"):
                setattr(model, name, _slow(getattr(model, name)))
        agent = Agent(name="A", instructions="x", model=model)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await world.run(agent, "hi")
        world.done.append("gave up")

    run = record(scenario, vault_url, world=World(stream=stream))
    session, after = again(scenario, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME, session.report.to_json()
    assert after.done == ["gave up"]


def _slow(method: Any) -> Any:
    import inspect

    if inspect.isasyncgenfunction(method):

        async def stream(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(30)
            async for event in method(*args, **kwargs):
                yield event

        return stream

    async def whole(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(30)
        return await method(*args, **kwargs)

    return whole


def test_a_run_recorded_while_tracing_was_off(vault_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads were recorded all the same, as set; that is all a rerun needs."""
    from agents import set_tracing_disabled

    sealtrace.instrument(vault=vault_url, key=KEY, record_when_tracing_disabled=True)
    set_tracing_disabled(True)
    try:
        asyncio.run(_with_id(World()))
        assert sealtrace.flush(10)
    finally:
        set_tracing_disabled(False)
        sealtrace.uninstrument()
    session, after = again(support, sealtrace.load(RUN_ID, vault=vault_url))
    assert session.report.outcome is Outcome.SAME
    assert after.done == []


async def _with_id(world: World) -> Any:
    class Named(World):
        async def run(self, agent: Any, given: Any, **options: Any) -> Any:
            return await Runner.run(agent, given, run_config=RunConfig(trace_id=RUN_ID), **options)

    return await support(Named(**vars(world)))


@STREAM
def test_a_session_with_a_limit_and_a_correction(vault_url: str, stream: bool) -> None:
    """The user takes the last exchange back, and only the latest items are sent."""

    async def scenario(world: World) -> Any:
        session = SQLiteSession("s")
        config = RunConfig(session_settings=SessionSettings(limit=2))
        for text in ("one", "two", "three"):
            agent = Agent(name="A", instructions="x", model=world.model([say(f"re {text}")]))
            await world.run(agent, text, session=session, run_config=config)
            if text == "two":
                await session.pop_item()
                await session.pop_item()
        session.close()

    same(scenario, vault_url, stream=stream)


def test_a_run_resumed_by_another_process_is_one_run_of_two_records(vault_url: str) -> None:
    """Interrupted here, resumed there: rerun in one go, in the order it happened."""
    states: list[Any] = []

    def agent(world: World, *steps: Any) -> Any:
        @function_tool(needs_approval=True)
        def wire(amount: int) -> str:
            """Wire money."""
            world.done.append("wired")
            return "wired"

        return Agent(name="A", instructions="x", tools=[wire], model=world.model(*steps))

    async def begin(world: World) -> None:
        states.append((await world.run(agent(world, [call("wire", {"amount": 5}, "c1")]), "wire")).to_state().to_json())

    async def finish(world: World) -> None:
        made = agent(world, [say("done")])
        state = await RunState.from_json(made, states[-1])
        state.approve(state.get_interruptions()[0])
        world.done.append((await world.run(made, state)).final_output)

    record(begin, vault_url)
    run = record(finish, vault_url)
    assert len(run.records) == 2

    async def both(world: World) -> None:
        await begin(world)
        await finish(world)

    session, after = again(both, run)
    assert session.report.outcome is Outcome.SAME
    assert after.done == ["done"]


def test_a_sandbox_agent_is_refused_before_its_sandbox_is_started(vault_url: str) -> None:
    """The SDK would start a container; the rerun says that it cannot do that, and does not."""
    from agents.sandbox import SandboxAgent

    run = record(support, vault_url)

    async def scenario(world: World) -> Any:
        return await world.run(SandboxAgent(name="Triage", instructions="x", model=world.model()), "hi")

    with pytest.raises(sealtrace.SealtraceError, match="sandbox"):
        again(scenario, run)
