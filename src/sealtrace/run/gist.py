"""A payload shortened for reading a whole run; `sealtrace show --event` has it whole.

Nothing is left out without a word: what repeats the request before is named with that event's
number, a tool list becomes the tools' names, a message becomes its role and text.
"""

from __future__ import annotations

from typing import Any

from ..event import Kind, RunEvent
from .findings import facts, items

__all__ = ["gist"]


def gist(event: RunEvent, earlier: RunEvent | None) -> Any:
    """The event's payload, shortened.

    Args:
        event: The event.
        earlier: The model request before it in the same frame, if the event is a model request.
    """
    if event.kind is Kind.INPUT and isinstance(facts(event.payload).get("input"), list):
        return {**event.payload, "input": [_item(item) for item in event.payload["input"]]}
    if event.kind is not Kind.GENERATION or not isinstance(event.payload, dict):
        return event.payload
    shown: dict[str, Any] = {}
    for name, value in facts(event.payload).items():
        if name == "request":
            shown[name] = _request(facts(value), earlier)
        elif name == "response":
            shown[name] = _response(facts(value))
        else:
            shown[name] = value
    return shown


def _request(request: dict[str, Any], earlier: RunEvent | None) -> dict[str, Any]:
    before = facts(facts(earlier.payload).get("request")) if earlier is not None else {}
    same = f"as in #{earlier.seq}" if earlier is not None else ""
    shown: dict[str, Any] = {}
    for name, value in request.items():
        if name == "input":
            shown[name] = _input(value, before.get(name), same)
        elif value in ({}, []):
            continue
        elif name in before and before[name] == value and isinstance(value, dict | list | str) and name != "model":
            shown[name] = f"({same})"
        elif name in ("tools", "handoffs"):
            shown[name] = _names(value)
        else:
            shown[name] = value
    return shown


def _input(value: Any, before: Any, same: str) -> Any:
    if not isinstance(value, list):
        return value
    given = items(value)
    kept = _common(given, items(before))
    new = [_item(item) for item in given[kept:]]
    return [f"({kept} {'item' if kept == 1 else 'items'} {same})", *new] if kept else new


def _common(some: list[Any], others: list[Any]) -> int:
    count = 0
    for one, other in zip(some, others, strict=False):
        if one != other:
            break
        count += 1
    return count


def _names(value: Any) -> Any:
    named = [name for item in items(value) if isinstance(name := facts(item).get("name"), str)]
    return ", ".join(named) if len(named) == len(items(value)) else value


def _response(response: dict[str, Any]) -> dict[str, Any]:
    shown = dict(response)
    if isinstance(response.get("output"), list):
        shown["output"] = [_item(item) for item in response["output"]]
    usage = facts(response.get("usage"))
    if usage:
        shown["usage"] = ", ".join(f"{name} {count}" for name, count in usage.items() if count)
        if not shown["usage"]:
            del shown["usage"]
    return shown


def _item(item: Any) -> Any:
    message = facts(item)
    kind = message.get("type", "message")
    if kind == "message" and isinstance(message.get("role"), str):
        text = _text(message.get("content"))
        return {message["role"]: text} if text is not None else item
    if kind == "function_call" and isinstance(message.get("name"), str):
        return {f"calls {message['name']} ({message.get('call_id')})": message.get("arguments")}
    if kind == "function_call_output":
        return {f"result of {message.get('call_id')}": message.get("output")}
    return item


def _text(content: Any) -> str | None:
    """The text of a message that holds nothing but text; None if it holds more."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [facts(part).get("text") for part in items(content)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(parts) else None
