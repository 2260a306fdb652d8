"""A text in the forms that are fast to look in.

Python's own patterns are slow unless they begin with a literal, and `bytes.find` is fast. So a text
is mapped to classes, one character for all letters, one for all digits, and what is looked for
begins with the character of its class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

__all__ = ["Part", "View"]

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

Part: TypeAlias = tuple[int, int]
"""Where something starts and ends."""


class View:
    """A text and its other forms; positions are the same in all.

    Attributes:
        text: The text.
        raw: ASCII bytes, with a question mark for every other character.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode("ascii", "replace")
        # Kept here and not by `cached_property`, which before Python 3.12 has a lock that a fork may find taken.
        self._long_words: list[Part] | None = None
        self._whole: bytes | None = None

    def plain(self, start: int, end: int) -> bytes:
        """Part of the text in small letters, with one kind of bracket and one kind of quote."""
        return self.raw[start:end].translate(_PLAIN)

    @property
    def whole(self) -> bytes:
        """All of it as `plain`."""
        if self._whole is None:
            self._whole = self.raw.translate(_PLAIN)
        return self._whole

    @property
    def long_words(self) -> list[Part]:
        """Where sixteen or more word characters stand in a row: most tokens do, and so does all that was encoded."""
        if self._long_words is None:
            self._long_words = self._found_long_words()
        return self._long_words

    def _found_long_words(self) -> list[Part]:
        words = self.raw.translate(_WORDS)
        out: list[Part] = []
        start = words.find(_SIXTEEN)
        while start >= 0:
            end = words.find(b" ", start + 16)
            end = end if end >= 0 else len(words)
            out.append((start, end))
            start = words.find(_SIXTEEN, end)
        return out

    def numbers(self, part: Part) -> Iterator[Part]:
        """Runs of seven or more digits with separators between them."""
        start, end = part
        for match in _DIGITS.finditer(self.raw[start:end].translate(_NUMERIC)):
            yield start + match.start(), start + match.end()

    def dotted(self, part: Part) -> Iterator[int]:
        """Where something like an IPv4 address may begin."""
        start, end = part
        for match in _DOTS.finditer(self.raw[start:end].translate(_DOTTED)):
            dot = start + match.start()
            low = max(0, dot - 3)
            yield low + len(self.text[low:dot].rstrip(_SIGNS))

    def colons(self, part: Part) -> Iterator[Part]:
        """Runs of hexadecimal digits with two colons in a row, or so many that an address needs none."""
        start, end = part
        for match in _COLONS.finditer(self.raw[start:end].translate(_HEX)):
            run = match[0]
            if len(run) >= 3 and (b"::" in run or run.count(b":") >= 6):
                yield start + match.start(), start + match.end()

    @staticmethod
    def anchor(literal: str) -> bytes:
        """A literal as it stands in `plain`."""
        return literal.encode().translate(_PLAIN)
