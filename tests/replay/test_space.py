"""Comparing live values with redacted ones."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.event import Kind, Shared
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor
from sealtrace.replay.space import Live, Space

SECRET = b"0123456789abcdef0123456789abcdef"


def space(*, same_key: bool = True, **options: object) -> Space:
    """A space with the record's key, or with another one."""
    keys = Keys(SECRET if same_key else b"another secret of thirty-two byte")
    return Space(keys, Redactor(Policy(), keys), same_key=same_key, **options)  # type: ignore[arg-type]


def recorded(value: object) -> object:
    """A value as a record has it."""
    return space().live(value, kind=Kind.INPUT).redacted


def live(value: object, made: Space) -> Live:
    """A live value."""
    return made.live(value, kind=Kind.INPUT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_a_value_is_the_same_as_itself(value: object) -> None:
    """Whatever it is, redacting it again finds no difference."""
    made = space()
    assert made.first(recorded(value), live(value, made)) is None


@given(st.text(min_size=1), st.text(min_size=1))
def test_other_text_is_a_difference(one: str, other: str) -> None:
    """Two texts without anything to redact are equal only if they are."""
    made = space()
    assert (made.first(one, Live(other, other)) is None) == (one == other)


@pytest.mark.parametrize(("one", "other"), [(True, 1), (1, True), (0, False), ("1", 1), (None, ""), ([], {}), (1, 2)])
def test_values_of_another_type_are_differences(one: object, other: object) -> None:
    """JSON's types count: what Python takes for equal is not always equal."""
    made = space()
    assert made.first({"a": one}, Live({"a": other}, {"a": other})) is not None


def test_a_pseudonym_is_checked_with_the_key() -> None:
    """What the recorder knew from elsewhere is recognised by its tag; another value is not."""
    made = space()
    tag = made._keys.tag("hunter22")
    kept = f"the word is <PASSWORD:{tag}>, keep it"
    assert made.first(kept, Live("the word is hunter22, keep it", "the word is hunter22, keep it")) is None
    assert made.by_key == 1
    assert made.first(kept, Live("the word is hunter23, keep it", "the word is hunter23, keep it")) is not None
    assert made.first(kept, Live("a word is hunter22, keep it", "a word is hunter22, keep it")) is not None


def test_two_pseudonyms_in_one_text() -> None:
    """Each is aligned with its own value."""
    made = space()
    one, other = (f"<NAME:{made._keys.tag(word)}>" for word in ("Ann Lee", "Bo"))
    assert made.first(f"{one} and {other}", Live("Ann Lee and Bo", "Ann Lee and Bo")) is None
    assert made.first(f"{one} and {other}", Live("Bo and Ann Lee", "Bo and Ann Lee")) is not None


def test_without_the_key_kinds_are_compared_and_counted() -> None:
    """Another key gives other tags: equal by kind, and said so."""
    made = space(same_key=False)
    before = recorded("write to ann@example.org")
    assert made.first(before, live("write to bob@example.org", made)) is None
    assert made.by_kind == 1
    assert made.first(before, live("write to nobody", made)) is not None
    assert made.first(before, live("wrote to bob@example.org", made)) is not None


def test_json_inside_a_string_is_compared_as_json() -> None:
    """Redaction writes it anew, so its spacing and a value's own tag do not count; its values do."""
    made = space()
    raw = '{"to":"ann@example.org","amount": 5}'
    kept = recorded(raw)
    assert kept != raw
    assert made.first(kept, live(raw, made)) is None
    assert made.first(kept, live('{"to":"bob@example.org","amount": 5}', made)) is not None
    assert made.first(kept, live('{"to":"ann@example.org","amount": 6}', made)) is not None


def test_shared_values_are_compared_by_what_they_hold() -> None:
    """A request is built of shared messages."""
    made = space()
    payload = {"input": [Shared({"role": "user", "content": "I am ann@example.org"})]}
    kept = {"input": [{"role": "user", "content": recorded("I am ann@example.org")}]}
    assert made.first(kept, live(payload, made)) is None
    difference = made.first(kept, live({"input": [Shared({"role": "user", "content": "I am new"})]}, made))
    assert difference is not None
    assert difference.path == "$.input[0].content"


def test_a_number_found_sensitive_by_its_name() -> None:
    """Its surrogate is keyed too."""
    made = space()
    kept = recorded({"ssn": 123456789})
    assert made.first(kept, live({"ssn": 123456789}, made)) is None
    assert made.first(kept, live({"ssn": 123456780}, made)) is not None


def test_ignored_paths_and_pinned_text_are_counted() -> None:
    """What is set aside is not lost sight of."""
    made = space(ignore=("$.a", "$.b[*].c"), pin=(re.compile(r"\d\d:\d\d"),))
    one = {"a": 1, "b": [{"c": 1}], "d": "it is 10:15 now"}
    other = {"a": 2, "b": [{"c": 2}], "d": "it is 11:20 now"}
    assert made.first(one, Live(other, other)) is None
    assert dict(made.ignored) == {"$.a": 1, "$.b[*].c": 1, r"pin \d\d:\d\d": 1}
    late = {**other, "d": "it was 11:20 now"}
    found = made.first(one, Live(late, late))
    assert found is not None
    assert found.path == "$.d"
