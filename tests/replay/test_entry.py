"""Rerunning code by name."""

from __future__ import annotations

import asyncio
import sys

import pytest
from agents import Agent, Runner, SQLiteSession, function_tool
from agents.tracing import trace

import sealtrace
from replay.world import KEY, RUN_ID, Untouchable, World, call, record, say, support
from sealtrace.errors import NotComparable, SettingsError
from sealtrace.event import Kind
from sealtrace.replay.entry import find_entry, rerun_entry
from sealtrace.replay.report import Outcome


@function_tool
def ping(x: int) -> str:
    """Ping."""
    return f"pong {x}"


def _agent(world, *steps, **options):
    return Agent(name="Solo", instructions="Be brief.", model=world.model(*steps), tools=[ping], **options)


def _rerun(run, entry, **options):
    return rerun_entry(run, entry, key=KEY, **options)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])
def test_an_agent_is_run_as_it_was_run(vault_url, stream):
    """An agent is run on the recorded input, streamed where it was streamed."""

    async def scenario(world):
        return await world.run(_agent(world, [call("ping", {"x": 1}, "call_1")], [say("pong")]), "go")

    run = record(scenario, vault_url, stream=stream)
    done = _rerun(run, _agent(World(live=False)))
    assert done.report.outcome is Outcome.SAME
    assert done.error is None


def test_every_input_of_a_run_is_run(vault_url):
    """A run of several inputs is rerun input by input, with what the conversation was by then."""

    async def scenario(world):
        agent = _agent(world, [say("one")], [say("two")])
        first = await world.run(agent, "go")
        return await world.run(agent, [*first.to_input_list(), {"role": "user", "content": "on"}])

    run = record(scenario, vault_url)
    assert len([event for event in run.events if event.kind is Kind.INPUT]) == 2
    assert _rerun(run, _agent(World(live=False))).report.outcome is Outcome.SAME


def test_a_session_is_filled_from_the_record(vault_url):
    """A run that had a session with history gets one again; the user's store is not touched."""

    async def scenario(world):
        session = SQLiteSession("s")
        await session.add_items([{"role": "user", "content": "earlier"}, {"role": "assistant", "content": "yes"}])
        result = await world.run(_agent(world, [say("one")]), "go", session=session)
        session.close()
        return result

    run = record(scenario, vault_url)
    assert _rerun(run, _agent(World(live=False))).report.outcome is Outcome.SAME


def test_a_run_out_of_turns_is_out_of_turns_again(vault_url):
    """A run that ended for want of turns ends so again, and that is the same."""

    async def scenario(world):
        agent = _agent(world, *([call("ping", {"x": number}, f"call_{number}")] for number in range(3)))
        return await world.run(agent, "go", max_turns=2)

    done = _rerun(record(scenario, vault_url), _agent(World(live=False)))
    assert done.report.outcome is Outcome.SAME
    assert type(done.error).__name__ == "MaxTurnsExceeded"


def test_a_function_gets_the_input_or_nothing(vault_url):
    """A function is called with the first input if it takes one, with nothing if it takes none."""

    async def scenario(world):
        return await world.run(_agent(world, [say("one")]), "go")

    run = record(scenario, vault_url)
    agent = _agent(World(live=False))
    seen = []

    def synchronous(text):
        seen.append(text)
        asyncio.run(Runner.run(agent, text))

    async def asynchronous(*, verbose=False):
        await Runner.run(agent, "go")

    assert _rerun(run, synchronous).report.outcome is Outcome.SAME
    assert seen == ["go"]
    assert _rerun(run, asynchronous).report.outcome is Outcome.SAME
    with pytest.raises(NotComparable, match="the function wants text, more"):
        _rerun(run, lambda text, more: None)


def test_a_scenario_with_everything(vault_url):
    """Handoffs, guardrails, parallel tools and an agent as a tool, through a function."""
    run = record(support, vault_url)
    world = World(live=False)
    done = _rerun(run, lambda: support(world))
    assert done.report.outcome is Outcome.SAME
    assert world.done == []


def test_divergence_is_reported_not_raised(vault_url):
    """A changed agent gives a report, with what the code raised beside it."""

    async def scenario(world):
        return await world.run(_agent(world, [say("one")]), "go")

    run = record(scenario, vault_url)
    other = Agent(name="Solo", instructions="Be long.", model=Untouchable(), tools=[ping])
    report = _rerun(run, other).report
    assert (report.exit_code, report.divergence.path) == (2, "$.request.instructions")

    def broken():
        raise KeyError("x")

    done = _rerun(run, broken)
    assert (done.report.exit_code, type(done.error)) == (2, KeyError)


def test_a_run_that_starts_with_another_agent(vault_url):
    """Each input is run with the agent it was run with, found through handoffs."""
    second = Agent(name="Second", instructions="Two.")
    first = Agent(name="First", instructions="One.", handoffs=[second])

    async def scenario(world):
        first.model, second.model = world.model([say("one")]), world.model([say("two")])
        await world.run(first, "go")
        return await world.run(second, "go on")

    run = record(scenario, vault_url)
    first.model = second.model = Untouchable()
    assert _rerun(run, first).report.outcome is Outcome.SAME


def test_a_resumed_run_needs_a_function(vault_url):
    """A run resumed from a saved state cannot be rerun from an agent alone, and that is said."""

    @function_tool(needs_approval=True)
    def pay(x: int) -> str:
        """Pay."""
        return "paid"

    async def play():
        model = World().model([call("pay", {"x": 1}, "call_1")], [say("done")])
        agent = Agent(name="Solo", model=model, tools=[pay])
        with trace("scenario", trace_id=RUN_ID):
            result = await Runner.run(agent, "go")
            state = result.to_state()
            state.approve(result.interruptions[0])
            await Runner.run(agent, state)

    sealtrace.instrument(vault=vault_url, key=KEY)
    asyncio.run(play())
    assert sealtrace.flush(20)
    sealtrace.uninstrument()
    run = sealtrace.load(RUN_ID, vault=vault_url)
    with pytest.raises(NotComparable, match="resumed from a saved state"):
        _rerun(run, Agent(name="Solo", tools=[pay]))


def test_finding_code(tmp_path, monkeypatch):
    """Code is found beside the current directory, by dotted names; what is none is refused with a reason."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_entry.py").write_text("class Desk:\n    @staticmethod\n    def run(text): ...\n\nnothing = None\n")
    assert find_entry("own_entry:Desk.run", beside=tmp_path).__name__ == "run"
    for reference, message in [
        ("own_entry", "names no code"),
        (":x", "names no code"),
        ("own_entry:Desk.walk", "has no Desk.walk"),
        ("own_entry:nothing", "is a NoneType"),
        ("not_here:x", "cannot import not_here"),
    ]:
        with pytest.raises(SettingsError, match=message):
            find_entry(reference, beside=tmp_path)
    sys.modules.pop("own_entry")
