"""What of a recorded value a page has to show as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sealtrace.run.safe import neutralise

from .hostile import PAYLOADS

_ENOUGH = 120
"""Characters of a text that have to be found; a page may shorten what is longer."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{0,60}\Z")
_HOSTILE = frozenset(payload.text for payload in PAYLOADS)


def strings(value: Any) -> Iterator[str]:
    """Every string in a value: names and values; of JSON in a string, what is in it."""
    if isinstance(value, str):
        inner = _embedded(value)
        yield from strings(inner) if inner is not None else (value,)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def missing(value: Any, seen: str) -> list[str]:
    """Strings of a value that a page's text does not hold, neither as they are nor as JSON writes them.

    Names and words of the vendor's own format (`role`, `completed`) are not looked for: a page may say them otherwise.
    """
    wanted = [text for text in dict.fromkeys(strings(value)) if text in _HOSTILE or not _NAME.match(text)]
    return [text for text in wanted if not any(form in seen for form in _forms(text))]


def _forms(text: str) -> Iterator[str]:
    yield neutralise(text[:_ENOUGH])
    yield neutralise(json.dumps(text, ensure_ascii=False)[1:-1][:_ENOUGH])


def _embedded(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
