"""What is recorded of a run, and that it is exactly what happened."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    Computer,
    ComputerTool,
    CustomTool,
    GuardrailFunctionOutput,
    HostedMCPTool,
    LocalShellTool,
    ModelSettings,
    RunConfig,
    Runner,
    ShellTool,
    ToolGuardrailFunctionOutput,
    function_tool,
    handoff,
    input_guardrail,
    set_tracing_disabled,
    tool_input_guardrail,
    trace,
)
from agents.editor import ApplyPatchResult
from agents.exceptions import InputGuardrailTripwireTriggered, MaxTurnsExceeded
from openai.types.responses import ResponseCustomToolCall
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction

import sealtrace
from sealtrace.event import Kind

from .conftest import call, model, run, say


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def of(events: list[Any], kind: Kind) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if event.kind is kind]


def test_a_run_is_recorded_in_order_with_its_ids(vault_url, events):
    """Input, request, call, result, request, output: each points at what caused it."""
    sealtrace.instrument(vault=vault_url)
    agent = Agent(
        name="A",
        instructions="be brief",
        tools=[weather],
        model=model([call("weather", {"city": "Paris"}, "call_1")], [say("done")]),
    )
    assert run(agent, "hello").final_output == "done"
    found = events()
    assert [event.kind for event in found] == [
        Kind.INPUT,
        Kind.GENERATION,
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
        Kind.GENERATION,
        Kind.OUTPUT,
    ]
    assert [event.seq for event in found] == list(range(6))
    generation, tool_call, tool_result = found[1:4]
    assert tool_call.parent_seq == generation.seq
    assert tool_result.parent_seq == tool_call.seq
    assert tool_call.call_id == tool_result.call_id == "call_1"
    assert tool_result.payload["result"] == "sunny in Paris"
    assert found[-1].payload == {"final_output": "done", "last_agent": "A"}


def test_each_request_is_what_the_model_was_sent(vault_url, events):
    """The recorded input of every turn equals the list the model got, however long the conversation."""
    sealtrace.instrument(vault=vault_url)
    steps = [[call("weather", {"city": f"c{n}"}, f"call_{n}")] for n in range(6)] + [[say("done")]]
    scripted = model(*steps)
    sent: list[Any] = []
    original = scripted.get_response

    async def spy(*args: Any, **kwargs: Any) -> Any:
        sent.append(json.loads(json.dumps(kwargs["input"])))
        return await original(*args, **kwargs)

    scripted.get_response = spy  # type: ignore[method-assign]
    run(Agent(name="A", tools=[weather], model=scripted), "hello")
    recorded = [event.payload["request"]["input"] for event in of(events(), Kind.GENERATION)]
    assert len(sent) == 7
    assert recorded == sent


def test_a_result_that_changes_later_is_recorded_as_it_was(vault_url, events):
    """The snapshot is taken when the tool returns; growing the list afterwards changes nothing."""
    sealtrace.instrument(vault=vault_url)
    live: list[int] = [1, 2]

    @function_tool
    def numbers() -> list[int]:
        """Numbers."""
        return live

    async def go() -> None:
        await Runner.run(Agent(name="A", tools=[numbers], model=model([call("numbers", {}, "c1")], [say("x")])), "hi")
        live.extend([3, 4])

    asyncio.run(go())
    assert of(events(), Kind.TOOL_RESULT)[0].payload["result"] == [1, 2]


def test_a_failing_tool_is_recorded_with_what_it_raised_and_what_the_model_was_told(vault_url, events, otel):
    """The handler turns the exception into text for the model; the record has both, the span the type."""
    sealtrace.instrument(vault=vault_url)

    @function_tool(failure_error_function=lambda _, error: f"told: {error}")
    def broken() -> str:
        """Fails."""
        raise KeyError("order 7")

    run(Agent(name="A", tools=[broken], model=model([call("broken", {}, "c1")], [say("x")])), "hi")
    result = of(events(), Kind.TOOL_RESULT)[0]
    assert result.error_type == "KeyError"
    assert result.payload["error"] == {"type": "KeyError", "message": "'order 7'"}
    assert result.payload["result"] == "told: 'order 7'"
    otel.flush()
    spans = {span.name: span for span in otel.spans()}
    assert spans["execute_tool broken"].attributes["error.type"] == "KeyError"


def test_a_tool_that_ends_the_run_is_recorded(vault_url, events):
    """With no failure handler the exception reaches the user unchanged, and the record ends with it."""
    sealtrace.instrument(vault=vault_url)

    @function_tool(failure_error_function=None)
    def broken() -> str:
        """Fails."""
        raise LookupError("gone")

    with pytest.raises(Exception, match="gone"):
        run(Agent(name="A", tools=[broken], model=model([call("broken", {}, "c1")])), "hi")
    found = events()
    assert of(found, Kind.TOOL_RESULT)[0].payload["error"]["type"] == "LookupError"
    assert found[-1].kind is Kind.ERROR


def test_guardrails_are_recorded_with_their_verdicts(vault_url, events, records):
    """Input and tool guardrails: name, stage, verdict, what they say of it."""
    sealtrace.instrument(vault=vault_url)

    @tool_input_guardrail
    def no_rome(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("not Rome", {"why": "closed"})

    @input_guardrail
    def polite(context: Any, agent: Any, text: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info={"score": 0.9}, tripwire_triggered="rude" in str(text))

    guarded = function_tool(lambda city: city, name_override="guarded", description_override="x")
    guarded.tool_input_guardrails = [no_rome]
    agent = Agent(
        name="A",
        tools=[guarded],
        input_guardrails=[polite],
        model=model([call("guarded", {"city": "Rome"}, "c1")], [say("x")]),
    )
    run(agent, "hi")
    verdicts = {event.payload["stage"]: event for event in of(events(), Kind.GUARDRAIL)}
    assert verdicts["input"].payload == {
        "name": "polite",
        "stage": "input",
        "tripped": False,
        "output_info": {"score": 0.9},
    }
    assert verdicts["tool_input"].payload["behavior"] == {"type": "reject_content", "message": "not Rome"}
    assert verdicts["tool_input"].call_id == "c1"
    with pytest.raises(InputGuardrailTripwireTriggered):
        run(Agent(name="B", input_guardrails=[polite], model=model([say("x")])), "rude")
    last = records()[-1]
    assert last.header is not None
    assert last.header.status == "error"


def test_handoffs_are_recorded_with_their_arguments(vault_url, events):
    """From, to, tool, arguments and the call they belong to; later events are the next agent's."""
    from pydantic import BaseModel

    sealtrace.instrument(vault=vault_url)

    class Reason(BaseModel):
        why: str

    second = Agent(name="Second", model=model([say("bye")]))
    heard: list[str] = []
    first = Agent(
        name="First",
        handoffs=[handoff(second, on_handoff=lambda _, given: heard.append(given.why), input_type=Reason)],
        model=model([call("transfer_to_second", {"why": "billing"}, "h1")]),
    )
    run(first, "hi")
    found = events()
    moved = of(found, Kind.HANDOFF)[0]
    assert heard == ["billing"]
    assert moved.payload == {
        "from": "First",
        "to": "Second",
        "tool": "transfer_to_second",
        "arguments": '{"why": "billing"}',
    }
    assert moved.call_id == "h1"
    assert of(found, Kind.GENERATION)[-1].agent == "Second"


