"""Values replaced because of where they stand, whatever they look like."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from ..errors import RedactionFailed
from ..event import Shared
from .fields import kind_of_field
from .memory import RunMemory, remembered_as
from .surroundings import Surroundings
from .tags import PSEUDONYM

__all__ = ["SHORTEST", "Whole", "stand_in"]

SHORTEST: Final = 5
"""No value that a detector knows is shorter."""

_JSON_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


def _stays(value: str) -> bool:
    return not value.strip() or value == "<DROPPED>" or PSEUDONYM.fullmatch(value) is not None


def stand_in(replacement: Callable[[str, str], str], kind: str, value: str) -> tuple[str, str | None]:
    """What stands in place of a string, which may be itself, and as what the string is to be remembered."""
    if _stays(value):
        return value, None
    return replacement(kind, value), remembered_as(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    """Replaces, or keeps, all there is below one field.

    Attributes:
        around: The rules in force.
        memory: Values given away by their fields, of the whole run.
        in_time: Raises once the payload has taken too long.
        keys: Has the names of a mapping searched as well.
    """

    around: Surroundings
    memory: RunMemory
    in_time: Callable[[], None]
    keys: Callable[[dict[str, Any], list[str], Counter[str]], None]

    def redacted(self, value: Any, kind: str, counts: Counter[str], *, drop: bool) -> Any:
        """The value with every leaf replaced by one of its own type.

        Raises:
            RedactionFailed: It took too long, or is not plain JSON.
        """
        self.in_time()
        leaf = type(value)
        if leaf is str:
            return self._dropped(value, kind, counts) if drop else self.text(value, kind, counts)
        if leaf is int or leaf is float:
            return self._number(value, kind, counts, drop=drop)
        if leaf is dict:
            out: dict[str, Any] = {}
            for name, item in value.items():
                if type(name) is not str:
                    raise RedactionFailed("a key that is not a string is not plain JSON; the payload was dropped")
                out[name] = (
                    item
                    if name == "type" and type(item) is str and item in _JSON_TYPES
                    else self.redacted(item, kind_of_field(name) or kind, counts, drop=drop)
                )
            self.keys(out, [name for name in out if len(name) >= SHORTEST], counts)
            return out
        if leaf is list:
            return [self.redacted(item, kind, counts, drop=drop) for item in value]
        if leaf is bool or value is None:
            return value
        raise RedactionFailed(
            f"a value of type {leaf.__name__} stands below a sensitive field; the payload was dropped"
        )

    def _number(self, value: float, kind: str, counts: Counter[str], *, drop: bool) -> float:
        if drop:
            if value:
                counts[kind] += 1
            return type(value)(0)
        safe = self.around.number(kind, value)
        if safe != value:
            counts[kind] += 1
            self.memory.remember(repr(value), self.around.replacement(kind, repr(value)))
        return safe

    def text(self, value: str, kind: str, counts: Counter[str]) -> str:
        """What stands in place of a string."""
        safe, key = self.around.stand_in(kind, value)
        if safe != value:
            counts[kind] += 1
            if key is not None:
                self.memory.add(key, safe)
        return safe

    def _dropped(self, value: str, kind: str, counts: Counter[str]) -> str:
        if _stays(value):
            return value
        counts[kind] += 1
        return "<DROPPED>"

    def kept(self, item: Any) -> Any:
        """A copy of a value that a rule lets through.

        Raises:
            RedactionFailed: It took too long, or is not plain JSON.
        """
        self.in_time()
        if type(item) is Shared:
            raise RedactionFailed("a shared value stands below a kept field; the payload was dropped")
        if type(item) is dict:
            return {name: self.kept(inner) for name, inner in item.items()}
        if type(item) is list:
            return [self.kept(inner) for inner in item]
        if type(item) in _PLAIN:
            return item
        raise RedactionFailed("a value that is not plain JSON stands below a kept field; the payload was dropped")
