"""A recorded run that follows changed code."""

from __future__ import annotations

import pytest
from agents import Agent, ModelSettings, function_tool

from replay.world import KEY, Untouchable, World, call, record, say, support
from sealtrace.errors import GoldenError
from sealtrace.event import Kind
from sealtrace.replay.accept import follow
from sealtrace.replay.entry import rerun_entry
from sealtrace.replay.report import Outcome


@function_tool
def ping(x: int) -> str:
    """Ping."""
    return f"pong {x}"


@function_tool
def other(x: int) -> str:
    """Something else."""
    return "x"


def _agent(model, **options):
    given = {"name": "Solo", "instructions": "Be brief.", "tools": [ping], "model": model}
    return Agent(**(given | options))


@pytest.fixture
def run(vault_url):
    """Two turns with a tool."""

    async def scenario(world):
        return await world.run(_agent(world.model([call("ping", {"x": 1}, "call_1")], [say("pong")])), "go")

    return record(scenario, vault_url)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({}, []),
        ({"instructions": "Be long."}, ["$.request.instructions"]),
        ({"instructions": None}, ["$.request.instructions"]),
        ({"tools": [ping, other]}, ["$.request.tools[1]"]),
        ({"tools": [other, ping]}, ["$.request.tools[0]"]),
        ({"model_settings": ModelSettings(temperature=0.5)}, ["$.request.settings.temperature"]),
        ({"handoffs": [Agent(name="Next")]}, ["$.request.handoffs"]),
    ],
)
def test_changed_requests_are_followed(run, change, what):
    """What the code asks now replaces what was asked, in every turn, and it reruns the same from then on."""
    entry = _agent(Untouchable(), **change)
    accepted = follow(run, entry, key=KEY)
    assert list(accepted.what) == [f"event 1 generation {path}" for path in what]
    assert rerun_entry(accepted.run, entry, key=KEY).report.outcome is Outcome.SAME


def test_answers_stay_the_recorded_ones(run):
    """Answers, calls and results are not touched, and the run that was given is not either."""
    before = [event.payload for event in run.events]
    accepted = follow(run, _agent(Untouchable(), instructions="Be long."), key=KEY)
    for event, old in zip(accepted.run.events, run.events, strict=True):
        if event.kind is Kind.GENERATION:
            assert event.payload["response"] == old.payload["response"]
        else:
            assert event.payload == old.payload
    assert before == [event.payload for event in run.events]
    assert run.events[1].payload["request"]["instructions"] == "Be brief."


@pytest.mark.parametrize(
    "change", [{"tools": []}, {"tools": [other]}, {"name": "Other", "tools": []}, {"output_type": int}]
)
def test_what_has_no_answer_is_refused(run, change):
    """Where the recorded answers no longer fit the code there is nothing to accept."""
    with pytest.raises(GoldenError, match="record the run again"):
        follow(run, _agent(Untouchable(), **change), key=KEY)


@pytest.mark.parametrize(
    ("change", "value"), [("rules", 8), ("clerk", "You look up."), ("instructions", "New."), ("input", "Refund A9.")]
)
def test_every_kind_of_event_is_followed(vault_url, change, value):
    """Guardrail verdicts, nested agents, instructions and inputs are followed alike."""
    run = record(support, vault_url)

    def entry():
        return support(World(live=False, change={change: value}))

    accepted = follow(run, entry, key=KEY)
    assert accepted.what
    assert rerun_entry(accepted.run, entry, key=KEY).report.outcome is Outcome.SAME


def test_a_tripped_guardrail_is_refused(vault_url):
    """A verdict that stops the run leaves recorded events that nothing asks for."""
    run = record(support, vault_url)
    with pytest.raises(GoldenError):
        follow(run, lambda: support(World(live=False, change={"tripped": True})), key=KEY)
