"""Everything a run can touch, recorded and rerun: sessions, retries, failures, native tools, MCP, approvals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp.server
import pytest
from agents import (
    Agent,
    AsyncComputer,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelRetrySettings,
    ModelSettings,
    OpenAIProvider,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    input_guardrail,
    retry_policies,
)
from agents.tool import (
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    HostedMCPTool,
    LocalShellTool,
    ShellTool,
    ToolOutputImage,
    ToolOutputText,
)
from openai import AsyncOpenAI
from openai.types.responses import (
    ResponseComputerToolCall,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
)
from openai.types.responses.response_output_item import LocalShellCall, McpApprovalRequest
from pydantic import BaseModel

import sealtrace
from loopback.items import call as wire_call
from loopback.items import file_search, message, reasoning, reply, web_search
from loopback.mcp import InProcessMcp
from replay.world import World, again, call, record, say
from sealtrace.replay.report import Outcome

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])


def same(scenario: Any, vault_url: str, *, stream: bool = False, world: World | None = None, **options: Any) -> Any:
    """Record and rerun; nothing may be done in the rerun that was not done by the user's own code."""
    run = record(scenario, vault_url, world=world or World(stream=stream))
    session, after = again(scenario, run, world=World(stream=stream), **options)
    assert session.report.outcome is Outcome.SAME, session.report.to_json()
    assert session.report.matched == session.report.total
    return session, after, run


