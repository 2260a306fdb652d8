"""Walking a run with agents rebuilt from its record."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from replay.test_surfaces import approval, native
from replay.world import World, record, support
from sealtrace.replay.report import Outcome
from sealtrace.replay.stub import walk


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])
@pytest.mark.parametrize(
    "scenario", [support, native, approval(True), approval(False)], ids=["support", "native", "approved", "rejected"]
)
def test_a_run_is_walked_without_its_code(vault_url: str, scenario: Any, stream: bool) -> None:
    """Every recorded event is come to with nothing but the record at hand, and nothing is executed."""
    world = World(stream=stream)
    run = record(scenario, vault_url, world=world)
    done = list(world.done)
    report = walk(run)
    assert report.outcome is Outcome.SAME, report.to_json()
    assert report.matched == report.total
    assert world.done == done
    assert any("rebuilt" in note for note in report.notes)


def test_a_walk_still_compares_outcomes(vault_url: str) -> None:
    """A record whose output does not follow from its answers is found out without the code."""
    run = record(support, vault_url)
    events = tuple(
        dataclasses.replace(event, payload={**event.payload, "final_output": "Nothing was paid."})
        if event.kind == "output" and event.frame == "run:0"
        else event
        for event in run.events
    )
    forged = dataclasses.replace(run, records=(dataclasses.replace(run.records[0], events=events),))
    report = walk(forged)
    assert report.outcome is Outcome.DIVERGED
    assert report.divergence is not None
    assert report.divergence.path == "$.final_output"
