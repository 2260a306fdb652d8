"""The comparison in the tau-bench example: what it takes for equal after redaction."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

TAG = "<EMAIL:abcdefghijkl>"


def _load() -> Any:
    path = Path(__file__).parents[2] / "examples" / "tau_bench.py"
    spec = util.spec_from_file_location("tau_bench_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules["tau_bench_example"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


same = _load().same

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    """What was not redacted compares equal."""
    assert same(value, value)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("write to a@b.example now", f"write to {TAG} now"),
        ('{"mail": "a@b.example", "n": 1}', f'{{"mail": "{TAG}", "n": 1}}'),
        ({"mail": ["a@b.example"]}, {"mail": [TAG]}),
        ({"card": 4012888888881881}, {"card": 9_090_123_456_789}),
        ("a@b.example", TAG),
    ],
)
def test_pseudonyms_stand_for_what_was_there(sent: Any, stored: Any) -> None:
    """A pseudonym in place of a value is equal after redaction."""
    assert same(sent, stored)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("write to a@b.example now", f"write to {TAG} then"),
        ("write to a@b.example now", f"{TAG}write to now"),
        ("now", "then"),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1, 2], [1]),
        (1, 1.0),
        (1, True),
        (1, 2),
        (None, TAG),
        ('{"n": 1}', '{"n": 2}'),
        ("", TAG),
    ],
)
def test_a_change_is_seen(sent: Any, stored: Any) -> None:
    """Anything else that differs makes them unequal, order and type included."""
    assert not same(sent, stored)
