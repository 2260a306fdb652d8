"""A run's payloads written for people: what a model call repeats is pointed at, not repeated.

Each model call sends the whole conversation again. In a file that is to be read and reviewed, a
call shows only what is new: `"input": {"$same": 4, "$then": […]}` says that the first four messages
are those of the call before, `"tools": {"$as_in": 1}` that the tools are those of event 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from ..event import Kind
from .shape import JSON, is_array, is_object

__all__ = ["compact", "expand"]

_REPEATED: Final = ("instructions", "tools", "handoffs", "output_schema", "settings")
_AS_IN: Final = "$as_in"
_SAME: Final = "$same"
_THEN: Final = "$then"


def compact(events: Iterable[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """Events in their JSON form, with repetitions inside a frame pointed at; `expand` undoes it."""
    book: dict[str, _Frame] = {}
    return [_each(event, book.setdefault(str(event.get("frame")), _Frame()), _Frame.shorten) for event in events]


def expand(events: Iterable[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """The counterpart of `compact`.

    Raises:
        ValueError: A pointer points at nothing.
    """
    book: dict[str, _Frame] = {}
    return [_each(event, book.setdefault(str(event.get("frame")), _Frame()), _Frame.restore) for event in events]


class _Frame:
    """What the model calls of one frame have sent so far."""

    def __init__(self) -> None:
        self._first: dict[str, dict[str, int]] = {}
        self._values: dict[tuple[str, int], JSON] = {}
        self._input: list[JSON] = []

    def shorten(self, seq: int, request: dict[str, JSON]) -> dict[str, JSON]:
        out = dict(request)
        for name in _REPEATED:
            if request.get(name) in (None, {}, []):
                continue
            first = self._first.setdefault(name, {}).setdefault(_exact(request[name]), seq)
            if first != seq:
                out[name] = {_AS_IN: first}
        items = request.get("input")
        if is_array(items):
            same = _common(self._input, items)
            if same:
                out["input"] = {_SAME: same, _THEN: items[same:]}
            self._input = items
        return out

    def restore(self, seq: int, request: dict[str, JSON]) -> dict[str, JSON]:
        out = dict(request)
        for name in _REPEATED:
            value = request.get(name)
            if is_object(value) and set(value) == {_AS_IN}:
                if (name, value[_AS_IN]) not in self._values:
                    raise ValueError(f"event {seq}: {name} points at event {value[_AS_IN]}, which has none")
                out[name] = self._values[name, value[_AS_IN]]
            self._values[name, seq] = out.get(name)
        items = request.get("input")
        if is_object(items) and set(items) == {_SAME, _THEN}:
            if len(self._input) < items[_SAME]:
                raise ValueError(f"event {seq}: input points at {items[_SAME]} messages, the call before has fewer")
            out["input"] = [*self._input[: items[_SAME]], *items[_THEN]]
        if is_array(out.get("input")):
            self._input = out["input"]
        return out


def _each(event: dict[str, JSON], frame: _Frame, work: JSON) -> dict[str, JSON]:
    payload = event.get("payload")
    if event.get("kind") != Kind.GENERATION or not is_object(payload) or not is_object(payload.get("request")):
        return event
    request = work(frame, event["seq"], payload["request"])
    return {**event, "payload": {**payload, "request": request}}


def _exact(value: JSON) -> str:
    # Key order is part of what a model sees.
    return json.dumps(value)


def _common(before: list[JSON], now: list[JSON]) -> int:
    count = 0
    for one, other in zip(before, now, strict=False):
        if _exact(one) != _exact(other):
            break
        count += 1
    return count
