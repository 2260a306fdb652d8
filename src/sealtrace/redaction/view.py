"""A text in the forms that are fast to look in.

Python's own patterns are slow unless they begin with a literal, and `bytes.find` is fast. So a text
is mapped to classes, one character for all letters, one for all digits, and what is looked for
begins with the character of its class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

__all__ = ["View"]

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SIGNS: Final = "0123456789"
_SIXTEEN: Final = b"w" * 16


def _table(*classes: tuple[str, str], rest: str = " ") -> bytes:
    out = bytearray(rest.encode() * 256)
    for members, sign in classes:
        for member in members:
            out[ord(member)] = ord(sign)
    return bytes(out)


# What anchors are looked for in: capitals, brackets and quotes are each one.
_PLAIN: Final = bytes(range(256)).translate(
    bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ[{<]}>'", b'abcdefghijklmnopqrstuvwxyz((()))"')
)
_WORDS: Final = _table((_LETTERS + _SIGNS + "_-", "w"))
_NUMERIC: Final = _table((_SIGNS, "0"), (" .()/_\n-", "-"), rest="x")
_DIGITS: Final = re.compile(rb"0(?:-{0,2}0){6,}")
_DOTTED: Final = _table((_SIGNS, "0"), (".", "."))
_DOTS: Final = re.compile(rb"\.0{1,3}\.0{1,3}\.")
_HEX: Final = _table(("0123456789abcdefABCDEF", "h"), (":", ":"))
_COLONS: Final = re.compile(rb":h{0,4}:[h:]*")

Part = tuple[int, int]


class View:
    """A text and its other forms; positions are the same in all.

    Attributes:
        text: The text.
        raw: ASCII bytes, with a question mark for every other character.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode("ascii", "replace")

    @cached_property
    def plain(self) -> bytes:
        """Small letters, one kind of bracket, one kind of quote."""
        return self.raw.translate(_PLAIN)

    @cached_property
    def long_words(self) -> list[Part]:
        """Where sixteen or more word characters stand in a row: most tokens do, and so does all that was encoded."""
        words = self.raw.translate(_WORDS)
        out: list[Part] = []
        start = words.find(_SIXTEEN)
        while start >= 0:
            end = words.find(b" ", start + 16)
            end = end if end >= 0 else len(words)
            out.append((start, end))
            start = words.find(_SIXTEEN, end)
        return out

    @cached_property
    def _numeric(self) -> bytes:
        return self.raw.translate(_NUMERIC)

    @cached_property
    def _dotted(self) -> bytes:
        return self.raw.translate(_DOTTED)

    @cached_property
    def _hex(self) -> bytes:
        return self.raw.translate(_HEX)

    def numbers(self, part: Part) -> Iterator[Part]:
        """Runs of seven or more digits with separators between them."""
        for match in _DIGITS.finditer(self._numeric, *part):
            yield match.span()

    def dotted(self, part: Part) -> Iterator[int]:
        """Where something like an IPv4 address may begin."""
        for match in _DOTS.finditer(self._dotted, *part):
            low = max(0, match.start() - 3)
            yield low + len(self.text[low : match.start()].rstrip(_SIGNS))

    def colons(self, part: Part) -> Iterator[Part]:
        """Runs of hexadecimal digits with at least two colons."""
        for match in _COLONS.finditer(self._hex, *part):
            if match.end() - match.start() >= 3:
                yield match.span()

    @staticmethod
    def anchor(literal: str) -> bytes:
        """A literal as it stands in `plain`."""
        return literal.encode().translate(_PLAIN)
