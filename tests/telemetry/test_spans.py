"""The span writer: names, kinds, statuses, and nothing that is not allowed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, ClassVar

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from sealtrace.settings import Settings
from sealtrace.telemetry import SpanWriter
from sealtrace.telemetry.metadata import SCHEMA_URL

from .conftest import gate

NAMES = [
    ("trace", {"sealtrace.workflow.name": "Refunds"}, "invoke_workflow Refunds", SpanKind.INTERNAL),
    ("task", {"sealtrace.workflow.name": "Refunds"}, "task Refunds", SpanKind.INTERNAL),
    ("turn", {"sealtrace.turn.index": 3}, "turn 3", SpanKind.INTERNAL),
    ("agent", {"gen_ai.agent.name": "triage"}, "invoke_agent triage", SpanKind.INTERNAL),
    ("model", {"gen_ai.request.model": "gpt-5"}, "chat gpt-5", SpanKind.CLIENT),
    ("tool", {"gen_ai.tool.name": "issue_refund"}, "execute_tool issue_refund", SpanKind.INTERNAL),
    ("handoff", {"sealtrace.handoff.to": "billing"}, "handoff billing", SpanKind.INTERNAL),
    ("guardrail", {"sealtrace.guardrail.name": "no_pii"}, "guardrail no_pii", SpanKind.INTERNAL),
    ("custom", {"sealtrace.custom.name": "whatever the user wrote"}, "custom", SpanKind.INTERNAL),
    ("mcp_tools", {"sealtrace.mcp.server": "crm"}, "tools/list crm", SpanKind.INTERNAL),
    ("speech", {"gen_ai.request.model": "tts-1"}, "speech tts-1", SpanKind.CLIENT),
    ("speech_group", {}, "speech_group", SpanKind.INTERNAL),
    ("transcription", {}, "transcription", SpanKind.CLIENT),
]


@pytest.mark.parametrize(("kind", "attributes", "name", "span_kind"), NAMES)
def test_names_and_kinds(written: Any, kind: str, attributes: dict[str, Any], name: str, span_kind: SpanKind) -> None:
    """Each kind has its name, built from its attributes, and its OpenTelemetry kind."""
    span = written().one(kind, attributes)
    assert (span.name, span.kind) == (name, span_kind)
    assert span.attributes["sealtrace.span.kind"] == kind


def test_workflow_is_the_agent_of_the_root(written: Any) -> None:
    """The root is an agent invocation whose agent name is the workflow's, as GenAI 0.1.0 has it."""
    span = written().one("trace", {"sealtrace.workflow.name": "Refunds"})
    assert span.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert span.attributes["gen_ai.agent.name"] == "Refunds"


def test_scope_and_schema(written: Any) -> None:
    """The scope is ours and claims the GenAI schema."""
    scope = written().one("agent", {}).instrumentation_scope
    assert (scope.name, scope.schema_url) == ("sealtrace", SCHEMA_URL)


@pytest.mark.parametrize(
    ("kind", "late", "name"),
    [
        ("model", {"gen_ai.request.model": "gpt-5", "gen_ai.agent.name": "triage"}, "chat gpt-5"),
        ("handoff", {"sealtrace.handoff.to": "billing"}, "handoff billing"),
        ("tool", {"gen_ai.agent.name": "triage"}, "execute_tool"),
    ],
)
def test_late_names(written: Any, kind: str, late: dict[str, Any], name: str) -> None:
    """What belongs in the name and is known only at the end still gets there; nothing else does."""
    assert written().one(kind, {}, end_attributes=late).name == name


def test_secret_name_becomes_a_tag(written: Any) -> None:
    """A tool named like a secret shows as a keyed tag in the attribute and in the span's name."""
    secret = "sk-proj-abcdefghijklmnopqrstuvwx0123456789"
    w = written()
    span = w.one("tool", {"gen_ai.tool.name": secret})
    tag = span.attributes["gen_ai.tool.name"]
    assert tag == w.gate.tag(secret)
    assert span.name == f"execute_tool {tag}"


def test_error_is_a_type_without_text(written: Any) -> None:
    """A failure sets the status and error.type; no description, no event, no link."""
    span = written().one("tool", {}, error_type="ValueError")
    assert span.attributes["error.type"] == "ValueError"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert (span.events, span.links) == ((), ())


