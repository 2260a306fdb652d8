"""An unchanged run reruns without a divergence, however things race, a thousand times."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from agents import Agent, GuardrailFunctionOutput, function_tool, input_guardrail, output_guardrail

import sealtrace
from replay.world import KEY, World, call, record, say
from sealtrace.replay.report import Outcome

RECORDS, RERUNS = 20, 50


async def racing(world: World) -> Any:
    """Three parallel calls of one tool and two agents used as tools, guardrails of both kinds, all at random speed."""
    dice = random.Random(world.seed)

    async def pause() -> None:
        await asyncio.sleep(dice.random() * world.delay)

    @function_tool
    async def price(item: str) -> str:
        """Price of an item."""
        await pause()
        world.done.append(item)
        return f"{item} costs {len(item)}"

    @input_guardrail
    async def polite(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await pause()
        return GuardrailFunctionOutput("polite", False)

    @output_guardrail
    async def short(ctx: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        await pause()
        return GuardrailFunctionOutput(len(output), False)

    def instructions(text: str) -> Any:
        async def speak(ctx: Any, agent: Any) -> str:
            await pause()
            return text

        return speak

    def helper(name: str) -> Agent[Any]:
        return Agent(
            name=name,
            instructions=instructions(f"You are {name}."),
            tools=[price],
            input_guardrails=[polite],
            model=world.model(
                [call("price", {"item": f"{name} a"}, "call_1"), call("price", {"item": f"{name} b"}, "call_2")],
                [say(f"{name} knows")],
            ),
        )

    agent = Agent(
        name="Front",
        instructions=instructions("You ask around."),
        tools=[price, helper("Ann").as_tool("ann", "Ask Ann."), helper("Bob").as_tool("bob", "Ask Bob.")],
        input_guardrails=[polite],
        output_guardrails=[short],
        model=world.model(
            [
                call("price", {"item": "x"}, "call_1"),
                call("ann", {"input": "a?"}, "call_2"),
                call("price", {"item": "yy"}, "call_3"),
                call("bob", {"input": "b?"}, "call_4"),
                call("price", {"item": "zzz"}, "call_5"),
            ],
            [say("All asked.")],
        ),
    )
    return await world.run(agent, "What does it cost?")


def test_a_thousand_reruns_of_racing_runs_do_not_diverge(tmp_path: Any) -> None:
    """Every recording raced differently, and so does every rerun; none of it is a difference."""
    same = 0
    orders: set[tuple[str, ...]] = set()
    for number in range(RECORDS):
        world = World(stream=number % 2 == 1, delay=0.004, seed=number)
        run = record(racing, (tmp_path / str(number)).as_uri(), world=world)
        orders.add(tuple(world.done))
        assert len(world.done) == 7

        async def rerun(seed: int, run: Any = run, stream: bool = world.stream) -> Outcome:
            again = World(live=False, stream=stream, delay=0.002, seed=seed)
            with sealtrace.rerun(run, key=KEY) as session:
                await racing(again)
            assert again.done == []
            assert session.report.matched == session.report.total
            return session.report.outcome

        async def many(rerun: Any = rerun) -> list[Outcome]:
            return await asyncio.gather(*(rerun(seed) for seed in range(RERUNS)))

        same += asyncio.run(many()).count(Outcome.SAME)
    assert len(orders) > RECORDS // 2  # else nothing raced
    assert same == RECORDS * RERUNS == 1000
