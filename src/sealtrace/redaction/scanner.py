"""Finds and replaces values in strings, many strings at a time.

Strings are joined and searched as one text: most of them are short, and the cost of looking at a
string is far higher than the cost of looking at its characters.
"""

from __future__ import annotations

import dataclasses
import math
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from ..errors import RedactionFailed
from .detector import SEPARATOR, Span
from .engine import Engine, Found
from .normaliser import Folded, escapes_in, fold
from .tags import PSEUDONYM

__all__ = ["Change", "Replace", "Scanner"]

_CHUNK: Final = 1 << 18
_ROUNDS: Final = 6
_AROUND: Final = 1200
"""No pattern and no context that can hold a pseudonym reaches further."""

Replace = Callable[[str, str], str]
"""Told the kind and the value, gives what stands in its place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What became of one string, and how many values of each kind were replaced."""

    text: str
    counts: dict[str, int]
    touched: Sequence[tuple[int, int]] = ()
    """Where in the new text replacements stand."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Window:
    """Part of a changed string that is to be searched again."""

    original: str
    start: int
    end: int


def _windows(original: str, text: str, touched: Sequence[tuple[int, int]]) -> list[_Window]:
    """The surroundings of replacements, to the next white space; nearby ones as one."""
    if len(text) <= 4 * _AROUND:
        return [_Window(original, 0, len(text))]
    out: list[_Window] = []
    for first, last in touched:
        start, end = max(0, first - _AROUND), min(len(text), last + _AROUND)
        if out and start <= out[-1].end:
            start = out.pop().start
        else:
            while start > 0 and not text[start - 1].isspace():
                start -= 1
        while end < len(text) and not text[end].isspace():
            end += 1
        out.append(_Window(original, start, end))
    return out


class _Source:
    """One string as it is searched."""

    __slots__ = ("steps", "text", "view")

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps: list[Folded] = fold(text)
        self.view = self.steps[-1].text if self.steps else text
        if SEPARATOR in self.view:
            self.view = self.view.replace(SEPARATOR, " ")

    def span(self, start: int, end: int) -> tuple[int, int]:
        for step in reversed(self.steps):
            start, end = step.span(start, end)
        return start, end


class Scanner:
    """Searches strings with an engine.

    Args:
        engine: Finds candidates.
        replace: Makes pseudonyms.
    """

    def __init__(self, engine: Engine, replace: Replace) -> None:
        self._engine = engine
        self._replace = replace

    def changes(self, strings: Sequence[str], deadline: float = math.inf) -> dict[str, Change]:
        """The strings in which something was found, and what they become.

        What was changed is searched again, with what stands around it, until nothing more is found:
        so redacting twice is the same as redacting once.

        Raises:
            RedactionFailed: The deadline, a value of `time.monotonic()`, has passed.
        """
        texts: dict[str, str] = {}
        counts: dict[str, Counter[str]] = {}
        again: list[_Window] = []
        for chunk in _chunks(strings):
            for text, change in self._round(chunk).items():
                texts[text] = change.text
                counts[text] = Counter(change.counts)
                again += _windows(text, change.text, change.touched)
            if time.monotonic() > deadline:
                raise RedactionFailed("redaction took too long; the payload was dropped")
        for _ in range(_ROUNDS):
            if not again:
                break
            again = self._again(again, texts, counts)
        for window in again:
            # It never settles: nothing of it is kept.
            texts[window.original] = self._replace("UNSTABLE", window.original)
            counts[window.original] = Counter({"UNSTABLE": 1})
        return {text: Change(safe, dict(counts[text]), ()) for text, safe in texts.items()}

    def _again(self, windows: list[_Window], texts: dict[str, str], counts: dict[str, Counter[str]]) -> list[_Window]:
        seen = [texts[window.original][window.start : window.end] for window in windows]
        found: dict[str, Change] = {}
        for chunk in _chunks(list(dict.fromkeys(seen))):
            found.update(self._round(chunk))
        touched: dict[str, list[tuple[int, int]]] = {}
        # From the right, so that positions to the left stay true.
        for window, part in sorted(zip(windows, seen, strict=True), key=lambda pair: -pair[0].start):
            change = found.get(part)
            if change is None:
                continue
            original = window.original
            whole = texts[original]
            texts[original] = whole[: window.start] + change.text + whole[window.end :]
            counts[original].update(change.counts)
            shift = len(change.text) - len(part)
            later = [(start + shift, end + shift) for start, end in touched.get(original, [])]
            touched[original] = [(window.start + start, window.start + end) for start, end in change.touched] + later
        return [item for text, spans in touched.items() for item in _windows(text, texts[text], spans)]

    def matches(self, text: str) -> bool:
        """Whether anything in it would be replaced."""
        return bool(self._round([text]))

    def spans(self, text: str) -> list[Span]:
        """What would be replaced in one string, before anything is: for benchmarks and `policy test`."""
        source = _Source(text)
        found = self._engine.find(source.view)
        tags = [match.span() for match in PSEUDONYM.finditer(source.view)]
        return [(*source.span(start, end), kind) for start, end, kind in _merged(found, tags)]

    def _round(self, strings: Sequence[str]) -> dict[str, Change]:
        sources = _sources(strings)
        views = (
            [sources[index].view if index in sources else text for index, text in enumerate(strings)]
            if sources
            else strings
        )
        found = self._engine.find(SEPARATOR.join(views))
        if not found:
            return {}
        starts = [0, *accumulate(len(view) + 1 for view in views)]
        by_string: dict[int, list[Found]] = {}
        for start, end, kind, rank in found:
            index = bisect_right(starts, start) - 1
            base = starts[index]
            by_string.setdefault(index, []).append((start - base, end - base, kind, rank))
        out: dict[str, Change] = {}
        for index, spans in by_string.items():
            change = self._change(strings[index], sources.get(index), spans)
            if change is not None:
                out[strings[index]] = change
        return out

    def _change(self, text: str, source: _Source | None, spans: list[Found]) -> Change | None:
        view = text if source is None else source.view
        tags = [match.span() for match in PSEUDONYM.finditer(view)] if "<" in view else []
        pieces: list[str] = []
        counts: Counter[str] = Counter()
        touched: list[tuple[int, int]] = []
        position = length = 0
        for start, end, kind in _merged(spans, tags):
            first, last = (start, end) if source is None else source.span(start, end)
            first = max(first, position)
            if first >= last:
                continue
            replacement = self._replace(kind, view[start:end])
            if replacement == text[first:last]:
                continue
            pieces += (text[position:first], replacement)
            length += first - position
            touched.append((length, length + len(replacement)))
            length += len(replacement)
            counts[kind] += 1
            position = last
        if not counts:
            return None
        pieces.append(text[position:])
        return Change("".join(pieces), dict(counts), touched)


def _sources(strings: Sequence[str]) -> dict[int, _Source]:
    """Those of the strings that are searched in another form than their own."""
    if len(strings) == 1:
        source = _Source(strings[0])
        return {0: source} if source.view is not source.text else {}
    joined = "".join(strings)
    escapes = escapes_in(joined)
    if joined.isascii() and not escapes and SEPARATOR not in joined:
        return {}
    return {
        index: _Source(text)
        for index, text in enumerate(strings)
        if not text.isascii() or SEPARATOR in text or any(way.search(text) is not None for way in escapes)
    }


def _chunks(strings: Sequence[str]) -> Iterator[Sequence[str]]:
    chunk: list[str] = []
    size = 0
    for text in strings:
        chunk.append(text)
        size += len(text) + 1
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _merged(spans: list[Found], tags: list[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Overlapping spans as one, under the kind of the surest; what touches a pseudonym is left out."""
    spans = [span for span in spans if not any(span[0] < end and span[1] > start for start, end in tags)]
    spans.sort()
    current: Found | None = None
    for span in spans:
        if current is None:
            current = span
        elif span[0] < current[1]:
            best = min(current, span, key=lambda item: item[3])
            current = (current[0], max(current[1], span[1]), best[2], best[3])
        else:
            yield current[:3]
            current = span
    if current is not None:
        yield current[:3]
