"""The two model APIs' wire forms: one JSON document, or server-sent events."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

from .items import Item, Reply

_ids = itertools.count(1)

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 18,
}


def response(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """The finished response, with the request's echoes the vendor sends."""
    return {
        "id": f"resp_{next(_ids)}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": body.get("metadata") or {},
        "model": body.get("model"),
        "output": list(reply.items),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": _without_credentials(body.get("tools") or []),
        "top_p": 1.0,
        "text": body.get("text"),
        "previous_response_id": body.get("previous_response_id"),
        "usage": USAGE,
    }


def _without_credentials(tools: list[Item]) -> list[Item]:
    return [{name: value for name, value in tool.items() if name not in ("authorization", "headers")} for tool in tools]


def response_events(body: dict[str, Any], reply: Reply) -> list[dict[str, Any]]:
    """The response as a stream of events."""
    done = response(body, reply)
    begun = {**done, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(reply.items):
        events += _item_events(index, item, reply)
    events.append({"type": "response.completed", "response": done})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return events[: reply.cut_after]


def _item_events(index: int, item: Item, reply: Reply) -> list[dict[str, Any]]:
    begun = {**copy.deepcopy(item), "status": "in_progress"}
    where = {"output_index": index, "item_id": item["id"]}
    inner: list[dict[str, Any]] = []
    if item["type"] == "message":
        begun["content"] = []
        part = item["content"][0]
        at = {**where, "content_index": 0}
        inner.append(
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        )
        for text in (*reply.deltas, *part["text"].splitlines(keepends=True)):
            inner.append({"type": "response.output_text.delta", **at, "delta": text, "logprobs": []})
        inner.append({"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []})
        inner.append({"type": "response.content_part.done", **at, "part": part})
    if item["type"] == "function_call":
        begun["arguments"] = ""
        inner.append({"type": "response.function_call_arguments.delta", **where, "delta": item["arguments"]})
        inner.append(
            {
                "type": "response.function_call_arguments.done",
                **where,
                "arguments": item["arguments"],
                "name": item["name"],
            }
        )
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def sse(events: list[dict[str, Any]], *, named: bool) -> bytes:
    """Server-sent events; `named` as in the Responses API, else as in Chat Completions, with its end mark."""
    lines = []
    for event in events:
        lines.append((f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n")
    if not named:
        lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()


def completion(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """The answer as a chat completion."""
    answer: dict[str, Any] = {"role": "assistant", "content": None}
    for item in reply.items:
        if item["type"] == "message":
            answer["content"] = item["content"][0]["text"]
        elif item["type"] == "function_call":
            answer.setdefault("tool_calls", []).append(_tool_call(item))
        elif item["type"] == "reasoning":
            answer["reasoning_content"] = item["summary"][0]["text"]
    return {
        "id": f"chatcmpl_{next(_ids)}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": answer, "logprobs": None}],
        "usage": _chat_usage(),
    }


def completion_chunks(body: dict[str, Any], reply: Reply) -> list[dict[str, Any]]:
    """The answer as chat completion chunks."""
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    calls = itertools.count()
    for item in reply.items:
        if item["type"] == "message":
            deltas += [{"content": text} for text in item["content"][0]["text"].splitlines(keepends=True)]
        elif item["type"] == "function_call":
            deltas.append({"tool_calls": [{"index": next(calls), **_tool_call(item)}]})
        elif item["type"] == "reasoning":
            deltas.append({"reasoning_content": item["summary"][0]["text"]})
    base = {
        "id": f"chatcmpl_{next(_ids)}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": body["model"],
    }
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**base, "choices": [], "usage": _chat_usage()})
    return chunks[: reply.cut_after]


def _tool_call(item: Item) -> dict[str, Any]:
    return {
        "id": item["call_id"],
        "type": "function",
        "function": {"name": item["name"], "arguments": item["arguments"]},
    }


def _chat_usage() -> dict[str, Any]:
    return {
        "prompt_tokens": USAGE["input_tokens"],
        "completion_tokens": USAGE["output_tokens"],
        "total_tokens": USAGE["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
