"""Runs of every kind whose outcome and whose order of calls can be compared.

A story is told twice, with and without a recorder, and must be the same to the letter.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents import (
    Agent,
    ApplyPatchTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    ModelRetrySettings,
    ModelSettings,
    OutputGuardrail,
    RunConfig,
    RunHooks,
    Runner,
    ShellTool,
    ToolGuardrailFunctionOutput,
    ToolOutputText,
    custom_span,
    function_tool,
    handoff,
    retry_policies,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.editor import ApplyPatchResult
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent, Tool

import sealtrace
from loopback import items
from loopback.items import Failure, Step, reply
from loopback.model import OwnModel

MODES = ("run", "run_streamed")

_COUNTED = re.compile(r"resp_\d+")


@dataclass
class Story:
    """What a user can tell of some runs.

    Attributes:
        lines: Calls of the application's code, in order.
        outcomes: Final outputs and conversations, or exceptions, by run.
    """

    lines: list[str] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)

    def note(self, line: str) -> None:
        """Something was called."""
        self.lines.append(_COUNTED.sub("resp_", line))

    def ended(self, name: str, outcome: Any) -> None:
        """A run ended like this."""
        self.outcomes[name] = _COUNTED.sub("resp_", str(outcome))


class StoryError(Exception):
    """An error of the application's own."""


