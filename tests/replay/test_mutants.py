"""A change anywhere is found, at the first event that differs, by its path, and called by its class."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
from typing import Any

import sealtrace
from replay.mutants import Mutant, build, mutants
from replay.world import KEY, World, record
from sealtrace.event import RunEvent
from sealtrace.replay.report import Outcome

_EQUIVALENT = {
    "triage settings parallel_tool_calls=True": "it was True",
}


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
    return await world.run(made.triage, made.given)


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
        if mutant.name in _EQUIVALENT:
            continue
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
