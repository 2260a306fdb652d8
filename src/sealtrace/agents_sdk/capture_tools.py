"""Tools of every kind, handoffs, guardrails and MCP listings."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Any, Final

from ..event import Kind
from .calls import GuardrailCall, HandoffCall, NativeCall, ToolCall
from .codec import Snapshot, class_name, error_facts, tool_result, verdict
from .emitter import Emitter, Pending
from .frames import VIA

__all__ = ["ToolCapture"]

_TOOL: Final[ContextVar[Pending | None]] = ContextVar("sealtrace_tool", default=None)
"""The tool call in progress in this context."""

_MCP_TOOL_FIELDS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class ToolCapture(Emitter):
    """The tool half of the observer."""

    # function tools, local MCP tools, agents as tools

    def tool_started(self, call: ToolCall) -> Any:
        """Take the call down; what the tool opens is nested under it."""
        kind = "mcp" if call.mcp_server is not None else "agent" if call.is_agent else "function"
        token = self._call(call.name, kind, call.call_id, call.arguments, mcp_server=call.mcp_server)
        if token is not None and token.entry is not None and token.entry.kind == "tool":
            token.entry.attributes |= {
                "gen_ai.tool.call.id": call.call_id,
                "gen_ai.tool.type": "extension" if kind == "mcp" else "function",
                "gen_ai.agent.name": token.within.agent,
            }
        return token

    def tool_ended(self, token: Any, output: Any, error: BaseException | None) -> None:
        """Take the result or the exception down."""
        if token is None:
            return
        _left(token)
        if error is None:
            event = token
            payload = tool_result(output.output, event.snapshot)
            if output.is_sdk_generated_error:
                payload["sdk_error"] = True
            self._result(token, payload, None)
        else:
            self._result(token, {"error": error_facts(error, token.snapshot)}, error)

    def tool_failed(self, error: BaseException) -> None:
        """The tool raised and the SDK is about to turn that into text for the model."""
        token = _TOOL.get()
        if token is not None:
            token.error_type = class_name(error)
            token.payload["error"] = error_facts(error, token.snapshot)

    # tools the SDK runs itself

    def native_started(self, call: NativeCall) -> Any:
        """Take the call down."""
        token = self._call(call.name, call.action, call.call_id, call.tool_call)
        if token is not None and token.entry is not None and token.entry.kind == "tool":
            token.entry.attributes |= {"gen_ai.tool.call.id": call.call_id, "gen_ai.agent.name": token.within.agent}
        return token

    def native_ended(self, token: Any, item: Any, error: BaseException | None) -> None:
        """Take the output item, the pending approval or the exception down."""
        if token is None:
            return
        _left(token)
        if error is not None:
            self._result(token, {"error": error_facts(error, token.snapshot)}, error)
            return
        raw = getattr(item, "raw_item", None)
        payload: dict[str, Any] = {"output_kind": "item", "result": token.snapshot.take(raw)}
        if type(item).__name__ == "ToolApprovalItem":
            payload = {"output_kind": "approval_pending"}
        self._result(token, payload, None)

    def _call(
        self, name: str, kind: str, call_id: str, arguments: Any, *, mcp_server: str | None = None
    ) -> Pending | None:
        here = self.here()
        if here is None:
            return None
        frame, record = here
        snapshot = Snapshot()
        tool = self.clean(name)
        record.tools.setdefault(tool)
        taken = snapshot.take(arguments)
        payload: dict[str, Any] = {"tool": name, "type": kind, "arguments": taken}
        if mcp_server is not None:
            payload["mcp_server"] = mcp_server
        entry = self.book.current()
        seq = self.at_once(
            Kind.TOOL_CALL,
            frame,
            record,
            payload,
            snapshot=snapshot,
            digest={"arguments": taken},
            entry=entry,
            call_id=self._id(call_id),
            parent_seq=frame.generation_of.get(call_id),
            tool=tool,
        )
        # The result is an event of its own, with a place in the order of its own: taken when it is there.
        record.hold()
        token = Pending(
            record=record,
            seq=seq,
            kind=Kind.TOOL_RESULT,
            ordinal=0,
            started_ns=time.time_ns(),
            payload={"tool": name},
            within=frame,
            entry=entry,
            snapshot=Snapshot(),
        )
        token.call_id, token.parent_seq, token.tool = self._id(call_id), seq, tool
        token.scope = ((VIA, VIA.set(f"tool:{self._id(call_id)}")), (_TOOL, _TOOL.set(token)))
        return token

    def _id(self, call_id: str) -> str:
        return self.clean(call_id) if call_id else ""

    def _result(self, token: Pending, payload: dict[str, Any], error: BaseException | None) -> None:
        error_type = class_name(error) if error is not None else token.error_type
        if error_type is not None and token.entry is not None and token.entry.kind == "tool":
            token.entry.error_type = error_type
        token.payload |= payload
        if "result" in payload:
            token.digest = {"result": payload["result"]}
        token.seq = token.record.reserve()
        token.ordinal = token.record.ordinal(token.within.path, Kind.TOOL_RESULT)
        self.end(token, error_type=error_type)

    # handoffs

    def handoff_started(self, call: HandoffCall) -> Any:
        """Take the handoff down."""
        here = self.here()
        if here is None:
            return None
        frame, record = here
        event = self.begin(Kind.HANDOFF, frame, record)
        call_id = frame.call_ids.get((call.tool_name, call.arguments))
        event.call_id = self._id(call_id or "") or None
        event.parent_seq = frame.generation_of.get(call_id) if call_id else frame.last_generation
        event.payload = {
            "from": call.from_agent,
            "to": call.to_agent,
            "tool": call.tool_name,
            "arguments": event.snapshot.take(call.arguments),
        }
        event.digest = {"arguments": event.payload["arguments"]}
        event.tool = self.clean(call.tool_name)
        return event

    def handoff_ended(self, token: Any, target: Any, error: BaseException | None) -> None:
        """The next agent is known, or the user's callback failed."""
        if token is None:
            return
        event: Pending = token
        if error is None:
            event.payload["to"] = target.name
        self.finish(event, error)
        if error is None:
            event.within.agent = self.clean(target.name)
            event.record.agents.setdefault(event.within.agent)

    # guardrails

    def guardrail_started(self, call: GuardrailCall) -> Any:
        """Take the guardrail's start down; what it opens is nested under it."""
        here = self.here()
        if here is None:
            return None
        frame, record = here
        event = self.begin(Kind.GUARDRAIL, frame, record)
        event.payload = {"name": call.name, "stage": call.stage}
        name = self.clean(call.name)
        event.scope = ((VIA, VIA.set(f"guardrail:{name}")), (_TOOL, _TOOL.set(None)))
        data = call.args[0] if call.args and call.stage.startswith("tool_") else call.kwargs.get("data")
        call_id = getattr(getattr(data, "context", None), "tool_call_id", None)
        if isinstance(call_id, str):
            event.call_id = self._id(call_id)
            event.parent_seq = frame.generation_of.get(call_id)
        if event.entry is not None and event.entry.kind == "guardrail":
            event.entry.attributes["sealtrace.guardrail.stage"] = call.stage
        return event

    def guardrail_ended(self, token: Any, output: Any, error: BaseException | None) -> None:
        """Take the verdict down, with what the guardrail says of it."""
        if token is None:
            return
        event: Pending = token
        _left(event)
        if error is None:
            event.payload |= verdict(getattr(output, "output", output), event.snapshot)
        self.finish(event, error)

    # MCP

    def mcp_started(self, server: str) -> Any:
        """A server is asked for its tools."""
        here = self.here()
        if here is None:
            return None
        event = self.begin(Kind.MCP_TOOLS, *here)
        event.payload = {"server": server}
        return event

    def mcp_ended(self, token: Any, tools: Any, error: BaseException | None) -> None:
        """Take the server's tools down, as far as they are named in `_MCP_TOOL_FIELDS`."""
        if token is None:
            return
        event: Pending = token
        if error is None:
            event.payload["tools"] = [_mcp_tool(tool, event.snapshot) for tool in tools]
            event.digest = {"tools": event.payload["tools"]}
        self.finish(event, error)

    def computer_resolved(self, computer: Any) -> None:
        """Environment and size of a computer, which the model is told each turn."""
        here = self.here()
        if here is None:
            return
        frame, record = here
        if frame.count("computer") > 0:
            return
        snapshot = Snapshot()
        data = {
            "environment": snapshot.take(getattr(computer, "environment", None)),
            "dimensions": snapshot.take(getattr(computer, "dimensions", None)),
        }
        payload = {"name": "sealtrace.computer", "data": data}
        self.at_once(Kind.CUSTOM, frame, record, payload, snapshot=snapshot)


def _left(event: Pending) -> None:
    scope, event.scope = event.scope, ()
    for variable, token in scope:
        try:
            variable.reset(token)
        except ValueError:  # ended in another context than it began in
            variable.set(None)


def _mcp_tool(tool: Any, snapshot: Snapshot) -> dict[str, Any]:
    dumped: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: snapshot.take(dumped[name]) for name in _MCP_TOOL_FIELDS if name in dumped}
