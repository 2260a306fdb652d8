"""Engines: where in a text may a detector match? All give the same answers, at different speeds.

The default engine needs nothing but the standard library. It does not run two hundred patterns over
the text. It looks for what no match can do without (a literal, seven digits, sixteen word characters
in a row), which most text does not have, and tries a pattern only there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias

from .detector import Detector
from .encodings import hidden
from .personal import FARTHEST_QUOTE, kind_named
from .view import View

__all__ = ["AnchorEngine", "Engine", "Found", "PlainEngine"]

Found: TypeAlias = tuple[int, int, str, int]
"""Start, end, kind and rank of a find; the detector listed first has the lowest rank."""

Rule: TypeAlias = tuple[int, Detector, re.Pattern[str]]
"""Rank, detector and its compiled pattern."""


class Engine(Protocol):
    """Finds what the detectors look for."""

    name: str

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """Everything found, in any order, also in what was base64- or hex-encoded.

        Args:
            text: What to search; NUL characters stand between strings.
            depth: How many layers of encoding have been taken off.
        """
        ...


class PlainEngine:
    """Every pattern over the whole text: slow, and the yardstick the others are tested against."""

    name = "plain"

    def __init__(self, detectors: Iterable[Detector]) -> None:
        self._rules = [(rank, detector, detector.compiled()) for rank, detector in enumerate(detectors)]

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        out: list[Found] = []
        for rank, detector, pattern in self._rules:
            position = 0
            while match := pattern.search(text, position):
                spans = tuple(detector.spans(text, match))
                out += [(start, end, kind, rank) for start, end, kind in spans]
                # What was no find may hide one that begins a little later.
                position = max(match.end(), match.start() + 1) if spans else match.start() + 1
        return out + hidden(text, View(text).long_words, self.find, depth)


class AnchorEngine:
    """Anchors first, patterns only where an anchor was found.

    Args:
        detectors: What to look for.
    """

    name = "anchors"

    def __init__(self, detectors: Iterable[Detector]) -> None:
        rules = [(rank, detector, detector.compiled()) for rank, detector in enumerate(detectors)]
        self._anchored = by_anchor(
            rule for rule in rules if rule[1].anchors and not rule[1].prefixes and rule[1].name not in SHAPES
        )
        self._words = by_prefix(rule for rule in rules if rule[1].prefixes)
        self._shaped = [(rule, SHAPES[rule[1].name]) for rule in rules if rule[1].name in SHAPES]

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        out: list[Found] = []
        view, whole = View(text), (0, len(text))
        if view.long_words:
            for start, end in view.long_words:
                find_word(text, start, end, self._words, out)
            out += hidden(text, view.long_words, self.find, depth)
        for rule, look in self._shaped:
            look(view, whole, rule, out)
        find_anchored(view, self._anchored, out)
        return out


def by_anchor(rules: Iterable[Rule]) -> list[tuple[bytes, list[Rule]]]:
    """Which rules an anchor may begin."""
    out: dict[bytes, list[Rule]] = defaultdict(list)
    for rule in rules:
        for anchor in dict.fromkeys(View.anchor(anchor) for anchor in rule[1].anchors):
            out[anchor].append(rule)
    return list(out.items())


def by_prefix(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """Which rules a long word's first two characters allow."""
    out: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        for prefix in dict.fromkeys(prefix[:2] for prefix in rule[1].prefixes):
            out[prefix].append(rule)
    return dict(out)


def find_anchored(view: View, anchored: Iterable[tuple[bytes, list[Rule]]], out: list[Found]) -> None:
    """Rules whose anchor stands in the text."""
    plain = view.whole
    for anchor, rules in anchored:
        position = plain.find(anchor)
        while position >= 0:
            position = plain.find(anchor, match_at(view.text, position, rules, out))


def match_at(text: str, anchor: int, rules: list[Rule], out: list[Found]) -> int:
    """The rules whose anchor stands here.

    Returns:
        Where to look for the anchor next: what was found is not searched for more of the same.
    """
    following = anchor + 1
    for rank, detector, pattern in rules:
        match = _match_at(text, anchor, detector, pattern) if detector.reach else pattern.match(text, anchor)
        if match is None:
            continue
        for first, last, kind in detector.spans(text, match):
            out.append((first, last, kind, rank))
            if len(rules) == 1 and last > following:
                following = last
    return following


