"""What of a recorded event is compared with another run's event.

Ids the provider or the SDK draws at random, times and token counts say nothing about what an agent
did, so they are left out. Tool arguments are compared as the JSON they are, not as text.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Final

from ..event import Kind, RunEvent
from .shape import JSON, is_array, is_object

__all__ = ["PSEUDONYM", "VERSIONS", "Subject", "by_kind_only", "parsed_arguments", "subject"]

PSEUDONYM: Final = re.compile(r"<([A-Z][A-Z0-9_]{1,31}):[a-z]{12}>")

_SURROGATES: Final = range(9_090_000_000_000, 9_091_000_000_000)
"""Where the redactor's stand-ins for numbers lie."""

_VOLATILE_ITEM: Final = frozenset({"id", "call_id", "approval_request_id", "encrypted_content", "created_at"})
_VOLATILE_RESPONSE: Final = frozenset({"response_id", "request_id", "usage"})
_VOLATILE_REQUEST: Final = frozenset({"previous_response_id", "conversation_id"})
VERSIONS: Final = frozenset({"sdk", "sealtrace"})
"""Keys of an event's config that say with what it was recorded, not how the agent was set up."""


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """An event as it is compared.

    Attributes:
        event: The event itself.
        index: Its place in the run, from 0.
        value: What is compared, plain JSON.
        label: What it is: kind and tool, agent or guardrail; never content.
        core: What makes it this one among its like: arguments, answer, query.
        text: The whole of `value`, canonical.
    """

    event: RunEvent
    index: int
    value: dict[str, JSON]
    label: tuple[str, ...]
    core: str
    text: str

    @property
    def kind(self) -> Kind:
        """The event's kind."""
        return self.event.kind


def subject(event: RunEvent, index: int, *, rewrite: Callable[[JSON], JSON] | None = None) -> Subject:
    """Make an event comparable.

    Args:
        event: A recorded event, its payload redacted.
        index: Its place in the run.
        rewrite: Applied to what is compared, for example `by_kind_only`.
    """
    payload = event.payload if is_object(event.payload) else {}
    value = _MAKERS.get(event.kind, _plain)(payload)
    value |= {name: field for name, field in _envelope(event).items() if field is not None}
    if rewrite is not None:
        value = rewrite(value)
    return Subject(event, index, value, _label(event, payload), _text(_core(event.kind, value)), _text(value))


def by_kind_only(value: JSON) -> JSON:
    """Pseudonyms reduced to their kind, for runs whose pseudonyms were made with different keys."""
    if isinstance(value, str):
        return PSEUDONYM.sub(r"<\1>", value) if "<" in value else value
    if is_object(value):
        return {by_kind_only(name): by_kind_only(item) for name, item in value.items()}
    if is_array(value):
        return [by_kind_only(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and value in _SURROGATES:
        return _SURROGATES.start
    return value


def _text(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _envelope(event: RunEvent) -> dict[str, JSON]:
    # Settings are compared in the request itself; flags are nowhere else.
    flags = (event.config or {}).get("flags")
    return {
        "agent": event.agent,
        "actor": event.actor,
        "error_type": event.error_type,
        "config": {"flags": flags} if flags else None,
    }


def _plain(payload: dict[str, JSON]) -> dict[str, JSON]:
    return {name: parsed_arguments(item) if name == "arguments" else item for name, item in payload.items()}


def _input(payload: dict[str, JSON]) -> dict[str, JSON]:
    return {name: _items(value) if name == "input" else value for name, value in payload.items()}


def _generation(payload: dict[str, JSON]) -> dict[str, JSON]:
    out: dict[str, JSON] = {}
    request, response = payload.get("request"), payload.get("response")
    if is_object(request):
        kept = {name: value for name, value in request.items() if name not in _VOLATILE_REQUEST}
        out["request"] = {name: _items(value) if name == "input" else value for name, value in kept.items()}
    if is_object(response):
        kept = {name: value for name, value in response.items() if name not in _VOLATILE_RESPONSE}
        out["response"] = {name: _items(value) if name == "output" else value for name, value in kept.items()}
    if "error" in payload:
        out["error"] = payload["error"]
    return out


def _tool_call(payload: dict[str, JSON]) -> dict[str, JSON]:
    if is_object(payload.get("arguments")):
        # A tool the SDK runs itself is recorded with the model's item, ids and all.
        return {**payload, "arguments": _item(payload["arguments"])}
    return _plain(payload)


def _tool_result(payload: dict[str, JSON]) -> dict[str, JSON]:
    if payload.get("output_kind") == "item":
        return {**payload, "result": _item(payload.get("result"))}
    return dict(payload)


def _checkpoint(payload: dict[str, JSON]) -> dict[str, JSON]:  # noqa: ARG001 - that there was one is what counts
    return {}


_MAKERS: Final[dict[Kind, Callable[[dict[str, JSON]], dict[str, JSON]]]] = {
    Kind.INPUT: _input,
    Kind.GENERATION: _generation,
    Kind.TOOL_CALL: _tool_call,
    Kind.TOOL_RESULT: _tool_result,
    Kind.CHECKPOINT: _checkpoint,
}


def _items(value: JSON) -> JSON:
    return [_item(item) for item in value] if is_array(value) else value


def _item(value: JSON) -> JSON:
    if not is_object(value):
        return value
    return {
        name: parsed_arguments(item) if name == "arguments" else item
        for name, item in value.items()
        if name not in _VOLATILE_ITEM
    }


def parsed_arguments(value: JSON) -> JSON:
    """Tool arguments as the JSON they are; anything that is not a JSON object or array as it is."""
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return parsed if is_object(parsed) or is_array(parsed) else value


def _label(event: RunEvent, payload: dict[str, JSON]) -> tuple[str, ...]:
    names = {
        Kind.GENERATION: (event.agent,),
        Kind.TOOL_CALL: (payload.get("tool"),),
        Kind.TOOL_RESULT: (payload.get("tool"),),
        Kind.APPROVAL: (payload.get("tool"),),
        Kind.GUARDRAIL: (payload.get("stage"), payload.get("name")),
        Kind.MCP_TOOLS: (payload.get("server"),),
        Kind.CUSTOM: (payload.get("name"),),
    }.get(event.kind, ())
    return (str(event.kind), *(str(name) for name in names))


def _core(kind: Kind, value: dict[str, JSON]) -> JSON:
    if kind is Kind.GENERATION:
        return [value.get("response"), value.get("error")]
    names = _CORES.get(kind)
    return {name: value.get(name) for name in names} if names else value


_CORES: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.INPUT: ("input",),
    Kind.TOOL_CALL: ("tool", "arguments"),
    Kind.HANDOFF: ("from", "to", "arguments"),
    Kind.APPROVAL: ("tool", "arguments", "approved"),
    Kind.GUARDRAIL: ("stage", "name", "tripped"),
    Kind.RETRIEVAL: ("query",),
}
