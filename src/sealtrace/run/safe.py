"""Makes recorded text harmless on a terminal.

What a model or a tool wrote may hold escape sequences that move the cursor, set the clipboard (OSC
52) or draw links (OSC 8), and direction marks that make text read as something else. None of them
reaches a terminal from here: each becomes a visible sign.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["neutralise", "one_line"]

_SUSPECT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
"""Controls other than newline and tab, format characters (joiners of emoji and scripts excepted),
blank letters, lone surrogates, tags, private planes."""

_PICTURES: Final = 0x2400
"""U+2400 and up are pictures of the C0 controls, one for one."""


def neutralise(text: str) -> str:
    """The text with every character a terminal could obey, or a reader could not see, made visible.

    Newline and tab stay. C0 controls become their pictures (`␛`), all else `⟨U+202E⟩`. The result
    is stable: neutralising it again changes nothing.
    """
    return _SUSPECT.sub(_visible, text)


def one_line(text: str, limit: int = 120) -> str:
    """As `neutralise`, without newlines and tabs, cut to `limit` characters."""
    flat = neutralise(text).replace("\n", "␊").replace("\t", " ")
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def _visible(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code < 0x20:
        return chr(_PICTURES + code)
    if code == 0x7F:
        return "␡"
    return f"⟨U+{code:04X}⟩"
