"""Finds and replaces values in one string."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from ..keys import Keys
from .detectors import Detector
from .normaliser import fold, needs_folding
from .tags import PSEUDONYM, pseudonym

__all__ = ["Scanner"]

_DIGIT: Final = re.compile(r"[0-9]")


class Scanner:
    """The built-in engine: anchors first, patterns only where an anchor was found.

    Args:
        detectors: What to look for, most specific first: where two overlap, the earlier one wins.
        keys: For pseudonyms.
    """

    def __init__(self, detectors: Iterable[Detector], keys: Keys) -> None:
        self._detectors = tuple(detectors)
        self._keys = keys

    def redact(self, text: str, count: Callable[[str], None]) -> str:
        """Replace what is found; `count` is called with the kind of each replacement."""
        if needs_folding(text):
            folded = fold(text)
            searched, span = folded.text, folded.span
        else:
            searched, span = text, None
        found = self._find(searched)
        if not found:
            return text
        out: list[str] = []
        position = 0
        for start, end, kind in found:
            value = searched[start:end]
            first, last = span(start, end) if span is not None else (start, end)
            if first < position:
                continue
            out += (text[position:first], pseudonym(self._keys, kind, value))
            count(kind)
            position = last
        out.append(text[position:])
        return "".join(out)

    def matches(self, text: str) -> bool:
        """Whether anything would be replaced."""
        return bool(self._find(fold(text).text if needs_folding(text) else text))

    def _find(self, text: str) -> list[tuple[int, int, str]]:
        lowered: str | None = None
        digits = -1
        found: list[tuple[int, int, str]] = []
        taken: list[tuple[int, int]] | None = None
        for detector in self._detectors:
            if detector.digits:
                if digits < 0:
                    digits = len(_DIGIT.findall(text))
                if digits < detector.digits:
                    continue
            if detector.anchors:
                if lowered is None:
                    lowered = text.lower()
                if not any(anchor in lowered for anchor in detector.anchors):
                    continue
            for match in detector.pattern.finditer(text):
                group = "value" if "value" in detector.pattern.groupindex else 0
                start, end = match.span(group)
                if detector.valid is not None and not detector.valid(text[start:end]):
                    continue
                if taken is None:
                    taken = [item.span() for item in PSEUDONYM.finditer(text)] if "<" in text else []
                if all(end <= other_start or start >= other_end for other_start, other_end in taken):
                    taken.append((start, end))
                    found.append((start, end, detector.kind))
        found.sort()
        return found
