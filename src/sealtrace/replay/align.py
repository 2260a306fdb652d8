"""Which event of one run answers to which event of another.

Runs are aligned frame by frame. What races inside a frame (guardrails, retrievals, MCP listings,
the user's own spans) is aligned in a lane of its own, and tool results follow their calls, so the
order in which parallel things happened to finish is never a difference. Nested runs follow the tool
call or guardrail that opened them.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from ..event import Kind
from .comparable import Subject
from .shape import at, objects

__all__ = ["Pair", "align"]

_Side: TypeAlias = list[Subject]

_LANES: Final = {
    Kind.GUARDRAIL: "guardrail",
    Kind.RETRIEVAL: "retrieval",
    Kind.MCP_TOOLS: "mcp",
    Kind.CUSTOM: "custom",
    Kind.CHECKPOINT: "checkpoint",
}
_MOVABLE: Final = frozenset(
    {Kind.TOOL_CALL, Kind.HANDOFF, Kind.APPROVAL, Kind.GUARDRAIL, Kind.RETRIEVAL, Kind.MCP_TOOLS, Kind.CUSTOM}
)
_MAX_CELLS: Final = 1_000_000
"""Above this a frame is aligned by what is equal alone, which needs no table."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """Two events that answer to each other, or one that has no counterpart.

    Attributes:
        a: The event of the first run.
        b: The event of the second run.
        moved: They were found in different places of the order.
    """

    a: Subject | None
    b: Subject | None
    moved: bool = False


def align(a: Sequence[Subject], b: Sequence[Subject]) -> list[Pair]:
    """Pair the events of two runs.

    Returns:
        Every event of both, each once, in the order of the first run; what only the second has comes
        after the event it followed there.
    """
    frames_a, frames_b = _frames(a), _frames(b)
    pairs: list[Pair] = []
    waiting = _roots(frames_a, frames_b)
    while waiting:
        key_a, key_b = waiting.pop()
        found = list(_frame(frames_a.pop(key_a, []), frames_b.pop(key_b, [])))
        pairs += found
        waiting += _children(found, key_a, key_b, frames_a, frames_b)
    pairs += [Pair(item, None) for side in frames_a.values() for item in side]
    pairs += [Pair(None, item) for side in frames_b.values() for item in side]
    return _in_order(pairs)


_FrameKey: TypeAlias = tuple[str, str]
"""Record id and frame path: a run resumed in another process starts again at `run:0`."""


def _key(item: Subject) -> _FrameKey:
    return item.event.record_id, item.event.frame


def _frames(side: Sequence[Subject]) -> dict[_FrameKey, _Side]:
    out: dict[_FrameKey, _Side] = {}
    for item in side:
        out.setdefault(_key(item), []).append(item)
    return out


def _roots(frames_a: dict[_FrameKey, _Side], frames_b: dict[_FrameKey, _Side]) -> list[tuple[_FrameKey, _FrameKey]]:
    """Runs that no other run opened belong together by their order over all records."""
    roots_a = [key for key in frames_a if "/" not in key[1]]
    roots_b = [key for key in frames_b if "/" not in key[1]]
    return list(zip(roots_a, roots_b, strict=False))


def _children(
    pairs: list[Pair],
    key_a: _FrameKey,
    key_b: _FrameKey,
    frames_a: dict[_FrameKey, _Side],
    frames_b: dict[_FrameKey, _Side],
) -> Iterator[tuple[_FrameKey, _FrameKey]]:
    """Nested runs whose openers were paired."""
    openers: dict[str, str] = {}
    for pair in pairs:
        if pair.a is None or pair.b is None:
            continue
        if pair.a.kind is Kind.TOOL_CALL:
            openers.setdefault(f"tool:{pair.a.event.call_id}", f"tool:{pair.b.event.call_id}")
        elif pair.a.kind is Kind.GUARDRAIL:
            name = f"guardrail:{pair.a.label[-1]}"
            openers.setdefault(name, name)
    openers["run"] = "run"
    prefix_a = f"{key_a[1]}/"
    for record, path in list(frames_a):
        if record != key_a[0] or not path.startswith(prefix_a):
            continue
        opener, _, rest = path[len(prefix_a) :].rpartition("/")
        if opener in openers:
            other = (key_b[0], f"{key_b[1]}/{openers[opener]}/{rest}")
            if other in frames_b:
                yield (record, path), other


def _frame(a: _Side, b: _Side) -> Iterator[Pair]:
    calls: list[Pair] = []
    for lane in ("", *dict.fromkeys(_LANES.values())):
        found = _lane(_calls_in_order(_of_lane(a, lane)), _calls_in_order(_of_lane(b, lane)))
        calls += [pair for pair in found if _is_call(pair)]
        yield from found
    yield from _results(calls, a, b)


def _of_lane(side: _Side, lane: str) -> _Side:
    return [item for item in side if item.kind is not Kind.TOOL_RESULT and _LANES.get(item.kind, "") == lane]


def _is_call(pair: Pair) -> bool:
    return (pair.a or pair.b) is not None and Kind.TOOL_CALL in {item.kind for item in (pair.a, pair.b) if item}


def _calls_in_order(side: _Side) -> _Side:
    """Calls of one answer in the order the model asked for them, not in the order they began."""
    asked = {item.event.seq: _asked_for(item) for item in side if item.kind is Kind.GENERATION}
    first: dict[int | None, int] = {}
    places: list[tuple[int, int]] = []
    for index, item in enumerate(side):
        parent = item.event.parent_seq
        wanted = asked.get(parent, {}) if parent is not None and item.kind is Kind.TOOL_CALL else {}
        if item.event.call_id in wanted:
            places.append((first.setdefault(parent, index), wanted[item.event.call_id]))
        else:
            places.append((index, 0))
    return [side[index] for index in sorted(range(len(side)), key=places.__getitem__)]


def _asked_for(item: Subject) -> dict[str | None, int]:
    output = objects(at(item.event.payload, "response", "output"))
    return {asked.get("call_id"): index for index, asked in enumerate(output)}


def _lane(a: _Side, b: _Side) -> list[Pair]:
    start, limit = 0, min(len(a), len(b))
    while start < limit and a[start].text == b[start].text:
        start += 1
    end = 0
    while end < limit - start and a[-1 - end].text == b[-1 - end].text:
        end += 1
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    big = len(middle_a) * len(middle_b) > _MAX_CELLS
    found = list(_by_equality(middle_a, middle_b) if big else _by_score(middle_a, middle_b))
    return [
        *map(Pair, a[:start], b[:start]),
        *_with_moves(found),
        *map(Pair, a[len(a) - end :], b[len(b) - end :]),
    ]


def _by_equality(a: _Side, b: _Side) -> Iterator[Pair]:
    keys_a, keys_b = [[(item.label, item.core) for item in side] for side in (a, b)]
    matcher = difflib.SequenceMatcher(None, keys_a, keys_b, autojunk=False)
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal":
            yield from map(Pair, a[left:left_end], b[right:right_end])
        else:
            yield from (Pair(item, None) for item in a[left:left_end])
            yield from (Pair(None, item) for item in b[right:right_end])


def _score(a: Subject, b: Subject) -> int:
    """How well two events answer to each other; 0: they do not."""
    if a.kind is not b.kind:
        return 0
    if a.label != b.label:
        # Another agent may take the same turn; another tool is another call.
        return 1 if a.kind is Kind.GENERATION else 0
    return 4 + 4 * (a.core == b.core) + 2 * (a.text == b.text)


def _by_score(a: _Side, b: _Side) -> list[Pair]:
    """Best global alignment; of equally good ones the one that pairs earliest."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        row, below = best[i], best[i + 1]
        for j in range(len(b) - 1, -1, -1):
            score = _score(a[i], b[j])
            row[j] = max(below[j], row[j + 1], below[j + 1] + score if score else 0)
    out: list[Pair] = []
    i = j = 0
    while i < len(a) and j < len(b):
        score = _score(a[i], b[j])
        if score and best[i][j] == best[i + 1][j + 1] + score:
            out.append(Pair(a[i], b[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            out.append(Pair(a[i], None))
            i += 1
        else:
            out.append(Pair(None, b[j]))
            j += 1
    out += [Pair(item, None) for item in a[i:]]
    out += [Pair(None, item) for item in b[j:]]
    return out


def _with_moves(pairs: list[Pair]) -> list[Pair]:
    """What is missing here and found elsewhere has moved."""
    only_b: dict[tuple[tuple[str, ...], str], list[Subject]] = {}
    for pair in pairs:
        if pair.a is None and pair.b is not None and pair.b.kind in _MOVABLE:
            only_b.setdefault((pair.b.label, pair.b.core), []).append(pair.b)
    taken: set[int] = set()
    out: list[Pair] = []
    for pair in pairs:
        candidates = only_b.get((pair.a.label, pair.a.core)) if pair.a is not None and pair.b is None else None
        if candidates:
            other = candidates.pop(0)
            taken.add(other.index)
            out.append(Pair(pair.a, other, moved=True))
        else:
            out.append(pair)
    return [pair for pair in out if pair.moved or pair.a is not None or pair.b is None or pair.b.index not in taken]


def _results(calls: Iterable[Pair], a: _Side, b: _Side) -> Iterator[Pair]:
    """Results follow their calls."""
    left = {item.event.parent_seq: item for item in a if item.kind is Kind.TOOL_RESULT}
    right = {item.event.parent_seq: item for item in b if item.kind is Kind.TOOL_RESULT}
    for pair in calls:
        one = left.pop(pair.a.event.seq, None) if pair.a is not None else None
        other = right.pop(pair.b.event.seq, None) if pair.b is not None else None
        if one is not None or other is not None:
            yield Pair(one, other)
    # Results whose call was lost.
    yield from _lane(list(left.values()), list(right.values()))


def _in_order(pairs: list[Pair]) -> list[Pair]:
    by_b = sorted((pair for pair in pairs if pair.b is not None), key=lambda pair: pair.b.index if pair.b else 0)
    place: dict[int, tuple[int, int]] = {}
    last = -1
    for pair in by_b:
        if pair.a is not None and not pair.moved:
            last = max(last, pair.a.index)
        elif pair.a is None and pair.b is not None:
            place[pair.b.index] = (last, 1 + pair.b.index)

    def key(pair: Pair) -> tuple[int, int]:
        if pair.a is not None:
            return pair.a.index, 0
        return place[pair.b.index] if pair.b is not None else (0, 0)

    return sorted(pairs, key=key)
