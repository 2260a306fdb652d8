"""A run made up on the spot, to see with one's own eyes what is recorded and what the spans hold."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import RunNotFound, SealtraceError
from ._checks import Level, Row, other_processors

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ["Probe", "probing"]

_CANARY: Final = "quiet harbour lantern"


class Probe:
    """An instrumented process and where its probe run goes."""

    def __init__(self, vault: Path, exporter: InMemorySpanExporter) -> None:
        self._vault = vault
        self._exporter = exporter

    def row(self) -> Row:
        """Make one run on a scripted model and look at both halves of it.

        Not with processors of others about: they would send it wherever they send runs.
        """
        from agents import gen_trace_id

        from ..agents_sdk import compat

        if other_processors(compat.check().processors or ("?",)):
            return Row("probe run", Level.NOTE, "not made: other trace processors would send it on")
        run_id = gen_trace_id()
        try:
            asyncio.run(_run(run_id))
        except Exception as error:  # noqa: BLE001 - a probe reports, whatever it met
            return Row("probe run", Level.BAD, f"failed: {type(error).__name__}: {error}")
        from ..agents_sdk import flush
        from ..run import load

        if not flush():
            return Row("probe run", Level.BAD, "its payloads could not be stored in a temporary folder")
        spans = self._exporter.get_finished_spans()
        if _holds_canary(spans):
            return Row("probe run", Level.BAD, "its prompt was found in the bytes of its spans")
        try:
            run = load(run_id, vault=self._vault.as_uri(), reason="probe run of sealtrace doctor")
        except RunNotFound:
            return Row("probe run", Level.BAD, "was not recorded")
        except SealtraceError as error:
            return Row("probe run", Level.BAD, f"was recorded and cannot be read: {error}")
        text = f"{len(run.events)} events and {len(spans)} spans recorded, no content in the spans; record {run.status}"
        good = run.status == "complete" and len(spans) > 0
        return Row("probe run", Level.OK if good else Level.NOTE, text)


def _holds_canary(spans: Any) -> bool:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return _CANARY.encode() in encode_spans(spans).SerializeToString()


async def _run(run_id: str) -> None:
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.testing import ScriptedModel, assistant_message, function_call

    def echo(text: str) -> str:
        return text

    call = function_call("echo", {"text": _CANARY}, call_id="call_probe")
    script = ScriptedModel([[call], [assistant_message(_CANARY)]])
    agent = Agent(name="Probe", instructions=_CANARY, tools=[function_tool(echo)], model=script)
    await Runner.run(agent, _CANARY, run_config=RunConfig(workflow_name="Probe", trace_id=run_id))


@contextmanager
def probing() -> Generator[Probe]:
    """Instrument this process, with the settings in force but for where things go: that is a temporary folder."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from ..agents_sdk import instrument, uninstrument

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with tempfile.TemporaryDirectory(prefix="sealtrace-probe-") as folder:
        vault = Path(folder).resolve()
        instrument(vault=vault.as_uri(), tracer_provider=provider, enabled=True, keep_openai_exporter=False)
        try:
            yield Probe(vault, exporter)
        finally:
            uninstrument()
            provider.shutdown()
