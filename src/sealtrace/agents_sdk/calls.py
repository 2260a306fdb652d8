"""What happens at a seam, as plain named facts.

The values are the SDK's own, still live: whoever keeps them takes a snapshot first.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

__all__ = ["GuardrailCall", "HandoffCall", "ModelCall", "NativeCall", "RunCall", "ToolCall"]

_MODEL_ARGUMENTS: Final = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
)


@dataclasses.dataclass(slots=True)
class ModelCall:
    """One attempt at a model request."""

    model: str
    instructions: str | None
    input: Any
    settings: Any
    tools: Any
    output_schema: Any
    handoffs: Any
    previous_response_id: str | None
    conversation_id: str | None
    prompt: Any
    stream: bool
    wanted: str | None = None
    """The model by the name that was asked for; a provider may have made another one of it."""
    provider: str | None = None
    """Who serves it, see `vendors.provider_of`."""

    @classmethod
    def of(
        cls,
        model: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        stream: bool,
        wanted: str | None = None,
        provider: str | None = None,
    ) -> ModelCall:
        """From the SDK's call: keywords when it waits for the whole answer, positions when it streams."""
        given = {**dict(zip(_MODEL_ARGUMENTS, args, strict=False)), **kwargs}
        return cls(
            model=model,
            instructions=given.get("system_instructions"),
            input=given.get("input"),
            settings=given.get("model_settings"),
            tools=given.get("tools") or [],
            output_schema=given.get("output_schema"),
            handoffs=given.get("handoffs") or [],
            previous_response_id=given.get("previous_response_id"),
            conversation_id=given.get("conversation_id"),
            prompt=given.get("prompt"),
            stream=stream,
            wanted=wanted,
            provider=provider,
        )


@dataclasses.dataclass(slots=True)
class ToolCall:
    """One call of a function tool, a local MCP tool or an agent used as a tool."""

    tool: Any
    name: str
    call_id: str
    arguments: str
    mcp_server: str | None
    is_agent: bool
    context: Any


@dataclasses.dataclass(slots=True)
class NativeCall:
    """One call of a tool the SDK runs itself: shell, local shell, apply_patch, computer, custom."""

    action: str
    name: str
    call_id: str
    tool_call: Any
    agent: Any
    kwargs: dict[str, Any]

    @classmethod
    def of(cls, action: str, kwargs: dict[str, Any]) -> NativeCall:
        """From the keyword arguments of `*Action.execute`."""
        run = kwargs.get("call") or kwargs.get("action")
        tool_call = getattr(run, "tool_call", None)
        get: Any = tool_call.get if isinstance(tool_call, dict) else lambda name: getattr(tool_call, name, None)
        return cls(
            action=action,
            name=_NATIVE_NAMES.get(action, action) if action != "CustomToolAction" else _custom_name(run),
            call_id=str(get("call_id") or get("id") or ""),
            tool_call=tool_call,
            agent=kwargs.get("agent"),
            kwargs=kwargs,
        )


_NATIVE_NAMES: Final = {
    "ShellAction": "shell",
    "LocalShellAction": "local_shell",
    "ApplyPatchAction": "apply_patch",
    "ComputerAction": "computer",
}


def _custom_name(run: Any) -> str:
    return str(getattr(getattr(run, "custom_tool", None), "name", "custom"))


@dataclasses.dataclass(slots=True)
class GuardrailCall:
    """One run of a guardrail; `stage` is input, output, tool_input or tool_output."""

    stage: str
    guardrail: Any
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @classmethod
    def of(cls, stage: str, guardrail: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> GuardrailCall:
        """From the guardrail and what its `run` was called with."""
        return cls(stage, guardrail, str(guardrail.get_name()), args, kwargs)


@dataclasses.dataclass(slots=True)
class HandoffCall:
    """One handoff; `target` is the agent where it is known before the user's callback has run."""

    tool_name: str
    from_agent: str
    to_agent: str
    arguments: str
    target: Any


@dataclasses.dataclass(slots=True)
class RunCall:
    """One `Runner.run`, `run_sync` or `run_streamed`."""

    agent: Any
    input: Any
    kwargs: dict[str, Any]
    stream: bool
