"""What Hyperscan is asked: for every detector a pattern that matches wherever the detector can find something.

A hint may match where there is nothing to find, and costs a look then; it must never be silent where
there is something. It says where it ends, nothing else, so it is cut short behind what is telling.
Names are spelled out, because a pattern with letters in it is looked up by them. What is known by no
letters (numbers, addresses) is not asked of Hyperscan.
"""

from __future__ import annotations

import re
from typing import Final

from .detector import Detector
from .names import NAME_ENDS, WEAK_NAME_ENDS

__all__ = ["hints"]


def _one_of(*patterns: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _shortest(words: frozenset[str]) -> list[str]:
    """The words, without those that end with another of them."""
    return sorted(word for word in words if not any(word != other and word.endswith(other) for other in words))


def _assigned() -> str:
    """A name that ends as the name of a secret does, what ties it to a value, and three letters of that.

    What `assigned` never takes is left out: a name that tells little with nothing but space behind it
    (unless it is an option, or a key of something), and a list of words without quotes.
    """
    more = r"[_.-]{0,8}(?:_?(?:value|str|string|text|plain|raw|old|new|current|confirm|confirmation)|[0-9]+)?[_.-]{0,8}"
    weak = "|".join(_shortest(WEAK_NAME_ENDS))
    surer = "|".join(word.replace("_", "[_.-]{1,8}") for word in _shortest(NAME_ENDS - WEAK_NAME_ENDS))
    closed, opened, quote = r"(?:\\{0,2}[\"'`\])]{1,2}|</?)", r"(?:[A-Za-z]{2,12}\(|[\[({])", r"\\{0,2}[\"'`]"
    ties = r"(?:[:?|]{0,3}=>?|:{1,2}|>|[ \t]is|[ \t]was|->)"
    line = r"[ \t]{0,4}(?:\n[ \t]{0,8}(?:value:[ \t])?)?"
    tie = rf"{closed}?[ \t]{{0,4}}(?:{ties}{line}{opened}?(?:{quote})?|,{line}{opened}?{quote})"
    space = "[ \\t]{1,5}"
    marked = rf"(?:{closed}{space}{opened}?(?:{quote})?|{space}(?:{opened}(?:{quote})?|{quote}))"
    names = _one_of(
        rf"(?:{weak}|{surer}){more}(?:{tie}|{marked})",
        rf"(?:{surer}|[A-Za-z0-9_.-]key|-[A-Za-z0-9_.-]{{0,60}}(?:{weak})){more}{space}",
    )
    return rf"(?i)(?:{names})[^\s\x00\"'`<>,;()\[\]{{}}\\]{{3}}"


_CUT: Final[dict[str, str]] = {
    "private_key": "-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,1000}\.[A-Za-z0-9_-]{8}",
    "curl_user": "(?i)curl",
    "email": r"[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2}",
    "media": r"data:[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,80}(?:;[A-Za-z0-9.=+-]{1,80}){0,4};base64,",
    "assigned": _assigned(),
}

_OPEN_END: Final = re.compile(r"\{(\d+),\d*\}\Z")
_OPTIONAL_END: Final = re.compile(r"(?:\[[^]]*\]|=)\{0,?\d*\}\Z")


def hints(detector: Detector) -> str:
    """The pattern whose silence says that the detector finds nothing."""
    cut = _CUT.get(detector.name)
    if cut is not None:
        return cut
    pattern = _OPEN_END.sub(r"{\1}", _OPTIONAL_END.sub("", detector.pattern))
    return _OPTIONAL_END.sub("", pattern)
