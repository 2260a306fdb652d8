"""Output items of a model's answer, in the wire form of the Responses API."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

_ids = itertools.count(1)

Item = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One answer of the model.

    Attributes:
        items: Output items; what Chat Completions has no form for is left out there.
        deltas: Further text deltas, streamed only, that the finished text does not repeat.
        cut_after: Stop a stream after this many events, without its end.
    """

    items: tuple[Item, ...]
    deltas: tuple[str, ...] = ()
    cut_after: int | None = None


@dataclass(frozen=True)
class Failure:
    """One failed request."""

    message: str
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)


Step = Reply | Failure


def reply(*items: Item, deltas: tuple[str, ...] = ()) -> Reply:
    """An answer of these items."""
    return Reply(items, deltas)


def message(text: str) -> Item:
    """Assistant text."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": f"msg_{next(_ids)}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def call(name: str, arguments: dict[str, Any], call_id: str) -> Item:
    """A call of a function tool or a handoff."""
    return {
        "type": "function_call",
        "id": f"fc_{next(_ids)}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def reasoning(summary: str, encrypted: str) -> Item:
    """What a reasoning model says of its thoughts, and the thoughts themselves, encrypted."""
    return {
        "type": "reasoning",
        "id": f"rs_{next(_ids)}",
        "summary": [{"type": "summary_text", "text": summary}],
        "encrypted_content": encrypted,
    }


def file_search(query: str, text: str) -> Item:
    """A hosted file search with one hit."""
    hit = {"file_id": "file_1", "filename": "terms.md", "score": 0.9, "text": text, "attributes": {}}
    return {
        "type": "file_search_call",
        "id": f"fs_{next(_ids)}",
        "status": "completed",
        "queries": [query],
        "results": [hit],
    }


def web_search(query: str) -> Item:
    """A hosted web search."""
    return {
        "type": "web_search_call",
        "id": f"ws_{next(_ids)}",
        "status": "completed",
        "action": {"type": "search", "query": query},
    }


def hosted_mcp(name: str, arguments: dict[str, Any], output: str) -> Item:
    """A call the vendor made of a remote MCP server."""
    return {
        "type": "mcp_call",
        "id": f"mcp_{next(_ids)}",
        "server_label": "crm",
        "name": name,
        "arguments": json.dumps(arguments),
        "output": output,
        "status": "completed",
    }


def shell(command: str, call_id: str) -> Item:
    """A call of the shell tool, which the SDK runs."""
    action = {"commands": [command]}
    return {"type": "shell_call", "id": f"sh_{next(_ids)}", "call_id": call_id, "action": action, "status": "completed"}


def patch(diff: str, call_id: str) -> Item:
    """A call of the apply_patch tool, which the SDK runs."""
    operation = {"type": "create_file", "path": "a.txt", "diff": diff}
    return {
        "type": "apply_patch_call",
        "id": f"ap_{next(_ids)}",
        "call_id": call_id,
        "operation": operation,
        "status": "completed",
    }


def custom(name: str, text: str, call_id: str) -> Item:
    """A call of a custom tool: plain text in, plain text out."""
    return {"type": "custom_tool_call", "id": f"ct_{next(_ids)}", "call_id": call_id, "name": name, "input": text}
