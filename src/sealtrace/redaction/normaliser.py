"""Sees through spellings: full-width digits, invisible characters, odd dashes, escapes.

The text that is searched is a folded one; what is replaced is the original, so the folded text knows
where its pieces come from. Only runs that are not plain ASCII and escapes are touched, which keeps
folding cheap for ordinary prose.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from typing import Final

from .remembered import remembered

__all__ = ["Folded", "escapes_in", "fold"]

_MAX_ROUNDS: Final = 3
_BLOCK: Final = 256
_KNOWN: Final = 64
"""Characters of a run that is remembered."""

_INVISIBLE: Final = frozenset(
    chr(code)
    for block in (
        range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0xFE00, 0xFE10),
        range(0xE0000, 0xE0200), range(0x180B, 0x1810), range(0x1D173, 0x1D17B),
        (0xFEFF, 0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, 0x2800),
    )
    for code in block
)  # fmt: skip
_DASHES: Final = frozenset("‐‑‒–—―−﹘﹣－⁃⸺⸻─━˗➖")
_DOTS: Final = frozenset("․。．｡")
# Letters of other alphabets that look like Latin ones; folded only where Latin letters stand next to them.
_LOOKALIKES: Final = dict(
    zip(
        "аеорсухіјѕԁһӏԛԝьАВЕКМНОРСТХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανικρτυχɡⅼ",
        "aeopcyxijsdhlqwbABEKMHOPCTXIJSABEZHIKMNOPTYXoavikptuxgl",
        strict=True,
    )
)
# One pattern for each way to write a character, each beginning with a literal: that is what makes them fast.
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_BACKSLASH: Final = r"\\{1,8}(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|x[0-9a-fA-F]{2})"
_AMPERSAND: Final = (
    r"&(?:#[xX][0-9a-fA-F]{2,5};?|#[0-9]{2,6};?"
    r"|(?:amp|commat|period|colon|lowbar|hyphen|dash|lt|gt|quot|nbsp|shy|lpar|rpar|plus|num|sol|equals);)"
)
_WAYS: Final = (
    (
        "\\",
        re.compile(
            rf"\\(?:\\){{0,7}}(?:u[0-9a-fA-F]{{4}}|u\{{[0-9a-fA-F]{{1,6}}\}}|x[0-9a-fA-F]{{2}})(?:{_BACKSLASH})*"
        ),
    ),
    ("%", re.compile(r"%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*")),
    ("&", re.compile(rf"{_AMPERSAND}(?:{_AMPERSAND})*")),
    ("U", re.compile(r"U\+[0-9a-fA-F]{4}(?:U\+[0-9a-fA-F]{4})*")),
)
"""A character an escape cannot do without, which is looked for faster than anything longer, and the escape."""

_ESCAPE: Final = re.compile(
    r"\\{1,8}(?:u(?P<u>[0-9a-fA-F]{4})|u\{(?P<v>[0-9a-fA-F]{1,6})\}|x(?P<b>[0-9a-fA-F]{2}))|U\+(?P<w>[0-9a-fA-F]{4})"
    r"|&#[xX](?P<x>[0-9a-fA-F]{2,5});?|&#(?P<d>[0-9]{2,6});?|&(?P<n>[a-z]+);|(?P<p>(?:%[0-9a-fA-F]{2})+)"
)
_NAMED: Final = {
    "amp": "&", "commat": "@", "period": ".", "colon": ":", "lowbar": "_", "hyphen": "-", "dash": "-", "lt": "<",
    "gt": ">", "quot": '"', "nbsp": " ", "shy": "", "lpar": "(", "rpar": ")", "plus": "+", "num": "#", "sol": "/",
    "equals": "=",
}  # fmt: skip


class Folded:
    """Folded text and where its pieces come from.

    Attributes:
        text: What to search.
    """

    __slots__ = ("_pieces", "_starts", "text")

    def __init__(self, text: str, pieces: list[tuple[int, int, int, int]]) -> None:
        # A piece is (folded start, folded end, original start, original end); between pieces lengths agree.
        self.text = text
        self._pieces = pieces
        self._starts = [piece[0] for piece in pieces]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original span of a folded one; a piece is taken whole."""
        return self._original(start, first=True), self._original(end, first=False)

    def _original(self, position: int, *, first: bool) -> int:
        # `end` is exclusive, so it belongs to the piece of the character before it.
        at = position if first else position - 1
        index = bisect_right(self._starts, at) - 1
        if index < 0:
            return position
        _, folded_end, start, end = self._pieces[index]
        if at < folded_end:
            return start if first else end
        return end + (position - folded_end)


