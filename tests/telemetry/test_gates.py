"""The gates: what passes them, and that nothing else does."""

from __future__ import annotations

import math
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.settings import Settings
from sealtrace.telemetry.gates import Gates
from sealtrace.telemetry.metadata import ATTRIBUTES, Gate

from .conftest import gate

GATES = Gates(gate(), Settings(trace_metadata_keys=("tenant",), replay_url="https://replay.example/base/"))


def passes(key: str, value: Any) -> Any:
    """The value under this key as it passes, or None."""
    return GATES.passed({key: value}).get(key)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("sealtrace.seq", [0, 2**63 - 1], [2**63, -(2**63), True, 1.0, "1", b"1", [1]]),
        ("gen_ai.request.temperature", [0.5, 1, -1.0], [math.nan, math.inf, True, "0.5", 10**30]),
        ("sealtrace.guardrail.tripped", [True, False], [1, 0, "true", []]),
        ("sealtrace.run.status", ["ok", "error"], ["fine", "OK", b"ok", ["ok"]]),
        ("sealtrace.metadata.tenant", ["acme", 7, 0.5, False], [["acme"], {"a": 1}, b"acme", math.inf]),
        ("sealtrace.metadata.other", [], ["acme"]),
        ("sealtrace.metadata.", [], ["acme"]),
        (
            "sealtrace.replay.url",
            ["https://replay.example/base/runs/trace_0"],
            ["https://replay.example/baser", "https://evil.example/", "javascript:1", "https://replay.example/base/\n"],
        ),
    ],
)
def test_by_key(key: str, good: list[Any], bad: list[Any]) -> None:
    """What fits passes as it is; what does not fit is left out."""
    assert [passes(key, value) for value in good] == good
    assert [passes(key, value) for value in bad] == [None] * len(bad)


def test_lists_keep_only_their_words() -> None:
    """Of a list only the words of the closed set are left, and of none nothing."""
    key = "gen_ai.response.finish_reasons"
    assert passes(key, ["stop", "because the user said so", 7]) == ["stop"]
    assert passes(key, ("length",)) == ["length"]
    assert passes(key, ["nothing known"]) is None


def test_ids_of_others_become_tags() -> None:
    """Where only our own ids and tags may be, any other text becomes a keyed tag."""
    ours = f"trace_{'0a' * 16}"
    assert passes("sealtrace.run.id", ours) == ours
    assert passes("sealtrace.session.tag", "alice").startswith("tag:")
    assert passes("sealtrace.session.tag", "tag:abcdefghijkl") == "tag:abcdefghijkl"


def test_link_needs_the_setting() -> None:
    """Without a viewer address in the settings no link passes."""
    gates = Gates(gate(), Settings())
    assert gates.passed({"sealtrace.replay.url": "http://127.0.0.1:8765/runs/trace_0"}) == {}
    assert gates.refused == 1


def test_link_needs_http() -> None:
    """A viewer address of another scheme makes no link."""
    assert Gates(gate(), Settings(replay_url="javascript:a")).passed({"sealtrace.replay.url": "javascript:a/b"}) == {}


def test_text_subclasses_lose_their_class() -> None:
    """A name in a str subclass, an enum member say, passes as plain str."""

    class Name(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError("asked")

    found = passes("gen_ai.agent.name", Name("triage"))
    assert (found, type(found)) == ("triage", str)


@given(st.sampled_from(sorted(ATTRIBUTES)), st.text(max_size=300))
def test_free_text_never_passes_whole(key: str, text: str) -> None:
    """Text that no name would be passes nowhere: no letter outside names, no long text."""
    found = passes(key, text)
    if found is None:
        return
    assert type(found) is str
    assert len(found) <= 128
    assert "\n" not in found
    if ATTRIBUTES[key].gate is Gate.WORD:
        assert found in ATTRIBUTES[key].words


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=6,
)


@given(st.dictionaries(st.one_of(st.sampled_from(sorted(ATTRIBUTES)), st.text(string.printable)), _VALUES))
def test_what_passes_is_exportable(attributes: dict[str, Any]) -> None:
    """Whatever comes in, what goes out is what OTLP can carry, under allowed keys only."""
    for key, value in GATES.passed(attributes).items():
        assert key in ATTRIBUTES
        assert type(value) in (bool, int, float, str) or all(type(item) is str for item in value)
        if type(value) is int:
            assert -(2**63) < value < 2**63
        if type(value) is str:
            value.encode()
