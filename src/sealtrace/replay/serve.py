"""From recorded JSON back to what the SDK expects: answers, streams, results, errors."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

import agents.exceptions
import openai
from agents import ModelResponse, Usage
from agents.items import ToolApprovalItem, ToolCallOutputItem
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from mcp.types import Tool as McpTool
from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import TypeAdapter, ValidationError

from ..event import RunEvent
from .shape import JSON, at, is_array, is_object, items, objects

__all__ = [
    "RecordedError",
    "approval_item",
    "mcp_tools",
    "model_response",
    "native_item",
    "recorded_error",
    "stream_events",
    "tool_output",
]


class RecordedError(Exception):
    """Stands for an exception of the record.

    What is raised is of a class made for it: a subclass of this one and of the recorded class where
    that is one of Python's, of `openai` or of the Agents SDK, so that `except` clauses still match.

    Attributes:
        recorded_type: The recorded exception's class name.
    """

    recorded_type: str = "Exception"


def recorded_error(facts: JSON, known: Mapping[str, type[BaseException]]) -> RecordedError:
    """The exception that a recorded `{"type", "message"}` stands for.

    Args:
        facts: Type and message, as recorded.
        known: Exception classes of the user's own, by name.
    """
    name = str(at(facts, "type") or "Exception")
    base = known.get(name) or _public_class(name)
    bases: tuple[type, ...] = (RecordedError,)
    if base is not None and base is not Exception and not issubclass(RecordedError, base):
        bases = (RecordedError, base)
    try:
        made: type[RecordedError] = type(name, bases, {"recorded_type": name, "__module__": __name__})
        error = made.__new__(made)
    except TypeError:  # a layout that cannot be inherited from beside another
        error = type(name, (RecordedError,), {"recorded_type": name, "__module__": __name__})()
    error.args = (str(at(facts, "message") or ""),)
    if isinstance(error, agents.exceptions.AgentsException):
        error.run_data = None
    return error


def _public_class(name: str) -> type[BaseException] | None:
    for module in (builtins, agents.exceptions, openai):
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return None


# model answers

_ITEM: Final[TypeAdapter[Any]] = TypeAdapter(ResponseOutputItem)
_EVENT: Final[TypeAdapter[Any]] = TypeAdapter(ResponseStreamEvent)
_ITEM_CLASSES: Final[dict[str, Any]] = {
    get_args(cls.model_fields["type"].annotation)[0]: cls for cls in get_args(get_args(ResponseOutputItem)[0])
}


def model_response(recorded: JSON, *, failed_attempts: int = 0) -> ModelResponse:
    """The recorded answer as the SDK had it.

    Args:
        recorded: The `response` of a generation's payload.
        failed_attempts: Attempts before this one, which the SDK counts as requests of it.
    """
    counts = at(recorded, "usage")
    answer = ModelResponse(
        output=[],
        usage=_usage(counts if is_object(counts) else {}, failed_attempts),
        response_id=at(recorded, "response_id"),
        request_id=at(recorded, "request_id"),
    )
    # Past the constructor, which refuses what a newer or a redacted record may hold.
    answer.output = [_item(item) for item in items(at(recorded, "output"))]
    return answer


def _item(recorded: JSON) -> Any:
    """An output item with exactly the fields that were set; what has no class stays what it was."""
    try:
        item = _ITEM.validate_python(recorded)
    except ValidationError:
        # A redacted value need not fit its field any more; the client does not validate either.
        cls = _ITEM_CLASSES.get(str(at(recorded, "type")))
        if cls is None or not is_object(recorded):
            return recorded
        item = cls.construct(**recorded)
    return item if item.model_dump(mode="json", exclude_unset=True, warnings=False) == recorded else recorded


def _usage(counts: dict[str, Any], failed_attempts: int) -> Usage:
    return Usage(
        requests=counts.get("requests", 0) + failed_attempts,
        input_tokens=counts.get("input_tokens", 0),
        output_tokens=counts.get("output_tokens", 0),
        total_tokens=counts.get("total_tokens", 0),
        input_tokens_details=InputTokensDetails.model_validate(_input_details(counts)),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=counts.get("reasoning_tokens", 0)),
    )


def _input_details(counts: dict[str, Any]) -> dict[str, int]:
    return {
        "cached_tokens": counts.get("cached_tokens", 0),
        "cache_write_tokens": counts.get("cache_write_tokens", 0),
    }


def stream_events(recorded: JSON, model: str, *, failed_attempts: int = 0) -> Iterator[Any]:
    """The recorded answer as a well-formed stream: the same items, each text in one piece."""
    answer = model_response(recorded, failed_attempts=failed_attempts)
    done = _response(recorded, answer, model)
    begun = done.model_copy(update={"output": [], "status": "in_progress", "usage": None})
    number = -1

    def event(kind: str, **fields: Any) -> Any:
        nonlocal number
        number += 1
        made = {"type": kind, "sequence_number": number, **fields}
        if kind in ("response.created", "response.in_progress", "response.completed") or "item" in fields:
            # The objects themselves go in: the SDK takes them on as they are.
            classes = _EVENT_CLASSES[kind]
            return classes.model_construct(**made)
        return _EVENT.validate_python(made)

    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(answer.output):
        plain = items(at(recorded, "output"))[index]
        yield event("response.output_item.added", output_index=index, item=_begun(plain))
        for kind, fields in _parts(plain):
            yield event(kind, output_index=index, item_id=_item_id(plain), **fields)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=done)


def _event_classes() -> dict[str, Any]:
    import openai.types.responses as types  # noqa: PLC0415

    return {
        "response.created": types.ResponseCreatedEvent,
        "response.in_progress": types.ResponseInProgressEvent,
        "response.completed": types.ResponseCompletedEvent,
        "response.output_item.added": types.ResponseOutputItemAddedEvent,
        "response.output_item.done": types.ResponseOutputItemDoneEvent,
    }


_EVENT_CLASSES: Final = _event_classes()


def _item_id(item: JSON) -> str:
    return str(at(item, "id") or at(item, "call_id") or "item")


def _begun(item: JSON) -> Any:
    """An item as it is announced: nothing in it yet."""
    if not is_object(item):
        return item
    empties: dict[str, dict[str, Any]] = {"message": {"content": []}, "function_call": {"arguments": ""}}
    empty = empties.get(str(item.get("type")), {})
    status = {"status": "in_progress"} if "status" in item else {}
    return _item({**item, **status, **empty})


def _parts(item: JSON) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = at(item, "type")
    if kind == "message":
        for index, part in enumerate(objects(items(at(item, "content")))):
            yield from _text(index, part)
    elif kind == "function_call":
        arguments = str(at(item, "arguments") or "")
        yield "response.function_call_arguments.delta", {"delta": arguments}
        yield "response.function_call_arguments.done", {"arguments": arguments, "name": at(item, "name") or ""}
    elif kind == "reasoning":
        for index, part in enumerate(objects(items(at(item, "summary")))):
            yield from _summary(index, str(part.get("text") or ""))


def _text(index: int, part: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    where = {"content_index": index}
    if part.get("type") == "refusal":
        refusal = str(part.get("refusal") or "")
        yield "response.content_part.added", {**where, "part": {**part, "refusal": ""}}
        yield "response.refusal.delta", {**where, "delta": refusal}
        yield "response.refusal.done", {**where, "refusal": refusal}
    else:
        text = str(part.get("text") or "")
        full = {"annotations": [], "logprobs": [], **part}
        yield "response.content_part.added", {**where, "part": {**full, "text": ""}}
        yield "response.output_text.delta", {**where, "delta": text, "logprobs": []}
        yield "response.output_text.done", {**where, "text": text, "logprobs": []}
        part = full
    yield "response.content_part.done", {**where, "part": part}


def _summary(index: int, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    where = {"summary_index": index}
    yield "response.reasoning_summary_part.added", {**where, "part": {"type": "summary_text", "text": ""}}
    yield "response.reasoning_summary_text.delta", {**where, "delta": text}
    yield "response.reasoning_summary_text.done", {**where, "text": text}
    yield "response.reasoning_summary_part.done", {**where, "part": {"type": "summary_text", "text": text}}


def _response(recorded: JSON, answer: ModelResponse, model: str) -> Response:
    usage: dict[str, Any] | None = None
    counts = at(recorded, "usage")
    if is_object(counts) and counts:
        usage = {
            "input_tokens": counts.get("input_tokens", 0),
            "input_tokens_details": _input_details(counts),
            "output_tokens": counts.get("output_tokens", 0),
            "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_tokens", 0)},
            "total_tokens": counts.get("total_tokens", 0),
        }
    response = Response.model_validate(
        {
            "id": answer.response_id or "response",
            "created_at": 0,
            "model": at(recorded, "model") or model,
            "object": "response",
            "output": [],
            "parallel_tool_calls": True,
            "status": "completed",
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
        }
    )
    response.output = list(answer.output)
    if answer.response_id is None:
        response.id = None  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue]
    return response


# tools

_STRUCTURED: Final[dict[str, Any]] = {
    cls.__name__: cls for cls in (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
}


def tool_output(result: JSON) -> Any:
    """What a function tool gave, from its result's payload."""
    value = at(result, "result")
    if at(result, "output_kind") != "structured":
        return value
    return [_structured(item) for item in value] if is_array(value) else _structured(value)


def _structured(value: JSON) -> Any:
    cls = _STRUCTURED.get(str(at(value, "class")))
    return cls.model_validate(at(value, "value")) if cls is not None else value


def native_item(agent: Any, result: JSON, call_id: str) -> ToolCallOutputItem:
    """The output item of a tool the SDK runs itself, for a call of this id."""
    raw = at(result, "result")
    if is_object(raw) and "call_id" in raw:
        raw = {**raw, "call_id": call_id}
    return ToolCallOutputItem(agent=agent, output=_native_output(raw), raw_item=raw)


def _native_output(raw: JSON) -> Any:
    output = at(raw, "output")
    if is_object(output):
        return output.get("image_url", output)
    if is_array(output):
        return "\n".join(str(part.get("stdout") or "") + str(part.get("stderr") or "") for part in objects(output))
    return output


def approval_item(agent: Any, tool_call: Any, name: str) -> ToolApprovalItem:
    """A call that waits for a person."""
    return ToolApprovalItem(agent=agent, raw_item=tool_call, tool_name=name)


def mcp_tools(event: RunEvent) -> list[McpTool]:
    """What a server listed."""
    return [McpTool.model_validate(tool) for tool in objects(items(at(event.payload, "tools")))]
