"""Runs to record and to rerun: the same agents, with a scripted model or with none at all."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    Model,
    ModelSettings,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.testing import ModelStep, ScriptedModel
from agents.tracing import trace
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
)

import sealtrace

KEY = "0123456789abcdef0123456789abcdef"
RUN_ID = "trace_" + "a" * 32


def say(text: str, item_id: str = "msg_1") -> ResponseOutputMessage:
    """A model's text answer."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id=item_id, role="assistant", status="completed", type="message", content=[part])


def call(name: str, arguments: Any, call_id: str) -> ResponseFunctionToolCall:
    """A model's tool call."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ResponseFunctionToolCall(
        type="function_call", call_id=call_id, name=name, arguments=text, id=f"fc_{call_id}"
    )


class Scripted(ScriptedModel):
    """A scripted model with a name, which can stream every kind of item."""

    model = "scripted-1"

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The SDK's own stream, or for items it has no stream for, the items and the end."""
        step = self._steps[0] if self._steps else None
        if step is None or step.error is not None or all(isinstance(item, _PLAIN) for item in step.output):
            async for event in super().stream_response(*args, **kwargs):
                yield event
            return
        answer = await self.get_response(*args, **kwargs)
        for index, item in enumerate(answer.output):
            yield ResponseOutputItemDoneEvent.model_construct(
                type="response.output_item.done", item=item, output_index=index, sequence_number=index
            )
        response = Response.model_construct(
            id=answer.response_id or "resp_1", created_at=0, model="scripted-1", object="response", output=answer.output
        )
        response.usage = None
        yield ResponseCompletedEvent.model_construct(
            type="response.completed", response=response, sequence_number=len(answer.output)
        )


_PLAIN = (ResponseFunctionToolCall, ResponseOutputMessage)


class Untouchable(Model):
    """A model that must never be asked."""

    model = "scripted-1"

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a model was asked in a rerun")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise AssertionError("a model was asked in a rerun")
        yield


@dataclass
class World:
    """What a scenario stands on.

    Attributes:
        live: Whether models answer; in a rerun they must not be asked.
        stream: Whether runs are streamed.
        done: What tools, callbacks and servers really did.
        change: Named changes to the code, for reruns that must diverge.
    """

    live: bool = True
    stream: bool = False
    done: list[str] = field(default_factory=list)
    change: dict[str, Any] = field(default_factory=dict)
    delay: float = 0.0
    seed: int = 0

    def model(self, *steps: Any) -> Model:
        """A model that answers with these, turn by turn; an exception is raised."""
        if not self.live:
            return Untouchable()
        return Scripted([step if isinstance(step, Exception) else ModelStep(output=step) for step in steps])

    async def run(self, agent: Any, given: Any, **options: Any) -> Any:
        """One run, streamed or not."""
        if not self.stream:
            return await Runner.run(agent, given, **options)
        result = Runner.run_streamed(agent, given, **options)
        async for _ in result.stream_events():
            pass
        return result

    async def pause(self) -> None:
        """Up to `delay` seconds, by the seed."""
        if self.delay:
            await asyncio.sleep(random.Random(f"{self.seed}{len(self.done)}").random() * self.delay)

    def changed(self, name: str, default: Any) -> Any:
        """What the code has here, unless the test changed it."""
        return self.change.get(name, default)


Scenario = Callable[[World], Awaitable[Any]]


def record(scenario: Scenario, vault: str, *, stream: bool = False, world: World | None = None, **settings: Any) -> Any:
    """Record a scenario in a local vault and load it; what the scenario raises is swallowed."""
    sealtrace.instrument(vault=vault, **{"key": KEY, **settings})
    made = world or World(stream=stream)

    async def go() -> None:
        with trace("scenario", trace_id=RUN_ID):
            try:
                await scenario(made)
            except Exception as error:
                made.done.append(f"raised {type(error).__name__}")

    asyncio.run(go())
    assert sealtrace.flush(20)
    sealtrace.uninstrument()
    return sealtrace.load(RUN_ID, vault=vault)


def again(scenario: Scenario, run: Any, *, world: World | None = None, **options: Any) -> tuple[Any, World]:
    """Rerun a scenario; gives the session, and the world it left. Recorded failures are swallowed."""
    made = world or World(live=False)
    made.live = False
    with sealtrace.rerun(run, **{"key": KEY, **options}) as session:

        async def go() -> None:
            try:
                await scenario(made)
            except Exception as error:
                made.done.append(f"raised {type(error).__name__}")

        asyncio.run(go())
    return session, made


# scenarios


async def support(world: World) -> Any:
    """Triage hands over to a refund agent with tools and an agent as a tool; guardrails of all four kinds."""

    @function_tool
    async def weather(city: str) -> str:
        """Weather in a city."""
        await world.pause()
        world.done.append(f"weather {city}")
        return f"sunny in {city}, says ann@example.org"

    @function_tool
    def refund(order: str, amount: int) -> dict[str, Any]:
        """Pay an order back."""
        world.done.append(f"refund {order}")
        return {"paid": amount, "zeta": [1, 2.5, True, None], "alpha": order}

    @function_tool
    def broken(x: int) -> str:
        """Always fails."""
        world.done.append("broken")
        raise ValueError(f"cannot {x}")

    @input_guardrail
    async def polite(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput({"rules": world.changed("rules", 7)}, world.changed("tripped", False))

    @output_guardrail
    async def harmless(ctx: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput({"length": len(output)}, False)

    @tool_input_guardrail
    def sane(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.allow(output_info="sane")

    @tool_output_guardrail
    def clean(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.allow(output_info="clean")

    refund.tool_input_guardrails = [sane]
    refund.tool_output_guardrails = [clean]

    clerk = Agent(
        name="Clerk",
        instructions=world.changed("clerk", "You look things up."),
        model=world.model([say("order 7 is paid")]),
    )

    async def on_handoff(ctx: Any) -> None:
        world.done.append("on_handoff")

    desk = Agent(
        name="Refund desk",
        instructions="You pay back.",
        tools=[refund, broken, clerk.as_tool("ask_clerk", "Ask the clerk.")],
        output_guardrails=[harmless],
        model_settings=ModelSettings(temperature=0.25),
        model=world.model(
            [
                call("broken", {"x": 1}, "call_3"),
                call("refund", {"order": "A7", "amount": 12}, "call_4"),
                call("ask_clerk", {"input": "is order 7 paid?"}, "call_5"),
            ],
            [say("All done.")],
        ),
    )
    triage = Agent(
        name="Triage",
        instructions=world.changed("instructions", "You route."),
        tools=[weather],
        handoffs=[handoff(desk, on_handoff=on_handoff)],
        input_guardrails=[polite],
        model=world.model(
            [call("weather", {"city": "Paris"}, "call_1"), call("weather", {"city": "Rome"}, "call_2")],
            [call("transfer_to_refund_desk", {}, "call_h")],
        ),
    )
    return await world.run(triage, world.changed("input", "Refund order A7 for ann@example.org, please."))


def plain_config(**options: Any) -> RunConfig:
    """A run configuration."""
    return RunConfig(**options)
