"""Recorded values as HTML: text that is text, JSON that is text, and nothing that acts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ..run.findings import facts, items
from ..vault.lines import MAX_DEPTH
from .html import Html, join, tag

__all__ = ["as_json", "heading_of", "message", "pretty", "value"]

_LONGEST: Final = 20_000
"""Characters of one string that are shown; the JSON of the event has all of it."""

_LONGEST_JSON: Final = 200_000
_MOST: Final = 200
"""Entries of one object or array that are shown."""

_NAME: Final = 200
"""Characters of a field's name that are shown."""

_DEEPEST: Final = 12
_LARGEST: Final = 3_000
"""Parts of a value that are laid out one by one; a value of more is shown as JSON."""


def pretty(text: str) -> Html:
    """Text as it is, each line its own, in a box that it cannot leave."""
    shown, more = text[:_LONGEST], len(text) - _LONGEST
    cut = tag("p", f"… {more:,} characters more: see the event's JSON", class_="cut") if more > 0 else None
    return tag("div", tag("pre", shown, class_="text"), cut, class_="content")


def as_json(found: Any) -> Html:
    """A value as indented JSON."""
    text = json.dumps(found, ensure_ascii=False, indent=2)
    more = len(text) - _LONGEST_JSON
    cut = tag("p", f"… {more:,} characters more: see the event's JSON", class_="cut") if more > 0 else None
    return tag("div", tag("pre", text[:_LONGEST_JSON], class_="json"), cut, class_="content")


def value(found: Any) -> Html:
    """Any value: objects as lists of names, arrays as numbered lists, JSON inside of text opened up."""
    return as_json(found) if _is_large(found) else _value(found, 0)


def _is_large(found: Any) -> bool:
    waiting, count = [found], 0
    while waiting and count <= _LARGEST:
        item = waiting.pop()
        count += 1
        if isinstance(item, dict):
            waiting += facts(item).values()
        elif isinstance(item, list):
            waiting += items(item)
    return count > _LARGEST


def _value(found: Any, depth: int) -> Html:
    if isinstance(found, str):
        inner = _embedded(found)
        return as_json(inner) if inner is not None else pretty(found)
    if isinstance(found, dict | list) and found:
        if depth >= _DEEPEST:
            return as_json(found)
        return _object(facts(found), depth) if isinstance(found, dict) else _array(items(found), depth)
    return tag("code", json.dumps(found), class_="plain")


def _object(found: dict[str, Any], depth: int) -> Html:
    shown = list(found.items())[:_MOST]
    rows = [tag("div", tag("dt", name[:_NAME]), tag("dd", _value(item, depth + 1))) for name, item in shown]
    return join([tag("dl", rows, class_="fields"), _more(len(found))])


def _array(found: list[Any], depth: int) -> Html:
    if all(item is None or isinstance(item, int | float) for item in found):
        return join([tag("code", json.dumps(found[:_MOST]), class_="plain"), _more(len(found))])
    entries = [tag("li", _value(item, depth + 1)) for item in found[:_MOST]]
    return join([tag("ol", entries, class_="array"), _more(len(found))])


def _more(count: int) -> Html | None:
    more = count - _MOST
    return tag("p", f"… {more:,} more: see the event's JSON", class_="cut") if more > 0 else None


def _embedded(text: str) -> Any:
    """The JSON object or array that a text is, if writing it anew loses nothing; else None."""
    if text[:1] not in ("{", "[") or len(text) > _LONGEST_JSON:
        return None
    try:
        found = json.loads(
            text, object_pairs_hook=_unique, parse_float=_exact(float), parse_int=_exact(int), parse_constant=_refused
        )
    except (ValueError, RecursionError):
        return None
    return found if _sane(found) else None


def _sane(found: Any) -> bool:
    """Whether it is nested no deeper than a payload may be."""
    level = [found]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for holder in level
            for item in (facts(holder).values() if isinstance(holder, dict) else items(holder))
            if isinstance(item, dict | list)
        ]
        if not level:
            return True
    return False


def _exact(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Reads a number that is written again as it was: 1.10 and 1e400 are better shown as they are."""

    def read(text: str) -> Any:
        number = kind(text)
        if repr(number) != text:
            raise ValueError("the number would change")
        return number

    return read


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name is there twice")
    return out


# messages


def heading_of(item: Any) -> str:
    """What a message is, in a few words."""
    fields = facts(item)
    kind = str(fields.get("type", "message"))
    if kind == "message":
        return str(fields.get("role", "message"))
    if kind.endswith("_output"):
        return "tool result" if kind == "function_call_output" else kind.replace("_", " ")
    if kind == "function_call":
        return f"calls {fields.get('name', '?')}"
    return kind.replace("_", " ")


def message(item: Any) -> Html:
    """What a message says; its heading apart."""
    fields = facts(item)
    kind = str(fields.get("type", "message"))
    if kind == "message" and "content" in fields:
        return _parts(fields["content"])
    if kind == "function_call":
        return value(fields.get("arguments"))
    if kind == "function_call_output":
        output = fields.get("output")
        return _parts(output) if isinstance(output, list) else value(output)
    return value(item)


_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})


def _parts(content: Any) -> Html:
    if isinstance(content, str):
        return pretty(content)
    if not isinstance(content, list):
        return value(content)
    return tag("div", [_part(part) for part in items(content)[:_MOST]], _more(len(items(content))))


def _part(part: Any) -> Html:
    fields = facts(part)
    if fields.get("type") in _TEXT_PARTS and isinstance(fields.get("text"), str):
        return pretty(fields["text"])
    return value(part)