def escapes_in(text: str) -> list[re.Pattern[str]]:
    """The ways to write a character by others that are used in a text; none in almost every text."""
    return [way for sign, way in _WAYS if sign in text and way.search(text) is not None]


def fold(text: str) -> list[Folded]:
    """Unescape and fold, again while there is something left to unescape; each step maps to the one before it."""
    steps: list[Folded] = []
    while len(steps) < _MAX_ROUNDS and (step := _fold_once(text)) is not None:
        steps.append(step)
        text = step.text
    return steps


def _fold_once(text: str) -> Folded | None:
    out: list[str] = []
    pieces: list[tuple[int, int, int, int]] = []
    position = length = 0
    for start, end in _odd(text):
        if start < position:
            continue
        run = text[start:end]
        folded = _unescape(run) if run[0] < "\x80" else _fold_run(run, beside_latin=_latin_beside(text, start, end))
        if folded == run:
            continue
        out += (text[position:start], folded)
        length += start - position
        pieces.append((length, length + len(folded), start, end))
        length += len(folded)
        position = end
    if not pieces:
        return None
    out.append(text[position:])
    return Folded("".join(out).replace("\x00", " "), pieces)


def _odd(text: str) -> list[tuple[int, int]]:
    found = [] if text.isascii() else _not_ascii(text)
    for sign, way in _WAYS:
        if sign in text:
            found += [match.span() for match in way.finditer(text)]
    return sorted(found)


def _not_ascii(text: str) -> list[tuple[int, int]]:
    """Runs of characters that are not ASCII; they are rare in most texts, and a block without any is quickly passed."""
    found: list[tuple[int, int]] = []
    begin = -1
    for start in range(0, len(text), _BLOCK):
        if not text[start : start + _BLOCK].isascii():
            begin = start if begin < 0 else begin
        elif begin >= 0:
            found += [match.span() for match in _NOT_ASCII.finditer(text, begin, start)]
            begin = -1
    if begin >= 0:
        found += [match.span() for match in _NOT_ASCII.finditer(text, begin)]
    return found


def _latin_beside(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return before.isalnum() or after.isalnum() or before in {"@", ".", "-", "_"} or after in {"@", "_"}


@remembered(8192, longest=_KNOWN)
def _fold_run(run: str, *, beside_latin: bool) -> str:
    return "".join(_folded(character, beside_latin=beside_latin) for character in run)


def _folded(character: str, *, beside_latin: bool) -> str:
    if character in _INVISIBLE:
        return ""
    if character in _DASHES:
        return "-"
    if character in _DOTS:
        return "."
    if character.isspace():
        return " "
    digit = unicodedata.decimal(character, None)
    if digit is None:
        digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    if beside_latin and character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if "\ud800" <= character <= "\udfff":
        return character
    folded = unicodedata.normalize("NFKC", character)
    return folded if folded.isascii() else character


@remembered(8192, longest=_KNOWN)
def _unescape(run: str) -> str:
    return _ESCAPE.sub(_unescaped, run)


def _unescaped(match: re.Match[str]) -> str:
    if match["n"]:
        return _NAMED.get(match["n"], match[0])
    if match["p"]:
        raw = bytes.fromhex(match["p"].replace("%", ""))
        return raw.decode("utf-8", "replace") if b"\x00" not in raw else match[0]
    code = (
        int(match["d"]) if match["d"] else int(match["u"] or match["v"] or match["b"] or match["w"] or match["x"], 16)
    )
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]
