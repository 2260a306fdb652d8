"""Values found sensitive by their field name, to be found in free text of the same run too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .tags import PSEUDONYM
from .validators import words

__all__ = ["RunMemory"]

_MAX_VALUES: Final = 512
_MIN_LENGTH: Final = 4
_MAX_LENGTH: Final = 200
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


class RunMemory:
    """Bounded: beyond the limit nothing new is remembered, and redaction by rule goes on."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self.tools: dict[str, str] = {}
        """Which tool a call id belongs to."""

    def __len__(self) -> int:
        return len(self._values)

    def remember(self, value: str, replacement: str) -> None:
        """Replace this value wherever it stands alone from now on, in whatever case it is written."""
        value = value.strip()
        if not _MIN_LENGTH <= len(value) <= _MAX_LENGTH or len(self._values) >= _MAX_VALUES:
            return
        key = value.casefold()
        if key in self._values or key in _COMMON or PSEUDONYM.search(value) or not any(c.isalnum() for c in value):
            return
        self._values[key] = replacement

    def replacements(self, texts: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Which of the texts hold remembered values, what they become, and how many were replaced."""
        if not self._values or not texts:
            return {}
        folded = [text.casefold() for text in texts]
        joined = "\x00".join(folded)
        present = [value for value in self._values if value in joined]
        if not present:
            return {}
        longest_first = "|".join(re.escape(value) for value in sorted(present, key=len, reverse=True))
        pattern = re.compile(rf"(?-i:{PSEUDONYM.pattern})|(?<!\w)(?:{longest_first})(?!\w)", re.IGNORECASE)
        out: dict[str, tuple[str, int]] = {}
        for text, low in zip(texts, folded, strict=True):
            if any(value in low for value in present):
                out[text] = self._replaced(text, pattern)
        return out

    def _replaced(self, text: str, pattern: re.Pattern[str]) -> tuple[str, int]:
        count = 0

        def replaced(match: re.Match[str]) -> str:
            nonlocal count
            safe = self._values.get(match[0].casefold())
            if safe is None:
                return match[0]
            count += 1
            return safe

        return pattern.sub(replaced, text), count