@pytest.mark.parametrize("hostile", ["no such order 4711", "a@b.example", "", "x" * 200, "AKIAIOSFODNN7EXAMPLE", 7])
def test_error_type_is_no_way_out_for_text(written: Any, hostile: Any) -> None:
    """What is not a class name, or looks like a secret, is `_OTHER`."""
    assert written().one("tool", {}, error_type=hostile).attributes["error.type"] == "_OTHER"


def test_refused_attributes_are_counted(written: Any) -> None:
    """An unknown key and a wrong type do not get through and are counted; None is no attribute."""
    w = written()
    span = w.one("tool", {"gen_ai.tool.call.arguments": "{}", "sealtrace.seq": "7", "gen_ai.tool.name": None})
    assert set(span.attributes) == {"sealtrace.span.kind", "gen_ai.operation.name"}
    assert w.writer.refused == 2


class _Hostile:
    """Whoever asks this object anything finds out."""

    asked: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        _Hostile.asked.append(name)
        raise asyncio.CancelledError(name)

    def __str__(self) -> str:
        _Hostile.asked.append("__str__")
        return "content"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        _Hostile.asked.append("__eq__")
        return True

    __hash__ = None  # type: ignore[assignment]


def test_foreign_objects_are_left_alone(written: Any) -> None:
    """No method of a foreign object is called, whatever key it is under."""
    from sealtrace.telemetry import ATTRIBUTES

    w = written(trace_metadata_keys=("tenant",), replay_url="http://127.0.0.1:1")
    _Hostile.asked.clear()
    span = w.one("custom", dict.fromkeys([*ATTRIBUTES, "sealtrace.metadata.tenant", "nothing"], _Hostile()))
    assert _Hostile.asked == []
    assert dict(span.attributes) == {"sealtrace.span.kind": "custom", "error.type": "_OTHER"}


def test_seal_is_a_child_of_the_root(written: Any) -> None:
    """The seal span hangs from the given root, has next to no length, and carries what was stored."""
    w = written()
    root = w.writer.start("trace", {}, parent=Context())
    w.writer.seal(root.get_span_context(), {"sealtrace.run.events": 9, "sealtrace.run.merkle_root": "ab" * 32})
    (seal,) = w.spans
    assert seal.name == "sealtrace.seal"
    assert seal.parent.span_id == root.get_span_context().span_id
    assert seal.end_time - seal.start_time == 1
    assert seal.attributes["sealtrace.run.merkle_root"] == "ab" * 32


def test_no_seal_without_a_root(written: Any) -> None:
    """Where there is no valid root the seal makes no trace of its own."""
    w = written()
    w.writer.seal(trace.INVALID_SPAN_CONTEXT, {"sealtrace.run.events": 9})
    assert w.spans == []


class _Breaks(SpanProcessor):
    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        raise RuntimeError("start")

    def on_end(self, span: Any) -> None:
        raise asyncio.CancelledError


def test_broken_span_processor_stays_out_of_the_run() -> None:
    """An application's processor that raises, cancellation included, does not reach the caller."""
    provider = TracerProvider()
    provider.add_span_processor(_Breaks())
    writer = SpanWriter(provider, gate(), Settings())
    span = writer.start("agent", {}, parent=None)
    writer.set(span, {"sealtrace.seq": 1})
    writer.end(span, error_type="ValueError")
    writer.seal(trace.SpanContext(1, 1, is_remote=False), {})
    assert not span.get_span_context().is_valid


def test_unsampled_spans_keep_their_ids() -> None:
    """A sampled-out span still has valid ids, so that the vault's events can name it."""
    writer = SpanWriter(TracerProvider(sampler=ALWAYS_OFF), gate(), Settings())
    span = writer.start("agent", {"gen_ai.agent.name": "triage"}, parent=Context())
    writer.end(span, {"no such": 1})
    assert span.get_span_context().is_valid
    assert not span.is_recording()


def test_global_provider_is_found_late_and_never_set() -> None:
    """Without a provider nothing is written and none is made; one that is set later is used."""
    code = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sealtrace.settings import Settings
from sealtrace.telemetry import SpanWriter

class Gate:
    def clean(self, value): return value
    def tag(self, value): return "tag:abcdefghijkl"

writer = SpanWriter(None, Gate(), Settings())
early = writer.start("agent", {}, parent=None)
writer.end(early)
assert not early.get_span_context().is_valid
assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
writer.end(writer.start("agent", {}, parent=None))
assert [span.name for span in exporter.get_finished_spans()] == ["invoke_agent"]
assert exporter.get_finished_spans()[0].instrumentation_scope.schema_url
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
