"""Sees through spellings: full-width digits, invisible characters, odd dashes, escapes.

The text that is searched is a folded one; what is replaced is the original, so each folded character
knows which original ones it stands for.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["Folded", "fold", "needs_folding"]

_INVISIBLE: Final = frozenset(
    [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0x00AD, 0x034F, 0x061C, 0x180E,
     *range(0xFE00, 0xFE10), *range(0xE0000, 0xE0080)]
)  # fmt: skip
_DASHES: Final = frozenset("‐‑‒–—―−﹘﹣－")
_ESCAPES: Final = re.compile(
    r"\\+u(?P<u>[0-9a-fA-F]{4})|%(?P<p>[0-9a-fA-F]{2})|&#x(?P<x>[0-9a-fA-F]{2,5});|&#(?P<d>[0-9]{2,6});|&(?P<n>amp|commat|period|colon|lt|gt|quot);"
)
_NAMED: Final = {"amp": "&", "commat": "@", "period": ".", "colon": ":", "lt": "<", "gt": ">", "quot": '"'}


class Folded:
    """Folded text and where each of its characters comes from.

    Attributes:
        text: What to search.
        starts: Original start of each folded character.
        ends: Original end of each folded character.
    """

    __slots__ = ("ends", "starts", "text")

    def __init__(self, text: str, starts: list[int], ends: list[int]) -> None:
        self.text = text
        self.starts = starts
        self.ends = ends

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span of a folded one."""
        return self.starts[start], self.ends[end - 1]


def needs_folding(text: str) -> bool:
    """Whether folding can change anything; false for almost every string, and cheap to tell."""
    return not text.isascii() or "\\u" in text or "%" in text or "&" in text


def fold(text: str) -> Folded:
    """Unescape, then fold each character (NFKC, digits, dashes, spaces) and leave out invisible ones."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def add(characters: str, start: int, end: int) -> None:
        for character in characters:
            out.append(character)
            starts.append(start)
            ends.append(end)

    position = 0
    for match in _ESCAPES.finditer(text):
        for index in range(position, match.start()):
            add(_folded(text[index]), index, index + 1)
        add(_folded(_unescaped(match)), *match.span())
        position = match.end()
    for index in range(position, len(text)):
        add(_folded(text[index]), index, index + 1)
    return Folded("".join(out), starts, ends)


def _unescaped(match: re.Match[str]) -> str:
    if match["n"]:
        return _NAMED[match["n"]]
    code = int(match["d"]) if match["d"] else int(match["u"] or match["p"] or match["x"], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


def _folded(character: str) -> str:
    if len(character) != 1:
        return character
    if ord(character) in _INVISIBLE:
        return ""
    if character in _DASHES:
        return "-"
    if character.isspace():
        return " " if character not in "\n\r\t" else character
    if character < "\x80":
        return character
    digit = unicodedata.decimal(character, None)
    return str(digit) if digit is not None else unicodedata.normalize("NFKC", character)
