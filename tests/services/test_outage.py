"""A collector that is down, hung, slow or restarting: the run, the payloads and the exit."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sealtrace
from sealtrace.telemetry.sources import open_source

from .servers import Collector, binary, free
from .test_collector import files

EXIT_SECONDS = 25
"""The span SDK's own exit: a flush that waits for the exporter's timeout, then ours, on a busy machine."""

APP = """
import asyncio, json, sys, time
from agents import gen_trace_id
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
import sealtrace
from sealtrace.cli._demo_agent import run_support_desk

endpoint, vault = sys.argv[1:]
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
trace.set_tracer_provider(provider)
sealtrace.instrument(vault)
run_id = gen_trace_id()
started = time.monotonic()
result = asyncio.run(run_support_desk(run_id))
print(json.dumps({"run": run_id, "output": result.final_output, "seconds": time.monotonic() - started,
                  "ended": time.time()}), flush=True)
"""


def run_app(endpoint: str, vault: str) -> tuple[dict[str, Any], float]:
    """What the application printed, and the seconds from its last line to its exit."""
    done = subprocess.run(
        [sys.executable, "-c", APP, endpoint, vault], capture_output=True, text=True, timeout=120, check=False
    )
    now = time.time()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return said, now - said["ended"]


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does with each connection what it is told."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@contextlib.contextmanager
def down() -> Iterator[str]:
    """Nothing listens."""
    yield f"http://{free()}"


def hung() -> contextlib.AbstractContextManager[str]:
    """Connections are taken and never answered."""
    return listening(lambda connection: None)


def slow() -> contextlib.AbstractContextManager[str]:
    """Every answer takes two seconds."""

    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(65_536):
                time.sleep(2)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    return listening(answer)


@pytest.mark.parametrize("collector", [down, hung, slow])
def test_the_run_does_not_notice(collector: Callable[[], Any], tmp_path: Path) -> None:
    """Result and speed are as ever, payloads are stored, missing spans are named, and the process exits."""
    vault = (tmp_path / "vault").as_uri()
    with collector() as endpoint:
        said, exit_seconds = run_app(endpoint, vault)
    assert said["output"].startswith("I am sorry about the cracked tank")
    assert said["seconds"] < 10
    assert exit_seconds < EXIT_SECONDS
    (tmp_path / "traces.jsonl").touch()
    run = sealtrace.load(said["run"], vault=vault, telemetry=f"otlp+file://{tmp_path}/traces.jsonl")
    assert len(run.events) == 15
    assert {str(event.status) for event in run.events} == {"span missing"}
    assert all(event.payload is not None for event in run.events)
    print(f"{collector.__name__}: exit took {exit_seconds:.1f} s")


def test_a_restarting_collector(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    """Runs before and after a restart are both whole; the collector's file is appended to, not begun anew."""
    binary("otelcol")
    collector = Collector(tmp_path)
    found = []
    for number in (1, 2):
        with collector.run():
            said, _ = run_app(f"http://{collector.http}", (tmp_path / f"vault{number}").as_uri())
            eventually(lambda run=said["run"]: open_source(files(collector)).run(run))
            found.append(said["run"])
    for number, run_id in enumerate(found, 1):
        run = sealtrace.load(run_id, vault=(tmp_path / f"vault{number}").as_uri(), telemetry=files(collector))
        assert run.status == "complete"