def _match_at(text: str, anchor: int, detector: Detector, pattern: re.Pattern[str]) -> re.Match[str] | None:
    low = max(0, anchor - detector.reach)
    if not detector.lead:
        return pattern.search(text, low, anchor + 300)
    before = text[low:anchor]
    if " " in detector.lead and before.endswith(" "):
        before = before[:-1]
    return pattern.match(text, low + len(before.rstrip(detector.lead.replace(" ", ""))))


_PART: Final = re.compile(r"[-_=./~+@][A-Za-z0-9_]")
_LEAD: Final = re.compile(r"[A-Za-z0-9_~.+/=@-]{0,48}\Z")


def find_word(text: str, start: int, end: int, words: dict[str, list[Rule]], out: list[Found]) -> None:
    """Tokens that begin in this long word, or shortly before it."""
    begins = [start]
    if start and text[start - 1] in "./~+=@":
        lead = _LEAD.search(text, max(0, start - 48), start)
        first = lead.start() if lead else start
        begins = [first, *[first + part.start() + 1 for part in _PART.finditer(text[first:start])], start]
    if end - start > 20:
        begins += [part.start() + 1 for part in _PART.finditer(text, start, end)]
    done = -1
    for begin in begins:
        if begin < done:
            continue
        for rank, detector, pattern in words.get(text[begin : begin + 2], ()):
            found = pattern.match(text, begin)
            if found is None:
                continue
            for low, high, kind in detector.spans(text, found):
                out.append((low, high, kind, rank))
                done = max(done, high)


def find_numbers(view: View, part: tuple[int, int], rule: Rule, out: list[Found]) -> None:
    """Cards, social security numbers, IBANs, telephone numbers."""
    for run in view.numbers(part):
        find_number(view, run, rule, out)


def find_number(view: View, run: tuple[int, int], rule: Rule, out: list[Found]) -> None:
    """The same in one run of digits, from its first to its last."""
    rank, detector, _ = rule
    if detector.resolve is not None:
        out += [(first, last, kind, rank) for first, last, kind in detector.resolve(view.text, *run)]


def find_ipv4(view: View, part: tuple[int, int], rule: Rule, out: list[Found]) -> None:
    """IPv4 addresses: where three dots stand near enough to each other."""
    rank, detector, pattern = rule
    for start in view.dotted(part):
        match = pattern.match(view.text, start)
        if match is not None:
            out += [(first, last, kind, rank) for first, last, kind in detector.spans(view.text, match)]


def find_ipv6(view: View, part: tuple[int, int], rule: Rule, out: list[Found]) -> None:
    """IPv6 addresses: only where two colons stand near enough to each other."""
    rank, detector, pattern = rule
    text = view.text
    for start, end in view.colons(part):
        high = min(len(text), end + 16)
        position = max(0, start - 4)
        while match := pattern.search(text, position, high):
            spans = tuple(detector.spans(text, match))
            out += [(first, last, kind, rank) for first, last, kind in spans]
            if spans or match.start() >= start:
                break
            position = match.start() + 1


def find_fields(view: View, part: tuple[int, int], rule: Rule, out: list[Found]) -> None:
    """Values given away by a quoted name: only where a colon stands behind the quote that ends a telling one."""
    rank, detector, pattern = rule
    text, plain = view.text, view.whole
    colon = plain.find(b":", *part)
    while colon >= 0:
        following = colon + 1
        close = colon - 2 if plain[colon - 1] == _SPACE else colon - 1
        opening = plain.rfind(b'"', max(0, close - FARTHEST_QUOTE), close) if plain[close] == _QUOTE else -1
        if opening >= 0 and kind_named(text[opening + 1 : close]) is not None:
            match = pattern.match(text, close)
            for first, last, kind in detector.spans(text, match) if match is not None else ():
                out.append((first, last, kind, rank))
                following = last
        colon = plain.find(b":", following, part[1])


_SPACE: Final = ord(" ")
_QUOTE: Final = ord('"')

SHAPES: Final[dict[str, Callable[[View, tuple[int, int], Rule, list[Found]], None]]] = {
    "number": find_numbers,
    "ipv4": find_ipv4,
    "ipv6": find_ipv6,
    "field_in_text": find_fields,
}
"""How detectors are found that have no anchor, or too common a one, by name."""
