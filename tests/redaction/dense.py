"""Short texts full of what numbers, addresses, names and encodings are made of; does compiled code see them all?

    python tests/redaction/dense.py CASES [SEED]

By itself it needs no pytest, so that it can run under a sanitizer.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from typing import Final

import sealtrace_fast

from sealtrace.redaction.detectors import built_in
from sealtrace.redaction.encodings import hidden
from sealtrace.redaction.engine import SHAPES, Found
from sealtrace.redaction.fields import FIELD_WORDS
from sealtrace.redaction.personal import named_value
from sealtrace.redaction.view import View

__all__ = ["differences", "texts"]

_NAMES: Final = sealtrace_fast.names([word for word in FIELD_WORDS if word.isascii() and word.isalpha()])
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_-]{16,}")
_RULES: Final = [
    {detector.name: (rank, detector, detector.compiled()) for rank, detector in enumerate(built_in(profile))}
    for profile in ("strict", "balanced")
]
_CODES: Final = {"number": sealtrace_fast.NUMBER, "ipv4": sealtrace_fast.IPV4, "ipv6": sealtrace_fast.IPV6}

_WORDS: Final = """
    0 1 9 12 2024 05 15 31 13 20 19 - - . . : : :: _ / ( ) + x T a f = \\ " ' ? é ٣ DE GB NWBK GB29 \\" 2024-05-15
    4111111111111111 555 0100 078-05-1120 192.168.1.77 10.0.0 1.2.3.4 fe80 2001:db8 1:2:3:4:5:6 1:2:3:4:5:6:7:8
    2a00:1450:4001:81a::200e GB82WEST12345698765432 credit_card_5832574 first_name ip cvv2 address1 lastName name Mia
    string password hunter22 dGVzdEBleGFtcGxlLmNvbQ QUtJQUlPU0ZPRE5ON0VYQU1QTEU 6d69612e6761726369614065
    ABCDEFGHIJKLMNOPQRST
"""
PIECES: Final = (
    *_WORDS.split(),
    *(" ", " ", "\n", "\x00", '": "', '":"', "': '", '\\": \\"', "number ", "phone ", "ssn ", "card "),
    *("4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"),
)


def texts(seed: int, cases: int) -> Iterator[str]:
    """That many texts, the same for the same seed."""
    draw = random.Random(seed)
    for _ in range(cases):
        yield "".join(draw.choices(PIECES, k=draw.randint(1, 60)))


def differences(text: str) -> list[str]:
    """What the default engine's code finds in all of the text, and not at the places that compiled code names."""
    view = View(text)
    runs, named = sealtrace_fast.look(_NAMES, view.raw)
    out: list[str] = []
    for rules in _RULES:
        for name, code in _CODES.items():
            whole: list[Found] = []
            placed: list[Found] = []
            SHAPES[name](view, (0, len(text)), rules[name], whole)
            for kind, start, end in runs:
                if kind == code:
                    SHAPES[name](view, (start, end), rules[name], placed)
            if set(whole) != set(placed):
                out.append(f"{name}: {whole} {placed}")
    if _fields(text) != {
        (start, end, kind)
        for first, last, start, end in named
        if (kind := named_value(text[first:last], text[start:end])) is not None
    }:
        out.append(f"field_in_text: {named}")
    words = [
        match.span()
        for kind, start, end in runs
        if kind == sealtrace_fast.ENCODED
        for match in _LONG_WORD.finditer(text, start, end)
    ]
    if _decoded(text, view.long_words) != _decoded(text, words):
        out.append(f"encoded: {words}")
    return out


def _fields(text: str) -> set[tuple[int, int, str]]:
    _, detector, pattern = _RULES[0]["field_in_text"]
    out: set[tuple[int, int, str]] = set()
    position = 0
    while match := pattern.search(text, position):
        out |= set(detector.spans(text, match))
        position = match.start() + 1
    return out


def _decoded(text: str, words: list[tuple[int, int]]) -> list[Found]:
    """All that can be decoded counts as found."""
    return hidden(text, words, lambda inner, _: [(0, len(inner), "SECRET", 0)], 0)


def _main() -> None:
    cases, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for text in texts(seed, cases):
        found = differences(text)
        if found:
            sys.exit(f"{text!r}: {found}")
    sys.stdout.write(f"{cases} texts seen alike by {sealtrace_fast.__file__}\n")


if __name__ == "__main__":
    _main()
