"""Other instrumentations beside ours: HTTP clients and a database inside tools, a server around the run."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from agents import Agent, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI
from opentelemetry import trace
from opentelemetry.instrumentation.dbapi import trace_integration, unwrap_connect
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor, HTTPXClientInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import sealtrace
from loopback import items
from loopback.items import reply
from loopback.server import LoopbackServer

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[ReadableSpan]]]:
    """Everything instrumented against one provider; what has ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    http, http2 = HTTPXClientInstrumentor(), HTTPX2ClientInstrumentor()
    for instrumentor in (http, http2):
        instrumentor.instrument(tracer_provider=provider)
    trace_integration(sqlite3, "connect", "sqlite", tracer_provider=provider)
    yield lambda: list(exporter.get_finished_spans())
    unwrap_connect(sqlite3, "connect")
    for instrumentor in (http2, http):
        instrumentor.uninstrument()
    provider.shutdown()


def _agent(server: LoopbackServer, client: AsyncOpenAI) -> Agent[Any]:
    @function_tool
    async def fetch_order(number: int) -> str:
        """Asks another service."""
        async with httpx.AsyncClient() as http:
            answer = await http.post(f"{server.url}/orders/{number}", json={})
        return str(answer.status_code)

    @function_tool
    def count_orders(number: int) -> int:
        """Asks the database, on a thread of its own as sync tools do."""
        connection = sqlite3.connect(":memory:")
        try:
            cursor = connection.cursor()
            cursor.execute("SELECT ?", (number,))
            return int(cursor.fetchone()[0])
        finally:
            connection.close()

    return Agent("clerk", tools=[fetch_order, count_orders], model=OpenAIResponsesModel("gpt-5", client))


async def _serve(server: LoopbackServer) -> None:
    async with AsyncOpenAI(
        api_key="sk-loopback", base_url=f"{server.url}/v1", http_client=httpx2.AsyncClient()
    ) as client:
        await Runner.run(_agent(server, client), "how many?")


@pytest.fixture
def ran(
    spans: Callable[[], list[ReadableSpan]], server: LoopbackServer, vault_url: str
) -> tuple[list[ReadableSpan], LoopbackServer]:
    """A run with two parallel tools inside an incoming request's span."""
    calls = (items.call("fetch_order", {"number": 1}, "call_1"), items.call("count_orders", {"number": 2}, "call_2"))
    server.play([reply(*calls), reply(items.message("two"))])
    sealtrace.instrument(vault_url)
    incoming = trace.SpanContext(int(TRACE, 16), int(PARENT, 16), is_remote=True, trace_flags=trace.TraceFlags(1))
    context = trace.set_span_in_context(trace.NonRecordingSpan(incoming))
    with trace.get_tracer("server").start_as_current_span("POST /chat", context=context, kind=trace.SpanKind.SERVER):
        asyncio.run(_serve(server))
    assert sealtrace.flush()
    sealtrace.uninstrument()
    return spans(), server


def _parent(span: ReadableSpan, among: list[ReadableSpan]) -> ReadableSpan | None:
    wanted = span.parent.span_id if span.parent is not None else None
    return next((other for other in among if other.context.span_id == wanted), None)


def _path(span: ReadableSpan, among: list[ReadableSpan]) -> list[str]:
    """Names from the root to this span."""
    above = _parent(span, among)
    return [*(_path(above, among) if above is not None else []), span.name]


def test_spans_of_others_nest_where_they_belong(ran: tuple[list[ReadableSpan], LoopbackServer]) -> None:
    """HTTP and SQL spans are under the tool that made them, model requests under their call, all under the server's."""
    spans, server = ran
    inside = {
        tuple(_path(span, spans)[-2:])
        for span in spans
        if span.instrumentation_scope.name not in ("sealtrace", "server")
    }
    assert inside == {
        ("execute_tool fetch_order", "POST"),
        ("execute_tool count_orders", "SELECT"),
        ("chat gpt-5", "POST"),
    }
    assert {_path(span, spans)[0] for span in spans} == {"POST /chat"}
    assert {f"{span.context.trace_id:032x}" for span in spans} == {TRACE}
    assert len(server.model_requests) == 2


def test_usage_is_counted_once(ran: tuple[list[ReadableSpan], LoopbackServer]) -> None:
    """Tokens are on the model spans, once a call, and their sum on the root; on no other span, of ours or of others."""
    spans, _ = ran
    key = "gen_ai.usage.input_tokens"
    by_kind: dict[Any, list[int]] = {}
    for span in spans:
        if key in span.attributes:
            by_kind.setdefault(span.attributes.get("sealtrace.span.kind"), []).append(span.attributes[key])
    assert set(by_kind) == {"model", "trace"}
    assert len(by_kind["model"]) == 2
    assert by_kind["trace"] == [sum(by_kind["model"])]
    providers = [span.attributes["gen_ai.provider.name"] for span in spans if span.name == "chat gpt-5"]
    assert providers == ["openai", "openai"]
    assert sum(by_kind["model"]) > 0


def test_the_vendor_is_sent_traceparent(ran: tuple[list[ReadableSpan], LoopbackServer]) -> None:
    """An instrumented HTTP client sends the trace's id to the model's vendor, as the documentation warns."""
    _, server = ran
    headers = [dict(request.headers) for request in server.model_requests]
    assert all(TRACE in {name.lower(): value for name, value in found.items()}["traceparent"] for found in headers)
