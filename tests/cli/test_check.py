"""`sealtrace check`."""

from __future__ import annotations

import json
import sys

import pytest

from replay.handmade import NOW, Conversation, loaded
from sealtrace.cli import run as sealtrace
from sealtrace.replay import golden


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A golden of a run that cites what it did not retrieve, beside a module with a check."""
    talk = Conversation().user("Hi").says("See [made-up].")
    golden.add(loaded(talk), name="g", entry="shop:agent", reason="test", when=NOW, directory=tmp_path, redactor=None)
    (tmp_path / "own_checks.py").write_text("import sealtrace\n\n@sealtrace.check\ndef mine(run): return True\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield "g.json"
    sys.modules.pop("own_checks", None)


def test_a_failed_check_is_1(run, capsys):
    """A failed check is exit code 1, with the event and the reason on the screen."""
    assert sealtrace(["check", run]) == 1
    out = capsys.readouterr().out
    assert "failed         citations" in out
    assert "event 2  cites 'made-up', which was not retrieved  at $.final_output" in out


def test_own_checks(run, capsys):
    """A module in the working directory is found; the built-in checks can be left out."""
    assert sealtrace(["check", run, "--checks", "own_checks", "--no-builtin"]) == 0
    assert capsys.readouterr().out == "passed         mine\n"
    assert sealtrace(["check", run, "--checks", "own_checks:mine", "--no-builtin", "--json"]) == 0
    assert [one["check"] for one in json.loads(capsys.readouterr().out)] == ["mine"]


def test_unknown_checks(run, capsys):
    """A check that is not there is one line on standard error."""
    assert sealtrace(["check", run, "--checks", "own_checks:other"]) == 1
    assert "own_checks:other is no check" in capsys.readouterr().err
