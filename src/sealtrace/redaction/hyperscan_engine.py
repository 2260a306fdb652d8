"""The `[fast]` engine: Hyperscan says where to look, the default engine's patterns look there.

Hyperscan reads the text once, for all hints together. It only rules places out; what is found is
decided by the same patterns and the same code as in the default engine, so the answers are the same.
"""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import hyperscan

from .._guard import safely
from .detector import Detector
from .encodings import hidden
from .engine import SHAPES, AnchorEngine, Found, Rule, by_anchor, by_prefix, find_word, match_at
from .hints import DATE_IN_IBAN, ENCODED, hints
from .view import View

__all__ = ["HyperscanEngine"]

_WORTH_IT: Final = 256
"""Below this the default engine is as fast."""

_BETWEEN: Final = "0123456789 .()/_\n-"
"""Digits, and what may stand between those of one number."""

_RUN: Final = {"number": _BETWEEN.encode(), "ipv4": b"0123456789.", "ipv6": b"0123456789abcdefABCDEF:"}
_FIELD_VALUE: Final = re.compile(r"[^\"'\\\x00]{1,200}")
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_WIDEST_TOKEN: Final = 400
_FARTHEST: Final = 1200
_BACK: Final = {"assigned": 120, "birth": 40, "curl_user": 8, "email": 600, "private_key": 100}
"""How far before the end of its hint a detector's anchor can begin."""

_APART: Final = {"field_in_text": "fields", "number": "numbers", "ipv6": "addresses"}
"""What is compiled apart from the rest."""

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
        """Which rule has looked at the run or word that begins where."""


_Look = Callable[[_Search, int], None]
"""Told where a hint ended, finds what is there."""


class HyperscanEngine:
    """Same answers as `AnchorEngine`, faster.

    Patterns are compiled on a thread of their own, for about a second in which the agent's thread is
    not held up; until they are, and for short texts, the default engine is used.
    """

    name = "hyperscan"

    def __init__(self, detectors: Iterable[Detector]) -> None:
        listed = tuple(detectors)
        self._short = AnchorEngine(listed)
        self._hints: list[tuple[str, str]] = []
        self._looks: list[_Look] = []
        for rank, detector in enumerate(listed):
            rule = (rank, detector, detector.compiled())
            self._hints.append((_APART.get(detector.name, ""), hints(detector)))
            self._looks.append(_look_of(rule))
            if detector.name == "number":
                self._hints.append(("", DATE_IN_IBAN))
                self._looks.append(partial(_run, rule, _RUN["number"], -1))
        self._hints.append(("encoded", ENCODED))
        self._looks.append(self._encoded)
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
        if len(text) < _WORTH_IT:
            return self._short.find(text, depth)
        database = self._database
        if database is None:
            if self._compiled_in != os.getpid():
                self._begin()  # a fork took the thread away
            return self._short.find(text, depth)
        view = View(text)
        hits = database.hits(view.raw)
        if not hits:
            return []
        search = _Search(view, depth)
        looks = self._looks
        for number, end in hits:
            looks[number](search, end)
        return search.out

    def _encoded(self, search: _Search, end: int) -> None:
        view = search.view
        words = view.long_words
        _, last = view.around(end, _BASE64)
        at = bisect_left(words, end - 24, key=_end_of)
        near: list[tuple[int, int]] = []
        while at < len(words) and words[at][0] < last:
            near.append(words[at])
            at += 1
        search.out += hidden(view.text, near, self.find, search.depth)


def _end_of(part: tuple[int, int]) -> int:
    return part[1]


def _look_of(rule: Rule) -> _Look:
    rank, detector, _ = rule
    if detector.name == "field_in_text":
        return partial(_field, rule)
    if detector.name == "number":
        return partial(_number, rule)
    if detector.name in _RUN:
        return partial(_run, rule, _RUN[detector.name], rank)
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


def _field(rule: Rule, search: _Search, end: int) -> None:
    """The hint ends with the value's first character."""
    rank, detector, _ = rule
    text = search.view.text
    value = _FIELD_VALUE.match(text, end - 1)
    if value is not None and detector.resolve is not None:
        search.out += [(low, high, kind, rank) for low, high, kind in detector.resolve(text, *value.span())]


def _number(rule: Rule, search: _Search, end: int) -> None:
    text = search.view.text
    mark = text.rfind("_", max(0, end - 14), end)
    if mark > 0 and text[mark - 1].isalpha() and text[mark + 1 : end - 1].isdecimal() and text[end - 1] not in _BETWEEN:
        return  # `order_1234567`: a name, and nothing in the pattern of one number
    _run(rule, _RUN["number"], rule[0], search, end)


def _run(rule: Rule, characters: bytes, lane: int, search: _Search, end: int) -> None:
    """A run is judged as a whole, so from where it begins; the hits of one lane come from left to right."""
    rank, detector, _ = rule
    if end <= search.done.get(lane, -1):
        return
    part = search.view.around(end - 1, characters)
    search.done[lane] = part[1]
    if (rank, part[0]) not in search.seen:
        search.seen.add((rank, part[0]))
        SHAPES[detector.name](search.view, part, rule, search.out)


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
    """Compiled hints; the working memory of a scan is each thread's own.

    Several databases, read one after the other: patterns of different build slow each other down in one.
    """

    def __init__(self, patterns: list[tuple[str, str]]) -> None:
        groups: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, (group, pattern) in enumerate(patterns):
            groups[group].append((number, pattern))
        self._databases = [_compiled(group) for group in groups.values()]
        self._local = threading.local()

    def hits(self, raw: bytes) -> list[tuple[int, int]]:
        """Which hints end where, in the order of their ends for each."""
        scratches = getattr(self._local, "scratches", None)
        if scratches is None:
            scratches = self._local.scratches = [hyperscan.Scratch(database) for database in self._databases]
        out: list[tuple[int, int]] = []

        def on_match(number: int, _start: int, end: int, _flags: int, _context: Any) -> None:
            out.append((number, end))

        for database, scratch in zip(self._databases, scratches, strict=True):
            database.scan(raw, match_event_handler=on_match, scratch=scratch)
        return out


def _compiled(patterns: list[tuple[int, str]]) -> Any:
    database = hyperscan.Database()
    database.compile(
        expressions=[text.encode() for _, text in patterns],
        ids=[number for number, _ in patterns],
        flags=[hyperscan.HS_FLAG_PREFILTER] * len(patterns),
    )
    return database
