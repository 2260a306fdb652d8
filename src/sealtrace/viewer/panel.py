"""One event, whole: what was asked and answered, called and returned, decided and said."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..event import EventStatus, Kind, RunEvent
from ..run.findings import facts, held_by_server, items
from .calls import Calls, new_items
from .content import as_json, heading_of, message, value
from .html import Child, Html, tag
from .links import Links

__all__ = ["Read", "panel"]

_WHY: Final = {
    EventStatus.PAYLOAD_EXPIRED: "The payload is past its retention. What is said of the event here is kept longer.",
    EventStatus.PAYLOAD_DENIED: "Your credentials may not read the payload. Whoever runs the vault can let you.",
    EventStatus.PAYLOAD_DROPPED: "The payload was dropped when the event was recorded: there was no room for it.",
    EventStatus.REDACTION_FAILED: "The payload could not be made safe when it was recorded, so it was not stored.",
    EventStatus.PAYLOAD_ERASED: "The payload was erased: the key it was encrypted under is gone, for everybody.",
    EventStatus.PAYLOAD_MISSING: "The payload is not in the vault that was asked.",
}
_FOLDED_TURNS: Final = 40
"""Items of a conversation shown before the new ones; the JSON of the event has all."""

_MOST_TURNS: Final = 1_000
"""Items of a conversation that are shown at all."""


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    """An event as far as it could be read.

    Attributes:
        event: The event.
        payload: Its payload; None where there is none.
        trouble: Why there is none, where trying it has shown that.
        asks: What stands in the payload's place, such as a form that asks for a reason.
        before: The payload of the model call before, where that is on the same page: what both hold is not repeated.
        left_out: How many items are missing at the beginning of its conversation, because nobody asked for them.
        whole: Show a conversation from its beginning.
    """

    event: RunEvent
    payload: Any = None
    trouble: str | None = None
    asks: Html | None = None
    before: Any = None
    left_out: int = 0
    whole: bool = False


def panel(read: Read, other: Read | None, calls: Calls, links: Links, *, view: str = "text") -> Html:
    """The panel of an event.

    Args:
        read: The event.
        other: The other half, where it is a tool call or a tool result.
        calls: How events hang together.
        links: Where they are to be found.
        view: `text`, `whole` for a conversation from its beginning, or `json` for the payload as it is stored.
    """
    event = read.event
    name = links.anchor(event)
    return tag(
        "article",
        _head(event, calls, links, view),
        tag("div", _json_view(read) if view == "json" else _body(read, other, calls, links), class_="payload"),
        _envelope(event),
        id=name, tabindex="-1", aria_labelledby=f"{name}-title", class_=f"panel k-{event.kind.value}",
        data_seq=event.seq, data_record=event.record_id, data_view=view,
    )  # fmt: skip


def _head(event: RunEvent, calls: Calls, links: Links, view: str) -> Html:
    words = [word for word in (event.agent, event.model, event.call_id) if word]
    return tag(
        "header",
        tag("h2", tag("span", f"#{event.seq}", class_="number"), " ", _named(event), id=f"{links.anchor(event)}-title"),
        tag("p", [[tag("span", word[:120], class_="word"), " "] for word in words], _state(event), class_="about"),
        tag("p", list(_ties(event, calls, links)), class_="ties"),
        _views(event, links, view),
    )  # fmt: skip


def _named(event: RunEvent) -> str:
    return event.kind.value.replace("_", " ")


def _state(event: RunEvent) -> Iterator[Child]:
    whole = event.status in (EventStatus.JOINED, EventStatus.RECORDED)
    yield tag("span", event.status.value, class_="mark quiet" if whole else "mark warn")
    if event.error_type:
        yield tag("span", event.error_type[:120], class_="mark bad")
    for kind, count in sorted(event.redactions.items()):
        yield tag("span", f"{count} {kind[:60]} redacted", class_="mark redacted")


def _ties(event: RunEvent, calls: Calls, links: Links) -> Iterator[Child]:
    """Links to the events this one hangs together with."""
    cause = calls.cause(event)
    if cause is not None:
        words = "asked for by" if event.kind in (Kind.TOOL_CALL, Kind.HANDOFF) else "belongs to"
        yield [_tie(words, cause, links), " "]
    if event.kind is Kind.TOOL_CALL and (result := calls.result(event)) is not None:
        yield [_tie("result in", result, links), " "]
    if event.kind in (Kind.TOOL_RESULT, Kind.HANDOFF) and (reader := calls.next_generation(event)) is not None:
        yield [_tie("told to the model in", reader, links), " "]


def _tie(words: str, event: RunEvent, links: Links) -> Html:
    return tag("a", f"{words} event {event.seq}", href=links.event(event), class_="tie", data_seq=event.seq,
               data_record=event.record_id)  # fmt: skip


def _views(event: RunEvent, links: Links, view: str) -> Html | None:
    address = links.json(event)
    if address is None:
        return None
    tabs = [
        tag("a", label, href=links.event(event, view=name if name != "text" else None), class_="view", data_view=name,
            aria_current="true" if (name == "json") is (view == "json") else None)
        for name, label in (("text", "Text"), ("json", "JSON"))
    ]  # fmt: skip
    copy = tag("button", "Copy as JSON", type="button", class_="copy", data_from=address, hidden=True)
    return tag("p", tabs, tag("a", "JSON file", href=address), copy, class_="views")


def _json_view(read: Read) -> Html:
    return as_json(read.payload) if read.payload is not None else _nothing(read)


def _body(read: Read, other: Read | None, calls: Calls, links: Links) -> Child:
    event = read.event
    if event.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT):
        return _tool(read, other, links)
    if read.payload is None:
        return _nothing(read)
    payload = facts(read.payload)
    if event.kind is Kind.GENERATION:
        return _generation(read, calls, links)
    shape = _SHAPES.get(event.kind)
    return shape(payload) if shape is not None and payload else value(read.payload)


def _nothing(read: Read) -> Html:
    if read.asks is not None:
        return read.asks
    words = read.trouble or _WHY.get(read.event.status) or "This event has no payload."
    return tag("p", words, class_="nothing", role="note")


# tools


def _tool(read: Read, other: Read | None, links: Links) -> Html:
    call, result = (read, other) if read.event.kind is Kind.TOOL_CALL else (other, read)
    return tag(
        "div",
        tag("section", _side_title("Arguments", call, links), _arguments(call), class_="half"),
        tag("section", _side_title("Result", result, links), _result(result), class_="half"),
        class_="halves",
    )


def _side_title(words: str, side: Read | None, links: Links) -> Html:
    if side is None:
        return tag("h3", words)
    name, took = facts(side.payload).get("tool"), side.event.duration_ms
    words_after = [name[:120] if isinstance(name, str) else "", f"{took:,.1f} ms" if took is not None else ""]
    link = tag("a", f"#{side.event.seq}", href=links.event(side.event), data_seq=side.event.seq,
               data_record=side.event.record_id)  # fmt: skip
    return tag("h3", words, " ", link, " ", tag("small", " ".join(words_after)))


def _arguments(call: Read | None) -> Child:
    if call is None:
        return tag("p", "The call was not recorded.", class_="nothing")
    if call.payload is None:
        return _nothing(call)
    payload = facts(call.payload)
    rest = {name: item for name, item in payload.items() if name not in ("arguments", "tool")}
    return [value(payload.get("arguments", call.payload)), _fold("More of the call", value(rest)) if rest else None]


def _result(result: Read | None) -> Child:
    if result is None:
        return tag("p", "There is no result: the call had not ended, or waits for approval.", class_="nothing")
    if result.payload is None:
        return _nothing(result)
    payload = facts(result.payload)
    rest = {name: item for name, item in payload.items() if name not in ("result", "tool", "error")}
    return [
        tag("div", tag("h4", "Error"), value(payload["error"]), class_="error") if "error" in payload else None,
        value(payload["result"]) if "result" in payload else None,
        _fold("More of the result", value(rest)) if rest else None,
    ]


# model calls


def _generation(read: Read, calls: Calls, links: Links) -> list[Child]:
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
    as_before = _tie("as in", earlier, links) if earlier is not None else None
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
            yield _fold(words, value(request[name]))
    rest = {name: item for name, item in request.items() if name not in _SHOWN_APART and item not in ({}, [], None)}
    if rest and all(name in before and before[name] == item for name, item in rest.items()):
        yield tag("p", "Model and settings ", as_before)
    elif rest:
        yield _fold("Model and settings", value(rest))


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
        yield _fold("More of the response", value(rest))


_NEW: Final = tag("span", "new", class_="mark new")


def _item(item: Any, event: RunEvent, calls: Calls, links: Links, *, new: bool = False, answer: bool = False) -> Html:
    """A message of a conversation, with where it came from or where it led."""
    fields = facts(item)
    call_id = fields.get("call_id")
    tie: Child = None
    if isinstance(call_id, str):
        if str(fields.get("type", "")).endswith("_output"):
            origin = calls.result(event, call_id)
            tie = _tie("came from", origin, links) if origin is not None else None
        else:
            led = calls.call(event, call_id)
            tie = _tie("led to" if answer else "called in", led, links) if led is not None else None
    return tag(
        "section",
        tag("h4", tag("span", heading_of(item)[:120], class_="role"), _NEW if new else None,
            tag("code", call_id[:120]) if isinstance(call_id, str) else None, tie),
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


def _fold(summary: str, inner: Child) -> Html:
    return tag("details", tag("summary", summary), inner, class_="fold")


# the other kinds


def _input(payload: dict[str, Any]) -> Child:
    given = payload.get("input")
    turns = items(given) if isinstance(given, list) else [{"role": "user", "content": given}]
    if "input" not in payload:
        return value(payload)
    shown = [
        tag("section", tag("h4", heading_of(item)[:120]), message(item), class_="message from-user") for item in turns
    ]
    rest = {name: item for name, item in payload.items() if name != "input"}
    return [shown, _fold("More", value(rest)) if rest else None]


def _output(payload: dict[str, Any]) -> Child:
    rest = {name: item for name, item in payload.items() if name != "final_output"}
    return [value(payload.get("final_output")), _fold("More", value(rest)) if rest else None]


def _handoff(payload: dict[str, Any]) -> Child:
    rest = {name: item for name, item in payload.items() if name not in ("from", "to", "arguments")}
    ends = [str(payload.get(side) or "?")[:120] for side in ("from", "to")]
    return [tag("p", " → ".join(ends), class_="ends"), value(payload.get("arguments")),
            _fold("More", value(rest)) if rest else None]  # fmt: skip


def _guardrail(payload: dict[str, Any]) -> Child:
    tripped = payload.get("tripped")
    verdict = "tripped: the run was stopped" if tripped is True else "passed" if tripped is False else "no verdict"
    rest = {name: item for name, item in payload.items() if name != "tripped"}
    return [tag("p", verdict, class_="mark bad" if tripped is True else "mark quiet"), value(rest)]


_SHAPES: Final[dict[Kind, Callable[[dict[str, Any]], Child]]] = {
    Kind.INPUT: _input,
    Kind.OUTPUT: _output,
    Kind.HANDOFF: _handoff,
    Kind.GUARDRAIL: _guardrail,
}


def _envelope(event: RunEvent) -> Html:
    """What is known of the event besides its payload."""
    rows: list[Html] = []
    for name, found in event.envelope().items():
        if name in ("schema", "payload"):
            continue
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        rows.append(tag("div", tag("dt", name.replace("_", " ")), tag("dd", text[:4000])))
    return tag("details", tag("summary", "Envelope: times, ids, configuration, digests"),
               tag("dl", rows, class_="fields envelope"), class_="fold")  # fmt: skip
