"""`sealtrace runs` searches by time and by service."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from run.halves import Conversation, seal_span, spans_of, write_otlp
from sealtrace.cli import run
from sealtrace.vault.stores import LocalStore


@pytest.fixture
def search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    """Rows that a search of a vault or of spans with one run gives."""
    made = Conversation(2)
    seal = made.store(LocalStore(tmp_path / "vault"))
    spans = write_otlp(tmp_path / "traces.jsonl", [*spans_of(made), seal_span(made, seal)])
    halves = {"vault": ["--vault", (tmp_path / "vault").as_uri()], "spans": ["--source", spans]}

    def ask(half: str, *options: str) -> list[dict[str, Any]]:
        assert run(["runs", "--json", *halves[half], *options]) == 0
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return rows

    return ask


@pytest.mark.parametrize("half", ["vault", "spans"])
def test_since(search: Callable[..., list[dict[str, Any]]], half: str) -> None:
    """A run is found since before it began and not since after, by age or by date."""
    (found,) = search(half)
    started = dt.datetime.fromisoformat(found["started_at"])
    assert search(half, "--since", started.isoformat()) == [found]
    assert search(half, "--since", (started + dt.timedelta(seconds=1)).isoformat()) == []
    assert search(half, "--since", "9999d") == [found]


def test_service_and_error(search: Callable[..., list[dict[str, Any]]]) -> None:
    """`--service` and `--error` narrow the search; the vault does not know services and says so."""
    assert search("spans", "--service", "no such service") == []
    assert search("spans", "--error") == []


def test_service_needs_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked of the vault alone, `--service` is refused rather than ignored."""
    assert run(["runs", "--vault", tmp_path.as_uri(), "--service", "shop"]) == 1
    assert "--service" in capsys.readouterr().err


@pytest.mark.parametrize("since", ["", "h", "2w", "yesterday", "-1h", "9999999999999d"])
def test_bad_times(since: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no time is refused with the forms there are."""
    assert run(["runs", "--vault", tmp_path.as_uri(), "--since", since]) != 0
    assert "30m, 2h, 7d" in capsys.readouterr().err
