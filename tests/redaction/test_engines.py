"""All engines give the same answers."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from redaction.evasions import CASES
from sealtrace.redaction import Policy
from sealtrace.redaction.detectors import built_in
from sealtrace.redaction.engine import AnchorEngine, Engine, PlainEngine
from sealtrace.redaction.engines import fast_installed

_PADDING = "Nothing to see in this line of prose, 12 times.\n" * 120


def _engines(profile: str) -> list[Engine]:
    engines: list[Engine] = [AnchorEngine(built_in(profile))]
    if fast_installed():
        from sealtrace.redaction.hyperscan_engine import HyperscanEngine

        fast = HyperscanEngine(built_in(profile))
        fast.wait()
        engines.append(fast)
    return engines


def _merged(found: list[tuple[int, int, str, int]]) -> list[list[int]]:
    out: list[list[int]] = []
    for start, end, _, _ in sorted(found):
        if out and start < out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def _texts() -> list[str]:
    texts = [text for _, text, _ in CASES]
    data = os.environ.get("SEALTRACE_TEST_DATA")
    if data:
        with gzip.open(Path(data) / "secrets_gitleaks_half_a.jsonl.gz", "rt") as file:
            texts += [json.loads(line)["text"] for line in file]
        people = json.loads((Path(data) / "pii_presidio_half_a.json").read_text(encoding="utf-8"))
        texts += [row["full_text"] for row in people]
    return texts


@pytest.mark.parametrize("profile", ["strict", "balanced"])
def test_engines_cover_the_same_characters(profile: str) -> None:
    """Alone and amid much else, each text has the same characters covered by every engine as by plain patterns."""
    texts = [text.replace("\x00", " ") for text in _texts()]
    plain = PlainEngine(built_in(profile))
    for engine in _engines(profile):
        for text in texts:
            assert _merged(engine.find(text)) == _merged(plain.find(text)), (engine.name, text)
        joined = "\x00".join(f"{_PADDING[: number * 37 % 5000]}\x00{text}" for number, text in enumerate(texts))
        assert _merged(engine.find(joined)) == _merged(plain.find(joined)), engine.name


def test_what_stands_in_one_string_never_depends_on_another() -> None:
    """Strings are searched together; the NUL between them is a wall."""
    engine = AnchorEngine(built_in("strict"))
    assert not engine.find("call me at\x001234567")
    assert engine.find("call me at 1234567")
    assert not engine.find("password=\x00hunter2-Zebra")
    assert not engine.find("4111 1111\x001111 1111")


def test_patterns_stay_within_what_re2_knows() -> None:
    """Engines can be exchanged only while no pattern needs more than RE2 has."""
    re2 = pytest.importorskip("re2", reason="google-re2 is not installed")
    for profile in ("strict", "balanced"):
        for detector in built_in(profile):
            re2.compile(detector.pattern)
            assert detector.compiled().search("\x00" * 40) is None, detector.name


def test_an_engine_that_is_not_installed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for one never silently gives another."""
    from sealtrace.errors import SettingsError
    from sealtrace.redaction import engines

    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"sealtrace\[fast\]"):
        engines.build_engine(Policy(engine="hyperscan"))
    for name, extra in (("kingfisher", "secrets"), ("presidio", "presidio")):
        with pytest.raises(SettingsError, match=rf"sealtrace\[{extra}\]"):
            engines.build_engine(Policy(also=frozenset({name})))
    assert engines.build_engine(Policy()).find("mail a@b-c.example")
