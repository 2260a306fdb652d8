"""Through a real collector into files and a real Jaeger, and back."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest
from agents import gen_trace_id
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import sealtrace
from sealtrace.cli._demo_agent import CONTENT, SECRETS, run_support_desk
from sealtrace.run import Run
from sealtrace.telemetry.sources import RunQuery, open_source

from .hostile import PLACES, Hostile
from .servers import CONFIG, Collector, Jaeger

EXPORTERS: dict[str, Callable[[Collector], SpanExporter]] = {
    "grpc": lambda collector: GrpcExporter(f"http://{collector.grpc}", insecure=True),
    "http": lambda collector: HttpExporter(f"http://{collector.http}/v1/traces"),
}


def post(url: str, body: bytes) -> int:
    """Send an OTLP request; the status of the answer."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/x-protobuf"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return int(answer.status)


def files(collector: Collector, pattern: str = "traces.jsonl") -> str:
    """The source that reads the collector's files."""
    return f"otlp+file://{collector.out / pattern}"


class Recorded:
    """A run of the demo's agents, sent through the collector."""

    def __init__(self, collector: Collector, exporter: SpanExporter, vault: str) -> None:
        self.vault = vault
        provider = TracerProvider(resource=Resource({"service.name": "support"}))
        provider.add_span_processor(BatchSpanProcessor(exporter))
        self.sent = InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(self.sent))
        sealtrace.instrument(vault, tracer_provider=provider)
        self.run_id = gen_trace_id()
        try:
            asyncio.run(run_support_desk(self.run_id))
            assert sealtrace.flush()
        finally:
            sealtrace.uninstrument()
            provider.shutdown()

    def load(self, telemetry: str) -> Run:
        """The run, from the vault and this source."""
        return sealtrace.load(self.run_id, vault=self.vault, telemetry=telemetry)


@pytest.fixture(params=sorted(EXPORTERS))
def recorded(request: pytest.FixtureRequest, collector: Collector, tmp_path: Path) -> Recorded:
    """A recorded run, over each of the two transports."""
    return Recorded(collector, EXPORTERS[request.param](collector), (tmp_path / "vault").as_uri())


def test_the_same_run_from_every_source(
    recorded: Recorded, collector: Collector, jaeger: Jaeger, eventually: Callable[..., Any]
) -> None:
    """From Jaeger and from both kinds of file the same run comes back, joined with the vault event for event."""
    runs = [
        eventually(lambda url=url: run if (run := recorded.load(url)).status == "complete" else None)
        for url in (jaeger.url, files(collector), files(collector, "proto/traces.pb"))
    ]
    first = runs[0]
    assert len(first.events) >= 15
    assert {event.status for event in first.events} == {"joined"}
    for other in runs[1:]:
        assert other.events == first.events
        assert sorted(other.spans, key=lambda span: span.span_id) == sorted(first.spans, key=lambda span: span.span_id)


def test_nothing_of_ours_is_lost_in_the_scrub(
    recorded: Recorded, collector: Collector, eventually: Callable[..., Any]
) -> None:
    """The collector's allow-list and names agree with ours: every span arrives with name and attributes as sent."""
    sent = {f"{span.context.span_id:016x}": span for span in recorded.sent.get_finished_spans()}
    spans = eventually(lambda: found if len(found := recorded.load(files(collector)).spans) == len(sent) else None)
    assert {"trace", "agent", "model", "tool", "handoff", "guardrail", "turn", "task", "seal"} == {
        span.attributes["sealtrace.span.kind"] for span in spans
    }
    for span in spans:
        ours = sent[span.span_id]
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in ours.attributes.items()}
        assert (span.name, span.attributes) == (ours.name, plain)
        assert (span.scope, span.start_ns, span.end_ns) == ("sealtrace", ours.start_time, ours.end_time)
        assert span.parent_span_id == (f"{ours.parent.span_id:016x}" if ours.parent else None)
    root = next(span for span in spans if span.attributes["sealtrace.span.kind"] == "trace")
    assert root.attributes["gen_ai.usage.input_tokens"] == 188 + 412 + 547 + 602


def test_no_content_past_the_collector(recorded: Recorded, collector: Collector, jaeger: Jaeger) -> None:
    """None of the demo's content, nor its card number and address, is in Jaeger's answers or in the files."""
    looked_for = (*CONTENT, *SECRETS)
    answers = [json.dumps(recorded.load(jaeger.url).to_json()["spans"])]
    answers += [path.read_bytes().decode("utf-8", "replace") for path in collector.out.rglob("*") if path.is_file()]
    assert [text for text in looked_for for answer in answers if text in answer] == []


