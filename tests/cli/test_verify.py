"""`sealtrace verify`: one code for each kind of damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from run.halves import RUN, TRACE, Conversation, seal_span, spans_of, write_otlp
from sealtrace.cli import run
from sealtrace.vault.stores import LocalStore
from sealtrace.vault.verify import Damage

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


class Stored:
    """A whole run in a vault, and what the collector saw of it."""

    def __init__(self, folder: Path) -> None:
        self.run = Conversation(2)
        self.store = LocalStore(folder / "vault")
        self.seal = self.run.store(self.store)
        self.vault = ["--vault", (folder / "vault").as_uri()]
        spans = [*spans_of(self.run), seal_span(self.run, self.seal)]
        self.telemetry = ["--telemetry", write_otlp(folder / "traces.jsonl", spans)]


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """See `Stored`."""
    return Stored(tmp_path)


@pytest.mark.parametrize("name", [RUN, TRACE, f"https://viewer.example/runs/{RUN}"])
def test_a_run_as_it_was_stored_is_in_order(stored: Stored, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the vault alone and with the collector's word, by any name of the run."""
    assert run(["verify", name, *stored.vault]) == 0
    assert "the collector not asked" in capsys.readouterr().out
    assert run(["verify", name, *stored.vault, *stored.telemetry]) == 0
    out = capsys.readouterr().out
    assert out.startswith("✓ ")
    assert "1 confirmed by the collector" in out


def test_each_damage_has_its_code(stored: Stored, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lost segment, a stray object, a lost manifest: each ends with its own number."""
    segment = next(item.key for item in stored.store.list("content/"))
    (tmp_path / "vault" / segment).rename(tmp_path / "aside")
    assert run(["verify", RUN, "--json", *stored.vault]) == Damage.SEGMENT_MISSING
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["exit_code"]) == (False, int(Damage.SEGMENT_MISSING))
    assert document["findings"][0]["damage"] == "segment_missing"
    (tmp_path / "aside").rename(tmp_path / "vault" / segment)
    stored.store.delete(stored.seal.manifest_key)
    assert run(["verify", RUN, *stored.vault]) == Damage.NO_MANIFEST
    assert "no manifest" in capsys.readouterr().out


def test_the_collector_may_contradict(stored: Stored, tmp_path: Path) -> None:
    """Another root on the seal span, and no seal span at all."""
    lie = seal_span(stored.run, stored.seal, **{"sealtrace.run.merkle_root": "0" * 64})
    other = write_otlp(tmp_path / "other.jsonl", [*spans_of(stored.run), lie])
    assert run(["verify", RUN, *stored.vault, "--telemetry", other]) == Damage.WITNESS_DIFFERS
    silent = write_otlp(tmp_path / "silent.jsonl", spans_of(stored.run))
    assert run(["verify", RUN, *stored.vault, "--telemetry", silent]) == Damage.WITNESS_MISSING


def test_a_run_that_is_gone_from_the_vault_though_it_was_sealed(stored: Stored) -> None:
    """Taking away a whole run is found out by the collector."""
    for item in list(stored.store.list("")):
        stored.store.delete(item.key)
    code = run(["verify", RUN, *stored.vault, *stored.telemetry])
    assert code in (Damage.SEGMENT_MISSING, Damage.NO_RECORD)


@pytest.mark.parametrize(("name", "code"), [("f" * 32, 3), ("trace_" + "f" * 32, 3), ("https://x.example/", 3)])
def test_an_unknown_run_is_not_found(stored: Stored, name: str, code: int) -> None:
    """No record and nobody who saw one: not found, which is no damage."""
    assert run(["verify", name, *stored.vault]) == code


def test_without_a_vault_there_is_nothing_to_verify(capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what to set."""
    assert run(["verify", RUN]) == 1
    assert "SEALTRACE_VAULT" in capsys.readouterr().err


def test_every_kind_of_damage_is_documented() -> None:
    """Each code is in the table of docs/cli.md."""
    table = DOCS.read_text().split("## `sealtrace verify`")[1]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith(("| 1", "| 2"))]
    listed = {int(code) for row in rows for code in row.split(",")}
    assert listed == {int(damage) for damage in Damage}
