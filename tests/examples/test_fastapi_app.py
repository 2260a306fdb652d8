"""The FastAPI example on a real server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sealtrace import load

MAIN = Path(__file__).parents[2] / "examples" / "fastapi_app" / "main.py"
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    """Where the example's spans go."""
    return InMemorySpanExporter()


@pytest.fixture
def address(
    exporter: InMemorySpanExporter, vault_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Any]]:
    """The running service, and what stops it so that everything is stored."""
    import uvicorn

    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(_module().create_app(provider), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            thread.join(0.01)

        def stop() -> None:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()

        yield f"http://127.0.0.1:{listening.getsockname()[1]}", stop
        stop()
    provider.shutdown()


def _module() -> ModuleType:
    spec = util.spec_from_file_location("fastapi_example", MAIN)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(base: str, **headers: str) -> dict[str, str]:
    """Send one ticket."""
    answer = httpx.post(f"{base}/tickets", json={"text": "Where is my parcel?"}, headers=headers, timeout=30)
    assert answer.status_code == 200
    found: dict[str, str] = answer.json()
    return found


def test_the_agents_spans_hang_under_the_requests_span(
    address: tuple[str, Any], exporter: InMemorySpanExporter, vault_url: str
) -> None:
    """One request is one trace: server span above, agent spans below, the caller's trace id on all, one run."""
    base, stop = address
    answer = ask(base, traceparent=f"00-{CALLER}-00f067aa0ba902b7-01")
    assert answer == {"text": "Your parcel is at the depot in Graz.", "trace_id": CALLER}
    stop()
    spans: dict[int, ReadableSpan] = {
        span.context.span_id: span for span in exporter.get_finished_spans() if span.context
    }
    root = next(span for span in spans.values() if span.name.startswith("invoke_workflow"))
    above = [span.name for span in ancestors(root, spans)]
    assert above[-1] == "POST /tickets"
    assert {f"{span.context.trace_id:032x}" for span in spans.values() if span.context} == {CALLER}
    tool = next(span for span in spans.values() if span.name == "execute_tool parcel_status")
    assert root in ancestors(tool, spans)

    run = load(CALLER, vault=vault_url)
    assert (run.status, run.tools) == ("complete", ("parcel_status",))
    assert "+43 316" not in str(run.to_json())


def test_requests_at_the_same_time_do_not_mix(
    address: tuple[str, Any], exporter: InMemorySpanExporter, vault_url: str
) -> None:
    """Eight requests at once are eight traces and eight whole runs."""
    base, stop = address
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(base)["trace_id"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    stop()
    assert len(set(answers)) == 8
    for trace_id in answers:
        run = load(trace_id, vault=vault_url)
        assert (run.status, len(run.events)) == ("complete", 6)
        assert {event.trace_id for event in run.events} == {trace_id}


def ancestors(span: ReadableSpan, spans: dict[int, ReadableSpan]) -> list[ReadableSpan]:
    """The spans above, nearest first."""
    found: list[ReadableSpan] = []
    while span.parent is not None and span.parent.span_id in spans:
        span = spans[span.parent.span_id]
        found.append(span)
    return found
