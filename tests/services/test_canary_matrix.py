"""The canary matrix of tests/canary, through a real collector into files and a real Jaeger."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanContext, Status, StatusCode

import sealtrace
from canary.channels import MODELS, Canaries
from canary.scan import found
from canary.scenario import MODES, Desk
from loopback.server import LoopbackServer
from sealtrace.telemetry.sources import SpanRecord, open_source

from .servers import Collector, Jaeger
from .test_collector import files

pytestmark = pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")

SPOILT = "wombatspoiltwombat"
"""What the hostile processor below writes everywhere."""

OPEN = {"trace_metadata_keys": ("tier",), "replay_url": "https://replay.example/base"}
SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "most open": OPEN, "sensitive flag off": {}}


class Spoiler(SpanProcessor):
    """An application's processor that writes content on our spans, wherever a span has room for it."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attribute("gen_ai.input.messages", SPOILT)
        span.set_attribute("note", SPOILT)
        span.set_attribute(SPOILT, 1)
        span.add_event(SPOILT, {"note": SPOILT})
        span.record_exception(ValueError(SPOILT))
        span.add_link(SpanContext(7, 7, is_remote=True), {"note": SPOILT})
        span.set_status(Status(StatusCode.ERROR, SPOILT))
        span.update_name(SPOILT)


def ours(collector: Collector, trace_ids: set[str]) -> list[SpanRecord]:
    """What arrived of these traces."""
    source = open_source(files(collector))
    return [span for trace_id in trace_ids for span in source.trace(trace_id)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("spoilt", [False, True], ids=["as we are", "spoilt"])
def test_no_content_behind_the_collector(
    spoilt: bool,
    setting: str,
    mode: str,
    model: str,
    vendor: LoopbackServer,
    collector: Collector,
    jaeger: Jaeger,
    vault_url: str,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., Any],
) -> None:
    """No canary is in the collector's files or in Jaeger's answers, whatever the settings, spoilt or not."""
    provider = TracerProvider(resource=Resource.create({"service.name": "canaries"}), shutdown_on_exit=False)
    if spoilt:
        provider.add_span_processor(Spoiler())
    sent = _Ids()
    provider.add_span_processor(sent)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"http://{collector.http}/v1/traces")))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    canaries = Canaries()
    sealtrace.instrument(vault_url, key="a key that is only used in tests", **SETTINGS[setting])
    Desk(model, mode, canaries, vendor, sensitive=setting != "sensitive flag off").run_all()
    assert sealtrace.flush()
    sealtrace.uninstrument()
    provider.shutdown()

    spans = eventually(lambda: got if len(got := ours(collector, sent.trace_ids)) == sent.count else None)
    assert len(spans) > 20
    assert {"model", "tool", "agent", "trace", "seal"} <= {span.attributes.get("sealtrace.span.kind") for span in spans}
    answers = [path.read_bytes() for path in collector.out.rglob("*") if path.is_file()]
    for trace_id in sent.trace_ids:
        eventually(lambda trace_id=trace_id: open_source(jaeger.url).trace(trace_id))
        for path in (f"/api/v3/traces/{trace_id}", f"/api/traces/{trace_id}"):
            with urllib.request.urlopen(f"http://{jaeger.http}{path}", timeout=20) as answer:
                answers.append(answer.read())
    assert canaries.names(found(canaries.of.values(), *answers)) == set()
    assert found([SPOILT], *answers) == set()


class _Ids(SpanProcessor):
    """Counts what is sent."""

    def __init__(self) -> None:
        self.trace_ids: set[str] = set()
        self.count = 0

    def on_end(self, span: Any) -> None:
        self.trace_ids.add(f"{span.context.trace_id:032x}")
        self.count += 1
