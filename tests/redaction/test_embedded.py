"""JSON inside strings, also as nobody should write it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor

_KEYS = Keys(b"a key for the tests only")


def _pairs(text: str) -> Any:
    return json.loads(text, object_pairs_hook=lambda pairs: pairs)


@pytest.mark.parametrize(
    "text",
    [
        '{"card": 4111111111111111, "card": 4155551234, "note": "x", "card": {"n": 1}}',
        '{"a": {"ssn": 219099999, "ssn": 1}, "a": [{"b": 1, "b": 4111111111111111}]}',
        "[1e999, 4111111111111111, -1E+400]",
        f"[{'9' * 5000}, 4111111111111111]",
        '{"note": 1e999, "phone": 4155551234}',
    ],
)
def test_unusual_json_stays_json_with_as_many_members(text: str) -> None:
    """Names that occur twice and numbers too large are read as JSON: no number becomes a bare pseudonym."""
    redactor = Redactor(Policy(), _KEYS)
    safe = redactor.redact({"output": text})
    after = _pairs(safe.value["output"].replace("9" * 5000, "1"))
    before = _pairs(text.replace("9" * 5000, "1"))

    def shape(value: Any) -> Any:
        if isinstance(value, list):
            return [shape(item) for item in value]
        return [value[0], shape(value[1])] if isinstance(value, tuple) else isinstance(value, str)

    assert safe.counts
    assert shape(after) == shape(before)
    assert "4111111111111111" not in safe.value["output"]
    assert redactor.redact(safe.value).counts == {}


def test_rules_by_path_hold_for_every_member_of_a_name() -> None:
    """A name that occurs twice is no way around a rule for that name."""
    policy = Policy.model_validate({"fields": [{"path": "*.memo", "action": "drop"}]})
    safe = Redactor(policy, _KEYS).redact('{"memo": "one", "memo": "two", "memo": "three"}').value
    assert safe == '{"memo": "<DROPPED>", "memo": "<DROPPED>", "memo": "<DROPPED>"}'


def test_json_in_which_nothing_is_found_keeps_its_spelling() -> None:
    """The model saw this spelling, so a rerun compares it."""
    for text in ('{"a":1, "a" : 2.50}', "[1e999,  1e-7]", '{\n   "b": [ ]}'):
        assert Redactor(Policy(), _KEYS).redact({"output": text}).value == {"output": text}


def test_what_surrounds_json_stays() -> None:
    """White space before and after, and escapes that no UTF-8 can be written without."""
    safe = Redactor(Policy(), _KEYS).redact('\n {"a": "\\ud83d é jane.roe@corp-mail.example"}\r\n').value
    assert safe.startswith('\n {"a": "\\ud83d \\u00e9 <EMAIL:')
    assert safe.endswith('>"}\r\n')