def test_an_agent_used_as_a_tool_nests(vault_url, events):
    """The inner run has a frame of its own under the call that opened it."""
    sealtrace.instrument(vault=vault_url)
    inner = Agent(name="Inner", model=model([say("inside")]))
    outer = Agent(
        name="Outer",
        tools=[inner.as_tool("ask", "asks")],
        model=model([call("ask", {"input": "q"}, "c1")], [say("out")]),
    )
    run(outer, "hi")
    found = events()
    nested = [event for event in found if event.frame == "run:0/tool:c1/run:0"]
    assert [event.kind for event in nested] == [Kind.INPUT, Kind.GENERATION, Kind.OUTPUT]
    assert {event.agent for event in nested} == {"Inner"}


class Screen(Computer):
    """A computer that shows one picture."""

    environment = "browser"
    dimensions = (100, 80)

    def screenshot(self) -> str:
        return "cGl4ZWxz"

    def click(self, x: int, y: int, button: str) -> None: ...

    def double_click(self, x: int, y: int) -> None: ...

    def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...

    def type(self, text: str) -> None: ...

    def wait(self) -> None: ...

    def move(self, x: int, y: int) -> None: ...

    def keypress(self, keys: list[str]) -> None: ...

    def drag(self, path: list[tuple[int, int]]) -> None: ...


class Editor:
    """An editor that agrees to everything."""

    def create_file(self, operation: Any) -> ApplyPatchResult:
        return ApplyPatchResult(status="completed", output="made")

    update_file = delete_file = create_file


