"""The gate for names: agents, tools, models, call ids.

Names go to spans and to long-lived envelopes, where content must never be. Most are harmless, and
useful only as they are; what is too long, has characters a name has no use for, or looks like a
secret, becomes a keyed tag, which still groups and joins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from ..keys import Keys
from .redactor import Redactor

__all__ = ["IdentifierGate"]

_LONGEST: Final = 128
_SANE: Final = re.compile(r"[\w][\w .:/@+()#&,'\[\]-]{0,127}\Z")

_MADE: Final = re.compile(
    r"(?:(?:span|trace|group|resp|msg|rs|fc)_(?![0-9a-f]*[0-9]{9})[0-9a-f]{24,64}"
    r"|call_(?![a-zA-Z0-9]*[0-9]{9})[a-zA-Z0-9]{24})\Z"
)
"""Ids that the SDK and its vendor make up: new ones all the time, on the agent's thread, so they take a short way."""


class IdentifierGate:
    """Lets sane names through and tags the rest.

    Args:
        keys: For tags.
        redactor: Its detectors say what looks like a secret.
    """

    def __init__(self, keys: Keys, redactor: Redactor) -> None:
        self._keys = keys
        self._matches = redactor.matches
        self._cached = lru_cache(maxsize=4096)(self._clean)

    def clean(self, value: Any) -> str:
        """The name itself, or `tag:` and twelve letters; never raises."""
        if type(value) is not str:
            value = str.__str__(value) if isinstance(value, str) else type(value).__name__
        try:
            if len(value) > _LONGEST:
                return self.tag(value)  # and is not kept in the cache
            return value if _MADE.match(value) else self._cached(value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 - fail closed
            return "tag:unknown"

    def tag(self, value: Any) -> str:
        """Always a keyed tag: equal values stay equal, and nothing else can be told."""
        return f"tag:{self._keys.tag(value if isinstance(value, str) else type(value).__name__)}"

    def _clean(self, value: str) -> str:
        if _SANE.match(value) and not self._matches(value):
            return value
        return self.tag(value)
