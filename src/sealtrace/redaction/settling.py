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
    pending = dict(zip(texts, texts, strict=True))
    for _ in range(_ROUNDS):
        _detect(around, pending, out, deadline)
        if structural or not len(memory):
            return out
        for text in out.keys() & pending.keys():
            pending[text] = out[text][0]
        replaced = memory.replacements(list(dict.fromkeys(pending.values())))
        if not replaced:
            return out
        pending = {text: safe for text, safe in pending.items() if safe in replaced}
        for text, safe in pending.items():
            again, count = replaced[safe]
            if count:
                _add(out, text, again, {"REMEMBERED": count})
        pending = {text: out[text][0] for text, safe in pending.items() if replaced[safe][1]}
        if not pending:
            return out
    for text in pending:
        out[text] = around.replacement("UNSTABLE", text), {"UNSTABLE": 1}
    return out


def _add(out: _Changed, text: str, safe: str, counts: Mapping[str, int]) -> None:
    out[text] = safe, Counter(out[text][1]) + Counter(counts) if text in out else counts


def _detect(around: Surroundings, pending: dict[str, str], out: _Changed, deadline: float) -> None:
    verdicts = list(map(around.known, pending.values()))
    if None in verdicts:
        unseen = [safe for safe, verdict in zip(pending.values(), verdicts, strict=True) if verdict is None]
        around.search(list(dict.fromkeys(unseen)), deadline)
        verdicts = list(map(around.known, pending.values()))
    for text, found in zip(pending, verdicts, strict=True):
        if found is True:
            continue
        if not isinstance(found, Change):
            raise RedactionFailed("a string was not searched; the payload was dropped")
        _add(out, text, found.text, found.counts)
