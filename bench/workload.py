"""What is run: triage with an input guardrail, a handoff, two parallel tools, a structured answer.

Runs in the measured process, beside whichever tracing is under test, so it imports the Agents SDK and
nothing of sealtrace. The model answers from memory, in one of two ways:

* `client`: the SDK's own Responses model and the vendor's client over an in-memory transport; the requests
  and answers are built and parsed as in production, only the network is missing.
* `own`: a model class of the application's, which builds nothing; the least work a run can be.

Either lets a few milliseconds pass before it answers, as any model does many times over: that costs no CPU,
and background threads get their turn when they would, not in the middle of the agent's work.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import agents
from agents.tracing import response_span
from openai import AsyncOpenAI
from openai.types.responses import Response
from pydantic import BaseModel

LATENCY = 0.003  # seconds
QUESTION = "Where is order A-1001 of jane.roe@example.com, and how do I send it back?"
NOTE = "Please read the terms of your order carefully before you return it. " * 25  # a tool result of about 2 KB


class Answer(BaseModel):
    """The structured output."""

    text: str
    order: str
    refundable: bool


def _call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def _message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


_ANSWER = Answer(text="It is in Leipzig; send it back within 30 days.", order="A-1001", refundable=True)
_STEPS: list[list[dict[str, Any]]] = [
    [_call("transfer_to_orders", "call_1")],
    [
        _call("find_order", "call_2", order="A-1001", email="jane.roe@example.com"),
        _call("return_terms", "call_3", country="DE"),
    ],
    [_message(_ANSWER.model_dump_json())],
]


def _answer(step: int) -> dict[str, Any]:
    return {
        "id": f"resp_{step}",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed",
        "model": "gpt-bench",
        "output": _STEPS[step],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 420,
            "output_tokens": 40,
            "total_tokens": 460,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _step(items: list[Any]) -> int:
    """Which answer is next, read from the request: a run needs no counter, so runs may overlap."""
    return min(sum(1 for item in items if item.get("type") == "function_call_output"), 2)


def _client_model() -> agents.Model:
    import httpx2

    bodies = [json.dumps(_answer(step)).encode() for step in range(3)]

    async def handle(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(LATENCY)
        asked = json.loads(request.content)["input"]
        step = 0 if isinstance(asked, str) else _step(asked)
        return httpx2.Response(200, content=bodies[step], headers={"content-type": "application/json"})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    client = AsyncOpenAI(api_key="sk-bench", base_url="http://127.0.0.1:9/v1", http_client=http)
    return agents.OpenAIResponsesModel("gpt-bench", client)


class _OwnModel(agents.Model):
    """Hands out answers that were parsed beforehand, in the span that the SDK's own models open."""

    def __init__(self) -> None:
        self._answers = [Response.model_validate(_answer(step)) for step in range(3)]
        self._usage = agents.Usage(requests=1, input_tokens=420, output_tokens=40, total_tokens=460)

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name
        *args: Any,
        **kwargs: Any,
    ) -> agents.ModelResponse:
        with response_span() as span:
            await asyncio.sleep(LATENCY)
            done = self._answers[0 if isinstance(input, str) else _step(input)]
            span.span_data.response = done
            span.span_data.input = input
            return agents.ModelResponse(output=done.output, usage=self._usage, response_id=done.id)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("the benchmark does not stream")


MODELS: dict[str, Callable[[], agents.Model]] = {"client": _client_model, "own": _OwnModel}


@agents.function_tool
def find_order(order: str, email: str) -> str:
    """Find an order by its number and the customer's address."""
    return json.dumps({"order": order, "email": email, "status": "shipped", "place": "Leipzig", "note": NOTE})


@agents.function_tool
def return_terms(country: str) -> str:
    """The terms of return that hold in a country."""
    return json.dumps({"country": country, "days": 30, "terms": NOTE})


@agents.input_guardrail
async def on_topic(context: Any, agent: Any, given: Any) -> agents.GuardrailFunctionOutput:
    """Let only questions about orders through."""
    return agents.GuardrailFunctionOutput(output_info={"topic": "orders"}, tripwire_triggered=False)


def build(model: str) -> Callable[[], Any]:
    """A function that returns the coroutine of one run."""
    engine = MODELS[model]()
    orders = agents.Agent(
        name="orders",
        instructions="Answer questions about orders. " * 20,
        model=engine,
        tools=[find_order, return_terms],
        output_type=Answer,
    )
    triage = agents.Agent(
        name="triage",
        instructions="Hand each question to the agent that can answer it. " * 10,
        model=engine,
        handoffs=[agents.handoff(orders, tool_name_override="transfer_to_orders")],
        input_guardrails=[on_topic],
    )

    async def once() -> None:
        result = await agents.Runner.run(triage, QUESTION)
        if result.final_output != _ANSWER or len(result.raw_responses) != 3:
            raise RuntimeError(f"the run did not go as written: {result.final_output!r}")

    return once
