"""The examples in the documentation hold."""

from __future__ import annotations

import re
from pathlib import Path

from replay.handmade import Conversation, refund
from replay.shop_project import RUN_ID, Project, record
from sealtrace.replay.checks import Verdict

DOCS = Path(__file__).parents[2] / "docs"


def _blocks(name):
    return re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_golden_page_shows_a_test_that_passes(tmp_path):
    """The test on the page passes against a golden, in a project of its own."""
    record(tmp_path / "source")
    project = Project(tmp_path / "source", tmp_path / "project")
    vault = (project.directory / "vault").as_uri()
    added = project.sealtrace(
        *("golden", "add", RUN_ID, "--name", "refund", "--entry", "shop:triage", "--reason", "r", "--vault", vault)
    )
    assert added.returncode == 0, added.stderr
    (block,) = _blocks("golden.md")
    assert 'triage = Agent(name="triage")' in block
    code = block.replace('triage = Agent(name="triage")', "from shop import triage")
    (project.directory / "tests" / "test_page.py").write_text(code)
    done = project.pytest("tests/test_page.py", PYTHONPATH=str(project.directory))
    assert done.returncode == 0, done.stdout


def test_checks_in_the_docs_check():
    """The page's checks say what the page says they do."""
    names = {}
    for block in _blocks("checks.md"):
        exec(compile(block, "checks.md", "exec"), names)
    twice = Conversation().user("Hi")
    for _ in range(2):
        twice.asks(("issue_refund", {"amount": 1000})).runs("done")
    bad = twice.says("ok").run()
    assert names["judge"](refund().run()) is True
    assert names["judge"](bad) is False
    assert names["one_refund"](bad).violations[0].message == "2 refunds in one run"
    assert [violation.path for violation in names["small"](bad).violations] == ["$.arguments.amount"] * 2
    assert {check(bad).verdict for check in names["MINE"]} <= {Verdict.FAILED, Verdict.NOT_APPLICABLE}


def test_report_in_the_docs_is_a_real_one():
    """The comparison shown in the docs is what the command prints for those runs."""
    from rich.console import Console

    from sealtrace.replay.diff import diff
    from sealtrace.replay.text import render_diff

    found = diff(refund("x").run(), refund("y", instructions="TRIAGE v2: route.").run())
    console = Console(width=200, force_terminal=False, markup=False, highlight=False, soft_wrap=True)
    with console.capture() as capture:
        console.print(render_diff(found))
    assert capture.get().strip() in (DOCS / "diff.md").read_text(encoding="utf-8")
