"""Where two JSON values differ."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealtrace.replay.jsondiff import ABSENT, Difference, differences, first_difference, format_path, parse_path, same

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)


def _all(recorded, got, **options):
    return list(differences(recorded, got, **options))


def test_path_names_the_place():
    """A difference deep inside is reported with its path and both values."""
    recorded = {"input": [{"role": "user"}, {"output": "a"}]}
    got = {"input": [{"role": "user"}, {"output": "b"}]}
    assert _all(recorded, got) == [Difference("$.input[1].output", "a", "b")]


def test_absent_is_not_null():
    """A missing key and a null are told apart, in both directions."""
    assert _all({"a": None}, {}) == [Difference("$.a", None, ABSENT)]
    assert _all({}, {"a": None}) == [Difference("$.a", ABSENT, None)]
    assert _all({"a": None}, {})[0].to_json() == {"path": "$.a", "recorded": None}


@pytest.mark.parametrize(
    ("recorded", "got", "equal"),
    [(1, True, False), (0, False, False), (1, 1.0, True), ("1", 1, False), ([], {}, False)],
)
def test_json_equality(recorded, got, equal):
    """Values are equal as JSON is, not as Python is."""
    assert same(recorded, got) is equal
    assert same({"a": [recorded]}, {"a": [got]}) is equal


def test_inserted_item_is_one_difference():
    """An item put in front of a list does not make every later item differ."""
    items = [{"type": "message", "content": str(number)} for number in range(5)]
    new = {"type": "message", "content": "new"}
    assert _all(items, [new, *items]) == [Difference("$[0]", ABSENT, new)]
    assert _all([*items[:2], new, *items[2:]], items) == [Difference("$[2]", new, ABSENT)]


def test_changed_item_is_descended_into():
    """An item that changed beside one that was added is compared field by field."""
    recorded = [{"type": "function", "name": "a", "description": "old"}]
    got = [{"type": "function", "name": "b"}, {"type": "function", "name": "a", "description": "new"}]
    assert _all(recorded, got) == [
        Difference("$[0]", ABSENT, got[0]),
        Difference("$[0].description", "old", "new"),
    ]


@pytest.mark.parametrize("pattern", ["$.items[*].id", "$.items[0].id", "$..id", "$.items", "$.*", "$"])
def test_ignored_paths(pattern):
    """An ignored path hides the difference at it and below it."""
    assert _all({"items": [{"id": 1}]}, {"items": [{"id": 2}]}, ignore=[pattern]) == []


@pytest.mark.parametrize("pattern", ["$.items[1].id", "$..ids", "$.item", '$["items"].id'])
def test_other_paths_are_not_ignored(pattern):
    """A pattern for another path hides nothing."""
    assert len(_all({"items": [{"id": 1}]}, {"items": [{"id": 2}]}, ignore=[pattern])) == 1


@pytest.mark.parametrize("text", ["", "input", "$input", "$.a b", "$[x]", "$."])
def test_bad_paths_are_refused(text):
    """What is not a path is refused at once, with the path in the message."""
    with pytest.raises(ValueError, match="is not a path"):
        differences(1, 1, ignore=[text])


@given(VALUES)
def test_a_copy_does_not_differ(value):
    """No value differs from its copy."""
    assert first_difference(value, copy.deepcopy(value)) is None


@given(VALUES, VALUES)
def test_symmetric(left, right):
    """Whether two values differ does not depend on which is the recorded one."""
    assert same(left, right) is same(right, left)


@given(st.lists(st.text() | st.integers(min_value=0)))
def test_paths_round_trip(steps):
    """A printed path reads back as the same steps, whatever the keys are."""
    assert parse_path(format_path(steps)) == tuple(steps)


@settings(max_examples=200)
@given(VALUES, VALUES, st.integers(0, 4))
def test_insertion_anywhere_is_seen(value, extra, at):
    """A list with one item more differs in exactly one place, which is absent on the shorter side."""
    items = [{"n": number, "value": value} for number in range(4)]
    longer = [*items[:at], {"extra": extra}, *items[at:]]
    found = _all(items, longer)
    assert [(difference.recorded, difference.got) for difference in found] == [(ABSENT, {"extra": extra})]
