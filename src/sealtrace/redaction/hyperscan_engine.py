"""The `[fast]` engine: compiled code says where to look, the default engine's patterns look there.

Hyperscan reads the text once, for the hints of all patterns that are known by their letters;
`sealtrace_fast`, our own, reads it for numbers, addresses, named and encoded values. Both only rule
places out; what is found is decided by the same patterns and the same code as in the default engine, so the
answers are the same.
"""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import hyperscan
import sealtrace_fast

from .._guard import safely
from .detector import Detector
from .encodings import hidden
from .engine import (
    AnchorEngine,
    Found,
    Rule,
    by_anchor,
    by_prefix,
    find_ipv4,
    find_ipv6,
    find_number,
    find_word,
    match_at,
)
from .fields import FIELD_WORDS
from .hints import hints
from .personal import named_value
from .view import Part, View

__all__ = ["HyperscanEngine"]

_TELLING: Final = sealtrace_fast.names([word for word in FIELD_WORDS if word.isascii() and word.isalpha()])
"""A word that ends with a number is known by what stands before that."""

_RUNS: Final = {
    "number": (sealtrace_fast.NUMBER, find_number),
    "ipv4": (sealtrace_fast.IPV4, find_ipv4),
    "ipv6": (sealtrace_fast.IPV6, find_ipv6),
}
"""What finds the runs of a detector, and what looks into one."""

_NAMED: Final = "field_in_text"
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9_-]{16,}")
_WIDEST_TOKEN: Final = 400
_FARTHEST: Final = 1200
_BACK: Final = {"assigned": 120, "birth": 40, "curl_user": 8, "email": 600, "private_key": 100}
"""How far before the end of its hint a detector's anchor can begin."""

_AGAIN: Final = 24
"""An anchor may begin this far before the end of the hint before."""


class _Search:
    """One text being searched."""

    __slots__ = ("depth", "done", "out", "passed", "seen", "view")

    def __init__(self, view: View, depth: int) -> None:
        self.view = view
        self.depth = depth
        self.out: list[Found] = []
        self.done: dict[int, int] = {}
        """How far each rule has been tried."""
        self.passed: dict[tuple[int, bytes], int] = {}
        """Where to look for an anchor next."""
        self.seen: set[tuple[int, int]] = set()
        """Which rule has looked at the word that begins where."""


_Look = Callable[[_Search, int], None]
"""Told where a hint ended, finds what is there."""


class HyperscanEngine:
    """Same answers as `AnchorEngine`, faster.

    Patterns are compiled on a thread of their own, for a third of a second in which the agent's thread is
    not held up; until they are, the default engine is used.
    """

    name = "hyperscan"

    def __init__(self, detectors: Iterable[Detector]) -> None:
        listed = tuple(detectors)
        self._meanwhile = AnchorEngine(listed)
        self._hints: list[str] = []
        self._looks: list[_Look] = []
        self._runs: dict[int, tuple[Rule, Callable[[View, Part, Rule, list[Found]], None]]] = {}
        self._named: int | None = None
        """The rank of finds that a name gives away; None: they are not looked for."""
        for rank, detector in enumerate(listed):
            rule = (rank, detector, detector.compiled())
            if detector.name in _RUNS:
                code, look = _RUNS[detector.name]
                self._runs[code] = rule, look
            elif detector.name == _NAMED:
                self._named = rank
            else:
                self._hints.append(hints(detector))
                self._looks.append(_look_of(rule))
        self._database: _Database | None = None
        self._compiling: threading.Thread | None = None
        self._compiled_in = 0
        self._begin()

    def _begin(self) -> None:
        self._compiled_in = os.getpid()
        self._compiling = threading.Thread(target=self._compile, name="sealtrace-hyperscan", daemon=True)
        self._compiling.start()

    def _compile(self) -> None:
        self._database = safely(_Database, self._hints)

    def wait(self) -> None:
        """Return when the patterns are compiled: for measurements."""
        if self._compiling is not None:
            self._compiling.join()

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        database = self._database
        if database is None:
            if self._compiled_in != os.getpid():
                self._begin()  # a fork took the thread away
            return self._meanwhile.find(text, depth)
        search = _Search(View(text), depth)
        self._look_at_runs(search)
        looks = self._looks
        for number, end in database.hits(search.view.raw):
            looks[number](search, end)
        return search.out

    def _look_at_runs(self, search: _Search) -> None:
        view, out = search.view, search.out
        runs, named = sealtrace_fast.look(_TELLING, view.raw)
        for kind, start, end in runs:
            if kind == sealtrace_fast.ENCODED:
                words = [match.span() for match in _LONG_WORD.finditer(view.text, start, end)]
                out += hidden(view.text, words, self.find, search.depth)
            elif kind in self._runs:
                rule, look = self._runs[kind]
                look(view, (start, end), rule, out)
        rank = self._named
        if rank is not None:
            text = view.text
            for first, last, start, end in named:
                found = named_value(text[first:last], text[start:end])
                if found is not None:
                    out.append((start, end, found, rank))


def _end_of(part: tuple[int, int]) -> int:
    return part[1]


def _look_of(rule: Rule) -> _Look:
    rank, detector, _ = rule
    if detector.prefixes:
        return partial(_words, rank, by_prefix([rule]))
    return partial(_anchored, rank, by_anchor([rule]), _BACK.get(detector.name, _FARTHEST))


def _anchored(rank: int, anchors: list[tuple[bytes, list[Rule]]], back: int, search: _Search, end: int) -> None:
    view = search.view
    low = max(end - back, search.done.get(rank, 0))
    search.done[rank] = max(low, end - _AGAIN)
    plain = view.plain(low, end)
    for anchor, rules in anchors:
        position = plain.find(anchor)
        if position < 0:
            continue
        passed = search.passed.get((rank, anchor), 0)  # what was found is not searched for more of the same
        while position >= 0:
            if low + position >= passed:
                passed = match_at(view.text, low + position, rules, search.out)
            position = plain.find(anchor, max(position + 1, passed - low))
        search.passed[rank, anchor] = passed


def _words(rank: int, words: dict[str, list[Rule]], search: _Search, end: int) -> None:
    view = search.view
    long = view.long_words
    at = bisect_left(long, end - _WIDEST_TOKEN, key=_end_of)
    while at < len(long) and long[at][0] <= end:
        if (rank, long[at][0]) not in search.seen:
            search.seen.add((rank, long[at][0]))
            find_word(view.text, *long[at], words, search.out)
        at += 1


class _Database:
    """Compiled hints; the working memory of a scan is each thread's own."""

    def __init__(self, patterns: list[str]) -> None:
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=[text.encode() for text in patterns],
            ids=list(range(len(patterns))),
            flags=[hyperscan.HS_FLAG_PREFILTER] * len(patterns),
        )
        self._local = threading.local()

    def hits(self, raw: bytes) -> list[tuple[int, int]]:
        """Which hints end where, in the order of their ends."""
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = hyperscan.Scratch(self._database)
        out: list[tuple[int, int]] = []

        def on_match(number: int, _start: int, end: int, _flags: int, _context: Any) -> None:
            out.append((number, end))

        self._database.scan(raw, match_event_handler=on_match, scratch=scratch)
        return out
