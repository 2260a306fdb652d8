"""One event, whole: what was asked and answered, called and returned, decided and said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..event import EventStatus, Kind, RunEvent
from ..run.findings import facts, items
from .calls import Calls
from .content import as_json, heading_of, message, value
from .html import Child, Html, tag
from .links import Links
from .reading import Read, rest_of, tie
from .turns import model_call

__all__ = ["Read", "panel"]

_WHY: Final = {
    EventStatus.PAYLOAD_EXPIRED: "The payload is past its retention. What is said of the event here is kept longer.",
    EventStatus.PAYLOAD_DENIED: "Your credentials may not read the payload. Whoever runs the vault can let you.",
    EventStatus.PAYLOAD_DROPPED: "The payload was dropped when the event was recorded: there was no room for it.",
    EventStatus.REDACTION_FAILED: "The payload could not be made safe when it was recorded, so it was not stored.",
    EventStatus.PAYLOAD_ERASED: "The payload was erased: the key it was encrypted under is gone, for everybody.",
    EventStatus.PAYLOAD_MISSING: "The payload is not in the vault that was asked.",
}


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
        yield [tie(words, cause, links), " "]
    if event.kind is Kind.TOOL_CALL and (result := calls.result(event)) is not None:
        yield [tie("result in", result, links), " "]
    if event.kind in (Kind.TOOL_RESULT, Kind.HANDOFF) and (reader := calls.next_generation(event)) is not None:
        yield [tie("told to the model in", reader, links), " "]


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
        return model_call(read, calls, links)
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
    more = rest_of(payload, "arguments", "tool", called="More of the call")
    return [value(payload.get("arguments", call.payload)), more]


def _result(result: Read | None) -> Child:
    if result is None:
        return tag("p", "There is no result: the call had not ended, or waits for approval.", class_="nothing")
    if result.payload is None:
        return _nothing(result)
    payload = facts(result.payload)
    return [
        tag("div", tag("h4", "Error"), value(payload["error"]), class_="error") if "error" in payload else None,
        value(payload["result"]) if "result" in payload else None,
        rest_of(payload, "result", "tool", "error", called="More of the result"),
    ]


# the other kinds


def _input(payload: dict[str, Any]) -> Child:
    given = payload.get("input")
    turns = items(given) if isinstance(given, list) else [{"role": "user", "content": given}]
    if "input" not in payload:
        return value(payload)
    shown = [
        tag("section", tag("h4", heading_of(item)[:120]), message(item), class_="message from-user") for item in turns
    ]
    return [shown, rest_of(payload, "input")]


def _output(payload: dict[str, Any]) -> Child:
    return [value(payload.get("final_output")), rest_of(payload, "final_output")]


def _handoff(payload: dict[str, Any]) -> Child:
    ends = [str(payload.get(side) or "?")[:120] for side in ("from", "to")]
    more = rest_of(payload, "from", "to", "arguments")
    return [tag("p", " → ".join(ends), class_="ends"), value(payload.get("arguments")), more]


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
