"""What the names in a payload are good for, worked out once for each name and for each set of names."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from .fields import could_be_person, kind_of_field
from .media import MEDIA_FIELDS
from .names import NameStrength, name_strength

__all__ = ["PERSON_NAME", "PLAIN", "SILENT", "STRUCTURAL", "STRUCTURAL_USE", "Names", "Shape", "Use", "use_of"]

# Names the SDK and a rerun need to find their way: scanned, never replaced because of the name.
STRUCTURAL: Final = frozenset(
    {"type", "id", "call_id", "name", "role", "status", "object", "model", "tool", "kind", "agent", "tool_call_id",
     "response_id", "previous_response_id", "conversation_id", "item_id", "server_label", "approval_request_id"}
)  # fmt: skip

_MAX_NAMES: Final = 10_000
_MAX_NAME: Final = 200
_MAX_SHAPES: Final = 4096
_WIDEST: Final = 64
"""Names of a mapping whose shape is remembered; the walk looks at the clock once for each such mapping."""

_MAX_CHARACTERS: Final = 1_000_000
"""In the names of all shapes together."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Use:
    """What a name is good for.

    Attributes:
        kind: What a field of this name holds, whatever it looks like.
        strength: How surely it holds a secret, if it looks like one.
        media: Whether it holds nothing but media.
    """

    kind: str | None = None
    strength: NameStrength = NameStrength.NONE
    media: bool = False


PLAIN: Final = Use()
STRUCTURAL_USE: Final = Use()
PERSON_NAME: Final = Use("NAME")
SILENT: Final = (PLAIN, STRUCTURAL_USE)
"""Uses of names that say nothing of their value."""


def use_of(name: str) -> Use:
    """What this name is good for."""
    if name in STRUCTURAL:
        return STRUCTURAL_USE
    kind, strength, media = kind_of_field(name), name_strength(name), name in MEDIA_FIELDS
    return PLAIN if kind is None and not strength and not media else Use(kind, strength, media)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What the names of a mapping are good for together.

    Attributes:
        uses: Of each name, in the order of the mapping.
        person: Whether a mapping of these names may be about somebody.
    """

    uses: tuple[Use, ...]
    person: bool


class Names:
    """What is remembered of names in which nothing is to be found.

    Args:
        telling: Whether a name can say what its value is.
        persons: Whether a mapping can be somebody's.
    """

    def __init__(self, *, telling: bool, persons: bool) -> None:
        self._telling = telling
        self._persons = persons
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._characters = 0
        self.uses: dict[str, Use] = {}
        self.shape = self._shapes.get
        """The shape of a mapping with these names, if it is remembered."""

    def add(self, name: str, use: Use) -> None:
        """Remember that nothing is to be found in this name."""
        if len(self.uses) < _MAX_NAMES and len(name) <= _MAX_NAME:
            self.uses[name] = use

    def shape_of(self, value: dict[Any, Any]) -> Shape | None:
        """The shape of this mapping, remembered from now on; None if one of its names is not."""
        if len(value) > _WIDEST or not {str}.issuperset(map(type, value)):
            return None
        known = tuple(use for use in map(self.uses.get, value) if use is not None)
        if len(known) != len(value):
            return None
        if not self._telling:
            known = tuple(use if use is STRUCTURAL_USE else PLAIN for use in known)
        shape = Shape(known, self._persons and "name" in value and could_be_person(value))
        self._characters += sum(map(len, value))
        if len(self._shapes) >= _MAX_SHAPES or self._characters > _MAX_CHARACTERS:
            self._shapes.clear()
            self._characters = sum(map(len, value))
        self._shapes[tuple(value)] = shape
        return shape
