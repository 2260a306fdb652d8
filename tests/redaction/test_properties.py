"""What redaction promises, over many made-up payloads; `properties.py` by itself takes as many as one likes."""

from __future__ import annotations

import importlib.util
import os

import pytest

from redaction.properties import PROPERTIES, Options, failing, run, smallest
from redaction.shapes import Payloads
from sealtrace.redaction import Policy

_CASES = int(os.environ.get("SEALTRACE_GENERATED_CASES", "1500"))


@pytest.mark.parametrize("engine", ["default", "fast"])
def test_what_redaction_promises_holds(engine: str) -> None:
    """Each property holds in each case, and each property had all its cases."""
    if engine == "fast" and importlib.util.find_spec("hyperscan") is None:
        pytest.skip("hyperscan is not installed")
    tally = run(Options(_CASES, engine))
    assert tally.failures == {}, tally.examples[:1]
    expected = [name for name in PROPERTIES if engine == "fast" or name != "engines agree"]
    assert tally.cases == dict.fromkeys(expected, _CASES)


def test_the_same_seed_gives_the_same_payloads() -> None:
    """A failure that was seen once can be seen again."""
    one, two, other = Payloads(5), Payloads(5), Payloads(6)
    first = [one.next() for _ in range(50)]
    assert first == [two.next() for _ in range(50)]
    assert first != [other.next() for _ in range(50)]


def test_a_property_that_does_not_hold_is_noticed_and_cut_down() -> None:
    """A payload that fails loses what does not matter to the failure."""
    assert smallest(lambda value: "@" in str(value), {"a": [1, "text with x@y in it"], "b": 2}) == "@"
    check = failing("idempotent", Policy())
    assert check is not None
    assert not check({"note": "mail jane.roe@corp-mail.example"})
