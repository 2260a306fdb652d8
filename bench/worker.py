"""One measured process: sets up one kind of tracing, then runs the workload whenever the parent says so.

Speaks lines of JSON: `{"runs": n}` in, CPU seconds out. Started by overhead.py, which holds many of these
side by side and asks them in turn; while one works, the others wait on their pipes and use no CPU.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Drain = Callable[[], object]
_exported: list[int] = []


def _nothing() -> None:
    return None


def _opentelemetry() -> Drain:
    """A tracer provider whose exporter does nothing: the same for each kind of tracing that makes spans."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            _exported.append(len(spans))
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere(), max_queue_size=65_536))
    trace.set_tracer_provider(provider)
    return provider.force_flush


def _off() -> Drain:
    import agents

    agents.set_tracing_disabled(disabled=True)
    return _nothing


def _sdk() -> Drain:
    import agents

    class Nothing(agents.TracingProcessor):
        def on_trace_start(self, trace: Any) -> None: ...
        def on_trace_end(self, trace: Any) -> None: ...
        def on_span_start(self, span: Any) -> None: ...
        def on_span_end(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

    agents.set_trace_processors([Nothing()])
    return _nothing


def _official() -> Drain:
    import agents
    from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

    drain = _opentelemetry()
    agents.set_trace_processors([])  # it leaves the SDK's own exporter on, which would be measured as its work
    OpenAIAgentsInstrumentor().instrument()
    return drain


def _openinference() -> Drain:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    drain = _opentelemetry()
    OpenAIAgentsInstrumentor().instrument()
    return drain


def _sealtrace(vault: str | None) -> Drain:
    import sealtrace

    drain = _opentelemetry()
    sealtrace.instrument(vault=vault, key="an example key for the benchmark")

    def both() -> None:
        if not sealtrace.flush(60.0):
            raise RuntimeError("sealtrace did not store everything within 60 s")
        drain()

    return both


def _with_vault() -> Drain:
    memory = Path("/dev/shm")  # where there is one: what a disk's fsync costs is not the question here
    folder = tempfile.TemporaryDirectory(prefix="sealtrace-bench-", dir=memory if memory.is_dir() else None)
    drain = _sealtrace(Path(folder.name).as_uri())

    def both() -> None:
        drain()
        _ = folder  # lives as long as the worker

    return both


VARIANTS: dict[str, Callable[[], Drain]] = {
    "off": _off,
    "sdk": _sdk,
    "sealtrace": _with_vault,
    "sealtrace-spans": lambda: _sealtrace(None),
    "official": _official,
    "openinference": _openinference,
}


async def _batch(once: Callable[[], Any], runs: int) -> None:
    for _ in range(runs):
        await once()


def _measure(loop: asyncio.Runner, once: Callable[[], Any], drain: Drain, runs: int) -> dict[str, float]:
    gc.collect()
    process, thread, wall = time.process_time(), time.thread_time(), time.perf_counter()
    loop.run(_batch(once, runs))
    agent = time.thread_time() - thread
    lasted = time.perf_counter() - wall
    drain()  # what was put off to other threads is part of the price
    whole = time.process_time() - process
    spans = sum(_exported) / runs
    _exported.clear()
    return {"agent": agent / runs, "process": whole / runs, "wall": lasted / runs, "spans": spans}


def main() -> None:
    """Serve the parent until it closes the pipe."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import workload

    drain = VARIANTS[sys.argv[1]]()
    once = workload.build(sys.argv[2])
    with asyncio.Runner() as loop:
        _measure(loop, once, drain, 20)
        print(json.dumps({"ready": sys.argv[1]}), flush=True)
        for line in sys.stdin:
            print(json.dumps(_measure(loop, once, drain, json.loads(line)["runs"])), flush=True)


if __name__ == "__main__":
    main()
