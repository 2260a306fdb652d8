"""The file exporter writes what the file source and the OTLP specification say."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import Link

from sealtrace.telemetry import OTLPFileSpanExporter
from sealtrace.telemetry.sources import open_source


def _provider(path: Path) -> TracerProvider:
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPFileSpanExporter(path)))
    return provider


def test_round_trip(tmp_path: Path) -> None:
    """A span that was written is read back with its ids, times, values and parent."""
    path = tmp_path / "new folder" / "traces.jsonl"
    tracer = _provider(path).get_tracer("test")
    with tracer.start_as_current_span("outer", attributes={"n": 2**60, "x": 0.5, "on": True, "l": ["a"]}) as outer:
        tracer.start_span("inner").end()
    spans = {span.name: span for span in open_source(f"otlp+file://{path}").trace(f"{outer.context.trace_id:032x}")}
    assert spans["outer"].attributes == {"n": 2**60, "x": 0.5, "on": True, "l": ["a"]}
    assert spans["outer"].resource["service.name"] == "shop"
    assert spans["inner"].parent_span_id == spans["outer"].span_id == f"{outer.context.span_id:016x}"
    assert (spans["outer"].start_ns, spans["outer"].end_ns) == (outer.start_time, outer.end_time)


def test_ids_are_hex_in_links_too(tmp_path: Path) -> None:
    """OTLP JSON has hex ids everywhere, also in links."""
    path = tmp_path / "traces.jsonl"
    tracer = _provider(path).get_tracer("test")
    with tracer.start_as_current_span("first") as first:
        pass
    tracer.start_span("second", links=[Link(first.get_span_context())]).end()
    span = json.loads(path.read_text().splitlines()[1])["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["links"][0]["traceId"] == f"{first.get_span_context().trace_id:032x}"


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """The file is made with mode 0600."""
    path = tmp_path / "traces.jsonl"
    _provider(path).get_tracer("test").start_span("a").end()
    assert path.stat().st_mode & 0o777 == 0o600


def test_threads_do_not_mix_lines(tmp_path: Path) -> None:
    """Spans that end on many threads at once are whole lines, none lost."""
    path = tmp_path / "traces.jsonl"
    tracer = _provider(path).get_tracer("test")

    def work() -> None:
        for _ in range(25):
            tracer.start_span("a").end()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(open_source(f"otlp+file://{path}").spans()) == 100


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_a_failed_export() -> None:
    """Where the file cannot be written the export fails as exports do: by its result, without raising."""
    span = TracerProvider().get_tracer("test").start_span("a")
    span.end()
    assert OTLPFileSpanExporter("/dev/full").export([span]) is SpanExportResult.FAILURE
