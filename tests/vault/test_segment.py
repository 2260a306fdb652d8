"""Segments: messages once, references that fit, groups that stand alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.event import Kind
from sealtrace.vault.lines import inflate
from sealtrace.vault.merkle import leaf, root
from sealtrace.vault.segment import MAX_LINE, Messages, PayloadTooLarge, SegmentBuilder, quoted, restore
from vault.records import plain, shared

_KEYS = st.sampled_from(["a", "$ref", "$list", "$$", "$", "b"])
_PLAIN = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=10,
)
_PAYLOAD = st.recursive(
    _PLAIN | _PLAIN.map(shared),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(_PLAIN.map(shared), max_size=3)
        | st.dictionaries(_KEYS, inner, max_size=3)
    ),
    max_leaves=10,
)


def _read(lines: list[bytes]) -> dict[int, Any]:
    decoded = [json.loads(line) for line in lines]
    messages = {line["id"]: restore(line["value"], {}) for line in decoded if line["kind"] == "msg"}
    return {line["seq"]: restore(line["payload"], messages) for line in decoded if line["kind"] != "msg"}


@given(st.lists(_PAYLOAD, min_size=1, max_size=4))
def test_payloads_come_back_as_they_were(payloads: list[Any]) -> None:
    """Any payload, with names that look like references and shared values anywhere, is restored exactly."""
    messages = Messages()
    lines = [line.data for seq, item in enumerate(payloads) for line in messages.encode(Kind.CUSTOM, seq, item)]
    assert _read(lines) == {seq: plain(item) for seq, item in enumerate(payloads)}


def test_a_message_is_stored_once() -> None:
    """The same message, and an equal one from another frame, are one line."""
    first, twin = shared({"role": "user", "content": "hello"}), shared({"role": "user", "content": "hello"})
    messages = Messages()
    lines = [line for seq, item in enumerate([first, first, twin]) for line in messages.encode(Kind.INPUT, seq, item)]
    assert sum(line.message >= 0 for line in lines) == 1


def test_a_long_conversation_costs_a_range() -> None:
    """The thousandth generation's line is no longer than the tenth's by more than the digits."""
    messages, history, sizes = Messages(), [], []
    for seq in range(1000):
        history.append(shared({"n": seq}))
        sizes.append(len(messages.encode(Kind.GENERATION, seq, {"input": list(history)})[-1].data))
    assert sizes[999] - sizes[10] <= 5


def test_equal_values_of_other_types_stay_apart() -> None:
    """1, 1.0 and true are different messages."""
    values = [1, 1.0, True]
    messages = Messages()
    lines = [line.data for seq, v in enumerate(values) for line in messages.encode(Kind.CUSTOM, seq, shared(v))]
    read = _read(lines)
    assert [type(read[seq]) for seq in range(3)] == [int, float, bool]


def test_groups_stand_alone_and_add_up() -> None:
    """Every group inflates by itself, holds the events it says, and the root is the lines'."""
    messages, builder = Messages(), SegmentBuilder()
    for seq in range(200):
        builder.add(messages.encode(Kind.TOOL_RESULT, seq, {"result": f"{seq}" * 1500}))
    segment = builder.finish()
    assert len(segment.groups) > 2
    lines: list[bytes] = []
    for group in segment.groups:
        data = inflate(segment.data[group.offset : group.offset + group.length], "k")
        assert len(data) <= 131_072
        found = [json.loads(line) for line in data.splitlines()]
        assert (found[0]["seq"], found[-1]["seq"]) == (group.first_seq, group.last_seq)
        lines += data.splitlines(keepends=True)
    assert segment.lines == len(lines) == 200
    assert segment.root == root([leaf(line) for line in lines])


def test_a_line_too_long_is_not_stored_but_its_messages_are() -> None:
    """A giant payload is refused; a message it introduced before that is still handed out."""
    small, messages = shared("hello"), Messages()
    with pytest.raises(PayloadTooLarge) as caught:
        messages.encode(Kind.TOOL_RESULT, 0, {"first": small, "result": "x" * MAX_LINE})
    (line,) = caught.value.lines
    (again,) = messages.encode(Kind.CUSTOM, 1, small)
    assert _read([line.data, again.data]) == {1: "hello"}


@pytest.mark.parametrize(
    "value",
    [
        {"$ref": "1"},
        {"$ref": True},
        {"$ref": 0},
        {"$ref": 1, "x": 2},
        {"$list": 5},
        {"$list": [[1]]},
        {"$list": [[3, 1]]},
        {"$list": [[1, 2_000_000_000]]},
        {"$list": [[1, 1]] * 1_000_001},
        {"$other": 1},
    ],
)
def test_a_reference_of_no_known_form_is_refused(value: dict[str, Any]) -> None:
    """References of wrong type, order, company or absurd length are refused without being unfolded."""
    with pytest.raises(ValueError, match=r"reference|quotes"):
        restore(value, {1: "x"})


def test_quoted_lists_every_range() -> None:
    """Ranges are found at any place of a payload."""
    assert sorted(quoted({"a": [{"$ref": 4}], "b": {"$list": [[1, 2], [7, 9]]}})) == [(1, 2), (4, 4), (7, 9)]
