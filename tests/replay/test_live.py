"""Where a live model comes in: comparing it on recorded results, and going on for real from an event."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, function_tool

import sealtrace
from replay.world import KEY, World, call, record, say
from sealtrace.replay.report import Mode, Outcome

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])


async def shop(world: World) -> Any:
    """Two calls, one after the other, and an answer."""

    @function_tool
    def look(item: str) -> str:
        """Look."""
        world.done.append(f"look {item}")
        return f"{item} is there"

    @sealtrace.effect("external")
    @function_tool
    def buy(item: str) -> str:
        """Buy."""
        world.done.append(f"buy {item}")
        return f"{item} is yours"

    steps = [[call("look", {"item": "lamp"}, "call_1")], [call("buy", {"item": "lamp"}, "call_2")], [say("Bought.")]]
    agent = Agent(name="A", instructions="x", tools=[look, buy], model=world.model(*world.changed("steps", steps)))
    return await world.run(agent, "Buy a lamp.")


def compared(run: Any, stream: bool, steps: Any = None) -> tuple[Any, World]:
    """A comparison with a live model that answers with these."""
    world = World(stream=stream, change={"steps": steps} if steps is not None else {})
    with sealtrace.compare(run, key=KEY) as session:
        asyncio.run(shop(world))
    return session.report, world


@STREAM
def test_a_model_that_answers_as_before_compares_as_the_same(vault_url: str, stream: bool) -> None:
    """Other ids, the same answers: the same, labelled a live comparison, with no tool run."""
    run = record(shop, vault_url, world=World(stream=stream))
    other_ids = [
        [call("look", {"item": "lamp"}, "x_1")],
        [call("buy", {"item": "lamp"}, "x_2")],
        [say("Bought.", "m9")],
    ]
    report, world = compared(run, stream, other_ids)
    assert (report.mode, report.outcome) == (Mode.COMPARE, Outcome.SAME)
    assert world.done == []
    assert (report.receipt.surfaces["model"].live, report.receipt.surfaces["tools"].served) == (3, 2)
    assert report.receipt.network_touched


@STREAM
def test_a_model_that_answers_otherwise_is_a_model_difference(vault_url: str, stream: bool) -> None:
    """Reported at the answer, class MODEL, and not raised."""
    run = record(shop, vault_url, world=World(stream=stream))
    steps = [[call("look", {"item": "lamp"}, "x_1")], [call("buy", {"item": "lamp"}, "x_2")], [say("It is yours.")]]
    report, _ = compared(run, stream, steps)
    assert report.outcome is Outcome.DIVERGED
    assert str(report.divergence.cause) == "MODEL"
    assert report.divergence.path == "$.response.output[0].content[0].text"


@STREAM
def test_a_call_that_was_not_recorded_ends_the_comparison(vault_url: str, stream: bool) -> None:
    """There is no result to serve, and the tool is not run to get one."""
    run = record(shop, vault_url, world=World(stream=stream))
    report, world = compared(run, stream, [[call("buy", {"item": "house"}, "x_1")], [say("Bought.")]])
    assert str(report.divergence.cause) == "MODEL"
    assert world.done == []
    assert report.receipt.surfaces["tools"].refused == 1


@STREAM
def test_resume_serves_up_to_an_event_and_is_live_from_there(vault_url: str, stream: bool) -> None:
    """Effects before the event are not repeated, those after it are made, and the report says where."""
    run = record(shop, vault_url, world=World(stream=stream))
    point = next(event.seq for event in run.events if event.kind == "generation" and event.ordinal == 1)
    world = World(stream=stream, change={"steps": [[call("buy", {"item": "desk"}, "y_1")], [say("A desk then.")]]})
    with sealtrace.resume(run, at=point, key=KEY) as session:
        result = asyncio.run(shop(world))
    assert result.final_output == "A desk then."
    assert world.done == ["buy desk"]
    report = session.report
    assert (report.mode, report.outcome, report.live_from) == (Mode.RESUME, Outcome.SAME, point)
    assert (report.receipt.surfaces["model"].served, report.receipt.surfaces["model"].live) == (1, 2)


def test_a_resume_may_be_kept_from_effects(vault_url: str) -> None:
    """Only declared reads allowed: a purchase after the event is refused, not made."""
    run = record(shop, vault_url)
    point = next(event.seq for event in run.events if event.kind == "generation" and event.ordinal == 1)
    world = World(change={"steps": [[call("buy", {"item": "desk"}, "y_1")], [say("A desk then.")]]})
    with (
        pytest.raises(sealtrace.SealtraceError, match="external"),
        sealtrace.resume(run, at=point, allow=["read"], key=KEY),
    ):
        asyncio.run(shop(world))
    assert world.done == []


def test_what_comes_before_the_event_is_still_compared(vault_url: str) -> None:
    """A resume of changed code diverges before it goes live."""
    run = record(shop, vault_url)
    point = next(event.seq for event in run.events if event.kind == "generation" and event.ordinal == 1)

    async def other(world: World) -> Any:
        return await world.run(Agent(name="A", instructions="other", model=world.model([say("hi")])), "Buy a lamp.")

    with pytest.raises(sealtrace.ReplayDiverged), sealtrace.resume(run, at=point, key=KEY):
        asyncio.run(other(World()))
