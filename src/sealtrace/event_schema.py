"""The JSON Schema of an event, made from `RunEvent` itself.

`docs/event.schema.json` is what `python -m sealtrace.event_schema` prints; a test holds the two together.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from typing import Any, Final

from .event import SCHEMA_VERSION, EventStatus, Kind, RunEvent

__all__ = ["event_schema"]

_HEX: Final = {"trace_id": 32, "span_id": 16, "record_id": 32}
_WHOLE: Final = frozenset({"seq", "ordinal", "parent_seq"})
_MAPS: Final[dict[str, dict[str, Any]]] = {
    "actor": {},
    "config": {},
    "digests": {},
    "redactions": {"additionalProperties": {"type": "integer", "minimum": 1}},
}


def event_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what `RunEvent.to_json` returns.

    Fields that are None or empty are left out of an event, so only those that always have a value are
    required. `payload` is always there and may be any JSON; what it holds depends on `kind`.
    """
    meanings = _meanings()
    fields = dataclasses.fields(RunEvent)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"sealtrace run event, schema {SCHEMA_VERSION}",
        "type": "object",
        "properties": {field.name: {"description": meanings[field.name], **_type_of(field.name)} for field in fields},
        "required": [field.name for field in fields if _always(field)],
        "additionalProperties": False,
    }


def _always(field: dataclasses.Field[Any]) -> bool:
    """Whether `RunEvent.to_json` writes it in every event: nothing that can be None or empty but the payload."""
    return field.name == "payload" or (field.default is not None and field.default_factory is dataclasses.MISSING)


def _type_of(name: str) -> dict[str, Any]:
    fixed: dict[str, dict[str, Any]] = {
        "run_id": {"type": "string", "pattern": "^trace_[0-9a-f]{32}$"},
        "ts": {"type": "string", "format": "date-time"},
        "kind": {"enum": [str(kind) for kind in Kind]},
        "status": {"enum": [str(status) for status in EventStatus]},
        "duration_ms": {"type": "number", "minimum": 0},
        "schema": {"const": SCHEMA_VERSION},
        "payload": {},
    }
    if name in fixed:
        return fixed[name]
    if name in _HEX:
        return {"type": "string", "pattern": f"^[0-9a-f]{{{_HEX[name]}}}$"}
    if name in _WHOLE:
        return {"type": "integer", "minimum": 0}
    if name in _MAPS:
        return {"type": "object", **_MAPS[name]}
    return {"type": "string"}


def _meanings() -> dict[str, str]:
    """The `Attributes:` of `RunEvent`'s docstring, by field."""
    text = inspect.getdoc(RunEvent) or ""
    entries = re.findall(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", text.partition("Attributes:")[2], re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in entries}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(event_schema(), indent=2) + "\n")
