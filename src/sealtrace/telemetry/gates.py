"""What an attribute's value must be before it may pass.

Types are exact: the OpenTelemetry SDK would turn a foreign object into its own text, and that text
is content. No method of a foreign object is ever called here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from ..lifetime import fresh_lock
from ..settings import Settings
from .metadata import ATTRIBUTES, METADATA_PREFIX, Attribute, Gate

__all__ = ["Gates", "IdentifierCleaner"]

_Check: TypeAlias = Callable[[Any], Any]

_MAX_INT: Final = 2**63 - 1
_MAX_LINK: Final = 512
_MAX_WORDS: Final = 16
_CLASS_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}\Z")
_OUR_ID: Final = re.compile(r"(?:trace_)?[0-9a-f]{32,64}\Z|tag:[a-z]{12}\Z")


class IdentifierCleaner(Protocol):
    """The identifier gate, see `redaction.IdentifierGate`."""

    def clean(self, value: Any) -> str:
        """The name, or a keyed tag in its place."""
        ...

    def tag(self, value: Any) -> str:
        """Always a keyed tag."""
        ...


class Gates:
    """The allow-list at work: what passes, passes; the rest is left out and counted.

    Args:
        cleaner: The identifier gate.
        settings: Which trace metadata keys are listed, and the viewer's address.
    """

    def __init__(self, cleaner: IdentifierCleaner, settings: Settings) -> None:
        self._cleaner = cleaner
        self._viewer = settings.replay_url.rstrip("/") if settings.replay_url else None
        self._checks = {key: self._check_for(item) for key, item in ATTRIBUTES.items()}
        for key in settings.trace_metadata_keys:
            self._checks[f"{METADATA_PREFIX}{key}"] = self._metadata
        self._lock = fresh_lock()
        self.refused = 0
        """Attributes that did not pass; None is no attribute and does not count."""

    def passed(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Those of these attributes that may be set, in the form in which they may be set."""
        out: dict[str, Any] = {}
        for key, value in attributes.items():
            if value is None:
                continue
            check = self._checks.get(key) if type(key) is str else None
            checked = check(value) if check is not None else None
            if checked is None:
                self._refuse()
            else:
                out[key] = checked
        return out

    def class_name(self, value: Any) -> str:
        """The name of an exception's class as it is, or `_OTHER`."""
        if type(value) is str and _CLASS_NAME.match(value) and self._cleaner.clean(value) == value:
            return value
        return "_OTHER"

    def _refuse(self) -> None:
        with self._lock:
            self.refused += 1

    def _check_for(self, item: Attribute) -> _Check:
        match item.gate:
            case Gate.COUNT:
                return _count
            case Gate.NUMBER:
                return _number
            case Gate.FLAG:
                return _flag
            case Gate.IDENTIFIER:
                return self._identifier
            case Gate.CLASS_NAME:
                return self.class_name
            case Gate.WORD:
                return _word_of(item.words)
            case Gate.WORDS:
                return _words_of(item.words)
            case Gate.TAG:
                return self._tag
            case Gate.LINK:
                return self._link

    def _identifier(self, value: Any) -> str | None:
        # `isinstance` would ask a foreign object for its `__class__`.
        return self._cleaner.clean(value) if issubclass(type(value), str) else None

    def _metadata(self, value: Any) -> Any:
        if type(value) is bool:
            return value
        return _number(value) if type(value) in (int, float) else self._identifier(value)

    def _tag(self, value: Any) -> str | None:
        if type(value) is not str:
            return None
        return value if _OUR_ID.match(value) else self._cleaner.tag(value)

    def _link(self, value: Any) -> str | None:
        if type(value) is not str or self._viewer is None or len(value) > _MAX_LINK:
            return None
        fits = self._viewer.startswith(("http://", "https://")) and value.startswith(f"{self._viewer}/")
        return value if fits and value.isascii() and value.isprintable() else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and -_MAX_INT <= value <= _MAX_INT else None


def _number(value: Any) -> int | float | None:
    return value if type(value) is float and math.isfinite(value) else _count(value)


def _flag(value: Any) -> bool | None:
    return value if type(value) is bool else None


def _word_of(words: frozenset[str]) -> _Check:
    return lambda value: value if type(value) is str and value in words else None


def _words_of(words: frozenset[str]) -> _Check:
    def check(value: Any) -> list[str] | None:
        if type(value) is not list and type(value) is not tuple:
            return None
        given: list[Any] = list(value[:_MAX_WORDS])  # pyright: ignore[reportUnknownArgumentType]
        return [word for word in given if type(word) is str and word in words] or None

    return check
