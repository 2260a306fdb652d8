"""Agents rebuilt from a record, to walk a run where its code is not at hand.

What the model was told of tools, handoffs and output types is in the record, so agents that say the
same can be made of it. What code did between the turns is not (filters, callbacks, dynamic
instructions), so a walk does not compare requests; calls, results, verdicts and outcomes it does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any, NoReturn

from agents import Agent, GuardrailFunctionOutput, Handoff, InputGuardrail, OutputGuardrail, Runner, RunState
from agents.agent_output import AgentOutputSchemaBase
from agents.mcp import MCPServer
from agents.tool import (
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    FunctionTool,
    LocalShellTool,
    ShellTool,
    Tool,
)
from agents.tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail

from ..agents_sdk import seams
from ..event import Kind, RunEvent
from . import serve
from .divergence import ReplayDiverged
from .report import Report
from .rerun import rerun
from .scene import OPENER, SCENE
from .session import ReplaySession
from .shape import JSON, at, is_object, items, objects
from .tape import Recorded, Tape, TapeFrame

__all__ = ["walk"]


def walk(run: Recorded, *, ignore: Iterable[str] = (), **options: Any) -> Report:
    """Walk a run with agents rebuilt from its record; a divergence is in the report, not raised.

    Args:
        run: The recorded run.
        ignore: As for `rerun`; requests are ignored anyway.
        options: As for `rerun`.

    Raises:
        NotComparable: The record lacks what a rerun needs.
    """
    agents: list[Any] = []
    options |= {"guardrails": "served", "ignore": ("$.request", *ignore), "agents": agents}
    session = rerun(run, **options)
    session.ledger.note("walked with agents rebuilt from the record: requests were not compared")
    _without_openers(session)
    try:
        with session:
            asyncio.run(_Walk(session.ledger.tape, agents).run())
    except ReplayDiverged:
        pass  # it is in the report
    return session.report


def _without_openers(session: ReplaySession) -> None:
    """Runs that code started by itself, inside an instruction or a filter: the code is not here."""
    for frame in session.ledger.tape.frames.values():
        if "/run/run:" in frame.path:
            session.ledger.note(f"{frame.path} was started by code that is not at hand, and was not walked")
            frame.used.update(event.seq for event in frame.events)


def never(*_: Any, **__: Any) -> NoReturn:
    """Stands where code would be; a rerun never gets here."""
    raise AssertionError("a rebuilt tool has no code")


class _Walk:
    """Goes through the frames of a tape in order."""

    def __init__(self, tape: Tape, known: list[Any]) -> None:
        self._tape = tape
        self._known = known

    async def run(self) -> None:
        result: Any = None
        for frame in self._tape.roots:
            try:
                result = await self.frame(frame, result)
            except Exception:  # noqa: BLE001, S112 - recorded failures; whether this was one is compared
                continue

    async def frame(self, frame: TapeFrame, before: Any) -> Any:
        cast = _Cast(self, frame)
        self._known += cast.agents.values()
        start = next(iter(frame.of(Kind.INPUT)), None)
        first = next(iter(frame.of(Kind.GENERATION)), None)
        name = start.agent if start is not None else None
        agent = cast.agents.get(str(name)) or next(iter(cast.agents.values()), Agent(name=str(name or "agent")))
        given: Any = at(start.payload, "input") if start is not None else ""
        if start is not None and at(start.payload, "resumed"):
            given = _decided(frame, before)
            agent = before.last_agent
        options: dict[str, Any] = {"max_turns": _turns(frame)}
        for option in ("previous_response_id", "conversation_id"):
            options[option] = at(first.payload, "request", option) if first is not None else None
        if first is not None and at(first.payload, "request", "stream"):
            streamed = Runner.run_streamed(agent, given, **options)
            async for _ in streamed.stream_events():
                pass
            return streamed
        return await Runner.run(agent, given, **options)

    async def nested(self, _context: Any, _arguments: str) -> Any:
        """What an agent used as a tool does: the runs that were recorded below its call."""
        scene, opener = SCENE.get(), OPENER.get()
        assert scene is not None
        number = 0
        while (frame := self._tape.child(scene.tape, f"{scene.tape.path}/{opener}/run:{number}")) is not None:
            await self.frame(frame, None)
            number += 1
        call_id = str(opener).removeprefix("tool:")
        call = next(event for event in scene.tape.of(Kind.TOOL_CALL) if event.call_id == call_id)
        result = scene.tape.result_of(call)
        return serve.tool_output(result.payload) if result is not None else None


class _Cast:
    """The agents of one frame."""

    def __init__(self, walk: _Walk, frame: TapeFrame) -> None:
        self._walk = walk
        self._frame = frame
        self._kinds = {str(at(event.payload, "tool")): event for event in frame.of(Kind.TOOL_CALL)}
        self._waits = {str(at(event.payload, "tool")) for event in frame.of(Kind.APPROVAL)}
        self._servers = {
            str(at(event.payload, "server")): {str(tool.get("name")) for tool in objects(at(event.payload, "tools"))}
            for event in frame.of(Kind.MCP_TOOLS)
        }
        self.agents: dict[str, Agent[Any]] = {}
        for event in frame.of(Kind.GENERATION):
            if str(event.agent) not in self.agents:
                self.agents[str(event.agent)] = self._agent(event)
        self._guard()

    def _agent(self, event: RunEvent) -> Agent[Any]:
        request = at(event.payload, "request")
        schema = at(request, "output_schema")
        listed = {name for names in self._servers.values() for name in names}
        specs = objects(items(at(request, "tools")))
        return Agent(
            name=str(event.agent),
            instructions=at(request, "instructions"),
            model=str(at(request, "model")),
            tools=[tool for spec in specs if spec.get("name") not in listed and (tool := self._tool(spec)) is not None],
            mcp_servers=[_Server(name) for name in self._servers],
            handoffs=[_handoff(spec) for spec in objects(items(at(request, "handoffs")))],
            output_type=_Schema(schema) if is_object(schema) else None,
            tool_use_behavior="stop_on_first_tool" if self._stops(event) else "run_llm_again",
        )

    def _stops(self, event: RunEvent) -> bool:
        """Whether its tools' results ended the run: it has a final output and no answer after them."""
        last = self._frame.of(Kind.GENERATION)[-1]
        outcome = self._frame.outcome
        called = [answer for answer in objects(items(at(last.payload, "response", "output"))) if "call_id" in answer]
        ended = outcome is not None and at(outcome.payload, "final_output") is not None
        return last.agent == event.agent and bool(called) and ended

    def _tool(self, spec: dict[str, JSON]) -> Tool | None:
        name = str(spec.get("name"))
        if spec.get("type") == "function":
            return self._function(spec, name)
        makers: dict[str, Any] = {
            "ShellTool": lambda: ShellTool(executor=never, needs_approval=name in self._waits),
            "LocalShellTool": lambda: LocalShellTool(executor=never),
            "ApplyPatchTool": lambda: ApplyPatchTool(editor=_Editor(), needs_approval=name in self._waits),
            "ComputerTool": lambda: ComputerTool(computer=never),
            "CustomTool": lambda: CustomTool(
                name=name, description=str(spec.get("description") or ""), on_invoke_tool=never
            ),
        }
        make = makers.get(str(spec.get("type")))
        # Hosted tools are the vendor's: their calls come with the recorded answers.
        return make() if make is not None else None

    def _function(self, spec: dict[str, JSON], name: str) -> FunctionTool:
        call = self._kinds.get(name)
        is_agent = call is not None and at(call.payload, "type") == "agent"
        tool = FunctionTool(
            name=name,
            description=str(spec.get("description") or ""),
            params_json_schema=dict(at(spec, "parameters") or {}),
            on_invoke_tool=self._walk.nested if is_agent else never,
            strict_json_schema=False,
            needs_approval=name in self._waits,
        )
        if is_agent:
            seams.mark_agent_tool(tool)
        tool.tool_input_guardrails = [
            ToolInputGuardrail(guardrail_function=_no_verdict, name=name) for name in self._names("tool_input", name)
        ]
        tool.tool_output_guardrails = [
            ToolOutputGuardrail(guardrail_function=_no_verdict, name=name) for name in self._names("tool_output", name)
        ]
        return tool

    def _names(self, stage: str, tool: str | None = None) -> list[str]:
        """Names of the guardrails that ran, in order, each once."""
        calls = {event.call_id for event in self._frame.of(Kind.TOOL_CALL) if at(event.payload, "tool") == tool}
        return list(
            dict.fromkeys(
                str(at(event.payload, "name"))
                for event in self._frame.of(Kind.GUARDRAIL)
                if at(event.payload, "stage") == stage and (tool is None or event.call_id in calls)
            )
        )

    def _guard(self) -> None:
        agents = list(self.agents.values())
        if not agents:
            return
        agents[0].input_guardrails = [
            InputGuardrail(guardrail_function=_verdict, name=name) for name in self._names("input")
        ]
        agents[-1].output_guardrails = [
            OutputGuardrail(guardrail_function=_verdict, name=name) for name in self._names("output")
        ]


