"""What Hyperscan is asked: for every detector a pattern that matches wherever the detector can find something.

A hint may match where there is nothing to find, and costs a look then; it must never be silent where
there is something. It says where it ends, nothing else, so it is cut short behind what is telling.
Names and telephone words are spelled out, because a pattern with letters in it is looked up by them,
and numbers are told from dates, because agents are told more dates than anything.
"""

from __future__ import annotations

import re
from typing import Final

from .detector import Detector
from .fields import FIELD_WORDS
from .names import NAME_ENDS, WEAK_NAME_ENDS

__all__ = ["DATE_IN_IBAN", "ENCODED", "hints"]

_S: Final = r"[ .()/_\n-]"
"""What may stand between the digits of a number."""

_GAP: Final = rf"{_S}{{0,2}}"
_WIDE: Final = rf"{_S}{{1,2}}"


def _one_of(*patterns: str) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _shortest(words: frozenset[str]) -> list[str]:
    """The words, without those that end with another of them."""
    return sorted(word for word in words if not any(word != other and word.endswith(other) for other in words))


def _field() -> str:
    """A quoted name that ends with a telling word, a colon, and the first letter of a quoted value."""
    ascii_words = frozenset(word for word in FIELD_WORDS if word.isascii())
    spread = ("[ _.-]*".join(re.escape(letter) for letter in word) for word in _shortest(ascii_words))
    return rf"(?i)(?:{'|'.join(spread)})[ _.-]*(?:[0-9]+[ _.-]*){{0,2}}\\{{0,3}}[\"'] ?: ?\\{{0,3}}[\"'][^\"'\\\x00]"


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


def _number() -> str:
    """Seven digits or more with little between them, but for a date that stands alone, as ISO 8601 writes it."""
    end = rf"(?:{_GAP}(?:[^0-9 .()/_\n-]|\z)|{_S}{{3}})"
    before = rf"(?:^{_GAP}|[^0-9 .()/_\n-]{_GAP}|{_S}{{3}})"
    # Seven digits that are not, from the right, dd-dd-ddd, nor unbroken: one of the six gaps is another.
    odd = rf"(?:[ .()/_\n]{_S}?|-{_S})"
    unlike = (_WIDE, _WIDE, odd, _WIDE, odd, _WIDE)
    seven = (
        "[0-9]" + "".join(f"{gap}[0-9]" for gap in [_GAP] * at + [gap] + [_GAP] * (5 - at)) + end
        for at, gap in enumerate(unlike)
    )
    month_day = "-[0-9]{2}-[0-9]{2}"
    return _one_of(
        *seven,
        rf"{before}[0-9]{{3}}{month_day}{end}",
        rf"[0-9]{_WIDE}[0-9]{{3}}{month_day}{end}",
        rf"(?:[03-9][0-9]|1[0-8]|2[1-9])[0-9]{{2}}{month_day}{end}",
        rf"(?:19|20)[0-9]{{2}}-(?:00|1[3-9]|[2-9][0-9])-[0-9]{{2}}{end}",
        rf"(?:19|20)[0-9]{{2}}-[0-9]{{2}}-(?:00|3[2-9]|[4-9][0-9]){end}",
        rf"[0-9]{{5}}{_WIDE}[0-9]{{2}}{end}",
        rf"[0-9]{{3}}{_WIDE}[0-9]{{4}}{end}",
        rf"[0-9]{{7}}{end}",
        rf"[0-9](?:{_GAP}[0-9]){{8}}{end}",
        rf"\+[(+]?[0-9](?:{_GAP}[0-9]){{6}}",
    )


DATE_IN_IBAN: Final = "[A-Za-z]{2}[0-9]{2}(?:[A-Za-z0-9 -]{0,16}[0-9]{4}|[0-9]{2})-[0-9]{2}-[0-9]{2}"
"""Not even a date is only a date where an account number's country and check digits stand before it."""

_FIRST: Final = "[CDI-Za-f]"
_SECOND: Final = "[ACD-HQS-Xgi-nwyz0-3]"
_THIRD: Final = "[ABEFIJMNQRUVYZcdghklopstwx014589_/-]"
ENCODED: Final = rf"(?:^|[^A-Za-z0-9+/_-])(?:(?:{_FIRST}{_SECOND}{_THIRD}[A-Za-z0-9+/_-]){{5}}|[0-9a-fA-F]{{16}})"
"""What base64 makes of fifteen readable bytes (of each four letters, three have bits that never differ), or hex."""

_CUT: Final[dict[str, str]] = {
    "private_key": "-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,1000}\.[A-Za-z0-9_-]{8}",
    "curl_user": "(?i)curl",
    "email": r"[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2}",
    "media": r"data:[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,80}(?:;[A-Za-z0-9.=+-]{1,80}){0,4};base64,",
    "ipv4": r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]",
    "ipv6": "(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]|::[0-9A-Fa-f]|[0-9A-Fa-f]::",
    "field_in_text": _field(),
    "assigned": _assigned(),
    "number": _number(),
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
