"""A run's payloads written for people: what a model call repeats is pointed at, not repeated.

Each model call sends the whole conversation again. In a file that is to be read and reviewed, a
call shows only what is new: `"input": {"$as_in": 4, "$first": 6, "$then": […]}` says that the first
six messages are those of event 4, `"tools": {"$as_in": 1}` that the tools are those of event 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from ..event import Kind
from .shape import JSON, is_array, is_object

__all__ = ["compact", "expand"]

_Event: TypeAlias = dict[str, JSON]

_REPEATED: Final = ("instructions", "tools", "handoffs", "output_schema", "settings")
_AS_IN: Final = "$as_in"
_FIRST: Final = "$first"
_THEN: Final = "$then"


def compact(events: Iterable[_Event]) -> list[_Event]:
    """Events of one record in their JSON form, with repetitions pointed at; `expand` undoes it."""
    book = _Writer()
    return [_each(event, book.conversation, book.value) for event in events]


def expand(events: Iterable[_Event]) -> list[_Event]:
    """The counterpart of `compact`.

    Raises:
        ValueError: A pointer points at nothing.
    """
    book = _Reader()
    return [_each(event, book.conversation, book.value) for event in events]


def _each(
    event: _Event,
    conversation: Callable[[int, str, JSON], JSON],
    value: Callable[[int, str, JSON], JSON],
) -> _Event:
    """Apply both to what an event repeats; what it does not repeat, or has in another form, stays."""
    payload = event.get("payload")
    if not is_object(payload):
        return event
    seq, frame = event["seq"], str(event.get("frame"))
    if event.get("kind") == Kind.INPUT and "input" in payload:
        return {**event, "payload": {**payload, "input": conversation(seq, frame, payload["input"])}}
    request = payload.get("request")
    if event.get("kind") != Kind.GENERATION or not is_object(request):
        return event
    out = {name: value(seq, name, item) if name in _REPEATED else item for name, item in request.items()}
    if "input" in request:
        out["input"] = conversation(seq, frame, request["input"])
    return {**event, "payload": {**payload, "request": out}}


class _Writer:
    """Finds what was there before."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], int] = {}
        self._latest: dict[str, tuple[int, list[str]]] = {}

    def value(self, seq: int, name: str, value: JSON) -> JSON:
        if value in (None, {}, []):
            return value
        first = self._first.setdefault((name, _exact(value)), seq)
        return value if first == seq else {_AS_IN: first}

    def conversation(self, seq: int, frame: str, items: JSON) -> JSON:
        if not is_array(items):
            return items
        exact = [_exact(item) for item in items]
        # The call before in the same run most likely, but a run may go on where another ended.
        candidates = [self._latest[frame]] if frame in self._latest else []
        candidates += [found for other, found in reversed(self._latest.items()) if other != frame]
        best, count = None, 0
        for number, known in candidates:
            common = _common(known, exact)
            if common > count:
                best, count = number, common
        self._latest.pop(frame, None)
        self._latest[frame] = (seq, exact)
        return items if best is None else {_AS_IN: best, _FIRST: count, _THEN: items[count:]}


class _Reader:
    """Follows the pointers."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, int], JSON] = {}
        self._conversations: dict[int, list[JSON]] = {}

    def value(self, seq: int, name: str, value: JSON) -> JSON:
        if is_object(value) and set(value) == {_AS_IN}:
            if (name, value[_AS_IN]) not in self._values:
                raise ValueError(f"event {seq}: {name} points at event {value[_AS_IN]}, which has none")
            return self._values[name, value[_AS_IN]]
        self._values[name, seq] = value
        return value

    def conversation(self, seq: int, frame: str, items: JSON) -> JSON:  # noqa: ARG002 - the writer needs the frame
        if is_object(items) and set(items) == {_AS_IN, _FIRST, _THEN}:
            known = self._conversations.get(items[_AS_IN], [])
            if len(known) < items[_FIRST]:
                raise ValueError(f"event {seq}: input points at {items[_FIRST]} messages of event {items[_AS_IN]}")
            items = [*known[: items[_FIRST]], *items[_THEN]]
        if is_array(items):
            self._conversations[seq] = items
        return items


def _exact(value: JSON) -> str:
    # Key order is part of what a model sees.
    return json.dumps(value)


def _common(before: list[str], now: list[str]) -> int:
    count = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        count += 1
    return count
