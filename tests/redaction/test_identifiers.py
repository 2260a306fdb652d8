"""The gate for names: sane and free of secrets, or a keyed tag."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.keys import Keys
from sealtrace.redaction import IdentifierGate, Policy, Redactor
from sealtrace.settings import Settings

KEYS = Keys(b"0123456789abcdef")
TAG = re.compile(r"tag:[a-z]{12}\Z")


class Counting(Redactor):
    """A redactor that says how often it was asked."""

    asked = 0

    def matches(self, value: str) -> bool:
        """As the real one."""
        self.asked += 1
        return super().matches(value)


@pytest.fixture
def redactor() -> Counting:
    """The default rules."""
    return Counting(Policy.load(Settings()), KEYS)


@pytest.mark.parametrize("name", ["Refunds desk", "find_order", "gpt-5.2-mini", "acme/agent:v3", "Größe", "日本"])
def test_names_pass_as_they_are(redactor: Counting, name: str) -> None:
    """What a person would call an agent, a tool or a model stays readable."""
    assert IdentifierGate(KEYS, redactor).clean(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "jane.roe@example.com",
        "order 4111 1111 1111 1111",
        "two\nlines",
        "x" * 200,
        "",
        "\x1b[31mred",
    ],
)
def test_what_is_no_name_becomes_a_tag(redactor: Counting, name: str) -> None:
    """Secrets, personal data, control characters and long text are tagged, the same each time."""
    gate = IdentifierGate(KEYS, redactor)
    assert TAG.match(gate.clean(name))
    assert gate.clean(name) == gate.clean(name) == gate.tag(name)


def test_ids_that_the_sdk_makes_up_are_not_searched(redactor: Counting) -> None:
    """There is a new one for each span and call, on the agent's thread: a search for each would be most of the cost."""
    gate = IdentifierGate(KEYS, redactor)
    made = ["span_8cf38ea4cfe64038819b2fb7", "trace_dac0da4c82454eb6a2400fe814f23777", "call_Ab3dEf6hIjKlMnOpQrStUvWx"]
    assert [gate.clean(value) for value in made] == made
    assert redactor.asked == 0


def test_a_name_is_searched_once(redactor: Counting) -> None:
    """The same name comes again with each span."""
    gate = IdentifierGate(KEYS, redactor)
    assert [gate.clean("Refunds desk") for _ in range(50)] == ["Refunds desk"] * 50
    assert redactor.asked == 1


@given(st.text() | st.integers() | st.none() | st.binary())
def test_whatever_comes_in_a_short_printable_line_comes_out(value: object) -> None:
    """The gate never raises, and what passes has no control character and at most 128 characters."""
    gate = IdentifierGate(KEYS, Redactor(Policy.load(Settings()), KEYS))
    passed = gate.clean(value)
    assert len(passed) <= 128
    assert passed.isprintable()


def test_a_broken_detector_lets_nothing_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate fails closed."""

    def broken(self: Redactor, value: str) -> bool:
        raise MemoryError(value)

    monkeypatch.setattr(Redactor, "matches", broken)
    gate = IdentifierGate(KEYS, Redactor(Policy.load(Settings()), KEYS))
    assert gate.clean("Refunds desk") == "tag:unknown"
