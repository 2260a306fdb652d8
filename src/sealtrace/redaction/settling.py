"""Searches all texts of a payload together until nothing more is found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ..errors import RedactionFailed
from .memory import RunMemory
from .scanner import Change
from .surroundings import Surroundings

__all__ = ["settled"]

_ROUNDS: Final = 6

_Changed: TypeAlias = dict[str, tuple[str, Mapping[str, int]]]
"""What a text becomes, and how many values of each kind were replaced in it."""


def settled(
    around: Surroundings, texts: Iterable[str], memory: RunMemory, deadline: float, *, structural: bool
) -> _Changed:
    """Which texts change, into what: by the detectors and the run's memory, until nothing more is found.

    Args:
        around: The rules in force.
        texts: Each of them once.
        memory: Values given away by their fields, of the whole run.
        deadline: `time.monotonic()` at which to give up.
        structural: Whether the texts are such as the run's memory leaves alone.
    """
    out: _Changed = {}
    pending = list(texts)
    now = pending.copy()
    for _ in range(_ROUNDS):
        changed = _detected(around, now, deadline)
        for index in _hits(now, changed):
            found = changed[now[index]]
            _add(out, pending[index], found.text, found.counts)
            now[index] = found.text
        if structural or not len(memory):
            return out
        replaced = {safe: change for safe, change in memory.replacements(now).items() if change[1]}
        hits = _hits(now, replaced)
        if not hits:
            return out
        for index in hits:
            again, count = replaced[now[index]]
            _add(out, pending[index], again, {"REMEMBERED": count})
        pending = [pending[index] for index in hits]
        now = [out[text][0] for text in pending]
    for text in pending:
        out[text] = around.replacement("UNSTABLE", text), {"UNSTABLE": 1}
    return out


def _hits(texts: list[str], wanted: Mapping[str, object]) -> list[int]:
    return [index for index, text in enumerate(texts) if text in wanted] if wanted else []


def _add(out: _Changed, text: str, safe: str, counts: Mapping[str, int]) -> None:
    out[text] = safe, Counter(out[text][1]) + Counter(counts) if text in out else counts


def _detected(around: Surroundings, texts: list[str], deadline: float) -> dict[str, Change]:
    known = around.known
    unseen = [text for text in texts if known(text) is None]
    if unseen:
        around.search(list(dict.fromkeys(unseen)), deadline)
    changed: dict[str, Change] = {}
    for text, found in zip(texts, map(known, texts), strict=True):
        if found is True:
            continue
        if not isinstance(found, Change):
            raise RedactionFailed("a string was not searched; the payload was dropped")
        changed[text] = found
    return changed
