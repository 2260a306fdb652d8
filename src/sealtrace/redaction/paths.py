"""Rules by path: `tool:issue_refund.args.card`, `*.ssn`, `agent:Triage.*.note`.

Names come from tools and models, and may be as long and as odd as they like: matching takes steps in
proportion to their length, which no regular expression with several `*` would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from .embedded import own_name
from .policy import FieldRule

__all__ = ["PathRules"]

# Users say args and result; the wire says arguments and output.
_ALIASES: Final = {
    "args": frozenset({"args", "arguments"}),
    "result": frozenset({"result", "output", "content"}),
}
_SCOPE: Final = re.compile(r"(agent|tool|kind):([^.]+)(?:\.(.*))?\Z")
_MOST_KNOWN: Final = 4096
_LONGEST_KNOWN: Final = 512

_Name: TypeAlias = frozenset[str] | str
"""One of some names, or a name with `*` and `?` in it."""

_Path: TypeAlias = tuple[_Name | None, ...]
"""None is any number of names."""


class PathRules:
    """Rules that apply in one place, first match wins.

    Args:
        rules: In the order of the policy.
        scopes: `agent:NAME`, `tool:NAME`, `kind:NAME` of the place.
    """

    def __init__(self, rules: Iterable[FieldRule], scopes: frozenset[str]) -> None:
        self._rules: list[tuple[_Path, FieldRule]] = []
        self._known: dict[tuple[str, ...], FieldRule | None] = {}
        for rule in rules:
            scope = _SCOPE.match(rule.path)
            if scope is None:
                self._rules.append((_path(rule.path), rule))
            elif f"{scope[1]}:{scope[2]}" in scopes:
                self._rules.append((_path(scope[3] or "*"), rule))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def match(self, path: tuple[str, ...]) -> FieldRule | None:
        """The rule for a value at this path; list positions are empty names."""
        try:
            return self._known[path]
        except KeyError:
            pass
        dotted = ".".join(own_name(name) for name in path if name)
        names = dotted.split(".") if dotted else []
        found = next((rule for pattern, rule in self._rules if _fits(pattern, names)), None)
        if len(self._known) < _MOST_KNOWN and len(dotted) <= _LONGEST_KNOWN:
            self._known[path] = found
        return found


def _path(path: str) -> _Path:
    """`*` stands for any number of names, `?` and `*` inside a name for characters of it."""
    out: list[_Name | None] = [None]
    parts = path.split(".")
    for part in parts:
        if part == "*":
            out.append(None)
        elif "*" in part or "?" in part:
            out.append(part)
        else:
            out.append(_ALIASES.get(part, frozenset({part})))
    if parts[-1] == "*" and set(parts) != {"*"}:
        out.insert(-1, "*")  # there is something below it
    return tuple(out)


def _fits(pattern: _Path, names: Sequence[str]) -> bool:
    return _matches(pattern, names, None, _is_called)


def _is_called(wanted: Any, name: str) -> bool:
    if type(wanted) is str:
        return _matches(wanted, name, "*", _is_letter)
    return name in wanted


def _is_letter(wanted: Any, letter: str) -> bool:
    return wanted in {letter, "?"}


def _matches(pattern: Sequence[Any], items: Sequence[str], anything: Any, same: Callable[[Any, str], bool]) -> bool:
    """Whether the items are what the pattern says, `anything` in it standing for any number of them."""
    at = position = 0
    open_at, taken = -1, 0
    while position < len(items):
        if at < len(pattern) and pattern[at] == anything:
            open_at, taken = at, position
            at += 1
        elif at < len(pattern) and same(pattern[at], items[position]):
            at += 1
            position += 1
        elif open_at >= 0:
            taken += 1  # the last one takes one more; what came before it need not be tried again
            at, position = open_at + 1, taken
        else:
            return False
    return all(rest == anything for rest in pattern[at:])
