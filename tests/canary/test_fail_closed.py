"""When something of ours breaks, raw content goes nowhere: not to the vault, not to spans, not to logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
from agents import Agent, Runner, custom_span, function_tool
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import sealtrace
from canary.scan import found
from canary.test_canary import KEY, vault_bytes
from loopback import items
from loopback.items import reply
from loopback.model import OwnModel
from noninterference.faults import ERRORS, Switchboard, install
from sealtrace import _guard

SECRETS = {
    place: f"quokka{place}quokka@example.com"
    for place in ("instructions", "input", "description", "argument", "result", "error", "span", "text", "output")
}


class Quoting:
    """Raises an exception whose message quotes what the function was given."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind

    def __call__(self, message: str) -> BaseException:
        return self._kind(f"{message}: {SECRETS}")


@pytest.fixture
def board() -> Iterator[Switchboard]:
    """A switch in each function of the recording path."""
    board = Switchboard()
    with pytest.MonkeyPatch.context() as patch:
        install(board, patch)
        yield board


async def run() -> None:
    """A run that has a secret in each of `SECRETS`."""

    @function_tool
    async def look(what: Annotated[str, f"What. {SECRETS['description']}"]) -> dict[str, str]:
        """Look something up."""
        with custom_span("stage", {"row": SECRETS["span"]}):
            return {"found": SECRETS["result"]}

    @function_tool(failure_error_function=None)
    async def fail() -> str:
        """Fail."""
        raise ValueError(SECRETS["error"])

    model = OwnModel(
        [
            reply(items.message(SECRETS["text"]), items.call("look", {"what": SECRETS["argument"]}, "call_1")),
            reply(items.message(SECRETS["output"])),
            reply(items.call("fail", {}, "call_2")),
        ],
        spans=True,
    )
    agent = Agent("careful", instructions=SECRETS["instructions"], model=model, tools=[look, fail])
    await Runner.run(agent, f"Find {SECRETS['input']}.")
    with pytest.raises(Exception, match="quokkaerrorquokka"):
        await Runner.run(agent, "Now fail.")


def recorded(vault: Path, board: Switchboard, name: str | None = None) -> dict[str, set[str]]:
    """Which secrets are found where, after a run during which the named function raises."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sealtrace.instrument(vault=vault.as_uri(), key=KEY, tracer_provider=provider, exit_timeout=0.2)
    board.called.clear()
    if name is not None:
        board.arm(name, [Quoting(kind) for kind in ERRORS])
    asyncio.run(run())
    sealtrace.flush(0.5)
    called = set(board.called)
    board.disarm()
    sealtrace.uninstrument()
    board.called = called
    return {
        "vault": found(SECRETS.values(), *vault_bytes(vault.as_uri())),
        "spans": found(SECRETS.values(), encode_spans(exporter.get_finished_spans()).SerializeToString()),
    }


# A switch in the background thread's own loop ends that thread, loudly; the thread's traceback is not ours to log.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whatever_breaks_no_raw_content_gets_out(
    board: Switchboard, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each function raises errors of each kind that quote content: no secret is in the vault, on a span or in a log."""
    caplog.set_level(logging.DEBUG, "sealtrace")
    monkeypatch.setattr(_guard, "_counts", {})  # each kind of failure is logged once in a process
    nowhere: dict[str, set[str]] = {"vault": set(), "spans": set()}
    assert recorded(tmp_path / "whole", board) == nowhere
    names = [name for name in board.names if name in board.called]
    assert len(names) > 150

    leaks = {}
    for number, name in enumerate(names):
        where = recorded(tmp_path / str(number), board, name)
        if where != nowhere:
            leaks[name] = where
    assert leaks == {}
    logged = [record for record in caplog.records if record.name.startswith(("sealtrace", "opentelemetry"))]
    assert logged
    texts = [f"{record.getMessage()} {record.exc_info!r} {record.args!r}".encode() for record in logged]
    assert found(SECRETS.values(), *texts) == set()
