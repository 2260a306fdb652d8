"""Cards, social security numbers, IBANs and telephone numbers: told apart in one run of digits.

One cheap pattern finds runs of seven or more digits with separators between them; what the run is, is
decided here, from its groups, its check digits and the words around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from .detector import SEPARATOR, Detector, Span, context_before
from .validators import IBAN_COUNTRIES, card, iban, ssn

__all__ = ["number_detectors"]

RUN: Final = r"[0-9](?:[ .()/_\n-]{0,2}[0-9]){6,}"
_GROUP: Final = re.compile(r"[0-9]+")
_NOT_ALNUM: Final = re.compile(r"[^0-9A-Za-z]+")

_PHONE_BEFORE: Final = re.compile(
    r"(?i)(?:^|[^a-z])(?:tele)?(?:phones?|fon|fono|fax|mobiles?|mobil|handy|cell(?:ular|phone)?|tel|desk|office|whatsapp|sms|landline|dial"
    r"|call(?:ed|ing)?(?: (?:me|us|him|her|them|back|at|on|the))*|(?:reach|text|contact|ring)(?:ed|ing)?"
    r"(?: (?:me|us|him|her|them|at|on|you))*"
    r"|answering(?: at)?|messages?(?: (?:to|on|at|my|registered))*"
    r"|me(?: back)? (?:on|at)|my (?:registered|new) |number(?: is| to)?)"
    r"(?:[^a-z]|$)"
)
_EXTENSION: Final = re.compile(r" ?(?:x|ext\.? ?)[0-9]{1,6}")
_PHONE_STEMS: Final = ("fon", "pho", "mob", "cel", "tel", "fax", "call", "desk", "off", "what", "sms", "land", "dial",
                       "reach", "text", "cont", "ring", "answ", "mess", "me ", "my ", "num", "hand")  # fmt: skip
_PHONE_AFTER: Final = re.compile(r"(?i)[ \t,;(-]{0,3}(?:office|fax|mobile|cell|tel|phone|desk|home|work|ext)\b")
_CARD_BEFORE: Final = re.compile(
    r"(?i)(?:^|[^a-z])(?:cards?|credit|debit|cc|visa|mastercard|maestro|amex|karte|carte|tarjeta)(?:[^a-z]|$)"
)
_SSN_BEFORE: Final = re.compile(r"(?i)(?:^|[^a-z])(?:ssn|social[ -]?security|sin|tax[ -]?id|itin|taxpayer)(?:[^a-z]|$)")
_NOT_A_PHONE_BEFORE: Final = re.compile(
    r"(?i)(?:version|uuid|sha|commit|order|invoice|ticket|tracking|isbn|ean|sku|item|flight|price|usd|eur|epoch|timestamp"
    r"|port|line|size|bytes|offset|id|[#$€£])[\"':= #]{0,4}$"
)
_DATE: Final = re.compile(
    r"(?:19|20)[0-9]{2}[-/._]?(?:0[1-9]|1[0-2])[-/._]?(?:0[1-9]|[12][0-9]|3[01])(?:[ _.-]?[0-9]{0,6})?\b"
    r"|(?:[0-9]{1,2}[-/.]){2}(?:19|20)[0-9]{2}\b|(?:19|20)[0-9]{2} ?[-/] ?(?:19|20)[0-9]{2}\b"
)


# Agents are told more dates than anything, most of them as ISO 8601 writes them, with nothing tied to them.
_LONE_DATE: Final = re.compile(
    r"[\s\"':,;\[{>](?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:[\s\"',;\]}.<\\]|\Z)"
)
_SHORTEST_CARD: Final = 12


def number_detectors(*, strict: bool) -> tuple[Detector, ...]:
    """The one detector that finds them all."""

    def resolve(text: str, start: int, end: int) -> Iterable[Span]:
        return _classified(text, start, end, strict=strict)

    return (Detector("number", "NUMBER", RUN, (), resolve=resolve),)


def _classified(text: str, start: int, end: int, *, strict: bool) -> Iterator[Span]:
    if end - start == 10 and _LONE_DATE.match(text, start - 1):
        return
    groups = [match.span() for match in _GROUP.finditer(text, start, end)]
    glued_left = start > 0 and text[start - 1].isalnum()
    if glued_left or text[end : end + 1].isalnum():
        found = _iban(text, start)
        if found is not None:
            yield found
            return
    if glued_left or (start > 0 and text[start - 1] == "_"):
        groups = groups[1:]
    if not groups:
        return
    if (text[end : end + 1].isalpha() or text[end : end + 1] == "_") and not text.startswith("x", end):
        groups = groups[:-1]
    rest: list[list[tuple[int, int]]] = [[]]
    enough = sum(high - low for low, high in groups) >= _SHORTEST_CARD
    index = 0
    while index < len(groups):
        size = (enough and _card_at(text, groups, index, strict=strict)) or _ssn_at(text, groups, index)
        if size is None:
            rest[-1].append(groups[index])
            index += 1
            continue
        count, kind = size
        yield groups[index][0], groups[index + count - 1][1], kind
        rest.append([])
        index += count
    for part in rest:
        found = _phone(text, part, strict=strict) if part else None
        if found is not None:
            yield found


def _card_at(text: str, groups: list[tuple[int, int]], index: int, *, strict: bool) -> tuple[int, str] | None:
    """How many groups from here are a card number; the longest that is one wins."""
    digits = ""
    best: int | None = None
    for offset in range(index, min(index + 19, len(groups))):
        low, high = groups[offset]
        digits += text[low:high]
        if len(digits) > 19:
            break
        if len(digits) >= _SHORTEST_CARD and card(digits) and _grouped_like_a_card(text, groups[index : offset + 1]):
            best = offset - index + 1
    if best is None:
        low, high = groups[index]
        if strict and _SHORTEST_CARD <= high - low <= 19 and _CARD_BEFORE.search(context_before(text, low, 32)):
            best = 1
    if best is None:
        return None
    # One unbroken number of this length is as often an id as a card: the odds of the check digit alone are one in ten.
    if best == 1 and not strict and not _likely_card(text, *groups[index]):
        return None
    return best, "CARD"


def _grouped_like_a_card(text: str, groups: list[tuple[int, int]]) -> bool:
    """One separator all the way, or groups of the size that is printed on cards whatever stands between."""
    sizes = [high - low for low, high in groups]
    if sizes[0] == 4 and sizes[1:] in ([4, 4, 4], [6, 5], [6, 4], [4, 4, 4, 3]):
        return True
    return len({text[a[1] : b[0]] for a, b in pairwise(groups)}) <= 1


def _likely_card(text: str, low: int, high: int) -> bool:
    return high - low in {15, 16} or _CARD_BEFORE.search(context_before(text, low, 48)) is not None


def _ssn_at(text: str, groups: list[tuple[int, int]], index: int) -> tuple[int, str] | None:
    low, high = groups[index]
    if high - low == 9:
        if ssn(text[low:high]) and _SSN_BEFORE.search(context_before(text, low, 32)):
            return 1, "SSN"
        return None
    if high - low != 3 or index + 2 >= len(groups):
        return None
    (a, b), (c, d) = groups[index + 1], groups[index + 2]
    between = text[high:a]
    if b - a != 2 or d - c != 4 or text[b:c] != between or between not in {"-", " ", ".", "/"}:
        return None
    if index + 3 < len(groups) and groups[index + 3][0] - d == 1 and text[d] == between:
        return None
    digits = text[low:high] + text[a:b] + text[c:d]
    named = _SSN_BEFORE.search(context_before(text, low, 32)) is not None
    return (3, "SSN") if (ssn(digits) and (between == "-" or named)) or (named and len(digits) == 9) else None


def _iban(text: str, start: int) -> Span | None:
    """An IBAN around the run of digits: it begins with letters, so to the left of it."""
    low = start
    while (
        low > 0
        and start - low < 16
        and (text[low - 1].isalnum() or text[low - 1] in " -")
        and text[low - 1] != SEPARATOR
    ):
        low -= 1
    for head in re.finditer(r"[A-Za-z]{2}[0-9]{2}", text[low : start + 3]):
        first = low + head.start()
        if text[first : first + 2].upper() not in IBAN_COUNTRIES or (first > 0 and text[first - 1].isalnum()):
            continue
        compact = ""
        last = first
        for position in range(first, min(first + 44, len(text))):
            character = text[position]
            if character.isalnum() and character.isascii():
                compact += character
                last = position
            elif character not in " -":
                break
        length = iban(compact)
        while length and len(compact) > length:
            compact = compact[:-1]
            last -= 1
            while text[last] in " -":
                last -= 1
        if length:
            return first, last + 1, "IBAN"
    return None


def _phone(text: str, groups: list[tuple[int, int]], *, strict: bool) -> Span | None:
    start, end = groups[0][0], groups[-1][1]
    sizes = [high - low for low, high in groups]
    total = sum(sizes)
    if total < 7:
        return None
    first = start
    while first > 0 and start - first < 2 and text[first - 1] in "(+":
        first -= 1
    plus = "+" in text[first:start]
    if "_" in text[start:end] or (_DATE.match(text, start, end) and not plus):
        return None
    if total > 15:
        return _intl_prefix(text, groups, first) if plus else None
    if "555" in text[start:end] and _fictional(text, groups):
        return None
    extension = _EXTENSION.match(text, end)
    last = extension.end() if extension else end
    if (plus and total >= 8) or _north_american(text, groups, sizes, first, strict=strict):
        return first, last, "PHONE"
    before = context_before(text, first, 40)
    likely = (
        _called_a_phone(before)
        or _PHONE_AFTER.match(text, last) is not None
        or (strict and _grouped_like_a_phone(text, groups, sizes, total))
    )
    return (first, last, "PHONE") if likely and _NOT_A_PHONE_BEFORE.search(before) is None else None


def _called_a_phone(before: str) -> bool:
    low = before.lower()
    return any(stem in low for stem in _PHONE_STEMS) and _PHONE_BEFORE.search(before) is not None


def _intl_prefix(text: str, groups: list[tuple[int, int]], first: int) -> Span | None:
    total, last = 0, 0
    for low, high in groups:
        if total + high - low > 15:
            break
        total += high - low
        last = high
    return (first, last, "PHONE") if total >= 8 and text[first] in "(+" else None


def _north_american(text: str, groups: list[tuple[int, int]], sizes: list[int], first: int, *, strict: bool) -> bool:
    trunk = sizes[:1] == [1] and text[groups[0][0]] == "1"
    core = groups[1:] if trunk else groups
    if [high - low for low, high in core] != [3, 3, 4] or text[core[0][0]] in "01":
        return False
    between = {text[core[0][1] : core[1][0]], text[core[1][1] : core[2][0]]}
    if any("\n" in part for part in between):
        return False
    return "(" in text[first : core[0][0]] or between <= {"-"} or (strict and between <= {".", " ", "-"})


def _grouped_like_a_phone(text: str, groups: list[tuple[int, int]], sizes: list[int], total: int) -> bool:
    """National formats without any word around: a leading 0, or pairs all the way."""
    between = {text[a[1] : b[0]] for a, b in pairwise(groups)}
    if (
        not 9 <= total <= 12
        or len(groups) < 2
        or len(between) > 2
        or any("\n" in part or "/" in part for part in between)
    ):
        return False
    return (text[groups[0][0]] == "0" and len(groups) >= 3) or (len(groups) == 5 and sizes[1:] == [2, 2, 2, 2])


def _fictional(text: str, groups: list[tuple[int, int]]) -> bool:
    """555-0100 to 555-0199 are set aside for fiction; surrogates are made of them."""
    return re.search(r"555-01[0-9]{2}\Z", text[groups[0][0] : groups[-1][1]]) is not None
