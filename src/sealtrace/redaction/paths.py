"""Rules by path: `tool:issue_refund.args.card`, `*.ssn`, `agent:Triage.*.note`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .embedded import own_name
from .policy import FieldRule

__all__ = ["PathRules"]

# Users say args and result; the wire says arguments and output.
_ALIASES: Final = {"args": "(?:args|arguments)", "result": "(?:result|output|content)"}
_SCOPE: Final = re.compile(r"(agent|tool|kind):([^.]+)(?:\.(.*))?\Z")


class PathRules:
    """Rules that apply in one place, first match wins.

    Args:
        rules: In the order of the policy.
        scopes: `agent:NAME`, `tool:NAME`, `kind:NAME` of the place.
    """

    def __init__(self, rules: Iterable[FieldRule], scopes: frozenset[str]) -> None:
        self._rules: list[tuple[re.Pattern[str], FieldRule]] = []
        self._known: dict[tuple[str, ...], FieldRule | None] = {}
        for rule in rules:
            scope = _SCOPE.match(rule.path)
            if scope is None:
                self._rules.append((_compiled(rule.path), rule))
            elif f"{scope[1]}:{scope[2]}" in scopes:
                self._rules.append((_compiled(scope[3] or "*"), rule))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def match(self, path: tuple[str, ...]) -> FieldRule | None:
        """The rule for a value at this path; list positions are empty names."""
        try:
            return self._known[path]
        except KeyError:
            pass
        dotted = ".".join(own_name(name) for name in path if name)
        found = next((rule for pattern, rule in self._rules if pattern.fullmatch(dotted)), None)
        if len(self._known) < 4096:
            self._known[path] = found
        return found


def _compiled(path: str) -> re.Pattern[str]:
    """`*` stands for any number of names, `?` and `*` inside a name for characters of it."""
    parts = path.split(".")
    out: list[str] = []
    for index, part in enumerate(parts):
        if part == "*":
            out.append("(?:.*)" if index == len(parts) - 1 else r"(?:.*\.)?")
            continue
        text = _ALIASES.get(part) or "".join(
            "[^.]*" if character == "*" else "[^.]" if character == "?" else re.escape(character) for character in part
        )
        out.append(text if index == len(parts) - 1 else text + r"\.")
    return re.compile(r"(?:.*\.)?" + "".join(out))
