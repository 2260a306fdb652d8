"""What redaction promises, over many made-up payloads; `properties.py` by itself takes as many as one likes."""

from __future__ import annotations

import os
import re

import pytest

from redaction.properties import PROPERTIES, Options, failing, run, smallest
from redaction.shapes import Payloads
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor
from sealtrace.redaction.detector import Detector, Span
from sealtrace.redaction.detectors import built_in
from sealtrace.redaction.engines import build_engine, fast_installed

_CASES = int(os.environ.get("SEALTRACE_GENERATED_CASES", "1500"))


@pytest.mark.parametrize("engine", ["default", "fast"])
def test_what_redaction_promises_holds(engine: str) -> None:
    """Each property holds in each case, and each property had all its cases."""
    if engine == "fast" and not fast_installed():
        pytest.skip("sealtrace[fast] is not installed")
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


def test_every_detector_finds_something_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads without a value for a detector would say nothing of it."""
    found: set[str] = set()
    spans = Detector.spans

    def noted(self: Detector, text: str, match: re.Match[str]) -> list[Span]:
        out = list(spans(self, text, match))
        if out:
            found.add(self.name)
        return out

    monkeypatch.setattr(Detector, "spans", noted)
    redactor = Redactor(Policy(engine="anchors"), Keys(b"a key for the tests only"), timeout=60)
    payloads = Payloads(1)
    kinds = {kind for _ in range(8000) for kind in redactor.redact(payloads.next()).counts}
    # Numbers are told apart without a match: by their kinds.
    assert {detector.name for detector in built_in("strict")} - found <= {"number"}
    assert {"CARD", "IBAN", "SSN", "PHONE", "MEDIA", "REMEMBERED", "NAME", "MEDICAL"} <= kinds


@pytest.mark.parametrize("engine", ["anchors", "hyperscan"])
def test_each_string_is_searched_for_itself(engine: str) -> None:
    """Strings are searched many at a time; what is found in one never depends on those beside it."""
    if engine == "hyperscan" and not fast_installed():
        pytest.skip("sealtrace[fast] is not installed")
    searched = build_engine(Policy.model_validate({"engine": engine}))
    if engine == "hyperscan":
        searched._engines[0].wait()  # type: ignore[attr-defined]
    payloads = Payloads(7)
    for _ in range(150):
        texts = [payloads._text().replace("\x00", " ") for _ in range(30)]
        alone: set[tuple[int, int, str]] = set()
        begins = 0
        for text in texts:
            alone |= {(begins + start, begins + end, kind) for start, end, kind, _ in searched.find(text)}
            begins += len(text) + 1
        together = {(start, end, kind) for start, end, kind, _ in searched.find("\x00".join(texts))}
        assert together == alone


def test_a_property_that_does_not_hold_is_noticed_and_cut_down() -> None:
    """A payload that fails loses what does not matter to the failure."""
    assert smallest(lambda value: "@" in str(value), {"a": [1, "text with x@y in it"], "b": 2}) == "@"
    check = failing("idempotent", Policy())
    assert check is not None
    assert not check({"note": "mail jane.roe@corp-mail.example"})