def test_search_by_metadata(recorded: Recorded, jaeger: Jaeger, eventually: Callable[..., Any]) -> None:
    """The run is found in Jaeger by service, tool, agent and outcome, and not by others."""
    source = open_source(jaeger.url)

    def found(**conditions: Any) -> list[str]:
        return [hit.run_id for hit in source.runs(RunQuery(**conditions), 50)]

    eventually(lambda: recorded.run_id in found(service="support", tool="issue_refund"))
    assert recorded.run_id in found(agent="Refunds desk")
    assert recorded.run_id in found(error=False)
    assert recorded.run_id not in found(error=True)
    assert recorded.run_id not in found(tool="no_such_tool")
    assert recorded.run_id not in found(service="no such service")


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_hostile_application(
    collector: Collector, jaeger: Jaeger, transport: str, eventually: Callable[..., Any]
) -> None:
    """Content that an application puts anywhere in a span is gone, and the span's metadata is not."""
    hostile = Hostile()
    body = hostile.request.SerializeToString()
    assert hostile.found_in(body) == list(PLACES)
    if transport == "http":
        assert post(f"http://{collector.http}/v1/traces", body) == 200
    else:
        with grpc.insecure_channel(collector.grpc) as channel:
            TraceServiceStub(channel).Export(hostile.request, timeout=20)
    for url in (jaeger.url, files(collector), files(collector, "proto/traces.pb")):
        (span,) = eventually(lambda url=url: open_source(url).trace(hostile.trace_id))
        assert span.name == "execute_tool issue_refund"
        assert span.scope == "other"
        assert span.status_code == 2
        assert span.resource == {"service.name": "hostile"}
        assert span.attributes == {
            "sealtrace.run.id": hostile.run_id,
            "sealtrace.span.kind": "tool",
            "sealtrace.seq": 3,
            "gen_ai.tool.name": "issue_refund",
            "gen_ai.request.temperature": 0.5,
            "sealtrace.guardrail.tripped": True,
            "gen_ai.response.finish_reasons": ["stop"],
        }
    for path in (f"/api/v3/traces/{hostile.trace_id}", f"/api/traces/{hostile.trace_id}"):
        with urllib.request.urlopen(f"http://{jaeger.http}{path}", timeout=20) as answer:
            assert hostile.found_in(answer.read()) == []
    for path in collector.out.rglob("*"):
        assert path.is_dir() or hostile.found_in(path.read_bytes()) == []


def test_names_without_details(collector: Collector, eventually: Callable[..., Any]) -> None:
    """A span of ours without the attribute its name ends with has the first word alone; a foreign one is `span`."""
    ours, foreign = Hostile(), Hostile()
    for hostile, kept in ((ours, ("sealtrace.span.kind",)), (foreign, ())):
        span = hostile.request.resource_spans[0].scope_spans[0].spans[0]
        attributes = [item for item in span.attributes if item.key in kept]
        del span.attributes[:]
        span.attributes.extend(attributes)
        assert post(f"http://{collector.http}/v1/traces", hostile.request.SerializeToString()) == 200
    source = open_source(files(collector))
    assert [span.name for span in eventually(lambda: source.trace(ours.trace_id))] == ["execute_tool"]
    assert [span.name for span in eventually(lambda: source.trace(foreign.trace_id))] == ["span"]


def test_without_the_feature_gate_links_do_not_get_through(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    """Where the gate that lets links be emptied is off, the collector drops spans that have any."""

    class Ungated(Collector):
        def command(self, *before: str) -> list[str]:
            return [*super().command(*before), "--feature-gates=-ottl.set.allowNil"]

    linked, plain = Hostile(), Hostile()
    del plain.request.resource_spans[0].scope_spans[0].spans[0].links[:]
    with Ungated(tmp_path).run() as collector:
        for hostile in (linked, plain):
            assert post(f"http://{collector.http}/v1/traces", hostile.request.SerializeToString()) == 200
        eventually(lambda: open_source(files(collector)).trace(plain.trace_id))
        assert open_source(files(collector)).trace(linked.trace_id) == []
    assert linked.found_in((tmp_path / "out/traces.jsonl").read_bytes()) == []


def test_links_open_the_run(recorded: Recorded, jaeger: Jaeger, eventually: Callable[..., Any]) -> None:
    """Jaeger's links, filled in from a real span as Jaeger does, open the run, and at the span's first event."""
    run = eventually(lambda: got if (got := recorded.load(jaeger.url)).status == "complete" else None)
    span = next(span for span in run.spans if span.name == "execute_tool find_order")
    values = {**span.attributes, "traceID": span.trace_id}
    opened = []
    for pattern in json.loads((CONFIG / "jaeger/config-ui.json").read_text())["linkPatterns"]:
        link = re.sub(r"#\{([^}]+)\}", lambda match: quote(str(values[match[1]]), safe=""), pattern["url"])
        found = sealtrace.load(link, vault=recorded.vault, telemetry=jaeger.url)
        opened.append((found.id, found.linked_event))
    assert opened == [(run.id, span.attributes["sealtrace.seq"]), (run.id, None), (run.id, None)]
    assert run.event(span.attributes["sealtrace.seq"]).payload["tool"] == "find_order"


def test_links_of_jaegers_ui(jaeger: Jaeger) -> None:
    """The page that Jaeger serves has our links in its configuration."""
    with urllib.request.urlopen(f"http://{jaeger.http}/", timeout=20) as answer:
        page = answer.read().decode()
    config = json.loads(page.partition("JAEGER_CONFIG = ")[2].partition(";\n")[0])
    assert [pattern["key"] for pattern in config["linkPatterns"] if "key" in pattern] == [
        "sealtrace.seq",
        "sealtrace.run.id",
    ]
