"""A model call: the conversation it was given, what of it is new, where each part came from, the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from ..event import RunEvent
from ..run.findings import facts, held_by_server, items
from .calls import Calls, new_items
from .content import heading_of, message, value
from .html import Child, Html, tag
from .links import Links
from .reading import Read, fold, tie

__all__ = ["model_call"]

_FOLDED_TURNS: Final = 40
"""Items of a conversation shown before the new ones; the JSON of the event has all."""

_MOST_TURNS: Final = 1_000
"""Items of a conversation that are shown at all."""


def model_call(read: Read, calls: Calls, links: Links) -> list[Child]:
    """Request and answer: what the model was given that was new, what it said, and the rest folded away."""
    payload = facts(read.payload)
    request, response = facts(payload.get("request")), facts(payload.get("response"))
    held = held_by_server(dataclasses.replace(read.event, payload=read.payload))
    return [
        tag("p", held, class_="nothing", role="note") if held else None,
        tag("section", tag("h3", "Request"), list(_request(read, request, calls, links)), class_="request"),
        tag(
            "section", tag("h3", "Response"), list(_response(read, payload, response, calls, links)), class_="response"
        ),
    ]


def _request(read: Read, request: dict[str, Any], calls: Calls, links: Links) -> Iterator[Child]:
    before = facts(facts(read.before).get("request"))
    earlier = calls.earlier_generation(read.event)
    as_before = tie("as in", earlier, links) if earlier is not None else None
    yield from _setting(request, before, as_before)
    given = request.get("input")
    if not isinstance(given, list):
        yield _item({"role": "input", "content": given}, read.event, calls, links, new=True)
        return
    turns = items(given)
    old = len(turns) - new_items(read.event, read.payload)
    if read.left_out:
        yield _left_out(read, old, calls, links)
    elif old:
        repeated = _repeated(turns[:old], items(before.get("input")))
        skipped = max(repeated, old - (_MOST_TURNS if read.whole else _FOLDED_TURNS))
        cut = f"… the first {skipped:,} are in the event's JSON" if skipped > repeated else None
        yield tag(
            "details",
            tag("summary", f"{old} earlier {'item' if old == 1 else 'items'}"),
            tag("p", f"the first {repeated:,} " if repeated else " ", as_before) if as_before else None,
            tag("p", cut, class_="cut") if cut else None,
            [_item(item, read.event, calls, links) for item in turns[skipped:old]],
            class_="earlier", open=read.whole,
        )  # fmt: skip
    if len(turns) - old > _MOST_TURNS:
        yield tag("p", f"… {len(turns) - old - _MOST_TURNS:,} more are in the event's JSON", class_="cut")
    for item in turns[old:][-_MOST_TURNS:]:
        yield _item(item, read.event, calls, links, new=earlier is not None)


def _left_out(read: Read, old: int, calls: Calls, links: Links) -> Html:
    """The beginning of a conversation that was not read, and how to read it."""
    whole = links.event(read.event, view="whole")
    event = read.event
    way = tag("a", "read all of them", href=whole, data_seq=event.seq, data_record=event.record_id) if whole else None
    turns = items(facts(facts(read.payload).get("request")).get("input"))[:old]
    return tag(
        "details",
        tag("summary", f"{read.left_out + old:,} earlier items"),
        tag("p", f"the first {read.left_out:,} were not read: ", way),
        [_item(item, event, calls, links) for item in turns[-_FOLDED_TURNS:]],
        class_="earlier",
    )


def _setting(request: dict[str, Any], before: dict[str, Any], as_before: Html | None) -> Iterator[Html]:
    """What the model call was set up with, folded; what is the same as on the page before, by name alone."""
    parts = {"instructions": f"Instructions, {_size(request.get('instructions'))}"}
    parts |= {name: f"{name.capitalize()}: {_names(request.get(name))}" for name in ("tools", "handoffs")}
    for name, words in parts.items():
        if name in before and before[name] == request.get(name):
            yield tag("p", words, " ", as_before)
        elif request.get(name):
            yield fold(words, value(request[name]))
    rest = {name: item for name, item in request.items() if name not in _SHOWN_APART and item not in ({}, [], None)}
    if rest and all(name in before and before[name] == item for name, item in rest.items()):
        yield tag("p", "Model and settings ", as_before)
    elif rest:
        yield fold("Model and settings", value(rest))


def _repeated(turns: list[Any], before: list[Any]) -> int:
    """How many of the first items are those of the request before."""
    pairs = enumerate(zip(turns, before, strict=False))
    return next((count for count, (one, other) in pairs if one != other), min(len(turns), len(before)))


_SHOWN_APART: Final = frozenset({"instructions", "tools", "handoffs", "input"})


def _response(
    read: Read, payload: dict[str, Any], response: dict[str, Any], calls: Calls, links: Links
) -> Iterator[Child]:
    if "error" in payload:
        yield tag("div", tag("h4", "Error"), value(payload["error"]), class_="error")
    for item in items(response.get("output")):
        yield _item(item, read.event, calls, links, answer=True)
    usage = {name: count for name, count in facts(response.get("usage")).items() if count}
    if usage:
        yield tag("p", ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in usage.items()), class_="usage")
    rest = {name: item for name, item in response.items() if name not in ("output", "usage")}
    rest |= {name: item for name, item in payload.items() if name not in ("request", "response", "error")}
    if rest:
        yield fold("More of the response", value(rest))


_NEW: Final = tag("span", "new", class_="mark new")


def _item(item: Any, event: RunEvent, calls: Calls, links: Links, *, new: bool = False, answer: bool = False) -> Html:
    """A message of a conversation, with where it came from or where it led."""
    fields = facts(item)
    call_id = fields.get("call_id")
    way: Child = None
    if isinstance(call_id, str):
        if str(fields.get("type", "")).endswith("_output"):
            origin = calls.result(event, call_id)
            way = tie("came from", origin, links) if origin is not None else None
        else:
            led = calls.call(event, call_id)
            way = tie("led to" if answer else "called in", led, links) if led is not None else None
    return tag(
        "section",
        tag("h4", tag("span", heading_of(item)[:120], class_="role"), _NEW if new else None,
            tag("code", call_id[:120]) if isinstance(call_id, str) else None, way),
        message(item),
        class_=f"message {_role(fields)}{' is-new' if new else ''}",
    )  # fmt: skip


def _role(fields: dict[str, Any]) -> str:
    role = fields.get("role")
    if role in ("user", "assistant", "system", "developer"):
        return f"from-{role}"
    kind = str(fields.get("type", ""))
    return "from-tool" if kind.endswith("_output") else "from-assistant" if kind else "from-other"


def _size(found: Any) -> str:
    return f"{len(found):,} characters" if isinstance(found, str) else "not text"


def _names(found: Any) -> str:
    named = [facts(item).get("name") for item in items(found)]
    known = [name[:60] for name in named if isinstance(name, str)]
    return f"{', '.join(known[:20])}{' …' if len(known) > 20 else ''}" or str(len(items(found)))
