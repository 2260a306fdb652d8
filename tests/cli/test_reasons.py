"""Payloads are read for a reason, by whatever command, where the settings require one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replay.world import KEY, RUN_ID, record, support
from sealtrace.cli import run as sealtrace
from sealtrace.settings import Settings
from sealtrace.vault import audit_lines, open_store

COMMANDS = {
    "show": ["show", RUN_ID],
    "export": ["export", RUN_ID, "--html", "run.html"],
    "rerun": ["rerun", RUN_ID, "--stub"],
    "diff": ["diff", RUN_ID, RUN_ID],
    "check": ["check", RUN_ID, "--no-builtin"],
}


@pytest.fixture
def vault(vault_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A vault with one run, whose payloads are read for a reason only."""
    record(support, vault_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    monkeypatch.setenv("SEALTRACE_KEY", KEY)
    monkeypatch.setenv("SEALTRACE_READ_AUDIT", "true")
    monkeypatch.setenv("SEALTRACE_READ_REASON_REQUIRED", "true")
    return vault_url


def _reasons(vault: str) -> set[str | None]:
    return {line.reason for line in audit_lines(open_store(vault, Settings())) if line.what == "read"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_reads_takes_a_reason(vault: str, capsys: Any, name: str) -> None:
    """Without one it is refused and says which option it wants; with it, it reads, and the reason is kept."""
    assert sealtrace(COMMANDS[name]) == 1
    assert "--reason" in capsys.readouterr().err
    assert _reasons(vault) == set()
    assert sealtrace([*COMMANDS[name], "--reason", "ticket 7"]) == 0
    assert _reasons(vault) == {"ticket 7"}


def test_a_golden_is_added_for_the_reason_it_states(vault: str) -> None:
    """`golden add` has a reason already: it is why the run was read, too."""
    options = ["--name", "refund", "--entry", "shop:agent", "--reason", "keeps refunds right", "--dir", "goldens"]
    assert sealtrace(["golden", "add", RUN_ID, *options]) == 0
    assert _reasons(vault) == {"keeps refunds right"}
