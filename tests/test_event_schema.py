"""The published JSON Schema is the truth about events."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from sealtrace.event import SCHEMA_VERSION, RunEvent
from sealtrace.event_schema import event_schema
from test_event import events, minimal

PUBLISHED = Path(__file__).parents[1] / "docs" / "event.schema.json"
FORMS = {1: "cf240ff11f9bf999f79eebdb63f6fc14812f741a2b15fc6f930666c967bcb3e4"}
"""Digest of each version's form, descriptions aside."""

validator = jsonschema.Draft202012Validator(event_schema())


def test_the_published_schema_is_the_one_the_code_gives() -> None:
    """docs/event.schema.json is up to date: `python -m sealtrace.event_schema > docs/event.schema.json`."""
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == event_schema()


def test_the_form_does_not_change_by_accident() -> None:
    """A field that comes, goes or changes its type needs a new SCHEMA_VERSION and an entry above."""
    schema = event_schema()
    form = {name: {**entry, "description": ""} for name, entry in schema["properties"].items()}
    text = json.dumps([form, schema["required"]], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == FORMS[SCHEMA_VERSION]


def test_the_schema_is_a_schema() -> None:
    """It is valid JSON Schema, and every field has a meaning."""
    jsonschema.Draft202012Validator.check_schema(event_schema())
    assert all(entry["description"] for entry in event_schema()["properties"].values())


@given(events)
def test_every_event_fits_the_schema(event: RunEvent) -> None:
    """Whatever `to_json` writes is valid."""
    validator.validate(json.loads(json.dumps(event.to_json())))


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": -1},
        {"kind": "dream"},
        {"run_id": "ab"},
        {"schema": 2},
        {"colour": "red"},
        {"redactions": {"EMAIL": 0}},
        {"span_id": "0"},
    ],
)
def test_what_is_not_an_event_does_not_fit(changes: dict[str, Any]) -> None:
    """The schema refuses what the reader would, and more."""
    assert validator.is_valid(minimal())
    assert not validator.is_valid(minimal(**changes))
