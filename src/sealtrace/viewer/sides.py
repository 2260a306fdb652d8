"""Two values side by side, with the part that differs marked."""

from __future__ import annotations

import json
from typing import Final

from ..replay.jsondiff import ABSENT, Difference
from ..replay.shape import JSON
from .html import Html, tag

__all__ = ["one_value", "two_values"]

_LONGEST: Final = 4000
"""Characters of a value that are shown, around the place where two begin to differ."""


def two_values(difference: Difference, one: str, other: str) -> Html:
    """One difference: its path, and both values under their names.

    Args:
        difference: The difference.
        one: What the first side is called.
        other: What the second side is called.
    """
    left, right = difference.recorded, difference.got
    texts = isinstance(left, str) and isinstance(right, str)
    first, second = _written(left, texts=texts), _written(right, texts=texts)
    before = _common(first, second)
    after = _common(first[before:][::-1], second[before:][::-1])
    sides = [
        tag("div", tag("h4", name), _side(text, before, after, mark), class_="side")
        for name, text, mark in ((one, first, "del"), (other, second, "ins"))
    ]
    path = tag("p", tag("span", "at ", class_="dim"), tag("code", difference.path))
    return tag("div", path, tag("div", sides, class_="sides"), class_="difference")


def one_value(value: JSON) -> Html:
    """A value that has no counterpart, shortened where it is very long."""
    text = _written(value, texts=isinstance(value, str))
    return tag("pre", text[:_LONGEST], _more(len(text) - _LONGEST), tabindex="0")


def _written(value: JSON, *, texts: bool) -> str:
    """Text as it is where both sides are text; else JSON, so that `"1"` is not taken for `1`."""
    if value is ABSENT:
        return "(absent)"
    return value if texts else json.dumps(value, ensure_ascii=False, indent=2)


def _common(one: str, other: str) -> int:
    """How many characters both begin with; by halves, for a text may be long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _side(text: str, before: int, after: int, mark: str) -> Html:
    start = max(0, before - _LONGEST // 3)
    end = len(text) - after
    stop = min(len(text), start + _LONGEST)
    # A change that is nothing but a line break would be marked and not seen.
    changed = text[before : min(end, stop)].replace("\n", "␊\n")
    return tag(
        "pre",
        tag("i", f"({start} characters before this) … ") if start else None,
        text[start:before],
        tag(mark, changed) if changed else None,
        text[end:stop] if end < stop else None,
        _more(len(text) - stop),
        tabindex="0",
    )


def _more(count: int) -> Html | None:
    return tag("i", f" … ({count} more characters)") if count > 0 else None
