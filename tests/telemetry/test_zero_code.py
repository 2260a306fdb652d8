"""`opentelemetry-instrument python app.py` with environment variables alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import sealtrace
from loopback.server import LoopbackServer

APP = """
import asyncio, sys
from agents import gen_trace_id
from sealtrace.cli._demo_agent import run_support_desk

run_id = gen_trace_id()
asyncio.run(run_support_desk(run_id))
print(run_id)
"""


def _run(tmp_path: Path, server: LoopbackServer, **environ: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "app.py").write_text(APP)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "OTEL_SERVICE_NAME": "zero-code",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{server.url}/otlp",
        **environ,
    }
    command = [str(Path(sys.executable).with_name("opentelemetry-instrument")), sys.executable, "app.py"]
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_records_to_collector_and_vault(tmp_path: Path, server: LoopbackServer) -> None:
    """Without a line of code the run is in the vault, its spans and metrics at the collector, and the two join."""
    vault = (tmp_path / "vault").as_uri()
    done = _run(tmp_path, server, SEALTRACE_VAULT=vault)
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.strip()
    bodies = server.otlp("traces")
    spans = [
        span
        for body in bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        if scope.scope.name == "sealtrace"
        for span in scope.spans
    ]
    names = {span.name for span in spans}
    assert {"invoke_agent Triage", "invoke_agent Refunds desk"} <= names, done.stderr
    assert any(b"gen_ai.client.inference.duration" in body for body in server.otlp("metrics"))

    traces = tmp_path / "traces.pb"
    traces.write_bytes(b"".join(len(body).to_bytes(4) + body for body in bodies))
    run = sealtrace.load(run_id, vault=vault, telemetry=f"otlp+file://{traces}")
    assert run.status == "complete"
    assert {str(event.status) for event in run.events} == {"joined"}


def test_a_bad_setting_costs_the_recording_only(tmp_path: Path, server: LoopbackServer) -> None:
    """Where a setting is wrong the application runs on, and the log says what is wrong."""
    done = _run(tmp_path, server, SEALTRACE_VAULT="ftp://nowhere")
    assert done.returncode == 0
    assert done.stdout.startswith("trace_")
    assert "sealtrace is not recording" in done.stderr


def test_it_can_be_switched_off(tmp_path: Path, server: LoopbackServer) -> None:
    """OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=sealtrace switches it off as it does every instrumentation."""
    vault = tmp_path / "vault"
    done = _run(tmp_path, server, SEALTRACE_VAULT=vault.as_uri(), OTEL_PYTHON_DISABLED_INSTRUMENTATIONS="sealtrace")
    assert done.returncode == 0
    assert not [path for path in vault.rglob("*") if path.is_file()]
