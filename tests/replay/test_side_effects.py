"""Nothing is done in a rerun: whatever kind of tool it is, however it is written, and wherever the code runs."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp.server
import pytest
from agents import Agent, GuardrailFunctionOutput, Runner, RunState, function_tool, handoff, input_guardrail
from agents.tool import ApplyPatchTool, ComputerTool, CustomTool, LocalShellTool, ShellTool
from openai.types.responses import (
    ResponseComputerToolCall,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
)
from openai.types.responses.response_output_item import LocalShellCall

import sealtrace
from loopback.mcp import InProcessMcp
from replay.test_surfaces import Desktop
from replay.world import KEY, World, again, call, record, say
from sealtrace.replay.report import Outcome


class Harm:
    """Writes a file, opens a socket and starts a process, and notes on disk what it managed to do."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def __call__(self, *_: Any, **__: Any) -> str:
        for deed in (self.write, self.connect, self.start):
            # As bad as a tool can be: it swallows whatever stops it.
            with contextlib.suppress(BaseException):
                deed()
        return "done"

    def write(self) -> None:
        (self.folder / "written").write_text("x")

    def connect(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5):
            (self.folder / "connected").write_text("x")

    def start(self) -> None:
        subprocess.run([sys.executable, "-c", f"open({str(self.folder / 'started')!r}, 'w')"], check=True)

    def traces(self) -> list[str]:
        """What it left, and forgets it."""
        found = sorted(path.name for path in self.folder.iterdir())
        for path in self.folder.iterdir():
            path.unlink()
        return found


@pytest.fixture
def harm(tmp_path: Path) -> Any:
    """A folder and a listening port."""
    folder = tmp_path / "harm"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Harm(folder, listening.getsockname()[1])


ALL = ["connected", "started", "written"]


def _agent(world: World, name: str, item: Any, **options: Any) -> Agent[Any]:
    return Agent(name=name, instructions="x", model=world.model([item], [say("ok")]), **options)


def function(harm: Harm) -> Any:
    """A function tool."""

    async def scenario(world: World) -> Any:
        @function_tool
        def bad() -> str:
            """Bad."""
            return harm()

        return await world.run(_agent(world, "A", call("bad", {}, "call_1"), tools=[bad]), "hi")

    return scenario


def asynchronous(harm: Harm) -> Any:
    """A function tool that works in a thread."""

    async def scenario(world: World) -> Any:
        @function_tool
        async def bad() -> str:
            """Bad."""
            return await asyncio.to_thread(harm)

        return await world.run(_agent(world, "A", call("bad", {}, "call_1"), tools=[bad]), "hi")

    return scenario


def nested(harm: Harm) -> Any:
    """A tool of an agent used as a tool."""

    async def scenario(world: World) -> Any:
        @function_tool
        def bad() -> str:
            """Bad."""
            return harm()

        inner = _agent(world, "Inner", call("bad", {}, "call_2"), tools=[bad])
        outer = _agent(world, "Outer", call("ask", {"input": "q"}, "call_1"), tools=[inner.as_tool("ask", "Ask.")])
        return await world.run(outer, "hi")

    return scenario


def over_mcp(harm: Harm) -> Any:
    """A tool of a local MCP server."""

    async def scenario(world: World) -> Any:
        def bad() -> str:
            return harm()

        server = mcp.server.MCPServer("bad")
        server.tool(name="bad", description="Bad.")(bad)
        return await world.run(_agent(world, "A", call("bad", {}, "call_1"), mcp_servers=[InProcessMcp(server)]), "hi")

    return scenario


