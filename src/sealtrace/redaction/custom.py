"""Detectors that users wrote, under an engine with a time bound.

The standard library's patterns cannot be interrupted and hold the interpreter lock: one bad pattern
on the background thread would stall the agent. So a user's pattern runs under RE2, which is linear
in the text, or under `regex`, which gives up after a while; with neither it is refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Final

from ..errors import RedactionFailed, SettingsError
from .engine import Found
from .policy import CustomDetector

__all__ = ["CustomEngine"]

_SECONDS: Final = 0.25
_HALF: Final = re.compile(r"[\ud800-\udfff]")
_RANK: Final = -1
"""A user's own detector is surer than any of ours."""


class CustomEngine:
    """Runs user patterns.

    Args:
        detectors: What the policy lists.

    Raises:
        SettingsError: Neither google-re2 nor regex is installed, or a pattern is not RE2 syntax.
    """

    name = "custom"

    def __init__(self, detectors: Sequence[CustomDetector]) -> None:
        self._rules: list[tuple[CustomDetector, Any, dict[str, float]]] = [
            (detector, *_compiled(detector)) for detector in detectors
        ]

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`.

        Raises:
            RedactionFailed: A pattern took too long; the payload must be dropped.
        """
        del depth
        out: list[Found] = []
        if not text.isascii():
            text = _HALF.sub("\ufffd", text)  # RE2 reads UTF-8, which has no half of a pair
        for detector, pattern, bound in self._rules:
            group = pattern.groupindex.get("value", 0)  # re2 takes numbers only
            try:
                for match in pattern.finditer(text, **bound):
                    start, end = match.span(group)
                    if start < end and "\x00" not in text[start:end]:
                        out.append((start, end, detector.kind, _RANK))
            except TimeoutError:
                raise RedactionFailed(f"the detector {detector.name} took too long; the payload was dropped") from None
        return out


def _compiled(detector: CustomDetector) -> tuple[Any, dict[str, float]]:
    text = f"(?i){detector.pattern}" if detector.ignore_case else detector.pattern
    re2 = _module("re2")
    if re2 is not None:
        options = re2.Options()
        options.log_errors = False
        try:
            return re2.compile(text, options), {}
        except re2.error as error:
            raise SettingsError(
                f"redaction policy: detector {detector.name!r}: RE2 refuses the pattern: {error}",
                setting="redaction_policy",
            ) from None
    regex = _module("regex")
    if regex is not None:
        return regex.compile(text), {"timeout": _SECONDS}
    raise SettingsError(
        f"redaction policy: detector {detector.name!r} needs an engine with a time bound: install sealtrace[fast]",
        setting="redaction_policy",
    )


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
