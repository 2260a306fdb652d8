"""The words of long texts that come again and again: instructions, policies, descriptions of tools.

They are searched for what each run remembers. Knowing their words, it is quickly said that there is nothing.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["LONG", "WORD", "words_of"]

LONG: Final = 1024
"""Shorter texts are searched as fast as looked up."""

WORD: Final = re.compile(r"\w+")
_MAX_CHARACTERS: Final = 500_000
_LONGEST: Final = 50_000

_KNOWN: dict[str, frozenset[str] | None] = {}
_SIZE: Final = [0]
"""Characters of all that is known."""


def words_of(text: str) -> frozenset[str] | None:
    """All words of a text, their case folded, or None for one that is met for the first time."""
    words = _KNOWN.get(text)
    if words is None and len(text) <= _LONGEST:
        if text in _KNOWN:
            words = _KNOWN[text] = frozenset(WORD.findall(text.casefold()))
        else:
            if _SIZE[0] + len(text) > _MAX_CHARACTERS:
                _KNOWN.clear()
                _SIZE[0] = 0
            _SIZE[0] += len(text)
            _KNOWN[text] = None
    return words