def shell(harm: Harm) -> Any:
    """The shell tool."""
    item = ResponseFunctionShellToolCall.model_validate(
        {
            "id": "sh_1",
            "call_id": "call_1",
            "type": "shell_call",
            "status": "completed",
            "action": {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": 100},
        }
    )

    async def scenario(world: World) -> Any:
        return await world.run(_agent(world, "A", item, tools=[ShellTool(executor=harm)]), "hi")

    return scenario


def local_shell(harm: Harm) -> Any:
    """The local shell tool."""
    item = LocalShellCall.model_validate(
        {
            "id": "ls_1",
            "call_id": "call_1",
            "type": "local_shell_call",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        }
    )

    async def scenario(world: World) -> Any:
        return await world.run(_agent(world, "A", item, tools=[LocalShellTool(executor=harm)]), "hi")

    return scenario


def apply_patch(harm: Harm) -> Any:
    """The patch tool."""
    item = {
        "type": "apply_patch_call",
        "id": "ap_1",
        "call_id": "call_1",
        "status": "completed",
        "operation": {"type": "create_file", "path": "a.txt", "diff": "+hi\n"},
    }

    class Editor:
        def create_file(self, operation: Any) -> Any:
            return {"status": "completed", "output": harm()}

        update_file = delete_file = create_file

    async def scenario(world: World) -> Any:
        return await world.run(_agent(world, "A", item, tools=[ApplyPatchTool(editor=Editor())]), "hi")

    return scenario


def computer(harm: Harm) -> Any:
    """A computer whose factory does harm."""
    item = ResponseComputerToolCall.model_validate(
        {
            "id": "cc_1",
            "call_id": "call_1",
            "type": "computer_call",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
        }
    )

    async def scenario(world: World) -> Any:
        def make(**_: Any) -> Desktop:
            harm()
            return Desktop(world)

        return await world.run(_agent(world, "A", item, tools=[ComputerTool(computer=make)]), "hi")

    return scenario


def custom(harm: Harm) -> Any:
    """A custom tool."""
    item = ResponseCustomToolCall(id="ct_1", call_id="call_1", type="custom_tool_call", name="bad", input="abc")

    async def scenario(world: World) -> Any:
        async def invoke(context: Any, text: str) -> str:
            return harm()

        tool = CustomTool(name="bad", description="d", on_invoke_tool=invoke)
        return await world.run(_agent(world, "A", item, tools=[tool]), "hi")

    return scenario


def approved(harm: Harm) -> Any:
    """A tool that a person approved."""

    async def scenario(world: World) -> Any:
        @function_tool(needs_approval=True)
        def bad() -> str:
            """Bad."""
            return harm()

        agent = _agent(world, "A", call("bad", {}, "call_1"), tools=[bad])
        first = await world.run(agent, "hi")
        state = await RunState.from_json(agent, first.to_state().to_json())
        state.approve(state.get_interruptions()[0])
        return await world.run(agent, state)

    return scenario


def handed_over(harm: Harm) -> Any:
    """A handoff's callback."""

    async def scenario(world: World) -> Any:
        other = Agent(name="Other", instructions="x", model=world.model([say("ok")]))
        to = handoff(other, on_handoff=lambda _ctx: harm() and None)
        return await world.run(_agent(world, "A", call("transfer_to_other", {}, "call_1"), handoffs=[to]), "hi")

    return scenario


KINDS: list[Callable[[Harm], Any]] = [
    function,
    asynchronous,
    nested,
    over_mcp,
    shell,
    local_shell,
    apply_patch,
    computer,
    custom,
    approved,
    handed_over,
]


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_tool_of_any_kind_leaves_no_trace(
    vault_url: str, harm: Harm, kind: Callable[[Harm], Any], stream: bool
) -> None:
    """Recorded, it writes, connects and starts; rerun, it does none of it."""
    scenario = kind(harm)
    run = record(scenario, vault_url, world=World(stream=stream))
    assert harm.traces() == ALL
    session, _ = again(scenario, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME, session.report.to_json()
    assert harm.traces() == []
    assert session.receipt.blocked == {}


@pytest.mark.parametrize("kind", KINDS[:4], ids=lambda kind: kind.__name__)
def test_a_call_that_was_not_recorded_is_refused_and_leaves_no_trace(
    vault_url: str, harm: Harm, kind: Callable[[Harm], Any]
) -> None:
    """The record has no such call: the tool is not run to see what it would give."""
    scenario = kind(harm)
    run = record(scenario, vault_url)
    harm.traces()
    calls = {event.seq for event in run.events if event.kind == "tool_call" and event.payload["type"] != "agent"}
    forged = _without(run, calls)
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(scenario, forged)
    assert caught.value.divergence.kind == "tool_call"
    assert harm.traces() == []


def _without(run: Any, seqs: set[int]) -> Any:
    import dataclasses

    events = tuple(event for event in run.events if event.seq not in seqs)
    return dataclasses.replace(run, records=(dataclasses.replace(run.records[0], events=events),))


def _directly(harm: Harm) -> None:
    harm()


def _in_a_thread(harm: Harm) -> None:
    thread = threading.Thread(target=harm)
    thread.start()
    thread.join()


def _in_a_pool(harm: Harm) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(harm).result()


PLACES: list[Callable[[Harm], None]] = [_directly, _in_a_thread, _in_a_pool]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_code_around_the_agents_cannot_reach_out_either(
    vault_url: str, harm: Harm, place: Callable[[Harm], None]
) -> None:
    """A guardrail is run for real, but sockets and processes are closed to it, in its threads too."""

    async def scenario(world: World) -> Any:
        @input_guardrail(run_in_parallel=False)
        def guard(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            place(harm)
            return GuardrailFunctionOutput(None, False)

        agent = Agent(name="A", instructions="x", input_guardrails=[guard], model=world.model([say("ok")]))
        return await world.run(agent, "hi")

    run = record(scenario, vault_url)
    assert harm.traces() == ALL
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(scenario, run)
    assert harm.traces() == ["written"]  # files are the code's own; what leaves the process is not
    report = caught.value.report
    assert report is not None
    assert set(report.receipt.blocked) == {"socket.getaddrinfo", "subprocess.Popen"}
    assert not report.receipt.network_touched
    assert "served" in caught.value.divergence.message
    session, _ = again(scenario, run, guardrails="served")
    assert session.report.outcome is Outcome.SAME
    assert harm.traces() == []


def test_new_processes_are_refused_however_they_are_made(vault_url: str, tmp_path: Path) -> None:
    """`multiprocessing` is refused too, which no audit event tells of."""
    import multiprocessing

    async def scenario(world: World) -> Any:
        @input_guardrail(run_in_parallel=False)
        def guard(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            process = multiprocessing.get_context("spawn").Process(target=print)
            process.start()
            process.join()
            return GuardrailFunctionOutput(None, False)

        agent = Agent(name="A", instructions="x", input_guardrails=[guard], model=world.model([say("ok")]))
        return await world.run(agent, "hi")

    run = record(scenario, vault_url)
    with pytest.raises(sealtrace.ReplayDiverged, match=r"multiprocessing\.Process"):
        again(scenario, run)


def test_loop_executors_are_covered(vault_url: str, harm: Harm) -> None:
    """`run_in_executor` starts with an empty context by itself; in a rerun it does not."""

    async def scenario(world: World) -> Any:
        @input_guardrail(run_in_parallel=False)
        async def guard(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            await asyncio.get_running_loop().run_in_executor(None, harm)
            return GuardrailFunctionOutput(None, False)

        agent = Agent(name="A", instructions="x", input_guardrails=[guard], model=world.model([say("ok")]))
        return await world.run(agent, "hi")

    run = record(scenario, vault_url)
    harm.traces()
    with pytest.raises(sealtrace.ReplayDiverged):
        again(scenario, run)
    assert harm.traces() == ["written"]


def test_live_code_beside_a_rerun_is_not_hindered(vault_url: str, harm: Harm) -> None:
    """Only the rerun's own context is closed: a thread from before it may do what it likes."""
    scenario = function(harm)
    run = record(scenario, vault_url)
    harm.traces()
    begin, done = threading.Event(), threading.Event()

    def live() -> None:
        begin.wait(10)
        harm()
        done.set()

    thread = threading.Thread(target=live)
    thread.start()
    with sealtrace.rerun(run, key=KEY) as session:
        begin.set()
        assert done.wait(30)
        asyncio.run(scenario(World(live=False)))
    thread.join()
    assert harm.traces() == ALL
    assert session.report.outcome is Outcome.SAME


def test_pool_workers_that_a_rerun_starts_serve_live_code_afterwards(vault_url: str, harm: Harm) -> None:
    """A pool outlives the rerun; its threads must not stay closed."""
    run = record(function(harm), vault_url)
    harm.traces()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with sealtrace.rerun(run, key=KEY):
            asyncio.run(function(harm)(World(live=False)))
            assert pool.submit(os.getpid).result() == os.getpid()
        pool.submit(harm).result()
    assert harm.traces() == ALL


def test_a_write_may_go_to_a_sandbox_and_is_held_to_its_recorded_result(vault_url: str) -> None:
    """The sandbox is called in the tool's place; another result is a TOOL divergence; the original is refused."""

    def make(world: World) -> Any:
        @sealtrace.effect("write")
        @function_tool
        def book(seat: str) -> str:
            """Book a seat."""
            world.done.append(seat)
            return f"booked {seat}"

        return book

    async def scenario(world: World) -> Any:
        tool = world.changed("tool", None) or make(world)
        agent = Agent(
            name="A",
            instructions="x",
            tools=[tool],
            model=world.model([call("book", {"seat": "12A"}, "call_1")], [say("ok")]),
        )
        return await world.run(agent, "hi")

    run = record(scenario, vault_url)
    booked: list[str] = []

    def sandbox(seat: str) -> str:
        booked.append(seat)
        return f"booked {seat}"

    session, after = again(scenario, run, redirect={"book": sandbox})
    assert (booked, after.done) == (["12A"], [])
    assert session.receipt.redirected == {"book": 1}
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(scenario, run, redirect={"book": lambda seat: "sold out"})
    assert (caught.value.divergence.cause, caught.value.divergence.path) == ("TOOL", "$.result")
    world = World(live=False)
    tool = make(world)
    world.change["tool"] = tool
    with pytest.raises(sealtrace.SealtraceError, match="the tool itself"):
        again(scenario, run, world=world, redirect={"book": tool.on_invoke_tool})
    assert world.done == []


def test_a_divergence_inside_an_agent_used_as_a_tool_is_not_made_text_of(vault_url: str) -> None:
    """The SDK's failure handler would turn an exception into an answer; the rerun stops all the same."""

    async def scenario(world: World) -> Any:
        inner = Agent(name="Inner", instructions=world.changed("inner", "inner"), model=world.model([say("in")]))
        outer = _agent(world, "Outer", call("ask", {"input": "q"}, "call_1"), tools=[inner.as_tool("ask", "Ask.")])
        return await world.run(outer, "hi")

    run = record(scenario, vault_url)
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(scenario, run, world=World(change={"inner": "other"}))
    assert caught.value.divergence.frame == "run:0/tool:call_1/run:0"


def test_the_users_own_runner_call_in_a_thread_is_covered(vault_url: str) -> None:
    """`asyncio.to_thread(Runner.run_sync, …)` reruns as it ran."""

    async def scenario(world: World) -> Any:
        agent = Agent(name="A", instructions="x", model=world.model([say("ok")]))

        def blocking() -> Any:
            return asyncio.run(Runner.run(agent, "hi"))

        return (await asyncio.to_thread(blocking)).final_output

    run = record(scenario, vault_url)
    session, _ = again(scenario, run)
    assert session.report.outcome is Outcome.SAME


def test_what_the_sdk_does_at_its_first_use_is_no_divergence(vault_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK makes its trace provider late, and what that imports may start a process: not the user's doing."""
    import agents.tracing.processors
    import agents.tracing.setup

    async def scenario(world: World) -> Any:
        return await world.run(Agent(name="A", instructions="x", model=world.model([say("ok")])), "hi")

    run = record(scenario, vault_url)
    real = agents.tracing.processors.default_processor

    def slow_to_import() -> Any:
        subprocess.run([sys.executable, "-c", ""], check=True)
        return real()

    monkeypatch.setattr(agents.tracing.processors, "default_processor", slow_to_import)
    monkeypatch.setattr(agents.tracing.setup, "GLOBAL_TRACE_PROVIDER", None)
    session, _ = again(scenario, run)
    assert session.report.outcome is Outcome.SAME
    assert session.report.receipt.blocked == {}
