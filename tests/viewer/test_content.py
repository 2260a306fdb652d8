"""Values as they are shown: nothing lost without a word, nothing changed, nothing too large for a browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sealtrace.viewer.content import as_json, heading_of, message, pretty, value
from viewer.inert import EVIL, Page


def text_of(markup: str) -> str:
    """What a reader sees of it."""
    return Page(f"<body>{markup}</body>").text


@pytest.mark.parametrize(
    "text",
    ['{"a": 1.10}', '{"a": 1e5}', '{"a": 1e400}', "[NaN]", "[-0]", "[Infinity]", '{"a": 1, "a": 2}', "[1", "{}x",
     "[01]", '{"a": 0.12345678901234567890}', "[" * 300 + "]" * 300],
)  # fmt: skip
def test_text_that_laying_out_would_change(text: str) -> None:
    """What looks like JSON and would not come out the same is shown letter by letter."""
    assert text_of(value(text)) == text


@pytest.mark.parametrize(
    "text", ['{"b": [1, 2.5, null, true], "a": "é\\n"}', "[]", '{"n": 123456789012345678901234567890}']
)
def test_json_inside_of_text_is_laid_out(text: str) -> None:
    """JSON in a text is laid out, and means the same."""
    assert json.loads(text_of(value(text))) == json.loads(text)


@pytest.mark.parametrize(
    "found", [None, True, 0, -1.5, "", "x", [], {}, [1, 2], [None], ["a", {"b": ["c"]}], {"": {"": ""}}]
)
def test_any_value(found: Any) -> None:
    """Every JSON value has a form."""
    assert isinstance(value(found), str)
    assert json.loads(text_of(as_json(found))) == found


def test_names_and_values_are_all_there() -> None:
    """An object's names and values, however nested, can be read."""
    shown = text_of(value({"order": {"items": [{"sku": "A-1"}, {"sku": "B-2"}], "total": 3}}))
    for word in ("order", "items", "sku", "A-1", "B-2", "total", "3"):
        assert word in shown


@pytest.mark.parametrize(
    "found",
    [
        [[0] for _ in range(50_000)],
        [[[["x"] * 40 for _ in range(40)] for _ in range(40)] for _ in range(5)],
        {f"k{number}": {f"k{number}": number} for number in range(20_000)},
        "x" * 5_000_000,
        ["x" * 100_000] * 20,
        json.dumps([[0]] * 30_000),
    ],
)
def test_nothing_is_too_large(found: Any) -> None:
    """However large a payload is, what is shown of it stays small enough for a browser, and says what is missing."""
    shown = value(found)
    assert len(shown) < 1_000_000
    assert "see the event&#x27;s JSON" in shown


def test_deep_values_are_shown_as_json() -> None:
    """What is nested deeper than a page can show is JSON from there on."""
    found: Any = "bottom"
    for _ in range(60):
        found = {"down": found}
    assert "bottom" in text_of(value(found))


def test_recorded_text_cannot_leave_its_box() -> None:
    """Whatever the value, names included, it is text."""
    for found in (EVIL, [EVIL], {EVIL: EVIL}, {EVIL: [{EVIL: EVIL}]}, json.dumps({EVIL: EVIL})):
        page = Page(f"<body>{value(found)}{as_json(found)}</body>")
        assert {name for name, _ in page.elements} <= {"body", "div", "pre", "p", "dl", "dt", "dd", "ol", "li", "code"}


@pytest.mark.parametrize(
    ("item", "heading", "says"),
    [
        ({"role": "user", "content": "hello"}, "user", "hello"),
        ({"role": "user", "content": [{"type": "input_text", "text": "hello"}]}, "user", "hello"),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
            "assistant",
            "hi",
        ),
        ({"type": "function_call", "name": "find", "arguments": '{"id":1}', "call_id": "c"}, "calls find", '"id": 1'),
        ({"type": "function_call_output", "call_id": "c", "output": "done"}, "tool result", "done"),
        ({"type": "function_call_output", "output": [{"type": "input_text", "text": "part"}]}, "tool result", "part"),
        ({"type": "shell_call_output", "output": "x"}, "shell call output", "x"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}]}, "reasoning", "because"),
        ({"type": "input_image", "image_url": "https://evil.test/x.png"}, "input image", "https://evil.test/x.png"),
        ("text", "message", "text"),
        (None, "message", "null"),
        ({"role": 3, "content": 4}, "3", "4"),
        ({"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}, "user", "no"),
    ],
)
def test_messages(item: Any, heading: str, says: str) -> None:
    """Each kind of message has a heading and says what it said; a picture is its address, as text."""
    assert heading_of(item) == heading
    shown = message(item)
    assert says in text_of(shown)
    assert "<img" not in shown
    assert "href" not in shown


def test_a_long_text_says_how_much_is_missing() -> None:
    """A text is cut with a word about it."""
    shown = text_of(pretty("x" * 20_007))
    assert shown.count("x") == 20_000
    assert "7 characters more" in shown
