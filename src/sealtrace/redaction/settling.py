"""Searches all texts of a payload together until nothing more is found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ..errors import RedactionFailed
from .memory import RunMemory
from .surroundings import Surroundings

__all__ = ["settled"]

_ROUNDS: Final = 6


def settled(
    around: Surroundings, texts: Iterable[str], memory: RunMemory, deadline: float, *, structural: bool
) -> dict[str, tuple[str, Counter[str]]]:
    """Which texts change, into what: by the detectors and the run's memory, until nothing more is found."""
    out: dict[str, tuple[str, Counter[str]]] = {}
    pending = {text: text for text in texts}
    for _ in range(_ROUNDS):
        _detect(around, pending, out, deadline)
        if structural:
            return out
        now = {text: out[text][0] if text in out else safe for text, safe in pending.items()}
        replaced = memory.replacements(list(dict.fromkeys(now.values())))
        pending = {}
        for text, safe in now.items() if replaced else ():
            again, count = replaced.get(safe, (safe, 0))
            if count:
                counts = out[text][1] if text in out else Counter[str]()
                counts["REMEMBERED"] += count
                out[text] = again, counts
                pending[text] = again
        if not pending:
            return out
    for text in pending:
        out[text] = around.replacement("UNSTABLE", text), Counter({"UNSTABLE": 1})
    return out


def _detect(
    around: Surroundings, pending: dict[str, str], out: dict[str, tuple[str, Counter[str]]], deadline: float
) -> None:
    known = around.known
    unseen = [safe for safe in dict.fromkeys(pending.values()) if known(safe) is False]
    if unseen:
        around.search(unseen, deadline)
    for text, safe in pending.items():
        found = known(safe)
        if found is True:
            continue
        if found is False:
            raise RedactionFailed("a string was not searched; the payload was dropped")
        counts = out[text][1] if text in out else Counter[str]()
        counts.update(found.counts)
        out[text] = found.text, counts