def _verdict(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, tripwire_triggered=False)


def _no_verdict(_data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()


def _handoff(spec: dict[str, JSON]) -> Handoff[Any, Any]:
    return Handoff(
        tool_name=str(spec.get("name")),
        tool_description=str(spec.get("description") or ""),
        input_json_schema=dict(at(spec, "parameters") or {}),
        on_invoke_handoff=never,
        agent_name=str(spec.get("agent")),
        strict_json_schema=False,
    )


def _decided(frame: TapeFrame, before: Any) -> RunState[Any]:
    """The state a run was resumed from, with the recorded decisions."""
    state: RunState[Any] = before.to_state()
    decisions = {event.call_id: event for event in frame.of(Kind.APPROVAL) if at(event.payload, "approved") is not None}
    for item in state.get_interruptions():
        raw: Any = item.raw_item
        call_id = raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)
        event = decisions.get(call_id)
        if event is None:
            continue
        if at(event.payload, "approved"):
            state.approve(item)
        else:
            state.reject(item, rejection_message=at(event.payload, "reason"))
    return state


def _turns(frame: TapeFrame) -> int:
    answered = sum(at(event.payload, "response") is not None for event in frame.of(Kind.GENERATION))
    return answered if frame.error == "MaxTurnsExceeded" else answered + 1