class Notebook(MCPServer):
    """An MCP server in a few lines: stories are told hundreds of times."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self._story = story

    name = "notebook"

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_prompts(self, cursor: str | None = None) -> Any: ...
    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
        self._story.note("mcp list")
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return [Tool.model_validate({"name": "write", "description": "Writes.", "inputSchema": schema})]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        self._story.note(f"mcp call {tool_name} {arguments}")
        return CallToolResult(content=[TextContent(type="text", text="written")])


class Hooks(RunHooks[Any]):
    """Notes what the SDK announces."""

    def __init__(self, story: Story) -> None:
        self._story = story

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self._story.note(f"hook agent start {agent.name}")

    async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
        self._story.note(f"hook agent end {agent.name} {output}")

    async def on_llm_start(self, context: Any, agent: Any, prompt: Any, given: Any) -> None:
        self._story.note(f"hook model start {agent.name} {len(given)}")

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self._story.note(f"hook model end {agent.name} {len(response.output)}")

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        self._story.note(f"hook tool start {tool.name}")

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self._story.note(f"hook tool end {tool.name} {result}")

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        self._story.note(f"hook handoff {from_agent.name} {to_agent.name}")


SCRIPTS: dict[str, list[Step]] = {
    "main": [
        Failure("try again", 503),
        reply(
            items.reasoning("thinking", "ENC"),
            items.message("One moment."),
            items.call("first", {"text": "x"}, "call_first"),
            items.call("second", {"text": "y"}, "call_second"),
            items.call("broken", {}, "call_broken"),
            items.call("ask_helper", {"input": "help me"}, "call_helper"),
            items.call("write", {"text": "z"}, "call_write"),
            items.shell("ls", "call_shell"),
            items.patch("+hello\n", "call_patch"),
        ),
        reply(items.message("helped")),
        reply(items.call("transfer_to_closer", {}, "call_over")),
        reply(items.call("pay", {"n": 1}, "call_pay_1"), items.call("pay", {"n": 2}, "call_pay_2")),
        reply(items.message("all done")),
    ],
    "raises": [reply(items.call("fatal", {}, "call_fatal"), items.call("first", {"text": "x"}, "call_first"))],
    "fails": [Failure("no", 400)],
    "cut": [reply(items.message("never"))],
    "trips": [reply(items.message("bad"))],
}
"""Built once: ids of items are counted, and stories must not differ by them."""


async def tell(mode: str) -> Story:
    """Tell the story: `run` or `run_streamed`."""
    story = Story()
    for name, script in SCRIPTS.items():
        model = OwnModel(script, spans=name == "main")
        try:
            story.ended(name, await _RUNS[name](story, model, mode))
        except asyncio.CancelledError as error:
            story.ended(name, f"cancelled {error!r}")
        except BaseException as error:
            story.ended(name, f"{type(error).__qualname__}: {error} <- {error.__cause__!r} {error.__context__!r}")
    return story


@functools.cache
def plain(mode: str) -> Story:
    """The story without a recorder."""
    return asyncio.run(tell(mode))


async def _run(story: Story, mode: str, agent: Agent[Any], given: Any) -> Any:
    config = RunConfig(workflow_name="story", group_id="g", trace_metadata={"tier": "gold"})
    options: dict[str, Any] = {"hooks": Hooks(story), "run_config": config}
    if mode == "run":
        return await Runner.run(agent, given, **options)
    result = Runner.run_streamed(agent, given, **options)
    async for event in result.stream_events():
        story.note(
            f"event {event.type} {getattr(event, 'name', '')} {getattr(event, 'data', None) and event.data.type}"
        )
    return result


async def _main(story: Story, model: OwnModel, mode: str) -> Any:
    first = _first(story, model)
    with sealtrace.authority("user:1", scopes=["desk"]):
        result = await _run(story, mode, first, "Please.")
        story.note(f"interruptions {[item.arguments for item in result.interruptions]}")
        state = result.to_state()
        state.approve(result.interruptions[0])
        state.reject(result.interruptions[1], rejection_message="too much")
        result = await _run(story, mode, first, state)
    return result.final_output, result.last_agent.name, result.to_input_list(), result.context_wrapper.usage


async def _raises(story: Story, model: OwnModel, mode: str) -> Any:
    return (await _run(story, mode, _first(story, model, retries=False), "Please.")).final_output


async def _fails(story: Story, model: OwnModel, mode: str) -> Any:
    return (await _run(story, mode, Agent("failing", model=model), "Please.")).final_output


async def _cut(story: Story, model: OwnModel, mode: str) -> Any:
    started = asyncio.Event()

    async def slow(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        story.note("slow guardrail")
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    guard = InputGuardrail(slow, name="slow", run_in_parallel=False)
    task = asyncio.create_task(_run(story, "run", Agent("cut", model=model, input_guardrails=[guard]), "Please."))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    task.cancel("enough")
    return await task


async def _trips(story: Story, model: OwnModel, mode: str) -> Any:
    guard = OutputGuardrail(_verdict(story, "output", trips=True), name="harsh")
    return (await _run(story, mode, Agent("trips", model=model, output_guardrails=[guard]), "Please.")).final_output


_RUNS: dict[str, Callable[..., Any]] = {
    "main": _main,
    "raises": _raises,
    "fails": _fails,
    "cut": _cut,
    "trips": _trips,
}


def _verdict(story: Story, stage: str, *, trips: bool = False) -> Callable[..., Any]:
    def check(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        story.note(f"{stage} guardrail {given if isinstance(given, str) else len(given)}")
        return GuardrailFunctionOutput({"why": "because"}, tripwire_triggered=trips)

    return check


class Editor:
    """Applies patches to nothing."""

    def __init__(self, story: Story) -> None:
        self._story = story

    def create_file(self, operation: Any) -> ApplyPatchResult:
        self._story.note(f"patch {operation.path}")
        return ApplyPatchResult(status="completed", output="created")

    update_file = delete_file = create_file


def _first(story: Story, model: OwnModel, *, retries: bool = True) -> Agent[Any]:
    retry = ModelRetrySettings(
        max_retries=1, backoff={"initial_delay": 0.0, "jitter": False}, policy=retry_policies.http_status([503])
    )

    def shell(request: Any) -> str:
        story.note(f"shell {request.data.action.commands}")
        return "a.txt"

    def instructions(context: Any, agent: Any) -> str:
        story.note("instructions")
        return "Be brief."

    return Agent(
        "first",
        instructions=instructions,
        model=model,
        model_settings=ModelSettings(temperature=0.5, retry=retry if retries else None),
        tools=[*_tools(story), _helper(story, model), ShellTool(shell), ApplyPatchTool(Editor(story))],
        mcp_servers=[Notebook(story)],
        handoffs=[handoff(_closer(story, model), on_handoff=lambda context: story.note("on_handoff"))],
        input_guardrails=[InputGuardrail(_verdict(story, "input"), name="kind", run_in_parallel=False)],
    )


def _tools(story: Story) -> list[Any]:
    turn = asyncio.Event()

    @tool_input_guardrail(name="before")
    def before(data: Any) -> ToolGuardrailFunctionOutput:
        story.note("tool input guardrail")
        return ToolGuardrailFunctionOutput.allow("fine")

    @tool_output_guardrail(name="after")
    def after(data: Any) -> ToolGuardrailFunctionOutput:
        story.note(f"tool output guardrail {data.output}")
        return ToolGuardrailFunctionOutput.allow("fine")

    @function_tool(tool_input_guardrails=[before], tool_output_guardrails=[after])
    async def first(text: str) -> list[Any]:
        """Finish after `second`."""
        story.note(f"first begins {text}")
        with custom_span("stage", {"a": 1}):
            sealtrace.retrieval("q", [sealtrace.Document("d", text="t")])
        await turn.wait()
        story.note("first ends")
        return [text, "bob@example.com", "4242 4242 4242 4242", {"password": "hunter22", "pin": 1234}]

    @function_tool
    async def second(text: str) -> ToolOutputText:
        """Finish before `first`."""
        story.note(f"second {text}")
        turn.set()
        return ToolOutputText(text=text)

    @function_tool
    def broken() -> str:
        """Fail and tell the model so."""
        story.note("broken")
        raise StoryError("broken")

    @function_tool(failure_error_function=None)
    async def fatal() -> str:
        """Fail for good."""
        story.note("fatal")
        turn.set()
        raise StoryError("fatal")

    return [first, second, broken, fatal]


def _helper(story: Story, model: OwnModel) -> Any:
    def instructions(context: Any, agent: Any) -> str:
        story.note("helper instructions")
        return "Help."

    return Agent("helper", instructions=instructions, model=model).as_tool("ask_helper", "Asks.")


def _closer(story: Story, model: OwnModel) -> Agent[Any]:
    @function_tool(needs_approval=True)
    async def pay(n: int) -> str:
        """Pay."""
        story.note(f"pay {n}")
        return "paid"

    guard = OutputGuardrail(_verdict(story, "output"), name="kind")
    return Agent("closer", instructions="Close.", model=model, tools=[pay], output_guardrails=[guard])
