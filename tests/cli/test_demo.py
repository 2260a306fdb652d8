"""The demo: the main promise, end to end, in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sealtrace.cli import demo as module
from sealtrace.cli import run
from sealtrace.cli._demo_agent import CARD, CONTENT, EMAIL, SECRETS
from sealtrace.redaction.validators import luhn


def test_the_demo_proves_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It records, joins, shows a complete run, and finds content where it belongs and nowhere else."""
    assert run(["demo", "--dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "status   complete" in out
    assert "handoff Triage → Refunds desk" in out
    assert "✗ RuntimeError" in out
    assert f"{len(CONTENT) + len(SECRETS)} strings of content looked for, 0 found" in out
    assert out.count("✓") == 3
    assert EMAIL not in out
    assert CARD not in out


def test_the_demo_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` gives the joined run and the proof: handoff, guardrails, parallel tools and the failed one."""
    assert run(["demo", "--dir", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    events = document["run"]["events"]
    assert {event["status"] for event in events} == {"joined"}
    kinds = [event["kind"] for event in events]
    assert {"input", "generation", "handoff", "guardrail", "tool_call", "tool_result", "output"} == set(kinds)
    results = [event for event in events if event["kind"] == "tool_result"]
    assert [event["call_id"] for event in results] == ["call_policy", "call_order", "call_pay"]
    failed = results[-1]["payload"]
    assert failed["error"]["type"] == "RuntimeError"
    assert "insufficient merchant balance" in failed["error"]["message"]
    assert document["proof"]["in_spans"] == []
    assert document["proof"]["missing_from_vault"] == []


def test_the_demo_can_be_run_again_in_the_same_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second demo adds a second run; both are listed."""
    for _ in range(2):
        assert run(["demo", "--dir", str(tmp_path)]) == 0
    capsys.readouterr()
    assert run(["runs", "--json", "--vault", (tmp_path / "vault").as_uri()]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


@pytest.mark.parametrize("leak", [CONTENT[1], EMAIL])
def test_a_leak_into_the_spans_is_found(tmp_path: Path, leak: str) -> None:
    """The proof is not a formality: one planted string in the span file makes it fail."""
    assert run(["demo", "--dir", str(tmp_path)]) == 0
    traces = tmp_path / "traces.jsonl"
    assert module._prove(tmp_path / "vault", traces).holds
    with traces.open("a") as file:
        file.write(json.dumps({"resourceSpans": [], "note": leak}) + "\n")
    proof = module._prove(tmp_path / "vault", traces)
    assert not proof.holds
    assert proof.in_spans == (leak,)


def test_a_secret_in_the_vault_is_found(tmp_path: Path) -> None:
    """What redaction should have taken out is looked for inside compressed objects too."""
    import gzip

    assert run(["demo", "--dir", str(tmp_path)]) == 0
    (tmp_path / "vault" / "extra.gz").write_bytes(gzip.compress(b"{}") + gzip.compress(CARD.encode()))
    proof = module._prove(tmp_path / "vault", tmp_path / "traces.jsonl")
    assert not proof.holds
    assert proof.secrets_in_vault == (CARD,)


def test_the_card_number_is_one_a_check_takes_for_real() -> None:
    """The planted number passes the Luhn check, or the demo would prove nothing."""
    assert luhn(CARD)


def test_the_demo_refuses_a_process_that_records_already(
    tmp_path: Path, vault_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its run would go to somebody else's vault."""
    import sealtrace

    sealtrace.instrument(vault=vault_url)
    assert run(["demo", "--dir", str(tmp_path)]) == 1
    assert "instrumented already" in capsys.readouterr().err
    assert not (tmp_path / "traces.jsonl").exists()
