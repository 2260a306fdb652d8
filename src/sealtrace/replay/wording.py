"""Recorded values in a line of a report.

What was recorded was written by users, tools and models: it may hold terminal escapes and marks that
turn text around. Whatever could do something to a screen is written out instead of shown.
"""

from __future__ import annotations

import json
from typing import Final

from ..run.safe import neutralise
from .cause import Cause
from .jsondiff import ABSENT, Difference
from .shape import JSON

__all__ = ["EXPLAINED", "difference_lines", "plain", "shown", "window"]

_LIMIT: Final = 160


def plain(text: str) -> str:
    """The text in one line, with nothing in it that a terminal would obey or a reader could not see."""
    return neutralise(text).replace("\n", "␊").replace("\t", " ")


def shown(value: JSON, *, limit: int = _LIMIT) -> str:
    """A value in one line, cut where it is longer than `limit` characters."""
    if value is ABSENT:
        return "(absent)"
    return _cut(plain(json.dumps(value, ensure_ascii=False)), limit)


def window(recorded: JSON, got: JSON, *, limit: int = _LIMIT) -> tuple[str, str]:
    """Two values, each in one line; of long texts the part around where they begin to differ."""
    if not (isinstance(recorded, str) and isinstance(got, str)):
        return shown(recorded, limit=limit), shown(got, limit=limit)
    start = next((i for i, (one, other) in enumerate(zip(recorded, got, strict=False)) if one != other), None)
    start = min(len(recorded), len(got)) if start is None else start
    start = max(0, start - limit // 3)
    if start == 0 or max(len(recorded), len(got)) <= limit:
        return shown(recorded, limit=limit), shown(got, limit=limit)
    return "…" + shown(recorded[start:], limit=limit), "…" + shown(got[start:], limit=limit)


def difference_lines(difference: Difference, *, limit: int = _LIMIT) -> list[str]:
    """Path, recorded and got, one line each."""
    recorded, got = window(difference.recorded, difference.got, limit=limit)
    return [f"at        {plain(difference.path)}", f"recorded  {recorded}", f"got       {got}"]


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


EXPLAINED: Final = {
    Cause.INPUT: "the input differs",
    Cause.EVIDENCE: "the facts in front of the model differ",
    Cause.CONFIG: "the agent is set up differently",
    Cause.MODEL: "the same request was answered otherwise",
    Cause.TOOL: "the same call had another result",
    Cause.LOGIC: "the same answers were followed by something else: the code changed",
    Cause.POLICY: "a verdict or the authority in force differs",
}
"""Each cause in words."""
