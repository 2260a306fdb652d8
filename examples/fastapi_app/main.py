"""A support service: one HTTP request, one trace, the agent's spans under the server's span.

    SEALTRACE_VAULT=file:///tmp/vault uvicorn examples.fastapi_app.main:create_app --factory

    curl -X POST localhost:8000/tickets -H 'content-type: application/json' -d '{"text": "Where is my parcel?"}'

Nothing in the handler is about tracing. The server's span comes from FastAPI's instrumentation, the
agent's from sealtrace; they meet because both use the current OpenTelemetry context. If the caller
sends a `traceparent` header, all of it is part of the caller's trace.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic import BaseModel

import sealtrace


class Ticket(BaseModel):
    """What the customer wrote."""

    text: str


class Answer(BaseModel):
    """What the agent answered, and where to find the run."""

    text: str
    trace_id: str


@function_tool
async def parcel_status(number: str) -> str:
    """Look a parcel up."""
    return f"{number} is at the depot in Graz, call +43 316 555 0199"


def build_agent() -> Agent:
    # Scripted, so that the example needs no key; leave `model` out to use a real one.
    script = ScriptedModel(
        [
            [function_call("parcel_status", {"number": "AT-77"}, call_id="call_1")],
            [assistant_message("Your parcel is at the depot in Graz.")],
        ]
    )
    return Agent(
        name="Parcel desk", instructions="Answer questions about parcels.", tools=[parcel_status], model=script
    )


def collector() -> TracerProvider:
    """The application's tracer provider: to OTEL_EXPORTER_OTLP_ENDPOINT, localhost by default."""
    provider = TracerProvider(resource=Resource.create({"service.name": "parcel-desk"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def create_app(provider: TracerProvider | None = None) -> FastAPI:
    """The service.

    Args:
        provider: Where spans go; `collector()` by default.
    """
    tracer_provider = provider or collector()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sealtrace.instrument(tracer_provider=tracer_provider)
        yield
        sealtrace.uninstrument()  # stores what waits
        tracer_provider.force_flush()

    app = FastAPI(lifespan=lifespan)

    @app.post("/tickets")
    async def answer(ticket: Ticket) -> Answer:
        result = await Runner.run(build_agent(), ticket.text)
        context = trace.get_current_span().get_span_context()
        return Answer(text=str(result.final_output), trace_id=f"{context.trace_id:032x}")

    FastAPIInstrumentor.instrument_app(app, tracer_provider=tracer_provider)
    return app