def native_cases() -> list[Any]:
    """Each tool that the SDK runs itself, and a model's call of it."""
    from openai.types.responses import ResponseComputerToolCall
    from openai.types.responses.response_computer_tool_call import ActionClick

    click = ResponseComputerToolCall(
        id="cu_1",
        call_id="c1",
        type="computer_call",
        status="completed",
        pending_safety_checks=[],
        action=ActionClick(type="click", x=1, y=2, button="left"),
    )
    local = LocalShellCall(
        id="ls_1",
        call_id="c1",
        type="local_shell_call",
        status="completed",
        action=LocalShellCallAction(type="exec", command=["ls"], env={}),
    )
    shell = {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "status": "completed",
        "action": {"commands": ["ls -l"]},
    }
    patch = {
        "type": "apply_patch_call",
        "id": "ap_1",
        "call_id": "c1",
        "status": "completed",
        "operation": {"type": "create_file", "path": "a.txt", "diff": "+hello"},
    }
    custom = ResponseCustomToolCall(type="custom_tool_call", call_id="c1", name="grep", input="needle", id="ct_1")
    return [
        pytest.param(ComputerTool(computer=Screen()), click, "computer", id="computer"),
        pytest.param(LocalShellTool(executor=lambda request: "listing"), local, "local_shell", id="local_shell"),
        pytest.param(ShellTool(executor=lambda request: "listing"), shell, "shell", id="shell"),
        pytest.param(ApplyPatchTool(editor=Editor()), patch, "apply_patch", id="apply_patch"),
        pytest.param(CustomTool(name="grep", description="find", on_invoke_tool=_grep), custom, "grep", id="custom"),
    ]


async def _grep(context: Any, text: str) -> str:
    return f"found {text}"


@pytest.mark.parametrize(("tool", "item", "name"), native_cases())
def test_tools_the_sdk_runs_itself_are_recorded(vault_url, events, tool, item, name):
    """Shell, patch, computer and custom tools: the call as the model made it, the item it got back."""
    sealtrace.instrument(vault=vault_url)
    agent = Agent(name="A", tools=[tool], model=model([item], [say("done")]))
    assert run(agent, "hi").final_output == "done"
    found = events()
    made, result = of(found, Kind.TOOL_CALL)[0], of(found, Kind.TOOL_RESULT)[0]
    assert made.payload["tool"] == name
    assert made.call_id == result.call_id == "c1"
    assert made.payload["arguments"]["call_id"] == "c1"
    assert result.payload["output_kind"] == "item"
    assert result.payload["result"]["type"].endswith("_output")
    assert result.parent_seq == made.seq


def test_approvals_are_recorded_when_asked_for_and_when_given(vault_url, events):
    """The wish, the decision with its reason, and only then the call."""
    sealtrace.instrument(vault=vault_url)

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    async def go() -> None:
        agent = Agent(name="A", tools=[pay], model=model([call("pay", {"amount": 5}, "c1")], [say("done")]))
        result = await Runner.run(agent, "hi")
        state = result.to_state()
        state.reject(result.interruptions[0], rejection_message="too much")
        await Runner.run(agent, state)

    asyncio.run(go())
    wanted, decided = of(events(), Kind.APPROVAL)
    assert (wanted.payload["approved"], wanted.call_id) == (None, "c1")
    assert decided.payload == {"tool": "pay", "arguments": '{"amount": 5}', "approved": False, "reason": "too much"}


def test_credentials_never_enter_an_event(vault_url, events):
    """The tracing key, hosted MCP authorization and extra headers are not taken at all."""
    sealtrace.instrument(vault=vault_url, key="k" * 32)
    hosted = HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": "docs",
            "server_url": "https://mcp.invalid",
            "authorization": "Bearer CANARYAUTH",
            "headers": {"X-Key": "CANARYHEADER"},
            "require_approval": "never",
        }
    )
    settings = ModelSettings(extra_headers={"X-Secret": "CANARYEXTRA"}, temperature=0.5)
    agent = Agent(name="A", tools=[hosted], model=model([say("x")]), model_settings=settings)
    run(agent, "hi", run_config=RunConfig(tracing={"api_key": "CANARYKEY"}))
    found = events()
    text = json.dumps([event.to_json() for event in found])
    assert "CANARY" not in text
    request = of(found, Kind.GENERATION)[0].payload["request"]
    assert request["settings"] == {"temperature": 0.5}
    assert request["tools"][0]["server"]["server_label"] == "docs"


def test_context_held_by_the_server_is_named(vault_url, events):
    """A previous response id is recorded as sent, and the request is marked as not the whole of it."""
    sealtrace.instrument(vault=vault_url)
    run(Agent(name="A", model=model([say("x")])), "hi", previous_response_id="resp_before")
    request = of(events(), Kind.GENERATION)[0].payload["request"]
    assert request["previous_response_id"] == "resp_before"
    assert request["held_by_server"] is True


def test_several_runs_in_one_trace_are_one_record(vault_url, records):
    """`with trace()` around two runs gives one run with two frames, sealed when the trace ends."""
    sealtrace.instrument(vault=vault_url)
    with trace("two"):
        run(Agent(name="A", model=model([say("x")])), "hi")
        run(Agent(name="B", model=model([say("y")])), "ho")
    (record,) = records()
    assert {event.frame for event in record.envelopes()} == {"run:0", "run:1"}
    assert record.header is not None
    assert (record.header.workflow_name, record.header.agents) == ("two", ("A", "B"))


