"""Record an agent run on this machine, then read it back.

    python examples/quickstart.py [FOLDER]

Payloads go, redacted, to FOLDER/vault; spans go to FOLDER/traces.jsonl. In production the spans go
to your collector (OTLPSpanExporter in place of the file) and the vault is a bucket (see s3.py).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from agents import Agent, Runner, function_tool, gen_trace_id
from agents.run_config import RunConfig
from agents.testing import ScriptedModel, assistant_message, function_call
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import sealtrace
from sealtrace.telemetry import OTLPFileSpanExporter


@function_tool
def weather(city: str) -> str:
    """Look up the weather."""
    return f"{city}: 21 degrees, light wind; observer on duty: lena.hofmann@example.com"


def build_agent() -> Agent:
    # The scripted model makes the example run without a key; leave `model` out to use a real one.
    script = ScriptedModel(
        [
            [function_call("weather", {"city": "Lisbon"}, call_id="call_1")],
            [assistant_message("Mild and breezy in Lisbon, 21 degrees.")],
        ]
    )
    return Agent(name="Weather guide", instructions="Answer in one sentence.", tools=[weather], model=script)


def main(folder: Path) -> sealtrace.Run:
    vault, traces = (folder / "vault").as_uri(), folder / "traces.jsonl"

    # 1. The application's own OpenTelemetry setup. sealtrace uses it and never makes one.
    provider = TracerProvider(resource=Resource.create({"service.name": "quickstart"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPFileSpanExporter(traces)))

    # 2. One line: from here on every run leaves its two records.
    sealtrace.instrument(vault=vault, tracer_provider=provider)

    # 3. Run agents as ever. The trace id is the run's id.
    run_id = gen_trace_id()
    result = Runner.run_sync(build_agent(), "What is it like in Lisbon?", run_config=RunConfig(trace_id=run_id))
    print(result.final_output)

    # 4. A long-lived process needs neither line: both happen in the background and at exit.
    sealtrace.flush()
    provider.force_flush()

    # 5. Read it back: the two halves joined.
    run = sealtrace.load(run_id, vault=vault, telemetry=f"otlp+{traces.as_uri()}")
    print(f"{run.id}: {run.status}, {len(run.events)} events, {len(run.spans)} spans")
    for event in run.events:
        print(f"  #{event.seq} {event.kind}: {event.status}")
    print(f"what the tool said, as stored: {run.event(3).payload['result']}")
    print(f"\nsealtrace show {run.id} --vault {vault} --telemetry otlp+{traces.as_uri()}")
    return run


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="sealtrace-quickstart-")).resolve())
