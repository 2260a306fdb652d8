"""A change anywhere is found, at the first event that differs, by its path, and called by its class."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from agents import ModelRetrySettings

import sealtrace
from replay.mutants import Mutant, Shop, build, mutants
from replay.world import KEY, World, record
from sealtrace.event import RunEvent
from sealtrace.replay.report import Outcome


async def _other(*_: Any) -> Any:
    raise AssertionError("a tool ran")


def _settings(**fields: Any) -> Callable[[Shop], None]:
    def change(shop: Shop) -> None:
        shop.triage.model_settings = dataclasses.replace(shop.triage.model_settings, **fields)

    return change


EQUIVALENT: dict[str, Callable[[Shop], None]] = {
    "extra_headers are not recorded: they carry credentials": _settings(extra_headers={"x-team": "other"}),
    "retries are not part of a request": _settings(retry=ModelRetrySettings(max_retries=9)),
    "a prompt cache key of the SDK's own is drawn at random": _settings(
        extra_args={"prompt_cache_key": "agents-sdk:run:1"}
    ),
    "a tool's code is not run": lambda shop: setattr(shop.desk.tools[0], "on_invoke_tool", _other),
    "a tool's time limit is not met": lambda shop: setattr(shop.desk.tools[0], "timeout_seconds", 1.0),
    "a description nobody is told": lambda shop: setattr(shop.triage, "handoff_description", "unused"),
    "more turns than are needed": lambda shop: shop.options.update(max_turns=50),
}
"""Changes that leave no mark in what the model is told or answers, and so are no difference."""


@dataclasses.dataclass
class Forged:
    """A changed record."""

    id: str
    events: tuple[RunEvent, ...]
    key_id: str


async def shop(world: World) -> Any:
    """The unchanged shop, or one that `world.change["code"]` has changed."""
    made = build(world)
    world.changed("code", lambda _shop: None)(made)
    return await world.run(made.triage, made.given, **made.options)


def outcome_of(run: Any, mutant: Mutant) -> Any:
    """The report of one mutant, and what it executed."""
    world = World(live=False, change={"code": mutant.code} if mutant.code is not None else {})
    events = list(run.events)
    if mutant.record is not None:
        events = mutant.record(events)
    forged = Forged(run.id, tuple(events), run.records[0].header.key_id)
    session = sealtrace.rerun(forged, key=KEY)
    try:
        with session, contextlib.suppress(Exception):
            asyncio.run(shop(world))
    except sealtrace.ReplayDiverged:
        pass
    return session.report, world.done


def expected_seq(run: Any, mutant: Mutant) -> int | None:
    """The first event that can differ; None where the record has none or any of them may be."""
    if mutant.nth < 0:
        return None
    found = [e for e in run.events if e.kind is mutant.kind and mutant.agent in (None, e.agent)]
    return found[mutant.nth].seq


def test_every_mutant_is_found_where_it_is(vault_url: str) -> None:
    """At least a thousand: all caught, first event and path right, class right in 95 of 100."""
    run = record(shop, vault_url)
    untouched, _ = outcome_of(run, Mutant("none", run.events[0].kind, None, "$", ()))
    assert untouched.outcome is Outcome.SAME, untouched.to_json()
    missed, misplaced, misnamed, executed = [], [], [], []
    counted: collections.Counter[str] = collections.Counter()
    for mutant in mutants(list(run.events)):
        report, done = outcome_of(run, mutant)
        counted[mutant.name.split(" ")[0]] += 1
        executed += done
        divergence = report.divergence
        if report.outcome is not Outcome.DIVERGED:
            missed.append((mutant.name, str(report.outcome), report.reason))
            continue
        seq = expected_seq(run, mutant)
        here = seq is None or divergence.seq in (seq, None)
        if not (here and divergence.kind is mutant.kind and divergence.path.startswith(mutant.path)):
            misplaced.append((mutant.name, seq, divergence.seq, str(divergence.kind), divergence.path))
        if str(divergence.cause) not in mutant.causes:
            misnamed.append((mutant.name, str(divergence.cause), mutant.causes, divergence.path))
    total = sum(counted.values())
    print(f"{total} mutants {dict(counted)}; misnamed {misnamed}")
    assert not missed, missed[:20]
    assert not misplaced, (len(misplaced), misplaced[:20])
    assert not executed
    assert total >= 1000
    assert len(misnamed) <= total * 0.05, misnamed[:20]


def test_what_leaves_no_mark_is_no_difference(vault_url: str) -> None:
    """The equivalent mutants, each with its reason: they rerun as the same."""
    run = record(shop, vault_url)
    for name, code in EQUIVALENT.items():
        report, done = outcome_of(run, Mutant(name, run.events[0].kind, None, "$", (), code))
        assert report.outcome is Outcome.SAME, (name, report.to_json()["divergence"])
        assert done == []
