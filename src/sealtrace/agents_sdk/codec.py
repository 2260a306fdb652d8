"""Snapshots: plain JSON copies of SDK values, taken on the agent's thread.

Values are live and change after we saw them, so they are copied at once. What is taken is listed
field by field; nothing is ever serialised because it happens to be there. An object of an unknown
type becomes a marker with its class name, never its `repr`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from agents import ModelSettings
from agents.agent_output import AgentOutputSchemaBase
from agents.handoffs import Handoff
from agents.tool import (
    ApplyPatchTool,
    CodeInterpreterTool,
    ComputerTool,
    CustomTool,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    LocalShellTool,
    ShellTool,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    WebSearchTool,
)
from agents.usage import Usage
from openai.types.responses import ResponseUsage
from pydantic import BaseModel

__all__ = [
    "Snapshot",
    "approval_facts",
    "class_name",
    "dropped",
    "error_facts",
    "handoff_spec",
    "output_schema_spec",
    "settings_fields",
    "tool_result",
    "tool_spec",
    "usage_fields",
    "verdict",
]

_MAX_DEPTH: Final = 64
_CLASS_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_DATE_TYPES: Final = (dt.datetime, dt.date, dt.time)

# Every ModelSettings field that is recorded. `extra_headers` is not: it carries credentials.
_SETTINGS: Final = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "tool_choice",
    "parallel_tool_calls",
    "truncation",
    "max_tokens",
    "reasoning",
    "verbosity",
    "metadata",
    "store",
    "prompt_cache_retention",
    "include_usage",
    "response_include",
    "top_logprobs",
    "extra_query",
    "extra_body",
    "extra_args",
    "context_management",
    "timeout",
    "preserve_raw_usage",
)


def dropped(value: object) -> dict[str, str]:
    """What stands in a payload for a value of a type that is not taken."""
    return {"$dropped": type(value).__name__}


class Snapshot:
    """Copies values to plain JSON and adds up about how much memory the copies take.

    Attributes:
        size: Bytes, roughly: string lengths plus a constant per container.
    """

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    def take(self, value: Any, depth: int = 0) -> Any:
        """A copy that later changes of `value` cannot reach."""
        kind = type(value)
        if kind is str:
            self.size += len(value)
            return value
        if value is None or kind is bool or kind is int:
            return value
        if kind is float:
            return value if math.isfinite(value) else str(value)
        if depth > _MAX_DEPTH:
            return dropped(value)
        if kind is dict:
            self.size += 64
            return {self._name(name): self.take(item, depth + 1) for name, item in value.items()}
        if kind is list or kind is tuple:
            self.size += 64
            return [self.take(item, depth + 1) for item in value]
        return self._other(value, depth)

    def _name(self, name: Any) -> str:
        if type(name) is str:
            self.size += len(name)
            return name
        if isinstance(name, str):
            return str.__str__(name)
        if name is None or type(name) in (bool, int, float):
            return str(name)
        return f"<{type(name).__name__}>"

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, BaseModel):
            return self.take(value.model_dump(mode="json", exclude_unset=True, warnings=False), depth)
        if isinstance(value, enum.Enum):
            return self.take(value.value, depth + 1)
        if isinstance(value, str):
            return self.take(str.__str__(value), depth + 1)
        if isinstance(value, int):
            return int.__int__(value)
        if isinstance(value, float):
            return self.take(float.__float__(value), depth + 1)
        if isinstance(value, _DATE_TYPES):
            return value.isoformat()
        if isinstance(value, Mapping):
            pairs: Mapping[Any, Any] = value
            return {self._name(name): self.take(item, depth + 1) for name, item in pairs.items()}
        if isinstance(value, list | tuple | set | frozenset):
            items: list[Any] = list(value)
            return [self.take(item, depth + 1) for item in items]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {name: self.take(item, depth + 1) for name, item in fields.items()}
        return dropped(value)


def settings_fields(settings: ModelSettings) -> dict[str, Any]:
    """The recorded fields of the settings that are set, still live."""
    out: dict[str, Any] = {}
    for name in _SETTINGS:
        value = getattr(settings, name, None)
        if value is not None:
            out[name] = value
    extra = out.get("extra_args")
    if isinstance(extra, dict):
        # The SDK adds a cache key with a random id per run here; it says nothing about the request.
        arguments: dict[str, Any] = {
            name: value
            for name, value in extra.items()
            if not (name == "prompt_cache_key" and str(value).startswith("agents-sdk:"))
        }
        out["extra_args"] = arguments
        if not arguments:
            del out["extra_args"]
    return out


def tool_spec(tool: Any) -> dict[str, Any]:
    """What the model is told of a tool, still live: a list of named fields per tool type."""
    if isinstance(tool, FunctionTool):
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.params_json_schema,
            "strict": tool.strict_json_schema,
        }
    fields = next((names for kind, names in _HOSTED if isinstance(tool, kind)), ())
    spec: dict[str, Any] = {"type": type(tool).__name__, "name": getattr(tool, "name", None)}
    for name in fields:
        value = getattr(tool, name, None)
        if value is not None and not callable(value):
            spec[name] = value
    if isinstance(tool, HostedMCPTool):
        config: Mapping[str, Any] = dict(tool.tool_config)
        spec["server"] = {name: config[name] for name in _HOSTED_MCP_CONFIG if name in config}
    return spec


_HOSTED: Final[tuple[tuple[type, tuple[str, ...]], ...]] = (
    (FileSearchTool, ("vector_store_ids", "max_num_results", "include_search_results", "ranking_options", "filters")),
    (WebSearchTool, ("user_location", "search_context_size", "filters")),
    (CodeInterpreterTool, ()),
    (ImageGenerationTool, ()),
    (ComputerTool, ()),
    (LocalShellTool, ()),
    (ShellTool, ()),
    (ApplyPatchTool, ()),
    (CustomTool, ("description", "format")),
    (HostedMCPTool, ()),
)

# `authorization` and `headers` of the same mapping are credentials and are not named here.
_HOSTED_MCP_CONFIG: Final = (
    "server_label",
    "server_url",
    "connector_id",
    "allowed_tools",
    "require_approval",
    "server_description",
)


def handoff_spec(handoff: Handoff[Any, Any]) -> dict[str, Any]:
    """What the model is told of a handoff, still live."""
    return {
        "name": handoff.tool_name,
        "description": handoff.tool_description,
        "parameters": handoff.input_json_schema,
        "agent": handoff.agent_name,
    }


def output_schema_spec(schema: AgentOutputSchemaBase | None) -> dict[str, Any] | None:
    """Name, strictness and JSON Schema of a structured output; None for plain text."""
    if schema is None or schema.is_plain_text():
        return None
    return {"name": schema.name(), "strict": schema.is_strict_json_schema(), "schema": schema.json_schema()}


def usage_fields(usage: Usage | ResponseUsage, *, requests: int | None = None) -> dict[str, int]:
    """Token counts of one model call; `requests` where the usage itself does not count them."""
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    counts = {
        "requests": getattr(usage, "requests", requests),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "cached_tokens": getattr(inputs, "cached_tokens", 0),
        "cache_write_tokens": getattr(inputs, "cache_write_tokens", 0),
        "reasoning_tokens": getattr(outputs, "reasoning_tokens", 0),
    }
    return {name: value for name, value in counts.items() if type(value) is int}


_TOOL_OUTPUTS: Final = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)


def tool_result(value: Any, snapshot: Snapshot) -> dict[str, Any]:
    """A tool's result as the model will see it.

    Returns:
        `output_kind` (`json`, `structured` for the SDK's text, image and file outputs, or `str`) and
        `result`. A value that is not JSON is what `str` makes of it, which is what the SDK sends.
    """
    if isinstance(value, _TOOL_OUTPUTS):
        return {"output_kind": "structured", "result": _structured(value, snapshot)}
    if isinstance(value, list) and value and all(isinstance(item, _TOOL_OUTPUTS) for item in value):
        items: list[Any] = value
        return {"output_kind": "structured", "result": [_structured(item, snapshot) for item in items]}
    if _is_plain(value):
        return {"output_kind": "json", "result": snapshot.take(value)}
    return {"output_kind": "str", "result": snapshot.take(str(value)), "python_type": type(value).__name__}


def _structured(value: BaseModel, snapshot: Snapshot) -> dict[str, Any]:
    return {"class": type(value).__name__, "value": snapshot.take(value.model_dump(mode="json"))}


def _is_plain(value: Any, depth: int = 0) -> bool:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return True
    if kind is float:
        return math.isfinite(value)
    if depth > _MAX_DEPTH:
        return False
    if kind is list:
        return all(_is_plain(item, depth + 1) for item in value)
    if kind is dict:
        return all(type(name) is str and _is_plain(item, depth + 1) for name, item in value.items())
    return False


def class_name(error: BaseException) -> str:
    """The exception's class name, or `_OTHER` where it is none a programmer would write.

    It goes to spans and envelopes, and a class made at run time can be called anything.
    """
    name = type(error).__name__
    return name if _CLASS_NAME.match(name) else "_OTHER"


def error_facts(error: BaseException, snapshot: Snapshot) -> dict[str, Any]:
    """Type and message of an exception; the message is content and goes to the vault only."""
    return {"type": class_name(error), "message": snapshot.take(str(error))}


def verdict(output: Any, snapshot: Snapshot) -> dict[str, Any]:
    """What a guardrail of any kind said."""
    behavior = getattr(output, "behavior", None)
    facts: dict[str, Any] = {"output_info": snapshot.take(getattr(output, "output_info", None))}
    if type(behavior) is dict:
        facts["behavior"] = snapshot.take(behavior)
        facts["tripped"] = behavior.get("type") == "raise_exception"
    else:
        facts["tripped"] = bool(getattr(output, "tripwire_triggered", False))
    return facts


def approval_facts(item: Any, snapshot: Snapshot) -> tuple[dict[str, Any], str | None]:
    """Tool and arguments of a call that waits for a person, and the call's id."""
    raw = getattr(item, "raw_item", None)
    get: Any = raw.get if isinstance(raw, dict) else lambda name: getattr(raw, name, None)
    payload: dict[str, Any] = {"tool": getattr(item, "tool_name", None) or get("name")}
    arguments = get("arguments") or get("action") or get("operation") or get("input")
    if arguments is not None:
        payload["arguments"] = snapshot.take(arguments)
    call_id = get("call_id") or get("id")
    return payload, call_id if isinstance(call_id, str) else None
