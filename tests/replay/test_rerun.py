"""Rerunning a recorded run on its own answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import Runner
from agents.tracing import trace

import sealtrace
from replay.world import KEY, RUN_ID, World, again, record, say, support
from sealtrace.replay.report import Outcome


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])
def test_an_unchanged_run_reruns_whole_and_touches_nothing(vault_url: str, stream: bool) -> None:
    """Same code, same record: every recorded event is come to, and nothing is executed."""
    world = World(stream=stream)
    run = record(support, vault_url, world=world)
    assert {"weather Paris", "weather Rome", "refund A7", "broken", "on_handoff"} == set(world.done)
    session, after = again(support, run, world=World(stream=stream))
    report = session.report
    assert report.outcome is Outcome.SAME
    assert report.matched == report.total > 20
    assert after.done == []
    assert report.receipt.total("unconsumed") == report.receipt.total("refused") == 0
    assert report.receipt.surfaces["model"].served == report.receipt.surfaces["model"].recorded == 5
    assert not report.receipt.network_touched
    assert report.to_json()["mode"] == "SIMULATION"


@pytest.mark.parametrize(
    ("change", "value", "path", "cause", "kind"),
    [
        ("instructions", "You route well.", "$.request.instructions", "CONFIG", "generation"),
        ("clerk", "You look up.", "$.request.instructions", "CONFIG", "generation"),
        ("input", "Refund order A8.", "$.input", "INPUT", "input"),
        ("rules", 8, "$.output_info.rules", "POLICY", "guardrail"),
        ("tripped", True, "$.tripped", "POLICY", "guardrail"),
    ],
)
def test_changed_code_diverges_at_what_was_changed(
    vault_url: str, change: str, value: Any, path: str, cause: str, kind: str
) -> None:
    """A change is named by its path and its class, and no tool runs before it is."""
    run = record(support, vault_url)
    world = World(change={change: value})
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(support, run, world=world)
    divergence = caught.value.divergence
    assert (divergence.path, str(divergence.cause), str(divergence.kind)) == (path, cause, kind)
    assert world.done == []
    assert caught.value.report is not None
    assert caught.value.report.exit_code == 2
    assert run.event(divergence.seq, divergence.record_id).kind == kind


def test_a_divergence_that_is_swallowed_is_raised_at_the_end(vault_url: str) -> None:
    """Code that catches even BaseException cannot make a divergence go away."""
    run = record(support, vault_url)

    async def swallowing(world: World) -> None:
        try:
            await support(world)
        except BaseException:
            world.done.append("swallowed")

    world = World(change={"instructions": "Other."})
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(swallowing, run, world=world)
    assert world.done == ["swallowed"]
    assert caught.value.divergence.path == "$.request.instructions"


def test_what_is_recorded_and_never_asked_for_is_a_divergence(vault_url: str) -> None:
    """A rerun that does nothing has not rerun anything."""
    run = record(support, vault_url)

    async def nothing(world: World) -> None:
        return None

    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(nothing, run)
    assert caught.value.divergence.seq == 0
    assert caught.value.report is not None
    assert caught.value.report.receipt.total("unconsumed") > 10


def test_without_the_key_pseudonyms_are_compared_by_kind_and_the_report_says_how_many(vault_url: str) -> None:
    """A rerun on another machine, without the key, still works and says what it could not compare."""
    run = record(support, vault_url)
    session, _ = again(support, run, key="another key, 32 bytes or a bit more")
    assert session.report.outcome is Outcome.SAME
    assert session.report.by_kind > 0
    assert any("by kind" in note for note in session.report.notes)


def test_with_the_key_another_value_of_the_same_kind_is_a_difference(vault_url: str) -> None:
    """Redaction hides a value, not that it changed: the tag is keyed by the value."""
    run = record(support, vault_url)
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(support, run, world=World(change={"input": "Refund order A7 for bob@example.org, please."}))
    assert caught.value.divergence.path == "$.input"
    assert "bob@example.org" not in json.dumps(caught.value.divergence.to_json())


def test_ignored_and_pinned_differences_are_in_the_report(vault_url: str) -> None:
    """What the caller chose not to look at is counted where it can be seen."""
    run = record(support, vault_url)
    world = World(change={"instructions": "You route!"})
    session, _ = again(support, run, world=world, ignore=["$.request.instructions"])
    assert session.report.ignored == {"$.request.instructions": 2}
    session, _ = again(support, run, world=World(change={"clerk": "You look things up.."}), pin=[r"\.+$"])
    assert list(session.report.ignored) == [r"pin \.+$"]


def test_reruns_and_live_runs_side_by_side_do_not_mix(vault_url: str) -> None:
    """Twenty reruns, half of them diverging, beside live runs in one event loop."""
    run = record(support, vault_url)

    async def one(number: int) -> str:
        world = World(live=False, change={"instructions": "Other."} if number % 2 else {})
        try:
            with sealtrace.rerun(run, key=KEY) as session:
                await support(world)
            return str(session.report.outcome)
        except sealtrace.ReplayDiverged as error:
            assert world.done == []
            return str(error.divergence.cause)

    async def live() -> list[str]:
        world = World()
        await support(world)
        return world.done

    async def all_of_them() -> Any:
        return await asyncio.gather(*(one(number) for number in range(20)), *(live() for _ in range(5)))

    outcomes = asyncio.run(all_of_them())
    assert outcomes[:20] == ["same", "CONFIG"] * 10
    assert all(max(done) == "weather Rome" and "refund A7" in done for done in outcomes[20:])


def test_a_rerun_is_not_recorded_and_not_traced(vault_url: str, vendor: Any) -> None:
    """Neither the vault nor the SDK's own exporter hears of a rerun, also while recording is on."""
    run = record(support, vault_url)
    sealtrace.instrument(vault=vault_url, key=KEY, keep_openai_exporter=True)
    again(support, run)
    assert sealtrace.flush(10)
    assert len(sealtrace.load(RUN_ID, vault=vault_url).records) == 1
    assert vendor.requests == []


