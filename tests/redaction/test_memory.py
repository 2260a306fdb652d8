"""What a field gave away is found in the text of the same run, in whatever way it is written."""

from __future__ import annotations

import random
import re

import pytest

from sealtrace.errors import RedactionFailed
from sealtrace.redaction.memory import RunMemory

_TAG = "<NAME:abcdefghijkl>"


def _replaced(text: str, *values: str) -> str:
    memory = RunMemory()
    for number, value in enumerate(values):
        memory.remember(value, f"[{number}]")
    return memory.replacements([text]).get(text, (text, 0))[0]


@pytest.mark.parametrize(
    ("text", "values", "safe"),
    [
        ("Quux, QUUX; quux!", ["Quux"], "[0], [0]; [0]!"),
        ("Quuxes Quux_1 xQuux 1Quux", ["Quux"], "Quuxes Quux_1 xQuux 1Quux"),
        ("Anna Quux and Anna", ["Anna", "Anna Quux"], "[1] and [0]"),
        ("Anna Quux Vale", ["Quux Vale", "Anna Quux"], "[1] Vale"),
        ("Straße, STRASSE, straße", ["Strasse"], "[0], [0], [0]"),
        ("in Große Straße 5, ﬁn", ["große straße"], "in [0] 5, ﬁn"),
        ("İzmir und İzmir.", ["İzmir"], "[0] und [0]."),
        ("Masse, Maße", ["Maße"], "[0], [0]"),
        ("ßss", ["sssß"], "ßss"),
        ("Quux (Vale) Quux", ["(Vale)"], "Quux [0] Quux"),
        (f"Quux {_TAG} Quux", ["Quux", "abcdefghijkl"], f"[0] {_TAG} [0]"),
        (f"a{_TAG}Quux", ["NAME:abcdefghijkl>Quux", "Quux"], f"a{_TAG}[1]"),
        ("one two one two", ["one two"], "[0] [0]"),
        ("", ["Quux"], ""),
    ],
)
def test_a_value_is_found_where_it_stands_alone(text: str, values: list[str], safe: str) -> None:
    """In any case, also where folding makes two letters of one; never within a word, never within a pseudonym."""
    assert _replaced(text, *values) == safe


def test_it_is_what_a_pattern_of_all_values_would_find() -> None:
    """The first wins, and the longest of those: as in one pattern with the longest first, which could stall."""
    draw = random.Random(5)
    words = ["alpha", "beta", "gamma delta", "alpha beta", "beta gamma", "zeta-eta", "delta"]
    for _ in range(500):
        values = draw.sample(words, 4)
        text = "".join(draw.choice([*words, *words, "x", "_"]) + draw.choice([" ", " ", "-", ""]) for _ in range(12))
        longest = sorted(values, key=len, reverse=True)
        pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
        numbers = {value: f"[{number}]" for number, value in enumerate(values)}
        assert _replaced(text, *values) == re.sub(pattern, lambda match, known=numbers: known[match[0]], text)


def test_a_text_made_of_near_misses_is_dropped() -> None:
    """Work has a bound, and what is not searched to the end is not stored."""
    memory = RunMemory()
    for size in range(4, 200):
        memory.remember("a" * size, "[0]")
    with pytest.raises(RedactionFailed, match="almost"):
        memory.replacements(["a" * 250_000])
