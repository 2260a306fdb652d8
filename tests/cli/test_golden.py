"""`sealtrace golden`, in a user's project."""

from __future__ import annotations

import dataclasses
import json
import sys

import pytest

from replay.shop_project import RUN_ID, Project, record
from sealtrace.cli import run


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The project with a recorded run."""
    directory = tmp_path_factory.mktemp("shop") / "source"
    record(directory)
    return directory


class Command:
    """The command, run in this process and in the project's directory."""

    def __init__(self, project, capsys):
        self._capsys = capsys
        self.project = project

    def __call__(self, *arguments):
        sys.modules.pop("shop", None)
        self._capsys.readouterr()
        code = run(arguments)
        out, err = self._capsys.readouterr()
        return Done(code, out, err)

    def add(self, *more, name="refund", entry="shop:triage"):
        """Make the recorded run a golden."""
        vault = (self.project.directory / "vault").as_uri()
        named = ("golden", "add", RUN_ID, "--name", name, "--entry", entry, "--reason", "the good path")
        return self(*named, "--vault", vault, *more)


@dataclasses.dataclass
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def project(source, tmp_path, monkeypatch):
    """A copy to change, on a machine that is not CI."""
    made = Project(source, tmp_path / "project")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(made.directory)
    yield made
    sys.modules.pop("shop", None)


@pytest.fixture
def sealtrace(project, capsys):
    """The command in the project."""
    return Command(project, capsys)


def test_from_record_to_accept(project, sealtrace):
    """Add, list, show, rerun, a changed prompt, accept: each step says what it did and exits as documented."""
    added = sealtrace.add()
    assert (added.returncode, "14 events" in added.stdout) == (0, True)
    text = project.golden.read_text()
    assert "mia@example.org" not in text
    assert "<EMAIL:" in text

    listed = sealtrace("golden", "list")
    assert (listed.returncode, listed.stdout) == (0, "refund  shop:triage  14  the good path\n")
    shown = sealtrace("golden", "show", "refund")
    assert shown.returncode == 0
    assert "TRIAGE: route." in shown.stdout

    same = sealtrace("golden", "rerun")
    assert (same.returncode, "SAME" in same.stdout) == (0, True)
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    diverged = sealtrace("golden", "rerun", "refund", "--json")
    assert diverged.returncode == 2
    (report,) = json.loads(diverged.stdout)
    assert report["divergence"]["class"] == "CONFIG"
    assert report["divergence"]["path"] == "$.request.instructions"

    accepted = sealtrace("golden", "accept", "refund", "--reason", "new tone")
    assert (accepted.returncode, accepted.stdout) == (0, "accepted  event 2 generation $.request.instructions\n")
    assert sealtrace("golden", "rerun").returncode == 0
    assert sealtrace("golden", "accept", "refund", "--reason", "x").stdout.startswith("nothing to accept")
    assert project.effects == []


def test_what_may_differ(project, sealtrace):
    """What was allowed to differ does not diverge, and the report and the golden say so."""
    sealtrace.add("--pin", r"v\d+", "--ignore", "$.request.tools[0].description", "--served-guardrails")
    project.change("Look an order up.", "Find an order.")
    done = sealtrace("golden", "rerun")
    assert (done.returncode, "not looked at: $.request.tools[0].description" in done.stdout) == (0, True), done.stdout
    shown = sealtrace("golden", "show", "refund").stdout
    assert "may differ: ignore ['$.request.tools[0].description']" in shown
    assert "may differ: guardrails served" in shown


def test_function_entry(project, sealtrace):
    """A function is called with the recorded input."""
    assert sealtrace.add(entry="shop:desk").returncode == 0
    assert sealtrace("golden", "rerun").returncode == 0


def test_what_has_no_answer_is_not_accepted(project, sealtrace):
    """Code that no longer does what was recorded cannot be accepted from recorded answers; a new run can."""
    sealtrace.add()
    before = project.golden.read_bytes()
    project.change("handoffs=[refunds],", "")
    refused = sealtrace("golden", "accept", "refund", "--reason", "x")
    assert refused.returncode == 1
    assert "record the run again" in refused.stderr
    assert project.golden.read_bytes() == before

    vault = (project.directory / "vault").as_uri()
    taken = sealtrace("golden", "accept", "refund", "--reason", "anew", "--run", RUN_ID, "--vault", vault)
    assert (taken.returncode, taken.stdout) == (0, f"accepted  recorded again: {RUN_ID}\n")


def test_accept_in_ci_is_refused(project, sealtrace, monkeypatch):
    """CI never accepts."""
    monkeypatch.setenv("CI", "1")
    sealtrace.add()
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    before = project.golden.read_bytes()
    refused = sealtrace("golden", "accept", "refund", "--reason", "x")
    assert (refused.returncode, "CI is set" in refused.stderr) == (1, True)
    assert project.golden.read_bytes() == before


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("shop:none", "shop has no none"),
        ("nowhere:x", "cannot import nowhere"),
        ("shop:not_code", "shop:not_code is a int"),
    ],
)
def test_code_that_is_not_there(project, sealtrace, entry, message):
    """A golden whose entry cannot be found says so in one line."""
    sealtrace.add(entry=entry)
    done = sealtrace("golden", "rerun")
    assert (done.returncode, message in done.stdout) == (1, True), done.stdout


def test_worst_code_wins(project, sealtrace):
    """One diverged golden among good ones is exit code 2."""
    sealtrace.add(name="good")
    sealtrace.add(name="gone", entry="nowhere:x")
    sealtrace.add(name="bad", entry="shop:refunds")
    done = sealtrace("golden", "rerun", "--json")
    assert done.returncode == 2
    assert {one["golden"]: one.get("exit_code") for one in json.loads(done.stdout)} == {
        "bad": 2,
        "gone": None,
        "good": 0,
    }


def test_no_goldens(project, sealtrace):
    """With nothing to rerun it says how to get something."""
    done = sealtrace("golden", "rerun")
    assert (done.returncode, "golden add" in done.stderr) == (1, True)
