"""`sealtrace rerun`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from replay.world import KEY, RUN_ID, record, support
from sealtrace.cli import run as sealtrace

_CODE = """
from replay.world import World, support

async def same(given):
    return await support(World(live=False, change={"input": given}))

async def other(given):
    return await support(World(live=False, change={"input": given, "instructions": "Other."}))
"""


@pytest.fixture
def vault(vault_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A vault with one run, its key in the environment, and a module with its code in the working directory."""
    record(support, vault_url)
    (tmp_path / "shop_code.py").write_text(_CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    monkeypatch.setenv("SEALTRACE_KEY", KEY)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield vault_url
    sys.modules.pop("shop_code", None)


def test_the_same_code_is_0(vault: str, capsys: Any) -> None:
    """Exit code 0, and the screen says that it was a simulation."""
    assert sealtrace(["rerun", RUN_ID, "--entry", "shop_code:same"]) == 0
    assert "SIMULATION" in capsys.readouterr().out


def test_changed_code_is_2(vault: str, capsys: Any) -> None:
    """Exit code 2, with the path of the first difference and its class."""
    assert sealtrace(["rerun", RUN_ID, "--entry", "shop_code:other", "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["mode"] == "SIMULATION"
    assert report["divergence"]["path"] == "$.request.instructions"
    assert report["divergence"]["class"] == "CONFIG"
    assert sealtrace(["rerun", RUN_ID, "--entry", "shop_code:other", "--ignore", "$.request.instructions"]) == 0


def test_no_code_at_hand(vault: str, capsys: Any) -> None:
    """`--stub` walks the record alone; one of the two has to be named."""
    assert sealtrace(["rerun", RUN_ID, "--stub"]) == 0
    assert "SIMULATION" in capsys.readouterr().out
    assert sealtrace(["rerun", RUN_ID]) == 64


def test_what_cannot_be_rerun_is_3(vault: str, capsys: Any) -> None:
    """A run that is not there."""
    assert sealtrace(["rerun", "trace_" + "b" * 32, "--stub"]) == 3
