"""Many things at once: what is recorded stays in order and apart."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, ShellTool, function_tool

import sealtrace
from loopback import items
from loopback.items import Reply, reply
from loopback.model import OwnModel
from sealtrace import Kind, Run, RunEvent

CALLS = 6


def trace_id() -> str:
    """A trace id to find the run by."""
    return f"trace_{uuid.uuid4().hex}"


def loaded(run_id: str, vault: str) -> Run:
    """The run as the loader gives it, whole."""
    run = sealtrace.load(run_id, vault=vault)
    assert [event.seq for event in run.events] == list(range(len(run.events)))
    assert len(run.records) == 1
    return run


def of_kind(run: Run, kind: Kind) -> list[RunEvent]:
    """The run's events of one kind, in order."""
    return [event for event in run.events if event.kind is kind]


def test_parallel_tools_that_finish_in_reverse_order(vault_url: str) -> None:
    """Each result is tied to its own call and each call to its generation, whatever finishes first."""
    gates = [asyncio.Event() for _ in range(CALLS + 1)]
    ended: list[int] = []

    @function_tool
    async def wait(n: int) -> str:
        """Wait for the next one to be done."""
        if n == CALLS - 1:
            gates[CALLS].set()
        await gates[n + 1].wait()
        ended.append(n)
        gates[n].set()
        return f"result {n}"

    model = OwnModel(
        [
            reply(*(items.call("wait", {"n": n}, f"call_{n}") for n in range(CALLS))),
            reply(items.message("done")),
        ]
    )
    run_id = trace_id()
    sealtrace.instrument(vault=vault_url)
    agent = Agent("waiting", model=model, tools=[wait])
    asyncio.run(Runner.run(agent, "go", run_config=RunConfig(trace_id=run_id)))
    assert sealtrace.flush(10)

    assert ended == list(reversed(range(CALLS)))
    run = loaded(run_id, vault_url)
    generation = of_kind(run, Kind.GENERATION)[0]
    calls, results = of_kind(run, Kind.TOOL_CALL), of_kind(run, Kind.TOOL_RESULT)
    assert [call.call_id for call in calls] == [f"call_{n}" for n in range(CALLS)]
    assert [json.loads(call.payload["arguments"])["n"] for call in calls] == list(range(CALLS))
    assert {call.parent_seq for call in calls} == {generation.seq}
    assert [result.call_id for result in results] == [f"call_{n}" for n in reversed(range(CALLS))]
    by_seq = {call.seq: call for call in calls}
    for result in results:
        assert result.parent_seq is not None
        call = by_seq[result.parent_seq]
        assert call.call_id == result.call_id
        assert result.payload["result"] == f"result {result.call_id[-1]}"
        assert result.seq > call.seq


def own_story(name: str, meet: Any) -> tuple[Agent[Any], OwnModel]:
    """An agent that calls a tool and a helper and says its own name everywhere."""

    @function_tool
    async def tool(word: str) -> str:
        """Meet the others, then say your name."""
        await meet()
        return f"{name} tool {word}"

    def answer(request: dict[str, Any]) -> Reply:
        if request["instructions"] == f"{name} helper":
            return reply(items.message(f"{name} helped"))
        results = [item for item in request["input"] if item.get("type") == "function_call_output"]
        if not results:
            return reply(
                items.call("tool", {"word": name}, f"call_tool_{name}"),
                items.call("helper", {"input": f"{name} asks"}, f"call_helper_{name}"),
            )
        return reply(items.message(f"{name} done"))

    model = OwnModel(answer)
    helper = Agent(f"{name}-helper", instructions=f"{name} helper", model=model).as_tool("helper", "Helps.")
    return Agent(f"{name}-main", instructions=f"{name} main", model=model, tools=[tool, helper]), model


def assert_unmixed(run: Run, name: str, names: list[str]) -> None:
    """Every event of the run is this run's own, and it is all there."""
    kinds = [event.kind for event in run.events]
    assert sorted(kinds) == sorted(
        [Kind.INPUT] * 2 + [Kind.GENERATION] * 3 + [Kind.TOOL_CALL, Kind.TOOL_RESULT] * 2 + [Kind.OUTPUT] * 2
    )
    text = json.dumps([event.to_json() for event in run.events])
    assert f"{name} done" in text
    assert f"{name} helped" in text
    assert [other for other in names if other != name and other in text] == []
    frames = {event.frame for event in run.events}
    assert frames == {"run:0", f"run:0/tool:call_helper_{name}/run:0"}
    generations = {event.seq: event for event in of_kind(run, Kind.GENERATION)}
    for call in of_kind(run, Kind.TOOL_CALL):
        assert call.parent_seq in generations
        assert any(
            item.get("call_id") == call.call_id for item in generations[call.parent_seq].payload["response"]["output"]
        )
    calls = {event.seq: event for event in of_kind(run, Kind.TOOL_CALL)}
    for result in of_kind(run, Kind.TOOL_RESULT):
        assert calls[result.parent_seq].call_id == result.call_id


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "run_streamed"])
def test_fifty_runs_in_one_loop_do_not_mix(streamed: bool, vault_url: str) -> None:
    """Fifty runs interleaved in one loop leave fifty whole records, each its own."""
    names = [f"n{number:02d}x" for number in range(50)]
    ids = {name: trace_id() for name in names}

    async def main() -> None:
        barrier = asyncio.Barrier(len(names))

        async def one(name: str) -> None:
            agent, _ = own_story(name, barrier.wait)
            config = RunConfig(trace_id=ids[name], workflow_name=name)
            if not streamed:
                await Runner.run(agent, f"{name} starts", run_config=config)
                return
            result = Runner.run_streamed(agent, f"{name} starts", run_config=config)
            async for _ in result.stream_events():
                await asyncio.sleep(0)

        await asyncio.gather(*map(one, names))

    sealtrace.instrument(vault=vault_url)
    asyncio.run(main())
    assert sealtrace.flush(30)

    for name in names:
        assert_unmixed(loaded(ids[name], vault_url), name, names)


