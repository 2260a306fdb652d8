"""Tools of every kind, guardrails, handoffs and listings: served, compared, never executed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from agents import GuardrailFunctionOutput
from agents.guardrail import InputGuardrailResult, OutputGuardrailResult
from agents.tool_guardrails import ToolGuardrailFunctionOutput

from ..agents_sdk import seams
from ..agents_sdk.calls import GuardrailCall, HandoffCall, NativeCall, ToolCall
from ..agents_sdk.codec import Snapshot, error_facts, tool_result, verdict
from ..errors import SettingsError
from ..event import Kind, RunEvent
from . import serve
from .cause import Cause
from .desk import Desk, holds_pseudonyms
from .divergence import ReplayDiverged
from .guard import allowed
from .jsondiff import Difference
from .ledger import CANCELLED, Refused, surface_of
from .scene import OPENER, Scene
from .shape import JSON, at

__all__ = ["Surfaces", "opened"]


class Surfaces(Desk):
    """The tool half of the takeover."""

    # function tools, local MCP tools, agents as tools

    async def tool(self, call: ToolCall, proceed: Callable[[], Any]) -> Any:
        """Serve a call's recorded result; only an agent used as a tool runs, on served answers."""
        scene = self.here()
        kind = "mcp" if call.mcp_server is not None else "agent" if call.is_agent else "function"
        payload: dict[str, Any] = {"tool": call.name, "type": kind, "arguments": Snapshot().take(call.arguments)}
        if call.mcp_server is not None:
            payload["mcp_server"] = call.mcp_server
        event = await self._call(scene, call.call_id, payload)
        result = self._result_of(scene, event)
        if call.is_agent:
            return await self._nested(event, result, proceed)
        if call.name in self.options.redirects:
            await self._sandboxed(call, result)
        return await self._serve(scene, event, result)

    async def _serve(self, scene: Scene, event: RunEvent, result: RunEvent) -> Any:
        self.ledger.count(surface_of(event), "served")
        if "result" not in result.payload:
            await self.fail_as_recorded(scene, result)
        output = serve.tool_output(result.payload)
        if at(result.payload, "output_kind") == "str":
            scene.lossy.append(output)
        return seams.tool_outcome(output, sdk_error=bool(at(result.payload, "sdk_error")))

    async def _call(self, scene: Scene, call_id: str, payload: dict[str, Any]) -> RunEvent:
        """Find and compare the recorded call."""
        live = self.live(payload, Kind.TOOL_CALL, tool=payload["tool"])
        clean_id = self.clean(call_id)
        event = scene.tape.tool_call(clean_id, at(live.redacted, "tool"), at(live.redacted, "arguments"))
        if event is None:
            await self._unrecorded_call(scene, clean_id, live.redacted)
        self.ledger.compare(event, event.payload, live, "the call is not the recorded one")
        return event

    async def _unrecorded_call(self, scene: Scene, call_id: str, payload: JSON) -> NoReturn:
        self.ledger.count("tools", "refused")
        waiting = any(
            approval.call_id == call_id and at(approval.payload, "approved") is not True
            for approval in scene.tape.of(Kind.APPROVAL)
        )
        cause, message = Cause.LOGIC, "a tool call that was not made when it was recorded: refused"
        if waiting:
            cause, message = Cause.POLICY, "a tool call that was not approved when it was recorded: refused"
        await self.absent(scene, Kind.TOOL_CALL, message, cause=cause, tool=at(payload, "tool"), got=payload)

    def _result_of(self, scene: Scene, event: RunEvent) -> RunEvent:
        result = scene.tape.result_of(event)
        if result is None:
            self.ledger.refuse(f"event {event.seq} is a tool call whose result was never recorded: nothing to serve")
        scene.tape.take(result)
        return result

    async def _nested(self, event: RunEvent, result: RunEvent, proceed: Callable[[], Any]) -> Any:
        token = OPENER.set(f"tool:{event.call_id}")
        try:
            outcome = await proceed()
        except (ReplayDiverged, Refused):
            raise
        except BaseException as error:
            self.ledger.check()
            if "result" in result.payload and not _cancelled(error):
                got = self.live({"error": error_facts(error, Snapshot())}, Kind.TOOL_RESULT, result)
                difference = Difference("$.error", at(result.payload, "error"), at(got.redacted, "error"))
                self.ledger.differs(result, difference, "an agent used as a tool failed", cause=Cause.LOGIC)
            raise
        finally:
            OPENER.reset(token)
        # The SDK's failure handler may have made text of a divergence.
        self.ledger.check()
        self.ledger.count(surface_of(event), "live")
        sdk_error = bool(at(result.payload, "sdk_error"))
        if at(result.payload, "error") is not None and "result" in result.payload:
            return seams.tool_outcome(serve.tool_output(result.payload), sdk_error=sdk_error)
        payload = {"tool": at(result.payload, "tool"), **tool_result(outcome.output, Snapshot())}
        if outcome.is_sdk_generated_error:
            payload["sdk_error"] = True
        message = "an agent used as a tool gave something else"
        live = self.live(payload, Kind.TOOL_RESULT, result, tool=str(payload["tool"]))
        self.ledger.compare(result, result.payload, live, message, cause=Cause.LOGIC)
        return outcome

    async def _sandboxed(self, call: ToolCall, result: RunEvent) -> None:
        """Have the user's sandbox take the call, and compare what it gives with what was recorded."""
        redirects = self.options.redirects
        try:
            redirects.refuse_original(call.tool)
        except SettingsError as error:
            self.ledger.refuse(str(error))
        self.ledger.redirected[call.name] += 1
        try:
            with allowed():
                output = await redirects.call(call.name, call.context, call.arguments)
            got: dict[str, Any] = {"tool": call.name, **tool_result(output, Snapshot())}
        except Exception as error:  # noqa: BLE001 - the sandbox's failure is its answer
            got = {"tool": call.name, "error": error_facts(error, Snapshot())}
        recorded = {name: value for name, value in result.payload.items() if name in got or name in _ANSWER}
        if "error" in recorded and "error" in got:
            return
        live = self.live(got, Kind.TOOL_RESULT, result, tool=call.name)
        self.ledger.compare(result, recorded, live, "the sandbox gave another result than was recorded")

    # tools the SDK runs itself

    async def native(self, call: NativeCall, proceed: Callable[[], Any]) -> Any:  # noqa: ARG002 - it is never done
        """Serve the recorded output item of a shell, patch, computer or custom tool."""
        scene = self.here()
        arguments = Snapshot().take(call.tool_call)
        event = await self._call(scene, call.call_id, {"tool": call.name, "type": call.action, "arguments": arguments})
        return await self._serve_native(call, scene, self._result_of(scene, event))

    async def _serve_native(self, call: NativeCall, scene: Scene, result: RunEvent) -> Any:
        self.ledger.count("native tools", "served")
        if at(result.payload, "output_kind") == "approval_pending":
            return serve.approval_item(call.agent, call.tool_call, _tool_of(call).name)
        if "result" not in result.payload:
            await self.fail_as_recorded(scene, result)
        seams.mark_executed(call.kwargs["context_wrapper"], call.tool_call, _tool_of(call).name)
        item = serve.native_item(call.agent, result.payload, call.call_id)
        await self._hooks(call, "on_tool_start")
        commit = call.kwargs.get("tool_output_committer")
        if commit is not None:
            commit(item)
        await self._hooks(call, "on_tool_end", item.output)
        return item

    @staticmethod
    async def _hooks(call: NativeCall, name: str, *more: Any) -> None:
        for hooks in (call.kwargs.get("hooks"), getattr(call.agent, "hooks", None)):
            if hooks is not None:
                await getattr(hooks, name)(call.kwargs["context_wrapper"], call.agent, _tool_of(call), *more)

    async def computer(self, tool: Any, proceed: Callable[[], Any]) -> Any:  # noqa: ARG002
        """A computer that has the recorded size and does nothing; a factory is never called."""
        scene = self.here()
        data = scene.tape.computer()
        if data is None:
            data = {name: getattr(tool.computer, name, None) for name in ("environment", "dimensions")}
        return _StillComputer(data.get("environment"), data.get("dimensions"))

    # handoffs

    async def handoff(self, call: HandoffCall, proceed: Callable[[], Any]) -> Any:  # noqa: ARG002
        """The recorded target, found by reference or by name; the user's callback is not run."""
        scene = self.here()
        event = scene.tape.next(Kind.HANDOFF)
        failed = event is not None and at(event.payload, "error") is not None
        payload = {
            "from": call.from_agent,
            "to": call.target.name if call.target is not None and not failed else call.to_agent,
            "tool": call.tool_name,
            "arguments": Snapshot().take(call.arguments),
        }
        live = self.live(payload, Kind.HANDOFF, event, tool=call.tool_name)
        if event is None:
            message = "a handoff that was not made when it was recorded"
            self.ledger.count("handoffs", "refused")
            await self.absent(scene, Kind.HANDOFF, message, agent=call.from_agent, got=live.redacted)
        recorded = {name: value for name, value in event.payload.items() if name in payload}
        if call.target is None:
            # The agent is chosen by the callback; the declared name is only what it might be.
            recorded["to"] = at(live.redacted, "to")
        self.ledger.compare(event, recorded, live, "the handoff is not the recorded one")
        scene.tape.take(event)
        self.ledger.count("handoffs", "served")
        if at(event.payload, "error") is not None:
            await self.fail_as_recorded(scene, event)
        return call.target if call.target is not None else self._find_agent(scene, str(at(event.payload, "to")))

    def _find_agent(self, scene: Scene, name: str) -> Any:
        known = (*self.options.agents, *_reachable(scene.start))
        found = next((agent for agent in known if name in (agent.name, self.redacted(agent.name))), None)
        if found is None:
            self.ledger.refuse(
                f"a handoff led to the agent {name!r}, which a callback chose; callbacks are not run in a rerun and"
                " the agent cannot be found from here: pass it with `agents=[...]`"
            )
        return found

    # guardrails

    async def guardrail(self, call: GuardrailCall, proceed: Callable[[], Any]) -> Any:
        """Run the guardrail and compare its verdict, or serve the recorded one."""
        scene = self.here()
        data = call.args[0] if call.args and call.stage.startswith("tool_") else call.kwargs.get("data")
        call_id = getattr(getattr(data, "context", None), "tool_call_id", None)
        clean_id = self.clean(call_id) if isinstance(call_id, str) else None
        event = scene.tape.guardrail(call.stage, self.redacted(call.name), clean_id)
        if event is None:
            if scene.tape.raced:
                return await proceed()
            message = f"a guardrail ({call.stage}) that did not run when it was recorded"
            self.ledger.unrecorded(Kind.GUARDRAIL, scene.tape, message, got={"name": call.name, "stage": call.stage})
        if self.options.guardrails == "served":
            return await self._served_verdict(scene, event, call)
        return await self._compared_verdict(event, call, proceed)

    async def _served_verdict(self, scene: Scene, event: RunEvent, call: GuardrailCall) -> Any:
        self.ledger.count("guardrails", "served")
        for nested in self.ledger.tape.below(scene.tape, f"guardrail:{self.clean(call.name)}"):
            nested.used.update(item.seq for item in nested.events)
        if at(event.payload, "error") is not None:
            await self.fail_as_recorded(scene, event)
        info = at(event.payload, "output_info")
        if call.stage.startswith("tool_"):
            behavior = at(event.payload, "behavior")
            return ToolGuardrailFunctionOutput(output_info=info, behavior=behavior)
        output = GuardrailFunctionOutput(output_info=info, tripwire_triggered=bool(at(event.payload, "tripped")))
        if call.stage == "input":
            return InputGuardrailResult(guardrail=call.guardrail, output=output)
        given = dict(zip(("context", "agent", "agent_output"), call.args, strict=False)) | call.kwargs
        return OutputGuardrailResult(
            guardrail=call.guardrail, agent=given["agent"], agent_output=given["agent_output"], output=output
        )

    async def _compared_verdict(self, event: RunEvent, call: GuardrailCall, proceed: Callable[[], Any]) -> Any:
        facts: dict[str, Any] = {"name": call.name, "stage": call.stage}
        with opened(f"guardrail:{self.clean(call.name)}"):
            try:
                output = await proceed()
            except (ReplayDiverged, Refused):
                raise
            except BaseException as error:
                self.ledger.check()
                if _cancelled(error):
                    raise
                facts["error"] = error_facts(error, Snapshot())
                self._verdict(event, facts)
                raise
        self.ledger.check()
        facts |= verdict(getattr(output, "output", output), Snapshot())
        self._verdict(event, facts)
        return output

    def _verdict(self, event: RunEvent, facts: dict[str, Any]) -> None:
        self.ledger.count("guardrails", "live")
        if at(event.payload, "error", "type") in CANCELLED:
            return
        recorded = dict(event.payload)
        if at(recorded, "error") is not None and "error" in facts:
            # Messages of exceptions hold addresses and times; the class is the verdict.
            recorded["error"], facts["error"] = at(recorded, "error", "type"), facts["error"]["type"]
        live = self.live(facts, Kind.GUARDRAIL, event)
        message = "a guardrail came to another verdict"
        if self._looked_at_redacted(event):
            message += " (it may have looked at values that are redacted in the record: serve recorded verdicts then)"
        self.ledger.compare(event, recorded, live, message)

    def _looked_at_redacted(self, event: RunEvent) -> bool:
        frame = self.ledger.tape.frames[event.record_id, event.frame]
        return any(holds_pseudonyms(other.payload) for other in frame.events if other.seq <= event.seq)

    # MCP

    async def mcp_tools(self, server: str, proceed: Callable[[], Any]) -> Any:  # noqa: ARG002
        """The recorded list; the server is never asked, nor connected."""
        scene = self.here()
        event = scene.tape.mcp_tools(self.redacted(server))
        if event is None:
            message = "an MCP server was asked for its tools that was not asked when it was recorded"
            self.ledger.count("MCP listings", "refused")
            await self.absent(scene, Kind.MCP_TOOLS, message, cause=Cause.CONFIG, got={"server": server})
        self.ledger.count("MCP listings", "served")
        if at(event.payload, "error") is not None:
            await self.fail_as_recorded(scene, event)
        return serve.mcp_tools(event)

    def hosted_approval(self, request_id: str) -> dict[str, Any] | None:
        """How the user's callback answered a hosted server's request; it is not asked again."""
        scene = self.here()
        recorded = scene.tape.hosted_approval(request_id)
        if recorded is None:
            return None
        self.ledger.count("approvals", "served")
        answer: dict[str, Any] = {"approve": bool(recorded.get("approve"))}
        if recorded.get("reason"):
            answer["reason"] = recorded["reason"]
        return answer


