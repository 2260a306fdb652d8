"""Where two JSON values differ, by path.

Paths are written `$.input[3].output`; a key that is not a plain word is written `$["a key"]`. Lists
are aligned, so one inserted item is one difference and not a difference at every index after it.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

from .shape import JSON, is_array, is_object

__all__ = [
    "ABSENT",
    "Absent",
    "Difference",
    "differences",
    "first_difference",
    "format_path",
    "is_ignored",
    "parse_path",
    "same",
]


class Absent(enum.Enum):
    """The type of `ABSENT`: on this side there is no value, which is not the same as null."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent.ABSENT


class _Wild(enum.Enum):
    ANY = "*"
    DEEP = ".."


_Path: TypeAlias = tuple[str | int, ...]
_Pattern: TypeAlias = tuple[str | int | _Wild, ...]

_WORD: Final = re.compile(r"[A-Za-z_$][\w$-]*\Z")
_STEP: Final = re.compile(
    r"""\.\.(?P<deep>[A-Za-z_$][\w$-]*) | \.(?P<name>[A-Za-z_$][\w$-]*|\*) | \[(?P<index>\d+|\*)\]
      | \[(?P<key>"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ.

    Attributes:
        path: Where, from `$`. The index of an item in a list is its index in the recorded list, or in
            the other one where the recorded list has no such item.
        recorded: The recorded value, or `ABSENT`.
        got: The other value, or `ABSENT`.
    """

    path: str
    recorded: JSON
    got: JSON

    def to_json(self) -> dict[str, JSON]:
        """As plain JSON; a side that is absent is left out."""
        sides = {"recorded": self.recorded, "got": self.got}
        return {"path": self.path, **{name: value for name, value in sides.items() if value is not ABSENT}}


def differences(recorded: JSON, got: JSON, *, ignore: Iterable[str] = ()) -> Iterator[Difference]:
    """Every difference, in the order of the recorded value.

    Args:
        recorded: Plain JSON.
        got: Plain JSON.
        ignore: Paths not to look at, with all below them. `[*]` and `.*` stand for any index and any
            key, `..name` for the key anywhere below: `$.input[*].id`, `$..created_at`.

    Raises:
        ValueError: An ignored path cannot be read.
    """
    return _walk(recorded, got, (), tuple(parse_path(path) for path in ignore))


def first_difference(recorded: JSON, got: JSON, *, ignore: Iterable[str] = ()) -> Difference | None:
    """The first of `differences`, or None where there is none."""
    return next(differences(recorded, got, ignore=ignore), None)


def same(recorded: JSON, got: JSON) -> bool:
    """Whether two JSON values are one value: `true` is not `1`, but `1` is `1.0`."""
    return first_difference(recorded, got) is None


def format_path(path: Iterable[str | int]) -> str:
    """`("input", 3, "output")` as `$.input[3].output`."""
    steps = [f"[{step}]" if isinstance(step, int) else _format_key(step) for step in path]
    return "$" + "".join(steps)


def _format_key(key: str) -> str:
    return f".{key}" if _WORD.match(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def parse_path(text: str) -> _Pattern:
    """The steps of a path or of a path pattern; see `differences`.

    Raises:
        ValueError: It is not a path.
    """
    if not text.startswith("$"):
        raise ValueError(f"{text!r} is not a path: a path begins with `$`, as in `$.input[3].output`")
    steps: list[str | int | _Wild] = []
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise ValueError(f"{text!r} is not a path: cannot read {text[at:]!r}")
        steps += _steps(match)
        at = match.end()
    return tuple(steps)


def _steps(match: re.Match[str]) -> list[str | int | _Wild]:
    if match["deep"] is not None:
        return [_Wild.DEEP, match["deep"]]
    if match["name"] is not None:
        return [_Wild.ANY if match["name"] == "*" else match["name"]]
    if match["index"] is not None:
        return [_Wild.ANY if match["index"] == "*" else int(match["index"])]
    return [json.loads(match["key"])]


def is_ignored(path: str, ignore: Collection[str]) -> bool:
    """Whether `differences` would not look at this path, with these paths to ignore."""
    if not ignore:
        return False
    steps = tuple(step for step in parse_path(path) if not isinstance(step, _Wild))
    patterns = tuple(parse_path(pattern) for pattern in ignore)
    return any(_ignored(steps[:length], patterns) for length in range(len(steps) + 1))


def _ignored(path: _Path, patterns: tuple[_Pattern, ...]) -> bool:
    return any(_matches(path, pattern) for pattern in patterns)


def _matches(path: _Path, pattern: _Pattern) -> bool:
    if not pattern:
        return not path
    if pattern[0] is _Wild.DEEP:
        return any(_matches(path[skip:], pattern[1:]) for skip in range(len(path)))
    return bool(path) and pattern[0] in (_Wild.ANY, path[0]) and _matches(path[1:], pattern[1:])


def _walk(recorded: JSON, got: JSON, path: _Path, ignore: tuple[_Pattern, ...]) -> Iterator[Difference]:
    if recorded is got or (ignore and _ignored(path, ignore)):
        return
    if is_object(recorded) and is_object(got):
        yield from _walk_objects(recorded, got, path, ignore)
    elif is_array(recorded) and is_array(got):
        yield from _walk_lists(recorded, got, path, ignore)
    elif not _same_scalar(recorded, got):
        yield Difference(format_path(path), recorded, got)


def _same_scalar(recorded: JSON, got: JSON) -> bool:
    # `True == 1` in Python, not in JSON.
    if isinstance(recorded, bool) or isinstance(got, bool):
        return recorded is got
    return bool(recorded == got)


def _walk_objects(
    recorded: dict[str, JSON], got: dict[str, JSON], path: _Path, ignore: tuple[_Pattern, ...]
) -> Iterator[Difference]:
    for key in [*recorded, *(key for key in got if key not in recorded)]:
        yield from _walk(recorded.get(key, ABSENT), got.get(key, ABSENT), (*path, key), ignore)


def _walk_lists(
    recorded: list[JSON], got: list[JSON], path: _Path, ignore: tuple[_Pattern, ...]
) -> Iterator[Difference]:
    start, limit = 0, min(len(recorded), len(got))
    while start < limit and _clean(recorded[start], got[start], (*path, start), ignore):
        start += 1
    if start == len(recorded) == len(got):
        return
    end = 0
    while end < limit - start and _clean(recorded[-1 - end], got[-1 - end], (*path, len(recorded) - 1 - end), ignore):
        end += 1
    for left, right in _pairs(recorded[start : len(recorded) - end], got[start : len(got) - end]):
        step = start + (left if left is not None else right if right is not None else 0)
        one = ABSENT if left is None else recorded[start + left]
        other = ABSENT if right is None else got[start + right]
        yield from _walk(one, other, (*path, step), ignore)


def _clean(recorded: JSON, got: JSON, path: _Path, ignore: tuple[_Pattern, ...]) -> bool:
    return next(_walk(recorded, got, path, ignore), None) is None


def _pairs(recorded: list[JSON], got: list[JSON]) -> Iterator[tuple[int | None, int | None]]:
    """Indices that belong together, in the order of the recorded list."""
    matcher = difflib.SequenceMatcher(None, _keys(recorded), _keys(got), autojunk=False)
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(range(left, left_end), range(right, right_end), strict=True)
        else:
            yield from _gap(recorded, got, range(left, left_end), range(right, right_end))


def _keys(items: list[JSON]) -> list[str]:
    return [json.dumps(item, sort_keys=True) for item in items]


def _gap(recorded: list[JSON], got: list[JSON], left: range, right: range) -> Iterator[tuple[int | None, int | None]]:
    """Between two items that are equal on both sides: pair what has the same label, in order."""
    if len(left) == len(right):
        yield from zip(left, right, strict=True)
        return
    free = list(right)
    for index in left:
        label = _label(recorded[index])
        match = next((other for other in free if _label(got[other]) == label), None)
        if match is None:
            yield index, None
            continue
        # What was passed over has no counterpart any more: pairs never cross.
        yield from ((None, other) for other in free if other < match)
        free = [other for other in free if other > match]
        yield index, match
    yield from ((None, other) for other in free)


def _label(item: JSON) -> object:
    if not is_object(item):
        return type(item).__name__
    return tuple(repr(item.get(name)) for name in ("type", "role", "name", "call_id"))
