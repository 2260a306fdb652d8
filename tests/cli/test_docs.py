"""The command's documentation keeps up with the command."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from sealtrace.cli import _exits, app
from sealtrace.event import EventStatus
from sealtrace.run import RunStatus

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_is_in_the_list() -> None:
    """A command that is not in docs/cli.md does not exist for its reader."""
    listed = (DOCS / "cli.md").read_text()
    names = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert len(names) >= 4
    assert [name for name in names if f"sealtrace {name}" not in listed] == []


def test_every_exit_code_is_in_the_table() -> None:
    """Codes are for scripts, so each that can occur is written down, and no other."""
    table = (DOCS / "cli.md").read_text().split("## Exit codes")[1].split("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    codes = {value for name, value in vars(_exits).items() if name.isupper() and isinstance(value, int)}
    assert documented == codes | {130}


def test_every_status_is_explained() -> None:
    """What a run or an event can be is in docs/reading-a-run.md."""
    text = (DOCS / "reading-a-run.md").read_text()
    assert [status for status in (*RunStatus, *EventStatus) if f"| `{status}` |" not in text] == []
