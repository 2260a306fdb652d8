"""Inputs and model requests as they are recorded; a rerun builds its own with the same code and compares."""

from __future__ import annotations

from typing import Any

from agents.run_state import RunState

from ..event import Shared
from .calls import ModelCall, RunCall
from .codec import Snapshot, handoff_spec, output_schema_spec, settings_fields, tool_spec
from .frames import ItemCache

__all__ = ["build_request", "input_payload"]


def input_payload(call: RunCall) -> tuple[dict[str, Any], Snapshot]:
    """What a run was given, plain JSON with `Shared` nodes; only that it went on, where it was resumed."""
    snapshot = Snapshot()
    if isinstance(call.input, RunState):
        return {"resumed": True}, snapshot
    if isinstance(call.input, list):
        return {"input": [Shared(snapshot.take(item)) for item in call.input]}, snapshot
    return {"input": snapshot.take(call.input)}, snapshot


def build_request(call: ModelCall, cache: ItemCache, snapshot: Snapshot) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take a request down.

    Args:
        call: The request, live.
        cache: What was seen in the same frame before: repeated messages become the same `Shared`.
        snapshot: Copies what is new.

    Returns:
        The request, plain JSON with `Shared` nodes, and what of it is digested, by field.
    """
    items = _items(call.input, cache, snapshot)
    settings = snapshot.take(settings_fields(call.settings)) if call.settings is not None else {}
    single: dict[str, Any] = {
        "instructions": call.instructions,
        "tools": [tool_spec(tool) for tool in call.tools],
        "handoffs": [handoff_spec(handoff) for handoff in call.handoffs],
        "output_schema": output_schema_spec(call.output_schema),
    }
    request: dict[str, Any] = {"model": call.model, "stream": call.stream, "settings": settings}
    if call.wanted is not None and call.wanted != call.model:
        request["requested_model"] = call.wanted
    digest: dict[str, Any] = {"settings": settings, "input": items}
    for name, value in single.items():
        if value is None or value == []:
            continue
        request[name] = digest[name] = _shared(cache, name, value, snapshot)
    request["input"] = items
    for name in ("previous_response_id", "conversation_id", "prompt"):
        value = getattr(call, name)
        if value is not None:
            request[name] = snapshot.take(value)
            request["held_by_server"] = True
    return request, digest


def _items(given: Any, cache: ItemCache, snapshot: Snapshot) -> Any:
    if not isinstance(given, list):
        return snapshot.take(given)
    items: list[Any] = given
    taken: list[Shared] = []
    for index, item in enumerate(items):
        known = cache.known(index, item)
        if known is None:
            copied = snapshot.take(item)
            known = cache.known(index, copied) or Shared(copied)
        taken.append(known)
    cache.remember(taken)
    return taken


def _shared(cache: ItemCache, name: str, value: Any, snapshot: Snapshot) -> Shared:
    known = cache.single.get(name)
    if known is not None and known.value == value:
        return known
    copied = snapshot.take(value)
    if known is not None and known.value == copied:
        return known
    fresh = cache.single[name] = Shared(copied)
    return fresh