@STREAM
def test_a_session_is_read_from_the_record_and_the_users_store_is_left_alone(
    vault_url: str, tmp_path: Path, stream: bool
) -> None:
    """Two runs over one session rerun, and the user's database has not changed by a byte."""
    store = tmp_path / "memory.db"

    async def scenario(world: World) -> None:
        session = SQLiteSession("user-1", store)
        await session.add_items([{"role": "user", "content": "My name is Ann."}] if world.live else [])
        for text, model in (("Who am I?", world.model([say("Ann")])), ("Sure?", world.model([say("Yes")]))):
            await world.run(Agent(name="A", instructions="x", model=model), text, session=session)
        session.close()

    run = record(scenario, vault_url, world=World(stream=stream))
    before = SQLiteSession("user-1", store)
    kept = asyncio.run(before.get_items())
    assert len(kept) == 5
    session, _ = again(scenario, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME
    assert session.receipt.surfaces["sessions"].served == 2
    assert asyncio.run(before.get_items()) == kept
    before.close()


@STREAM
def test_retried_requests_are_served_by_their_last_attempt(vault_url: str, stream: bool) -> None:
    """Earlier attempts are passed over without waiting; usage counts them as the live run did."""

    class Down(Exception):
        status_code = 503

    async def scenario(world: World) -> Any:
        settings = ModelSettings(
            retry=ModelRetrySettings(
                max_retries=3, backoff={"initial_delay": 0.001}, policy=retry_policies.http_status([503])
            )
        )
        agent = Agent(
            name="A", instructions="x", model_settings=settings, model=world.model(Down("a"), Down("b"), [say("up")])
        )
        result = await world.run(agent, "hi")
        world.done.append(result.final_output)
        return result

    session, after, run = same(scenario, vault_url, stream=stream)
    assert [event.kind for event in run.events].count("generation") == 3
    assert after.done == ["up"]
    assert session.receipt.surfaces["model"].served == 1


@STREAM
def test_a_failed_request_fails_as_it_did(vault_url: str, stream: bool) -> None:
    """The recorded class reaches the user's `except`, and the failed run counts as the same."""

    async def scenario(world: World) -> Any:
        agent = Agent(name="A", instructions="x", model=world.model(ConnectionError("gone")))
        try:
            return await world.run(agent, "hi")
        except ConnectionError as error:
            world.done.append(f"caught {error}")

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == ["caught gone"]


@STREAM
def test_too_many_turns_is_the_same_failure(vault_url: str, stream: bool) -> None:
    """An exception of the SDK's own is compared by its class."""

    @function_tool
    def again_please() -> str:
        """Again."""
        return "again"

    async def scenario(world: World) -> Any:
        steps = [[call("again_please", {}, f"call_{number}")] for number in range(3)]
        agent = Agent(name="A", instructions="x", tools=[again_please], model=world.model(*steps))
        with pytest.raises(MaxTurnsExceeded):
            await world.run(agent, "hi", max_turns=2)
        world.done.append("too many")

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == ["too many"]


@STREAM
def test_an_unhandled_tool_failure_ends_the_run_as_it_did(vault_url: str, stream: bool) -> None:
    """Without a failure handler the SDK raises, and so it does in a rerun."""
    from agents import UserError

    async def scenario(world: World) -> Any:
        @function_tool(failure_error_function=None)
        def broken() -> str:
            """Fails."""
            world.done.append("broken ran")
            raise KeyError("nothing there")

        agent = Agent(name="A", instructions="x", tools=[broken], model=world.model([call("broken", {}, "call_1")]))
        with pytest.raises(UserError):
            await world.run(agent, "hi")

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == []


@STREAM
def test_an_input_guardrail_that_stops_a_run_is_the_same_however_far_the_run_had_come(
    vault_url: str, stream: bool
) -> None:
    """The tripwire races with the model and its tools; which of them was reached is chance, not a difference."""

    async def scenario(world: World) -> Any:
        @function_tool
        def pay() -> str:
            """Pay."""
            world.done.append("paid")
            return "paid"

        @input_guardrail
        async def late(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            await asyncio.sleep(0.05 if world.live else 0)
            return GuardrailFunctionOutput("no", True)

        agent = Agent(
            name="A",
            instructions="x",
            tools=[pay],
            input_guardrails=[late],
            model=world.model([call("pay", {}, "call_1")], [say("done")]),
        )
        with pytest.raises(InputGuardrailTripwireTriggered):
            await world.run(agent, "hi")

    run = record(scenario, vault_url, world=World(stream=stream))
    session, after = again(scenario, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME
    assert after.done == []


def test_a_slow_guardrail_in_the_rerun_waits_for_nothing_that_was_not_recorded(vault_url: str) -> None:
    """Recorded: stopped before the tool; rerun: the guardrail is slower than served answers."""

    async def scenario(world: World) -> Any:
        @function_tool
        def pay() -> str:
            """Pay."""
            world.done.append("paid")
            return "paid"

        @input_guardrail
        async def guard(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            await asyncio.sleep(0 if world.live else 0.1)
            return GuardrailFunctionOutput("no", True)

        class Slow(type(world.model())):  # type: ignore[misc]
            pass

        model = world.model([call("pay", {}, "call_1")], [say("done")])
        if world.live:
            original = model.get_response

            async def slow(*args: Any, **kwargs: Any) -> Any:
                await asyncio.sleep(0.2)
                return await original(*args, **kwargs)

            model.get_response = slow  # type: ignore[method-assign]
        agent = Agent(name="A", instructions="x", tools=[pay], input_guardrails=[guard], model=model)
        with pytest.raises(InputGuardrailTripwireTriggered):
            await world.run(agent, "hi")

    run = record(scenario, vault_url)
    session, after = again(scenario, run)
    assert session.report.outcome is Outcome.SAME
    assert after.done == []


@STREAM
def test_a_guardrail_that_asks_a_model_is_served_its_answer(vault_url: str, stream: bool) -> None:
    """The agent a guardrail runs is a nested run like any other."""

    async def scenario(world: World) -> Any:
        judge = Agent(name="Judge", instructions="judge", model=world.model([say("fine")]))

        @input_guardrail(run_in_parallel=False)
        async def judged(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            verdict = await Runner.run(judge, given)
            return GuardrailFunctionOutput(verdict.final_output, False)

        agent = Agent(name="A", instructions="x", input_guardrails=[judged], model=world.model([say("hello")]))
        return await world.run(agent, "hi")

    session, _, _ = same(scenario, vault_url, stream=stream)
    assert session.receipt.surfaces["model"].served == 2


@STREAM
def test_recorded_verdicts_are_served_on_request(vault_url: str, stream: bool) -> None:
    """`guardrails="served"`: the guardrail's code does not run, nor what it would ask."""

    async def scenario(world: World) -> Any:
        judge = Agent(name="Judge", instructions="judge", model=world.model([say("fine")]))

        @input_guardrail(run_in_parallel=False)
        async def judged(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            world.done.append("judged")
            verdict = await Runner.run(judge, given)
            return GuardrailFunctionOutput(verdict.final_output, False)

        agent = Agent(name="A", instructions="x", input_guardrails=[judged], model=world.model([say("hello")]))
        return await world.run(agent, "hi")

    session, after, _ = same(scenario, vault_url, stream=stream, guardrails="served")
    assert after.done == []
    assert session.receipt.surfaces["guardrails"].served == 1


class Desktop(AsyncComputer):
    """A computer that notes what is done to it."""

    environment = "browser"
    dimensions = (640, 480)

    def __init__(self, world: World) -> None:
        self.world = world

    async def screenshot(self) -> str:
        self.world.done.append("screenshot")
        return "aGk="

    async def click(self, x: int, y: int, button: str) -> None:
        self.world.done.append("click")

    async def double_click(self, x: int, y: int) -> None: ...
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    async def type(self, text: str) -> None: ...
    async def wait(self) -> None: ...
    async def move(self, x: int, y: int) -> None: ...
    async def keypress(self, keys: list[str]) -> None: ...
    async def drag(self, path: list[tuple[int, int]]) -> None: ...


class Editor:
    """Patches nothing and notes it."""

    def __init__(self, world: World) -> None:
        self.world = world

    def create_file(self, operation: Any) -> Any:
        self.world.done.append("create")
        return {"status": "completed", "output": "created"}

    update_file = delete_file = create_file


async def native(world: World) -> Any:
    """One call of each tool the SDK runs itself."""

    def shell(request: Any) -> str:
        world.done.append("shell")
        return "total 0"

    async def local_shell(request: Any) -> str:
        world.done.append("local_shell")
        return "local"

    async def custom(context: Any, text: str) -> str:
        world.done.append("custom")
        return f"custom {text}"

    def computer(**_: Any) -> Desktop:
        world.done.append("computer made")
        return Desktop(world)

    def agent(name: str, tool: Any, item: Any) -> Agent[Any]:
        return Agent(name=name, instructions="x", tools=[tool], model=world.model([item], [say(f"{name} done")]))

    shell_call = ResponseFunctionShellToolCall.model_validate(
        {
            "id": "sh_1",
            "call_id": "call_sh",
            "type": "shell_call",
            "status": "completed",
            "action": {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": 100},
        }
    )
    local_call = LocalShellCall.model_validate(
        {
            "id": "ls_1",
            "call_id": "call_ls",
            "type": "local_shell_call",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        }
    )
    patch_call = {
        "type": "apply_patch_call",
        "id": "ap_1",
        "call_id": "call_ap",
        "status": "completed",
        "operation": {"type": "create_file", "path": "a.txt", "diff": "+hi\n"},
    }
    computer_call = ResponseComputerToolCall.model_validate(
        {
            "id": "cc_1",
            "call_id": "call_cc",
            "type": "computer_call",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "click", "x": 1, "y": 2, "button": "left"},
        }
    )
    custom_call = ResponseCustomToolCall(
        id="ct_1", call_id="call_ct", type="custom_tool_call", name="grammar", input="abc"
    )
    await world.run(agent("Shell", ShellTool(executor=shell), shell_call), "go")
    await world.run(agent("Local", LocalShellTool(executor=local_shell), local_call), "go")
    await world.run(agent("Patch", ApplyPatchTool(editor=Editor(world)), patch_call), "go")
    await world.run(agent("Screen", ComputerTool(computer=computer), computer_call), "go")
    await world.run(
        agent("Custom", CustomTool(name="grammar", description="d", on_invoke_tool=custom), custom_call), "go"
    )


@STREAM
def test_native_tools_are_served_and_never_run(vault_url: str, stream: bool) -> None:
    """Shell, local shell, patch, computer and custom tools; a computer's factory is not called either."""
    world = World(stream=stream)
    run = record(native, vault_url, world=world)
    assert {"shell", "local_shell", "create", "computer made", "click", "screenshot", "custom"} == set(world.done)
    session, after = again(native, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME
    assert after.done == []
    assert session.receipt.surfaces["native tools"].served == 5


@STREAM
def test_mcp_servers_are_neither_listed_nor_called(vault_url: str, stream: bool) -> None:
    """Tools come from the recorded listing, results from the record, and the server is never connected."""

    async def scenario(world: World) -> Any:
        server = mcp.server.MCPServer("crm")

        @server.tool()
        def lookup(name: str) -> str:
            """Look a customer up."""
            world.done.append(f"lookup {name}")
            return f"{name}: ann@example.org"

        class Watched(InProcessMcp):
            async def list_tools(self, *args: Any, **kwargs: Any) -> Any:
                world.done.append("listed")
                return await super().list_tools(*args, **kwargs)

        agent = Agent(
            name="A",
            instructions="x",
            mcp_servers=[Watched(server)],
            model=world.model([call("lookup", {"name": "Ann"}, "call_1")], [say("found")]),
        )
        return await world.run(agent, "hi")

    session, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == []
    assert session.receipt.surfaces["MCP listings"].served == 2
    # The SDK before 0.23 does not say which server a tool is of.
    assert sum(session.receipt.surfaces[name].served for name in session.receipt.surfaces if "tools" in name) == 1


@STREAM
@pytest.mark.parametrize("approve", [True, False], ids=["approved", "rejected"])
def test_approvals_rerun_and_the_tool_stays_unexecuted(vault_url: str, stream: bool, approve: bool) -> None:
    """Interrupted, decided, resumed through JSON: as recorded, with the tool never run."""
    scenario = approval(approve)
    session, after, run = same(scenario, vault_url, stream=stream)
    assert after.done == []
    assert session.receipt.surfaces["approvals"].live == 2
    assert [event.kind for event in run.events].count("approval") == 2


def approval(approve: bool) -> Any:
    """A tool that waits for a person."""

    async def scenario(world: World) -> Any:
        @function_tool(needs_approval=True)
        def wire(amount: int) -> str:
            """Wire money."""
            world.done.append("wired")
            return "wired"

        agent = Agent(
            name="A",
            instructions="x",
            tools=[wire],
            model=world.model([call("wire", {"amount": 5}, "call_1")], [say("ok")]),
        )
        first = await world.run(agent, "wire 5")
        state = await RunState.from_json(agent, first.to_state().to_json())
        (item,) = state.get_interruptions()
        if world.changed("approve", approve):
            state.approve(item)
        else:
            state.reject(item)
        return await world.run(agent, state)

    return scenario


def test_what_was_rejected_then_cannot_be_approved_now(vault_url: str) -> None:
    """Permissions are at least as tight as they were: POLICY, and the tool does not run."""
    run = record(approval(False), vault_url)
    world = World(change={"approve": True})
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(approval(False), run, world=world)
    assert caught.value.divergence.cause == "POLICY"
    assert caught.value.divergence.path == "$.approved"
    assert world.done == []


@STREAM
def test_results_of_every_form_reach_the_model_as_they_did(vault_url: str, stream: bool) -> None:
    """Text, images, lists of both, JSON, numbers, nothing, and objects of the user's own."""

    class Quote(BaseModel):
        price: float

    async def scenario(world: World) -> Any:
        results = {
            "image": ToolOutputImage(image_url="https://example.org/a.png"),
            "parts": [ToolOutputText(text="a"), ToolOutputImage(image_url="https://example.org/b.png")],
            "table": {"b": 1, "a": [True, None, 1.5]},
            "number": 7,
            "nothing": None,
            "own": Quote(price=1.5),
        }

        def tool(name: str) -> Any:
            def give() -> Any:
                """Give."""
                world.done.append(name)
                return results[name]

            give.__annotations__ = {}
            return function_tool(give, name_override=name)

        agent = Agent(
            name="A",
            instructions="x",
            tools=[tool(name) for name in results],
            model=world.model([call(name, {}, f"call_{name}") for name in results], [say("seen")]),
        )
        return await world.run(agent, "hi")

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == []


@STREAM
def test_hosted_and_reasoning_items_are_served(vault_url: str, server: Any, stream: bool) -> None:
    """Recorded through the real Responses client; rerun with no client, key or network."""
    steps = [
        reply(
            reasoning("thinking", "opaque"),
            web_search("weather"),
            file_search("terms", "30 days"),
            wire_call("weather", {"city": "Paris"}, "call_1"),
        ),
        reply(message("sunny")),
    ]

    async def scenario(world: World) -> Any:
        @function_tool
        def weather(city: str) -> str:
            """Weather."""
            world.done.append(city)
            return "sunny"

        agent = Agent(name="A", instructions="x", model="gpt-5", tools=[weather])
        if world.live:
            client = AsyncOpenAI(api_key="sk-test", base_url=f"{server.url}/v1", max_retries=0)
            config = RunConfig(model_provider=OpenAIProvider(openai_client=client))
            result = await world.run(agent, "hi", run_config=config)
            await client.close()
        else:
            result = await world.run(agent, "hi")
        world.done.append(result.final_output)

    server.play(steps)
    run = record(scenario, vault_url, world=World(stream=stream))
    sent = len(server.requests)
    session, after = again(scenario, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME
    assert after.done == ["sunny"]
    assert len(server.requests) == sent


def test_the_provider_is_never_asked_for_a_model(vault_url: str) -> None:
    """No key in the environment, a provider that refuses: the rerun never gets to it."""
    from agents.models.interface import ModelProvider

    class Provider(ModelProvider):
        def __init__(self, world: World) -> None:
            self.world = world

        def get_model(self, model_name: str | None) -> Any:
            if not self.world.live:
                raise AssertionError("a provider was asked in a rerun")
            return self.world.model([say("hello")])

    async def scenario(world: World) -> Any:
        agent = Agent(name="A", instructions="x", model="fast")
        config = RunConfig(model_provider=Provider(world))
        return await world.run(agent, "hi", run_config=config, conversation_id="conv_1")

    same(scenario, vault_url)


@STREAM
def test_a_structured_output_reruns(vault_url: str, stream: bool) -> None:
    """Output types are parsed from the served answer."""

    class Answer(BaseModel):
        city: str
        sunny: bool

    async def scenario(world: World) -> Any:
        agent = Agent(
            name="A", instructions="x", output_type=Answer, model=world.model([say('{"city": "Paris", "sunny": true}')])
        )
        result = await world.run(agent, "hi")
        world.done.append(result.final_output.city)

    _, after, _ = same(scenario, vault_url, stream=stream)
    assert after.done == ["Paris"]


def test_an_answer_that_redaction_made_unreadable_is_not_a_divergence(vault_url: str) -> None:
    """A pseudonym where the type wants a pattern: not comparable, said so, exit code 3."""
    from pydantic import Field

    class Contact(BaseModel):
        email: str = Field(pattern=r"^[^@<>]+@[^@]+$")

    async def scenario(world: World) -> Any:
        agent = Agent(
            name="A", instructions="x", output_type=Contact, model=world.model([say('{"email": "a.b@example.org"}')])
        )
        return await world.run(agent, "hi")

    run = record(scenario, vault_url)
    with pytest.raises(sealtrace.SealtraceError, match="redacted"):
        again(scenario, run)


def test_a_handoff_that_a_callback_chose_needs_the_agent_by_name(vault_url: str) -> None:
    """Callbacks are not run, so the target must be found: by reference, by name, or as an argument."""
    from agents import Handoff

    async def scenario(world: World) -> Any:
        target = Agent(name="Target", instructions="t", model=world.model([say("done")]))

        async def choose(ctx: Any, arguments: str) -> Any:
            world.done.append("chosen")
            return target

        to = Handoff(
            tool_name="go", tool_description="go", input_json_schema={}, on_invoke_handoff=choose, agent_name="Target"
        )
        world.change["agents"].append(target)
        agent = Agent(name="A", instructions="x", handoffs=[to], model=world.model([call("go", {}, "call_1")]))
        return await world.run(agent, "hi")

    run = record(scenario, vault_url, world=World(change={"agents": []}))
    with pytest.raises(sealtrace.SealtraceError, match="agents="):
        again(scenario, run, world=World(change={"agents": []}))
    found: list[Any] = []
    session, after = again(scenario, run, world=World(change={"agents": found}), agents=Late(found))
    assert session.report.outcome is Outcome.SAME
    assert after.done == []


class Late(list[Any]):
    """Agents that are known only once the code has made them."""

    def __init__(self, found: list[Any]) -> None:
        super().__init__()
        self._found = found

    def __iter__(self) -> Any:
        return iter(self._found)


@STREAM
def test_a_hosted_servers_request_is_answered_as_it_was(vault_url: str, stream: bool) -> None:
    """The callback that approves a remote call is not asked again; its answer is in the record."""
    request = McpApprovalRequest(
        id="mcpr_1", type="mcp_approval_request", name="pay", arguments='{"a": 1}', server_label="bank"
    )

    async def scenario(world: World) -> Any:
        def decide(_request: Any) -> Any:
            world.done.append("asked")
            return {"approve": False, "reason": "too much"}

        tool = HostedMCPTool(
            tool_config={
                "type": "mcp",
                "server_label": "bank",
                "server_url": "https://bank.example",
                "authorization": "x",
            },
            on_approval_request=decide,
        )
        agent = Agent(name="A", instructions="x", tools=[tool], model=world.model([request], [say("not paid")]))
        return await world.run(agent, "hi")

    session, after, run = same(scenario, vault_url, stream=stream)
    assert after.done == []
    assert session.receipt.surfaces["approvals"].served == 1
    assert any("too much" in str(event.payload) for event in run.events)


@STREAM
def test_a_conversation_held_by_the_server_is_compared_as_it_was_sent(vault_url: str, stream: bool) -> None:
    """Only what was sent is in the record: the previous response's id and what is new."""

    async def scenario(world: World) -> Any:
        @function_tool
        def look() -> str:
            """Look."""
            world.done.append("looked")
            return "there"

        agent = Agent(
            name="A", instructions="x", tools=[look], model=world.model([call("look", {}, "call_1")], [say("ok")])
        )
        previous = world.changed("previous", "resp_0")
        return await world.run(agent, "hi", previous_response_id=previous, auto_previous_response_id=True)

    _, after, run = same(scenario, vault_url, stream=stream)
    assert after.done == []
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(scenario, run, world=World(stream=stream, change={"previous": "resp_9"}))
    assert caught.value.divergence.path == "$.request.previous_response_id"
