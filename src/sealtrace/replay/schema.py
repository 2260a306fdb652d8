"""Does a recorded value fit a JSON Schema?

Covers what the Agents SDK and the models' providers generate and accept: types, properties, items,
enumerations, bounds, patterns, combinations and references inside the document. A redacted string
has lost its text, so what a schema says about the text of strings does not apply to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeGuard

from .comparable import PSEUDONYM
from .jsondiff import format_path, same
from .shape import JSON, is_array, is_object

__all__ = ["misfits", "unchecked"]


def _is_number(value: JSON) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[dict[str, Callable[[JSON], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and float(value).is_integer(),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": is_array,
    "object": is_object,
}
_BOUNDS: Final[dict[str, tuple[Callable[[float, float], bool], str]]] = {
    "minimum": (lambda value, bound: value >= bound, "less than"),
    "maximum": (lambda value, bound: value <= bound, "more than"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "not more than"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "not less than"),
}
_KNOWN: Final = frozenset(
    {
        "$defs", "$ref", "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated",
        "type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
        "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "anyOf", "oneOf", "allOf", "not", "definitions",
        "minProperties", "maxProperties", *_BOUNDS,
    }
)  # fmt: skip
_MAX_DEPTH: Final = 64

_Step = tuple[str | int, ...]


def misfits(value: JSON, schema: JSON) -> list[tuple[str, str]]:
    """Where a value does not fit.

    Returns:
        Path and what is wrong there, without quoting the value; empty where it fits.
    """
    return [(format_path(path), message) for path, message in _Checker(schema).check(value, schema, ())]


def unchecked(schema: JSON) -> set[str]:
    """Keywords in the schema that `misfits` does not look at, `format` for one."""
    if is_array(schema):
        return set().union(*(unchecked(item) for item in schema))
    if not is_object(schema):
        return set()
    found = set(schema) - _KNOWN
    for name, value in schema.items():
        if name in {"properties", "$defs", "definitions"} and is_object(value):
            found |= set().union(*(unchecked(item) for item in value.values()))
        elif name in {"items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "additionalProperties"}:
            found |= unchecked(value)
    return found


class _Checker:
    def __init__(self, root: JSON) -> None:
        self._root = root

    def check(self, value: JSON, schema: JSON, path: _Step, depth: int = 0) -> Iterator[tuple[_Step, str]]:
        if schema is True or schema == {}:
            return
        if schema is False:
            yield path, "nothing is allowed here"
            return
        if not is_object(schema) or depth > _MAX_DEPTH:
            yield path, "the schema cannot be read here"
            return
        if isinstance(schema.get("$ref"), str):
            yield from self.check(value, self._resolved(schema["$ref"]), path, depth + 1)
        yield from self._combined(value, schema, path, depth)
        if not self._type_fits(value, schema.get("type")):
            yield path, f"is not {_names(schema['type'])}"
            return
        if isinstance(value, str):
            yield from _string(value, schema, path)
        elif _is_number(value):
            yield from _number(value, schema, path)
        elif is_array(value):
            yield from self._array(value, schema, path, depth)
        elif is_object(value):
            yield from self._object(value, schema, path, depth)
        if not _is_redacted(value):
            yield from _listed(value, schema, path)

    def _resolved(self, reference: str) -> JSON:
        if not reference.startswith("#"):
            return None
        found = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if is_object(found) else None
        return found

    def _fits(self, value: JSON, schema: JSON, path: _Step, depth: int) -> bool:
        return next(self.check(value, schema, path, depth + 1), None) is None

    def _combined(self, value: JSON, schema: dict[str, JSON], path: _Step, depth: int) -> Iterator[tuple[_Step, str]]:
        for part in schema.get("allOf", ()):
            yield from self.check(value, part, path, depth + 1)
        if "anyOf" in schema and not any(self._fits(value, part, path, depth) for part in schema["anyOf"]):
            yield path, "fits none of the alternatives"
        if "oneOf" in schema:
            fitting = sum(self._fits(value, part, path, depth) for part in schema["oneOf"])
            if fitting != 1:
                yield path, f"fits {fitting} of the alternatives instead of one"
        if "not" in schema and self._fits(value, schema["not"], path, depth):
            yield path, "is what it must not be"

    @staticmethod
    def _type_fits(value: JSON, wanted: JSON) -> bool:
        if wanted is None:
            return True
        names = wanted if is_array(wanted) else [wanted]
        return any(name in _TYPES and _TYPES[name](value) for name in names)

    def _array(
        self, value: list[JSON], schema: dict[str, JSON], path: _Step, depth: int
    ) -> Iterator[tuple[_Step, str]]:
        yield from _counted(len(value), schema, "Items", "items", path)
        first = schema.get("prefixItems", [])
        for index, item in enumerate(value):
            of_item = first[index] if index < len(first) else schema.get("items", True)
            yield from self.check(item, of_item, (*path, index), depth + 1)
        if schema.get("uniqueItems") and any(same(a, b) for i, a in enumerate(value) for b in value[:i]):
            yield path, "has the same item twice"

    def _object(
        self, value: dict[str, JSON], schema: dict[str, JSON], path: _Step, depth: int
    ) -> Iterator[tuple[_Step, str]]:
        yield from _counted(len(value), schema, "Properties", "properties", path)
        for name in schema.get("required", ()):
            if name not in value:
                yield (*path, name), "is missing"
        known = schema.get("properties", {})
        for name, item in value.items():
            if name in known:
                yield from self.check(item, known[name], (*path, name), depth + 1)
            elif schema.get("additionalProperties", True) is False:
                yield (*path, name), "is not in the schema"
            else:
                yield from self.check(item, schema.get("additionalProperties", True), (*path, name), depth + 1)


def _is_redacted(value: JSON) -> bool:
    return isinstance(value, str) and PSEUDONYM.search(value) is not None


def _string(value: str, schema: dict[str, JSON], path: _Step) -> Iterator[tuple[_Step, str]]:
    if _is_redacted(value):
        return
    yield from _counted(len(value), schema, "Length", "characters", path)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            fits = re.search(pattern, value) is not None
        except re.error:
            yield path, "has a pattern in its schema that cannot be read"
            return
        if not fits:
            yield path, "does not match its pattern"


def _number(value: float, schema: dict[str, JSON], path: _Step) -> Iterator[tuple[_Step, str]]:
    for name, (fits, word) in _BOUNDS.items():
        bound = schema.get(name)
        if _is_number(bound) and not fits(value, bound):
            yield path, f"is {word} {bound}"


def _counted(count: int, schema: dict[str, JSON], keyword: str, noun: str, path: _Step) -> Iterator[tuple[_Step, str]]:
    least, most = schema.get(f"min{keyword}"), schema.get(f"max{keyword}")
    if isinstance(least, int) and count < least:
        yield path, f"has fewer than {least} {noun}"
    if isinstance(most, int) and count > most:
        yield path, f"has more than {most} {noun}"


def _listed(value: JSON, schema: dict[str, JSON], path: _Step) -> Iterator[tuple[_Step, str]]:
    if "enum" in schema and not any(same(value, allowed) for allowed in schema["enum"]):
        yield path, "is none of the values allowed"
    if "const" in schema and not same(value, schema["const"]):
        yield path, "is not the one value allowed"


def _names(wanted: JSON) -> str:
    return " or ".join(str(name) for name in (wanted if is_array(wanted) else [wanted]))
