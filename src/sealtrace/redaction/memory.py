"""Values found sensitive by their field name, to be found in free text of the same run too.

What is remembered comes from tools and models, so it must not be able to stall the agent: texts are
searched one value at a time by plain find, whose work grows with the text, and not by a pattern of
hundreds of alternatives, which the interpreter cannot leave.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import Final

from ..errors import RedactionFailed
from .familiar import LONG, WORD, words_of
from .tags import PSEUDONYM
from .validators import words

__all__ = ["SHORTEST_REMEMBERED", "RunMemory", "remembered_as"]

_MAX_VALUES: Final = 512
SHORTEST_REMEMBERED: Final = 4
_MAX_LENGTH: Final = 200
_MAX_STEPS: Final = 500_000
"""Places looked at in one text; a second's work."""

# Values that fields hold and text is full of: replacing them would hide nothing and spoil much.
_COMMON: Final = words(
    """
    true false none null home work other mobile primary secondary default unknown test user admin active pending
    male female street avenue road city state country united states main first last email phone address name value
    text data type string number card credit debit visa basic bearer this that with from your have will they what
    when which about please thank thanks hello order item items help need there here they them into over also some
    only very just
    """
)


def remembered_as(value: str) -> str | None:
    """The form under which a value is remembered; None for one that is not worth it."""
    value = value.strip()
    if not SHORTEST_REMEMBERED <= len(value) <= _MAX_LENGTH:
        return None
    key = value.casefold()
    if key in _COMMON or PSEUDONYM.search(value) or not any(c.isalnum() for c in value):
        return None
    return key


class RunMemory:
    """Bounded: beyond the limit nothing new is remembered, and redaction by rule goes on."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._first_words: set[str] = set()
        self.tools: dict[str, str] = {}
        """Which tool a call id belongs to."""

    def __len__(self) -> int:
        return len(self._values)

    def remember(self, value: str, replacement: str) -> None:
        """Replace this value wherever it stands alone from now on, in whatever case it is written."""
        key = remembered_as(value)
        if key is not None:
            self.add(key, replacement)

    def add(self, key: str, replacement: str) -> None:
        """Replace from now on what is remembered as this."""
        if key not in self._values and len(self._values) < _MAX_VALUES:
            self._values[key] = replacement
            self._first_words.update(WORD.findall(key)[:1])

    def replacements(self, texts: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Which of the texts hold remembered values, what they become, and how many were replaced."""
        if not self._values:
            return {}
        texts = [text for text in texts if len(text) < LONG or self._may_stand_in(text)]
        if not texts:
            return {}
        joined = "\x00".join(texts).casefold()
        first = {value: at for value in self._values if (at := joined.find(value)) >= 0}
        if not first:
            return {}
        folded = [text.casefold() for text in texts]
        starts = [0, *accumulate(len(low) + 1 for low in folded)]
        held: dict[int, list[str]] = {}
        for value, found in first.items():
            at = found
            while at >= 0:
                index = bisect_right(starts, at) - 1
                if value in folded[index]:  # what was found may begin in one text and end in the next
                    held.setdefault(index, []).append(value)
                at = joined.find(value, starts[index + 1])
        return {texts[index]: self._replaced(texts[index], folded[index], values) for index, values in held.items()}

    def _may_stand_in(self, long: str) -> bool:
        """Whether a value may stand alone in a long text; if it does, its first word is one of the text's."""
        if len(long) * len(self._values) > _MAX_STEPS:
            return True
        words = words_of(long)
        return words is None or not words.isdisjoint(self._first_words)

    def _replaced(self, text: str, low: str, values: list[str]) -> tuple[str, int]:
        tags = [match.span() for match in PSEUDONYM.finditer(text)] if "<" in text else []
        tags.append((len(text), len(text)))
        # Folding makes some characters two or three, and none fewer: at equal lengths all positions agree.
        origin = None if len(low) == len(text) else _origin(text)
        steps = count()
        found = [(start, -end, value) for value in values for start, end in _places(low, value, origin, steps)]
        pieces: list[str] = []
        position = tag = replaced = 0
        for start, back, value in sorted(found):  # the first wins, and the longest of those
            while tags[tag][1] <= start < len(text):
                tag += 1
            if start < position or tags[tag][0] < -back:
                continue
            pieces += (text[position:start], self._values[value])
            position = -back
            replaced += 1
        return "".join([*pieces, text[position:]]), replaced


def _places(low: str, value: str, origin: list[int] | None, steps: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Where the value stands alone, as positions in the text as it was before it was folded.

    Raises:
        RedactionFailed: It would take too long.
    """
    at = low.find(value)
    while at >= 0:
        if next(steps) > _MAX_STEPS:
            raise RedactionFailed("a text is full of what almost is a remembered value; the payload was dropped")
        end = at + len(value)
        if (at and _in_word(low[at - 1])) or (end < len(low) and _in_word(low[end])):
            at = low.find(value, at + 1)
            continue
        if origin is None:
            yield at, end
        elif (not at or origin[at - 1] != origin[at]) and origin[end - 1] != origin[end]:
            yield origin[at], origin[end]
        at = low.find(value, end)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _origin(text: str) -> list[int]:
    """For each character of the folded text, and for its end, which character of the text it comes from."""
    return [*(index for index, character in enumerate(text) for _ in character.casefold()), len(text)]
