"""Values written so that a plain pattern misses them."""

from __future__ import annotations

import pytest

from redaction.evasions import CASES, KNOWN_MISSES
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor

_REDACTOR = Redactor(Policy(), Keys(b"a key for the tests only"))


@pytest.mark.parametrize(("name", "text", "needle"), CASES, ids=[case[0] for case in CASES])
def test_an_evasion_is_caught_or_listed(name: str, text: str, needle: str) -> None:
    """What was hidden is gone; the few forms that are not seen through are exactly those listed as such."""
    assert needle in text, "the case does not test anything"
    caught = needle not in _REDACTOR.redact(text).value
    assert caught is (name not in KNOWN_MISSES)


def test_nearly_all_evasions_are_caught() -> None:
    """At least sixty cases, of which at most one in ten is missed."""
    assert len(CASES) >= 60
    assert len(KNOWN_MISSES) <= len(CASES) / 10
