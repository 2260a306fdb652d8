"""`sealtrace diff`."""

from __future__ import annotations

import json

import pytest

from replay.handmade import NOW, loaded, refund
from sealtrace.cli import run as sealtrace
from sealtrace.replay import golden


@pytest.fixture
def runs(tmp_path):
    """Three goldens: a run, the same again, and one with another prompt."""
    talks = {"a": refund("x"), "b": refund("y"), "c": refund("z", instructions="TRIAGE v2")}
    for name, talk in talks.items():
        golden.add(
            loaded(talk), name=name, entry="shop:agent", reason="test", when=NOW, directory=tmp_path, redactor=None
        )
    return {name: str(tmp_path / f"{name}.json") for name in talks}


def test_same_runs_exit_0(runs, capsys):
    """Two recordings of one conversation are the same."""
    assert sealtrace(["diff", runs["a"], runs["b"]]) == 0
    assert capsys.readouterr().out.startswith("SAME")


def test_different_runs_exit_2(runs, capsys):
    """A difference is exit code 2, with its path and class on the screen."""
    assert sealtrace(["diff", runs["a"], runs["c"]]) == 2
    out = capsys.readouterr().out
    assert "$.request.instructions" in out
    assert "CONFIG" in out


def test_ignored_paths_make_them_the_same(runs, capsys):
    """An ignored path is not compared, and the note says so."""
    assert sealtrace(["diff", runs["a"], runs["c"], "--ignore", "$.request.instructions"]) == 0
    assert "not looked at: $.request.instructions" in capsys.readouterr().out


def test_json_is_one_document(runs, capsys):
    """With --json there is one JSON document and the same exit code."""
    assert sealtrace(["diff", runs["a"], runs["c"], "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["first"]["shown"]["got"] == "TRIAGE v2"


def test_html_is_written(runs, tmp_path):
    """With --html the page is written where it is wanted."""
    assert sealtrace(["diff", runs["a"], runs["c"], "--html", str(tmp_path / "d.html")]) == 2
    assert "Content-Security-Policy" in (tmp_path / "d.html").read_text()


def test_bad_path_is_a_usage_error(runs, capsys):
    """A path that is none is the command line's fault."""
    assert sealtrace(["diff", runs["a"], runs["b"], "--ignore", "instructions"]) == 64
    assert "is not a path" in capsys.readouterr().err


def test_missing_golden_is_a_problem(runs, capsys):
    """A file that is not there is one line on standard error."""
    assert sealtrace(["diff", runs["a"], "none.json"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
