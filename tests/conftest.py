"""What tests share: a clean process around each test, loopback servers, OpenTelemetry with a collector."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from loopback.otel import OtelCapture
    from loopback.server import LoopbackServer

_FOREIGN = ("OPENAI_", "OTEL_", "AWS_")


@pytest.fixture(autouse=True)
def _clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings from outside, and nothing instrumented when the test is over."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN) or (name.startswith("SEALTRACE_") and name != "SEALTRACE_TEST_DATA"):
            monkeypatch.delenv(name)
    yield
    capture = sys.modules.get("sealtrace.agents_sdk")
    if capture is not None and hasattr(capture, "uninstrument"):
        capture.uninstrument()
    tracing = sys.modules.get("agents.tracing.setup")
    if tracing is not None:
        tracing.GLOBAL_TRACE_PROVIDER = None  # type: ignore[attr-defined]


@pytest.fixture
def vault_url(tmp_path: Path) -> str:
    """Address of an empty vault of this test's own."""
    return (tmp_path / "vault").as_uri()


@pytest.fixture(scope="session")
def loopback_server() -> Iterator[LoopbackServer]:
    """The one server of this session; use `server`, which is empty for each test."""
    from loopback.server import LoopbackServer

    server = LoopbackServer()
    yield server
    server.close()


@pytest.fixture
def server(loopback_server: LoopbackServer) -> Iterator[LoopbackServer]:
    """A loopback server with nothing recorded and nothing to play."""
    loopback_server.forget()
    loopback_server.play(())
    yield loopback_server
    loopback_server.forget()


@pytest.fixture
def otel(server: LoopbackServer) -> Iterator[OtelCapture]:
    """Fresh OpenTelemetry providers, also set as the global ones, exporting to `server`."""
    from loopback.otel import OtelCapture

    capture = OtelCapture(server)
    previous = _set_globals(capture.tracer_provider, capture.meter_provider, capture.logger_provider)
    yield capture
    _set_globals(*previous)
    capture.close()


def _set_globals(tracer: Any, meter: Any, logger: Any) -> tuple[Any, Any, Any]:
    """Swap the global providers; the public setters work once in a process only."""
    import opentelemetry._logs._internal as logs
    import opentelemetry.metrics._internal as metrics
    from opentelemetry import trace

    before = (trace._TRACER_PROVIDER, metrics._METER_PROVIDER, logs._LOGGER_PROVIDER)
    trace._TRACER_PROVIDER = tracer
    metrics._METER_PROVIDER = meter
    logs._LOGGER_PROVIDER = logger
    return before


@pytest.fixture
def vendor(server: LoopbackServer) -> Iterator[LoopbackServer]:
    """The SDK's own exporter, as it is by default but pointed at the loopback server: what leaks is seen there."""
    import agents.tracing.setup as setup
    from agents.tracing import processors

    from loopback.server import INGEST_PATH

    before = (processors._global_exporter, processors._global_processor, setup.GLOBAL_TRACE_PROVIDER)
    exporter = processors.BackendSpanExporter("sk-loopback", endpoint=server.url + INGEST_PATH, max_retries=0)
    processor = processors.BatchTraceProcessor(exporter, schedule_delay=3600)
    processors._global_exporter, processors._global_processor = exporter, processor
    setup.GLOBAL_TRACE_PROVIDER = None
    yield server
    processor.shutdown()
    exporter.close()
    processors._global_exporter, processors._global_processor, setup.GLOBAL_TRACE_PROVIDER = before