def test_run_sync_reruns_too(vault_url: str) -> None:
    """`Runner.run_sync`, which makes its own loop, is covered by the same block."""
    from agents import Agent

    async def scenario(world: World) -> Any:
        agent = Agent(name="A", instructions="x", model=world.model([say("hi")]))
        return await Runner.run(agent, "hello")

    run = record(scenario, vault_url)
    agent = Agent(name="A", instructions="x", model=World(live=False).model())
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with sealtrace.rerun(run, key=KEY) as session:
            result = Runner.run_sync(agent, "hello")
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert result.final_output == "hi"
    assert session.receipt.surfaces["model"].served == 1


def test_the_process_that_recorded_a_run_has_its_key(vault_url: str) -> None:
    """No key is set: the random one of the process is at hand while it records, and gone afterwards."""
    sealtrace.instrument(vault=vault_url)

    async def go() -> None:
        with trace("scenario", trace_id=RUN_ID):
            await support(World())

    asyncio.run(go())
    assert sealtrace.flush(10)
    run = sealtrace.load(RUN_ID, vault=vault_url)
    session, _ = again(support, run, key=None)
    assert (session.report.outcome, session.report.by_kind) == (Outcome.SAME, 0)
    sealtrace.uninstrument()
    session, _ = again(support, run, key=None)
    assert session.report.outcome is Outcome.SAME
    assert session.report.by_kind > 0


def test_an_interrupted_rerun_claims_nothing(vault_url: str) -> None:
    """Ctrl-C is passed on, and the report says that nothing can be said."""
    run = record(support, vault_url)
    session = sealtrace.rerun(run, key=KEY)
    with pytest.raises(KeyboardInterrupt), session:
        raise KeyboardInterrupt
    assert session.report.outcome is Outcome.NOT_COMPARABLE
    assert session.report.exit_code == 3
    with pytest.raises(sealtrace.SealtraceError, match="again"), session:
        pass


def test_a_rerun_may_be_left_in_another_context(vault_url: str) -> None:
    """Async fixtures are torn down in a context of their own."""
    import contextvars

    from sealtrace.agents_sdk.seams import TAKEOVER

    run = record(support, vault_url)
    session = sealtrace.rerun(run, key=KEY)
    inside = contextvars.copy_context()
    inside.run(session.__enter__)
    inside.run(asyncio.run, support(World(live=False)))
    session.__exit__(None, None, None)
    assert session.report.outcome is Outcome.SAME
    assert TAKEOVER.get() is None