def test_eight_threads_of_run_sync_do_not_mix(vault_url: str) -> None:
    """Eight threads that run at the same time leave whole records, each its own."""
    names = [f"t{number:02d}x" for number in range(8 * 3)]
    ids = {name: trace_id() for name in names}
    barrier = threading.Barrier(8)

    def one(name: str) -> None:
        async def meet() -> None:
            await asyncio.to_thread(barrier.wait, 30)

        agent, _ = own_story(name, meet)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            Runner.run_sync(agent, f"{name} starts", run_config=RunConfig(trace_id=ids[name], workflow_name=name))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            asyncio.set_event_loop(None)
            loop.close()

    sealtrace.instrument(vault=vault_url)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, names))
    assert sealtrace.flush(30)

    for name in names:
        assert_unmixed(loaded(ids[name], vault_url), name, names)


def test_runs_that_share_a_trace_id_share_a_record(vault_url: str) -> None:
    """Two runs at the same time under one trace id are one run of two frames, with one order."""
    shared = trace_id()

    async def main() -> None:
        barrier = asyncio.Barrier(2)

        async def one(name: str) -> None:
            agent, _ = own_story(name, barrier.wait)
            await Runner.run(agent, f"{name} starts", run_config=RunConfig(trace_id=shared))

        await asyncio.gather(one("ax"), one("bx"))

    sealtrace.instrument(vault=vault_url)
    asyncio.run(main())
    assert sealtrace.flush(10)

    run = loaded(shared, vault_url)
    outputs = [event for event in of_kind(run, Kind.OUTPUT) if "/" not in event.frame]
    assert {event.frame for event in outputs} == {"run:0", "run:1"}
    assert {event.payload["final_output"] for event in outputs} == {"ax done", "bx done"}


def test_everything_is_tied_to_the_generation_that_asked_for_it(vault_url: str) -> None:
    """Tools of all kinds, handoffs and approvals name the call they answer and the generation that made it."""

    @function_tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    @function_tool
    async def look() -> str:
        """Look."""
        return "seen"

    model = OwnModel(
        [
            reply(items.call("look", {}, "call_look"), items.shell("ls", "call_shell")),
            reply(items.call("transfer_to_closer", {}, "call_over")),
            reply(items.call("pay", {}, "call_pay")),
            reply(items.message("done")),
        ]
    )
    closer = Agent("closer", model=model, tools=[pay])
    first = Agent("first", model=model, tools=[look, ShellTool(lambda request: "a.txt")], handoffs=[closer])
    run_id = trace_id()
    config = RunConfig(trace_id=run_id)

    async def main() -> None:
        result = await Runner.run(first, "go", run_config=config)
        state = result.to_state()
        state.approve(result.interruptions[0])
        await Runner.run(first, state, run_config=config)

    sealtrace.instrument(vault=vault_url)
    asyncio.run(main())
    assert sealtrace.flush(10)

    events = sealtrace.load(run_id, vault=vault_url).events
    asked = {}
    for event in events:
        if event.kind is Kind.GENERATION:
            asked |= {item["call_id"]: event for item in event.payload["response"]["output"] if "call_id" in item}
    for kind in (Kind.TOOL_CALL, Kind.HANDOFF):
        for event in (event for event in events if event.kind is kind):
            generation = asked[event.call_id]
            same = event.record_id == generation.record_id
            assert event.parent_seq == (generation.seq if same else None), (kind, event.call_id)
    calls = {event.call_id for event in events if event.kind is Kind.TOOL_CALL}
    assert calls == {"call_look", "call_shell", "call_pay"}
    assert [event.call_id for event in events if event.kind is Kind.HANDOFF] == ["call_over"]
    approvals = [event for event in events if event.kind is Kind.APPROVAL]
    assert {event.call_id for event in approvals} == {"call_pay"}
    assert {event.payload["approved"] for event in approvals} == {None, True}
    for event in events:
        if event.kind is Kind.TOOL_RESULT:
            (call,) = [other for other in events if other.kind is Kind.TOOL_CALL and other.call_id == event.call_id]
            assert (event.parent_seq, event.record_id) == (call.seq, call.record_id)