class _Schema(AgentOutputSchemaBase):
    """A structured output of which only the schema is known."""

    def __init__(self, spec: dict[str, JSON]) -> None:
        self._spec = spec

    def is_plain_text(self) -> bool:
        """It is not: text has no schema."""
        return False

    def name(self) -> str:
        """The recorded name."""
        return str(self._spec.get("name"))

    def json_schema(self) -> dict[str, Any]:
        """The recorded schema."""
        schema: dict[str, Any] = at(self._spec, "schema") or {}
        return schema

    def is_strict_json_schema(self) -> bool:
        """As recorded."""
        return bool(self._spec.get("strict"))

    def validate_json(self, json_str: str) -> Any:
        """The JSON itself, as the record has it; a wrapped value is taken out, as the SDK does."""
        value = json.loads(json_str)
        return value["response"] if is_object(value) and set(value) == {"response"} else value


class _Editor:
    """Edits nothing."""

    def create_file(self, operation: Any) -> NoReturn:
        """Never asked."""
        never(operation)

    def update_file(self, operation: Any) -> NoReturn:
        """Never asked."""
        never(operation)

    def delete_file(self, operation: Any) -> NoReturn:
        """Never asked."""
        never(operation)


class _Server(MCPServer):
    """Has the recorded name; its tools come from the record."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def name(self) -> str:
        """The recorded name."""
        return self._name

    async def connect(self) -> None:
        """Nothing to connect to."""

    async def cleanup(self) -> None:
        """Nothing to clean up."""

    async def list_tools(self, *_: Any, **__: Any) -> Any:
        """Never asked."""
        never()

    async def call_tool(self, *_: Any, **__: Any) -> Any:
        """Never asked."""
        never()

    async def list_prompts(self, *_: Any, **__: Any) -> Any:
        """Never asked."""
        never()

    async def get_prompt(self, *_: Any, **__: Any) -> Any:
        """Never asked."""
        never()
