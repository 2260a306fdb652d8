"""Looking into plain JSON of which nothing is known yet."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

__all__ = ["JSON", "at", "is_array", "is_object", "items", "objects"]

JSON: TypeAlias = Any
"""Plain JSON: None, bool, int, float, str, list, dict with str keys."""


def is_object(value: JSON) -> TypeGuard[dict[str, JSON]]:
    """Whether it is a JSON object."""
    return isinstance(value, dict)


def is_array(value: JSON) -> TypeGuard[list[JSON]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


def at(value: JSON, *names: str) -> JSON:
    """The value under these keys, None where there is none."""
    for name in names:
        if not is_object(value):
            return None
        value = value.get(name)
    return value


def items(value: JSON) -> list[JSON]:
    """The array itself, an empty one for anything else."""
    return value if is_array(value) else []


def objects(value: JSON) -> list[dict[str, JSON]]:
    """The objects in an array."""
    return [item for item in items(value) if is_object(item)]
