"""The `[fast]` engine: Hyperscan says where to look, the default engine's patterns look there.

Hyperscan reads the text once, for all patterns together, some twenty times faster than anything the
standard library can do. It only rules places out; what is found is decided by the same patterns and
the same code as in the default engine, so the answers are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

import hyperscan

from .detector import Detector
from .encodings import hidden
from .engine import SHAPES, AnchorEngine, Found, Rule, by_anchor, by_prefix, find_anchored, find_word, match_at
from .view import View

__all__ = ["HyperscanEngine"]

_WORTH_IT: Final = 4096
"""Below this the default engine is as fast; and names, which are searched on the agent's thread, are short."""

_PART: Final = 8192
_OVERLAP: Final = 1024
"""The shortest match of any pattern that begins at a place ends within this many characters."""

_IN_A_SHAPE: Final = frozenset(b"0123456789 .()/_\n-:abcdefABCDEF")


class HyperscanEngine:
    """Same answers as `AnchorEngine`, faster. Patterns are compiled, for about a second, when first needed.

    Args:
        detectors: What to look for.
    """

    name = "hyperscan"

    def __init__(self, detectors: Iterable[Detector]) -> None:
        listed = tuple(detectors)
        self._short = AnchorEngine(listed)
        self._rules: list[Rule] = [(rank, item, item.compiled()) for rank, item in enumerate(listed)]
        self._anchors = by_anchor(rule for rule in self._rules if rule[1].name == "assigned")

    @cached_property
    def _stems(self) -> _Database:
        """The anchors of `assigned`: so common that each is looked up where it stands."""
        return _Database([(number, b"(?i)" + anchor) for number, (anchor, _) in enumerate(self._anchors)], 0)

    @cached_property
    def _others(self) -> _Database:
        patterns = [(rank, item.pattern.encode()) for rank, item, _ in self._rules if item.name != "assigned"]
        return _Database(patterns, hyperscan.HS_FLAG_SINGLEMATCH)

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        if len(text) < _WORTH_IT:
            return self._short.find(text, depth)
        out: list[Found] = []
        view = View(text)
        following = dict.fromkeys(range(len(self._anchors)), 0)
        for number, end in self._stems.places(view.raw):
            anchor, rules = self._anchors[number]
            if end - len(anchor) >= following[number]:
                following[number] = match_at(text, end - len(anchor), rules, out)
        prefixed: list[Rule] = []
        for rank, parts in self._places(view).items():
            rule = self._rules[rank]
            if rule[1].prefixes:
                prefixed.append(rule)
            elif rule[1].anchors:
                for part in parts:
                    find_anchored(view, part, by_anchor([rule]), out)
            else:
                for part in _whole_runs(view.raw, parts):
                    SHAPES[rule[1].name](view, part, rule, out)
        if prefixed:
            words = by_prefix(prefixed)
            for start, end in view.long_words:
                find_word(text, start, end, words, out)
        if view.long_words:
            out += hidden(text, view.long_words, self.find, depth)
        return out

    def _places(self, view: View) -> dict[int, list[tuple[int, int]]]:
        """Where each rule may match at all; neighbouring parts as one."""
        out: dict[int, list[tuple[int, int]]] = {}
        for start in range(0, len(view.raw), _PART):
            end = min(len(view.raw), start + _PART + _OVERLAP)
            for rank in self._others.kinds(view.raw[start:end]):
                parts = out.setdefault(rank, [])
                if parts and parts[-1][1] >= start:
                    parts[-1] = (parts[-1][0], end)
                else:
                    parts.append((start, end))
        return out


def _whole_runs(raw: bytes, parts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Parts that begin where a run of digits and separators begins, so that it is judged as a whole."""
    done = 0
    for part_start, end in parts:
        start = part_start
        while start > done and raw[start - 1] in _IN_A_SHAPE:
            start -= 1
        yield start, end
        done = end


class _Database:
    """Compiled patterns; the working memory of a scan is each thread's own."""

    def __init__(self, patterns: list[tuple[int, bytes]], flags: int) -> None:
        self._empty = not patterns
        self._database = hyperscan.Database()
        if patterns:
            self._database.compile(
                expressions=[pattern for _, pattern in patterns],
                ids=[number for number, _ in patterns],
                flags=[hyperscan.HS_FLAG_PREFILTER | flags] * len(patterns),
            )
        self._local = threading.local()

    def places(self, raw: bytes) -> list[tuple[int, int]]:
        """Which pattern's matches end where."""
        out: list[tuple[int, int]] = []
        self._scan(raw, lambda number, _start, to, _flags, _context: out.append((number, to)))
        return out

    def kinds(self, raw: bytes) -> set[int]:
        """Which patterns may match at all."""
        out: set[int] = set()
        self._scan(raw, lambda number, _start, _to, _flags, _context: out.add(number))
        return out

    def _scan(self, raw: bytes, on_match: Any) -> None:
        if self._empty:
            return
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = hyperscan.Scratch(self._database)
        self._database.scan(raw, match_event_handler=on_match, scratch=scratch)
