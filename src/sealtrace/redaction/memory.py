"""Values found sensitive by their field name, to be found in free text of the same run too."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["RunMemory"]

_MAX_VALUES: Final = 256
_MIN_LENGTH: Final = 4
_MAX_LENGTH: Final = 200


class RunMemory:
    """Bounded: beyond the limit nothing new is remembered, and redaction by rule goes on."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self.version = 0

    def remember(self, value: str, replacement: str) -> None:
        """Replace this value wherever it stands alone from now on."""
        value = value.strip()
        if not _MIN_LENGTH <= len(value) <= _MAX_LENGTH or value in self._values or len(self._values) >= _MAX_VALUES:
            return
        self._values[value] = replacement
        self._pattern = None
        self.version += 1

    def apply(self, text: str) -> tuple[str, int]:
        """The text with remembered values replaced, and how many were."""
        if not self._values or not any(value in text for value in self._values):
            return text, 0
        if self._pattern is None:
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile(r"(?<![\w<])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![\w>])")
        return self._pattern.subn(lambda match: self._values[match[0]], text)
