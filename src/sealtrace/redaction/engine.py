"""Engines: where in a text may a detector match? All give the same answers, at different speeds.

The default engine needs nothing but the standard library. It does not run two hundred patterns over
the text. It looks for what no match can do without (a literal, seven digits, sixteen word characters
in a row), which most text does not have, and tries a pattern only there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeAlias

from .detector import Detector
from .encodings import hidden

__all__ = ["AnchorEngine", "Engine", "Found", "PlainEngine"]

Found: TypeAlias = tuple[int, int, str, int]
"""Start, end, kind and rank of a find; the detector listed first has the lowest rank."""

_Rule: TypeAlias = tuple[int, Detector, re.Pattern[str]]
_WORD: Final = re.compile(r"[A-Za-z0-9_-]{16,}")


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
        return out + hidden(text, [match.span() for match in _WORD.finditer(text)], self.find, depth)


def _match_at(text: str, anchor: int, detector: Detector, pattern: re.Pattern[str]) -> re.Match[str] | None:
    if not detector.reach:
        return pattern.match(text, anchor)
    low = max(0, anchor - detector.reach)
    if not detector.lead:
        return pattern.search(text, low, anchor + 300)
    before = text[low:anchor]
    if " " in detector.lead and before.endswith(" "):
        before = before[:-1]
    return pattern.match(text, low + len(before.rstrip(detector.lead.replace(" ", ""))))


_PART: Final = re.compile(r"[-_=][A-Za-z0-9]")
_DOTTED: Final = re.compile(r"[A-Za-z0-9_~.-]{0,24}\Z")
_HEX: Final = bytes(
    code if code == ord(":") else ord("h") if chr(code) in "0123456789abcdefABCDEF" else ord(" ") for code in range(256)
)
# What anchors are looked for in: capitals, brackets and quotes are each one.
_PLAIN: Final = bytes(range(256)).translate(
    bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ[{<]}>'", b'abcdefghijklmnopqrstuvwxyz((()))"')
)
_COLONS: Final = re.compile(rb":h{0,4}:[h:]*")


class AnchorEngine:
    """Anchors first, patterns only where an anchor was found.

    Args:
        detectors: What to look for.
    """

    name = "anchors"

    def __init__(self, detectors: Iterable[Detector]) -> None:
        self._words: dict[str, list[_Rule]] = defaultdict(list)
        self._anchored: list[tuple[bytes, list[_Rule]]] = []
        self._patterns: list[_Rule] = []
        self._ipv6: list[_Rule] = []
        anchored: dict[bytes, list[_Rule]] = defaultdict(list)
        for rank, detector in enumerate(detectors):
            rule = (rank, detector, detector.compiled())
            for prefix in dict.fromkeys(prefix[:2] for prefix in detector.prefixes):
                self._words[prefix].append(rule)
            if detector.prefixes:
                continue
            if detector.name == "ipv6":
                self._ipv6.append(rule)
            elif detector.anchors:
                for anchor in detector.anchors:
                    rules = anchored[anchor.encode().translate(_PLAIN)]
                    if rule not in rules:
                        rules.append(rule)
            else:
                self._patterns.append(rule)
        self._anchored = list(anchored.items())

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        out: list[Found] = []
        runs = [match.span() for match in _WORD.finditer(text)]
        if runs:
            for start, end in runs:
                self._word(text, start, end, out)
            out += hidden(text, runs, self.find, depth)
        for rank, detector, pattern in self._patterns:
            for hit in pattern.finditer(text):
                out += [(start, end, kind, rank) for start, end, kind in detector.spans(text, hit)]
        raw = text.encode("ascii", "replace")
        low = raw.translate(_PLAIN)
        for anchor, rules in self._anchored:
            position = low.find(anchor)
            while position >= 0:
                for rank, detector, pattern in rules:
                    match = _match_at(text, position, detector, pattern)
                    if match is not None:
                        out += [(start, end, kind, rank) for start, end, kind in detector.spans(text, match)]
                position = low.find(anchor, position + 1)
        if b":" in raw:
            out += self._addresses(text, raw)
        return out

    def _word(self, text: str, start: int, end: int, out: list[Found]) -> None:
        words = self._words
        begins = [start]
        if start and text[start - 1] in "./~+=@":
            lead = _DOTTED.search(text, max(0, start - 24), start)
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

    def _addresses(self, text: str, raw: bytes) -> Iterator[Found]:
        for colons in _COLONS.finditer(raw.translate(_HEX)):
            if colons.end() - colons.start() < 3:
                continue
            high = min(len(text), colons.end() + 16)
            for rank, detector, pattern in self._ipv6:
                position = max(0, colons.start() - 4)
                while match := pattern.search(text, position, high):
                    spans = tuple(detector.spans(text, match))
                    for start, end, kind in spans:
                        yield start, end, kind, rank
                    if spans or match.start() >= colons.start():
                        break
                    position = match.start() + 1