def test_a_run_that_runs_out_of_turns_is_recorded_as_an_error(vault_url, events):
    """The last event says what the user saw."""
    sealtrace.instrument(vault=vault_url)
    agent = Agent(
        name="A", tools=[weather], model=model(*[[call("weather", {"city": "x"}, f"c{n}")] for n in range(3)])
    )
    with pytest.raises(MaxTurnsExceeded):
        run(agent, "hi", max_turns=2)
    assert events()[-1].payload["type"] == "MaxTurnsExceeded"


def test_a_cancelled_run_is_closed(vault_url, records):
    """A task cancelled in a tool leaves a sealed record that says so, though spans end after the trace."""
    sealtrace.instrument(vault=vault_url)
    entered = asyncio.Event()

    @function_tool
    async def forever() -> str:
        """Never returns."""
        entered.set()
        await asyncio.Event().wait()
        return ""

    async def go() -> None:
        agent = Agent(name="A", tools=[forever], model=model([call("forever", {}, "c1")]))
        task = asyncio.create_task(Runner.run(agent, "hi"))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    (record,) = records()
    assert record.header is not None
    assert record.header.status == "cancelled"
    assert record.gaps() == []
    assert [event.kind for event in record.envelopes()].count(Kind.TOOL_RESULT) == 1


def test_tracing_switched_off_is_respected_and_said(vault_url, records, caplog):
    """Nothing is recorded, and one warning names the setting that would."""
    set_tracing_disabled(True)
    try:
        sealtrace.instrument(vault=vault_url)
        run(Agent(name="A", model=model([say("x")], [say("x")])), "hi")
        run(Agent(name="A", model=model([say("x")])), "hi")
        assert records() == []
        said = [r for r in caplog.records if "record_when_tracing_disabled" in r.getMessage()]
        assert len(said) == 1
    finally:
        set_tracing_disabled(False)


def test_recording_can_go_on_with_tracing_switched_off(vault_url, events, caplog):
    """With the setting, payloads are recorded in full although the SDK calls no processor."""
    set_tracing_disabled(True)
    try:
        sealtrace.instrument(vault=vault_url, record_when_tracing_disabled=True)
        agent = Agent(name="A", tools=[weather], model=model([call("weather", {"city": "x"}, "c1")], [say("done")]))
        run(agent, "hi")
        assert [event.kind for event in events()] == [
            Kind.INPUT,
            Kind.GENERATION,
            Kind.TOOL_CALL,
            Kind.TOOL_RESULT,
            Kind.GENERATION,
            Kind.OUTPUT,
        ]
    finally:
        set_tracing_disabled(False)


def test_a_run_that_asks_not_to_be_traced_is_never_recorded(vault_url, records):
    """`RunConfig(tracing_disabled=True)` wins over every setting, nested runs included."""
    sealtrace.instrument(vault=vault_url, record_when_tracing_disabled=True)
    inner = Agent(name="Inner", model=model([say("inside")]))
    outer = Agent(
        name="O", tools=[inner.as_tool("ask", "a")], model=model([call("ask", {"input": "q"}, "c")], [say("x")])
    )
    run(outer, "hi", run_config=RunConfig(tracing_disabled=True))
    assert records() == []


def test_authority_and_retrievals_are_recorded(vault_url, events):
    """What only the application knows lands on the events and in an event of its own."""
    sealtrace.instrument(vault=vault_url)

    @function_tool
    def search(query: str) -> str:
        """Searches."""
        sealtrace.retrieval(query, [sealtrace.Document("doc-1", version="v3", chunks=("7",))], access="allowed")
        return "found"

    with sealtrace.authority("user:4711", scopes=["orders:read"], policy="support"):
        run(Agent(name="A", tools=[search], model=model([call("search", {"query": "q"}, "c1")], [say("x")])), "hi")
    found = events()
    assert {json.dumps(event.actor) for event in found} == {
        json.dumps({"id": "user:4711", "scopes": ["orders:read"], "policy": "support"})
    }
    retrieved = of(found, Kind.RETRIEVAL)[0]
    assert retrieved.payload["documents"] == [{"id": "doc-1", "version": "v3", "chunks": ["7"]}]
    assert retrieved.payload["access"] == "allowed"


def test_nothing_is_recorded_outside_a_run(vault_url, records):
    """The application's calls are harmless where there is nothing to record."""
    sealtrace.instrument(vault=vault_url)
    sealtrace.retrieval("q", [])
    with sealtrace.authority("user:1"):
        pass
    assert records() == []
