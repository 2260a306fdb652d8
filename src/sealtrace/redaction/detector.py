"""What a detector is: the one shape every rule has, built in or written by a user."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

__all__ = ["Detector", "Resolve", "Span", "context_before", "glued"]

Span: TypeAlias = tuple[int, int, str]
"""Start, end and kind of something found."""

Resolve: TypeAlias = Callable[[str, int, int], Iterable[Span]]
"""Told the text and where the pattern matched, says what in there is to be replaced."""

SEPARATOR: Final = "\x00"
"""Stands between strings that are searched together; no match and no context crosses it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Detector:
    """One rule.

    The pattern stays within what RE2 knows (no look-around, no back references) and matches ASCII
    classes only, so that engines can be exchanged. What a pattern cannot say (check digits, context,
    randomness) is for `resolve`.

    Attributes:
        name: Names the rule in policies and reports.
        kind: What the pseudonym says, for example `EMAIL`.
        pattern: RE2 syntax; no part of it may match the NUL character. A group named `value`, where
            there is one, is what is replaced.
        anchors: Lower-case ASCII literals, one of which is in every match. The default engine looks
            for these first, because looking for a literal is a hundred times cheaper than a pattern.
        reach: How many characters before its anchor a match can begin; 0: it begins there.
        lead: The characters that may stand in a match before its anchor, where that is known; a space
            among them stands for one right before the anchor.
        prefixes: Every match begins with one of these and holds a run of sixteen word characters: the
            default engine then looks at long words only.
        resolve: Says what in the match is to be replaced; None: the match, if neither neighbour is a
            letter or digit.
    """

    name: str
    kind: str
    pattern: str
    anchors: tuple[str, ...]
    reach: int = 0
    lead: str = ""
    prefixes: tuple[str, ...] = ()
    resolve: Resolve | None = None
    _group: str | int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_group", "value" if "(?P<value>" in self.pattern else 0)

    def compiled(self) -> re.Pattern[str]:
        """The pattern for the standard library's engine."""
        return re.compile(self.pattern, re.ASCII)

    def spans(self, text: str, match: re.Match[str]) -> Iterable[Span]:
        """What is to be replaced, of one match."""
        start, end = match.span(self._group)
        if self.resolve is not None:
            return self.resolve(text, start, end)
        return () if glued(text, *match.span()) else ((start, end, self.kind),)


def glued(text: str, start: int, end: int) -> bool:
    """Whether a letter or digit stands right before or after: part of something longer."""
    return (start > 0 and text[start - 1].isalnum()) or (end < len(text) and text[end].isalnum())


def context_before(text: str, start: int, reach: int) -> str:
    """Up to `reach` characters before `start`, within the same string."""
    low = max(0, start - reach)
    cut = text.rfind(SEPARATOR, low, start)
    return text[cut + 1 if cut >= 0 else low : start]
