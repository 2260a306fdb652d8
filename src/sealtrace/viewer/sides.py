"""Two values side by side, with the part that differs marked."""

from __future__ import annotations

import difflib
import json
import re
from typing import Final, TypeAlias

from ..replay.jsondiff import ABSENT, Difference
from ..replay.shape import JSON
from .html import Html, tag

__all__ = ["one_value", "two_values"]

_LONGEST: Final = 4000
"""Characters of a value that are shown, around the place where two begin to differ."""

_COMPARED: Final = 200
"""Words up to which two texts are compared word by word: the time it takes grows with their product."""

_WORD: Final = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")


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
    before, after = _shared(first, second)
    pieces = _apart(first[before : len(first) - after], second[before : len(second) - after])
    sides = [
        tag("div", tag("p", name, class_="called"), _side(text, before, after, changed, mark), class_="side")
        for name, text, changed, mark in zip((one, other), (first, second), pieces, ("del", "ins"), strict=True)
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


def _shared(one: str, other: str) -> tuple[int, int]:
    """How many characters both begin and end with, no word being torn."""
    before = _common(one, other)
    after = _common(one[before:][::-1], other[before:][::-1])
    while _in_word(one, before) or _in_word(other, before):
        before -= 1
    while _in_word(one, len(one) - after) or _in_word(other, len(other) - after):
        after -= 1
    return before, after


def _in_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


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


_Pieces: TypeAlias = list[tuple[str, bool]]
"""A text in pieces, each with whether the other side lacks it."""


def _apart(one: str, other: str) -> tuple[_Pieces, _Pieces]:
    """Two texts, word by word where they are not too long for it."""
    words, others = _WORD.findall(one), _WORD.findall(other)
    if max(len(words), len(others)) > _COMPARED:
        return [(one, True)], [(other, True)]
    left: _Pieces = []
    right: _Pieces = []
    for found, start, end, start_other, end_other in difflib.SequenceMatcher(
        None, words, others, autojunk=False
    ).get_opcodes():
        left.append(("".join(words[start:end]), found != "equal"))
        right.append(("".join(others[start_other:end_other]), found != "equal"))
    return left, right


def _side(text: str, before: int, after: int, pieces: _Pieces, mark: str) -> Html:
    start = max(0, before - _LONGEST // 3)
    shown: list[Html | str] = [tag("i", f"({start} characters before this) … ")] if start else []
    shown.append(text[start:before])
    left = _LONGEST - (before - start)
    for piece, changed in [*pieces, (text[len(text) - after :] if after else "", False)]:
        cut = piece[:left]
        left -= len(cut)
        # A change that is nothing but a line break would be marked and not seen.
        shown.append(tag(mark, cut.replace("\n", "↵\n")) if changed and cut else cut)
    return tag("pre", shown, _more(len(text) - start - (_LONGEST - left)), tabindex="0")


def _more(count: int) -> Html | None:
    return tag("i", f" … ({count} more characters)") if count > 0 else None
