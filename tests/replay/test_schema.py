"""Does a value fit a JSON Schema?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sealtrace.replay.schema import misfits, unchecked

REFUND = {
    "type": "object",
    "properties": {
        "order": {"type": "integer", "minimum": 1},
        "mail": {"type": "string", "pattern": "@"},
        "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "maxItems": 2},
    },
    "required": ["order", "mail"],
    "additionalProperties": False,
    "$defs": {"Item": {"type": "object", "properties": {"n": {"enum": ["a", "b"]}}, "required": ["n"]}},
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"order": 1, "mail": "a@b", "items": [{"n": "a"}]}, []),
        ({"order": "1", "mail": "a@b"}, [("$.order", "is not integer")]),
        ({"order": True, "mail": "a@b"}, [("$.order", "is not integer")]),
        ({"mail": "a@b"}, [("$.order", "is missing")]),
        ({"order": 0, "mail": "ab"}, [("$.order", "is less than 1"), ("$.mail", "does not match its pattern")]),
        ({"order": 1, "mail": "a@b", "x": 1}, [("$.x", "is not in the schema")]),
        (
            {"order": 1, "mail": "a@b", "items": [{"n": "c"}, {}]},
            [("$.items[0].n", "is none of the values allowed"), ("$.items[1].n", "is missing")],
        ),
        ({"order": 1, "mail": "a@b", "items": [{"n": "a"}] * 3}, [("$.items", "has more than 2 items")]),
    ],
)
def test_misfits_are_named_by_path(value, expected):
    """Each misfit is named by its path and by what is wrong, without the value."""
    assert misfits(value, REFUND) == expected


def test_redacted_text_is_given_the_benefit():
    """What a pattern or a list says of a text does not apply to a text that was redacted."""
    assert misfits({"order": 1, "mail": "<CARD:abcdefghijkl>"}, REFUND) == []
    assert misfits("<CARD:abcdefghijkl>", {"enum": ["x"]}) == []
    assert misfits("<CARD:abcdefghijkl>", {"type": "integer"}) == [("$", "is not integer")]


def test_what_is_not_looked_at_is_said():
    """Keywords that are not looked at are named, so a pass is not taken for more than it is."""
    assert unchecked({"properties": {"format": {"format": "email"}}, "items": [{"multipleOf": 2}]}) == {
        "format",
        "multipleOf",
    }
    assert unchecked(REFUND) == set()


def test_endless_references_end():
    """A schema that refers to itself without end is an error in the schema, not a hang."""
    assert misfits(1, {"$ref": "#"}) == [("$", "the schema cannot be read here")]
    assert misfits(1, {"$ref": "https://example.org/s"}) == [("$", "the schema cannot be read here")]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "ab"]) | st.sampled_from([0.5, 1.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
_SCHEMAS = st.recursive(
    st.booleans()
    | st.fixed_dictionaries({"type": st.sampled_from(["null", "integer", "number", "string", "array", "object"])})
    | st.fixed_dictionaries({"enum": st.lists(_VALUES, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"const": _VALUES})
    | st.fixed_dictionaries({}, optional={"minimum": st.integers(-1, 1), "exclusiveMaximum": st.integers(0, 2)})
    | st.fixed_dictionaries({}, optional={"minLength": st.integers(0, 2), "pattern": st.sampled_from(["a", "b$"])})
    | st.fixed_dictionaries({}, optional={"minItems": st.integers(0, 2), "uniqueItems": st.booleans()}),
    lambda inner: (
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"not": inner})
        | st.fixed_dictionaries({}, optional={"items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
                "additionalProperties": inner,
                "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
            },
        )
    ),
    max_leaves=6,
)


@given(_VALUES, _SCHEMAS)
def test_agrees_with_the_reference(value, schema):
    """On what it covers it says what a full validator says."""
    assert (misfits(value, schema) == []) is Draft202012Validator(schema).is_valid(value)
