"""What a reader of a run has to know besides its events."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, cast

from ..event import EventStatus, Kind, RunEvent

__all__ = ["HELD_BY_SERVER", "NO_PAYLOAD", "Finding", "facts", "held_by_server", "items"]

HELD_BY_SERVER: Final = "the rest is held by the server and was not recorded"
"""What every view says of a request whose context was not sent but named."""

_HELD: Final = ("previous_response_id", "conversation_id", "prompt")


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, or not whole.

    Attributes:
        code: A stable word for programs: `partial_record`, `gap`, `witness_mismatch`, `damaged`, …
        message: A sentence for people.
        record_id: The record concerned, where it is one.
        seq: The event concerned, where it is one.
        serious: False for what is only good to know and lowers nothing (`held_by_server`).
    """

    code: str
    message: str
    record_id: str | None = None
    seq: int | None = None
    serious: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without what is not known."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


def held_by_server(event: RunEvent) -> str | None:
    """Says that part of a request's context was never sent by us, and by what it was named; else None.

    A request may name a previous response, a conversation or a hosted prompt instead of sending its
    context. What was sent is recorded; what the server added is not.
    """
    if event.kind is not Kind.GENERATION:
        return None
    request = facts(facts(event.payload).get("request"))
    names = [_named(name, request[name]) for name in _HELD if request.get(name)]
    if not names and event.config and event.config.get("prompt_id"):
        names = [f"prompt {event.config['prompt_id']}"]
    return f"{', '.join(names)}: {HELD_BY_SERVER}" if names else None


def _named(name: str, value: Any) -> str:
    if name != "prompt":
        return f"{name} {value}"
    prompt = facts(value)
    version = f" version {prompt['version']}" if prompt.get("version") else ""
    return f"prompt {prompt.get('id', '')}{version}"


def facts(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one: payloads are read with no trust in their shape."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The value if it is a JSON array, else an empty one."""
    found: list[Any] = value if isinstance(value, list) else []
    return found


NO_PAYLOAD: Final = frozenset(
    {
        EventStatus.PAYLOAD_DROPPED,
        EventStatus.REDACTION_FAILED,
        EventStatus.PAYLOAD_EXPIRED,
        EventStatus.PAYLOAD_DENIED,
        EventStatus.PAYLOAD_MISSING,
        EventStatus.PAYLOAD_ERASED,
    }
)
"""Statuses of events whose payload cannot be read."""
