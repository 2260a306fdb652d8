"""The metrics of a recorded run, end to end: demo agents, a real vault, a real meter provider."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agents import gen_trace_id
from opentelemetry import metrics
from opentelemetry.sdk.trace import TracerProvider

import sealtrace
from sealtrace._guard import failures
from sealtrace.cli._demo_agent import CONTENT, SECRETS, run_support_desk

from .test_metrics import Meter, meter

__all__ = ["meter"]


@pytest.fixture
def global_meter(meter: Meter, monkeypatch: pytest.MonkeyPatch) -> Meter:
    """The meter provider as the application's global one."""
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: meter.provider)
    return meter


def _run(vault: Path, **settings: bool) -> None:
    sealtrace.instrument(vault.as_uri(), tracer_provider=TracerProvider(), **settings)
    asyncio.run(run_support_desk(gen_trace_id()))
    assert sealtrace.flush()


def test_a_run_leaves_its_metrics(global_meter: Meter, tmp_path: Path) -> None:
    """Tokens equal what the models reported; every payload's redaction and every upload was measured."""
    failed_before = sum(failures().values())
    _run(tmp_path / "vault")
    points = global_meter.points()
    tokens = sum(value for _, value in points["gen_ai.client.inference.usage.input_tokens"])
    assert tokens == 188 + 412 + 547 + 602
    assert {labels.get("error.type") for labels, _ in points["gen_ai.execute_tool.duration"]} == {None, "RuntimeError"}
    assert points["sealtrace.redaction.duration"][0][1][0] == 15
    files = [path for path in (tmp_path / "vault").rglob("*") if path.is_file()]
    stored = points["sealtrace.vault.upload.duration"][0][1][0]
    assert 0 < stored <= len(files)
    assert points["sealtrace.queue.events"] == [({}, 0)]
    assert points["sealtrace.payloads.dropped"] == points["sealtrace.events.lost"] == [({}, 0)]
    assert points["sealtrace.failures"] == [({}, failed_before)]


def test_no_content_in_metrics(global_meter: Meter, tmp_path: Path) -> None:
    """None of the run's content is in a metric's name, label or value."""
    _run(tmp_path / "vault")
    text = repr(global_meter.points())
    assert [item for item in (*CONTENT, *SECRETS) if item in text] == []


def test_nothing_is_read_after_uninstrument(global_meter: Meter, tmp_path: Path) -> None:
    """Once uninstrumented, nothing of the old runtime is read any more."""
    _run(tmp_path / "vault")
    sealtrace.uninstrument()
    assert "sealtrace.queue.events" not in global_meter.points()


def test_genai_metrics_setting(global_meter: Meter, tmp_path: Path) -> None:
    """`genai_metrics=False` leaves the conventions' metrics to another instrumentation."""
    _run(tmp_path / "vault", genai_metrics=False)
    assert [name for name in global_meter.points() if name.startswith("gen_ai.")] == []


def test_a_vault_that_takes_nothing_is_in_the_metrics(
    global_meter: Meter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nothing can be stored, that, why, and what waits are measured; what had no room is counted as dropped."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    sealtrace.instrument(
        "s3://payloads",
        tracer_provider=TracerProvider(),
        endpoint_url="http://127.0.0.1:9",
        region="us-east-1",
        max_attempts=1,
        exit_timeout=0.1,
        spool=tmp_path / "spool",
        spool_bytes=65_536,
    )
    for _ in range(8):
        asyncio.run(run_support_desk(gen_trace_id()))
    assert not sealtrace.flush()
    points = global_meter.points()
    assert points["sealtrace.vault.failing"] == [({}, 1)]
    assert points["sealtrace.vault.records.waiting"] == [({}, 8)]
    assert points["sealtrace.vault.records.recovered"] == [({}, 0)]
    assert points["sealtrace.spool.bytes"][0][1] >= 65_536
    assert points["sealtrace.payloads.dropped"][0][1] > 0
    assert {labels["error.type"] for labels, _ in points["sealtrace.vault.upload.duration"]} == {
        "EndpointConnectionError"
    }