_ANSWER: Final = ("result", "error", "output_kind")


class _StillComputer:
    """Has a size and an environment, and does nothing."""

    def __init__(self, environment: Any, dimensions: Any) -> None:
        self.environment = environment
        self.dimensions = tuple(dimensions) if isinstance(dimensions, list) else dimensions


def _tool_of(call: NativeCall) -> Any:
    run = call.kwargs.get("call") or call.kwargs.get("action")
    for name in ("shell_tool", "local_shell_tool", "apply_patch_tool", "computer_tool", "custom_tool"):
        tool = getattr(run, name, None)
        if tool is not None:
            return tool
    return run


def _reachable(start: Any) -> Iterator[Any]:
    """Agents that can be found by following handoffs."""
    seen: list[Any] = []
    waiting = [start]
    while waiting:
        agent = waiting.pop(0)
        if agent is None or any(agent is known for known in seen):
            continue
        seen.append(agent)
        yield agent
        waiting += [
            handoff if hasattr(handoff, "handoffs") else seams.handoff_target(handoff)
            for handoff in getattr(agent, "handoffs", None) or ()
        ]


def _cancelled(error: BaseException) -> bool:
    return type(error).__name__ in CANCELLED


@contextmanager
def opened(opener: str) -> Generator[None]:
    """Runs that start in this block were opened by this."""
    token = OPENER.set(opener)
    try:
        yield
    finally:
        OPENER.reset(token)
