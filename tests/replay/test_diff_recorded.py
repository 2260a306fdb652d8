"""Comparing runs as they are recorded from the real SDK."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

import sealtrace
from replay.world import World, record, support
from sealtrace.event import Kind
from sealtrace.replay.cause import Cause
from sealtrace.replay.diff import Change, diff

EXAMPLE = Path(__file__).parents[2] / "examples" / "tau_bench.py"


def _recorded(tmp_path, name, **options):
    return record(support, (tmp_path / name).as_uri(), world=World(**options))


@pytest.fixture
def one(tmp_path):
    """A run to compare with."""
    return _recorded(tmp_path, "one")


@pytest.mark.parametrize("seed", range(3))
def test_recorded_twice_is_the_same(tmp_path, one, seed):
    """The same code and answers give the same run, however long parallel tools take."""
    found = diff(one, _recorded(tmp_path, "other", delay=0.02, seed=seed))
    assert found.same, [row.to_json() for row in found.rows if row.change is not Change.SAME]
    assert found.matched == len(one.events) > 20


def test_streamed_is_a_setting(tmp_path, one):
    """Streamed or not is part of the request: the first difference is that one, and it is config."""
    found = diff(one, _recorded(tmp_path, "other", stream=True))
    assert (found.first.cause, found.first.shown.path) == (Cause.CONFIG, "$.request.stream")


@pytest.mark.parametrize(
    ("change", "value", "path", "cause", "kind"),
    [
        ("instructions", "You route well.", "$.request.instructions", Cause.CONFIG, Kind.GENERATION),
        ("clerk", "You look up.", "$.request.instructions", Cause.CONFIG, Kind.GENERATION),
        ("input", "Refund order A8.", "$.input", Cause.INPUT, Kind.INPUT),
        ("rules", 8, "$.output_info.rules", Cause.POLICY, Kind.GUARDRAIL),
    ],
)
def test_changes_are_found(tmp_path, one, change, value, path, cause, kind):
    """A change anywhere, also in a nested agent, is the first difference, with its path and class."""
    found = diff(one, _recorded(tmp_path, "other", change={change: value}))
    assert (found.first.cause, found.first.shown.path, found.first.event.kind) == (cause, path, kind)
    assert found.outcome is True


def test_tripped_guardrail_cuts_the_rest(tmp_path, one):
    """A guardrail that trips is the cause; all that it prevented is removed, not misread."""
    found = diff(one, _recorded(tmp_path, "other", change={"tripped": True}))
    assert (found.first.cause, found.first.shown.path) == (Cause.POLICY, "$.tripped")
    assert found.outcome is None
    assert found.counts["removed"] > 10


def test_other_keys_and_emails(tmp_path, one):
    """Runs redacted with different keys are compared by kind of pseudonym."""
    other = record(support, (tmp_path / "other").as_uri(), key="another key that is long enough")
    found = diff(one, other)
    assert found.same, found.first.to_json()
    assert any("by kind only" in note for note in found.notes)


# (kind, path of a field, cause)
_MUTATIONS = [
    (Kind.INPUT, ("input",), Cause.INPUT),
    (Kind.GENERATION, ("request", "instructions"), Cause.CONFIG),
    (Kind.GENERATION, ("request", "model"), Cause.CONFIG),
    (Kind.GENERATION, ("request", "settings"), Cause.CONFIG),
    (Kind.GENERATION, ("request", "tools"), Cause.CONFIG),
    (Kind.GENERATION, ("request", "handoffs"), Cause.CONFIG),
    (Kind.GENERATION, ("response", "output"), Cause.MODEL),
    (Kind.TOOL_CALL, ("arguments",), Cause.LOGIC),
    (Kind.TOOL_RESULT, ("result",), Cause.TOOL),
    (Kind.HANDOFF, ("to",), Cause.LOGIC),
    (Kind.GUARDRAIL, ("tripped",), Cause.POLICY),
    (Kind.GUARDRAIL, ("output_info",), Cause.POLICY),
    (Kind.OUTPUT, ("final_output",), Cause.LOGIC),
]


def _mutants(run):
    """The run with one field of one event changed, and where and what that is; one by one."""
    for part in run.records:
        for at, event in enumerate(part.events):
            for kind, path, cause in _MUTATIONS:
                payload = copy.deepcopy(event.payload)
                parent = payload
                for name in path[:-1]:
                    parent = parent.get(name, {}) if parent is not None else {}
                if event.kind is not kind or path[-1] not in parent:
                    continue
                parent[path[-1]] = "another value"
                events = [*part.events]
                events[at] = dataclasses.replace(event, payload=payload, digests={})
                yield (
                    dataclasses.replace(run, records=(dataclasses.replace(part, events=tuple(events)),)),
                    event,
                    "$." + ".".join(path),
                    cause,
                )


def test_every_changed_field_is_found(one):
    """Whatever field of whatever event is changed: that event is the first difference, with its path and class."""
    tried = 0
    for mutant, event, path, cause in _mutants(one):
        first = diff(one, mutant).first
        assert first is not None, (event.seq, path)
        assert (first.a.seq, first.cause) == (event.seq, cause), (event.seq, path)
        assert first.shown is None or first.shown.path.startswith(path), (event.seq, path)
        tried += 1
    assert tried > 40


def test_every_lost_event_is_found(one):
    """Whatever event is missing in the other run: the first difference is that one, or what hung from it."""
    (record_,) = one.records
    for at, event in enumerate(record_.events):
        fewer = dataclasses.replace(record_, events=(*record_.events[:at], *record_.events[at + 1 :]))
        found = diff(one, dataclasses.replace(one, records=(fewer,)))
        removed = [row.a.seq for row in found.rows if row.change is Change.REMOVED]
        assert event.seq in removed
        assert not [row for row in found.rows if row.change is Change.CHANGED], event


@pytest.fixture(scope="module")
def conversations(tmp_path_factory):
    """Two real conversations about each of six tasks, driven through the SDK and recorded."""
    if not os.environ.get("SEALTRACE_TEST_DATA"):
        pytest.skip("SEALTRACE_TEST_DATA is not set: no recorded conversations")
    spec = importlib.util.spec_from_file_location("tau_bench", EXAMPLE)
    tau_bench = importlib.util.module_from_spec(spec)
    sys.modules["tau_bench"] = tau_bench
    spec.loader.exec_module(tau_bench)
    vault = tmp_path_factory.mktemp("tau").as_uri()
    sealtrace.instrument(vault=vault, key="a key that is long enough for it")
    by_task = {}
    for conversation in tau_bench.conversations():
        by_task.setdefault(conversation["task_id"], []).append(conversation)
    sent = [
        [asyncio.run(tau_bench.drive(conversation)).run_id for conversation in trials[:2]]
        for trials in list(by_task.values())[:6]
    ]
    assert sealtrace.flush(30)
    sealtrace.uninstrument()
    del sys.modules["tau_bench"]
    return [[sealtrace.load(run_id, vault=vault) for run_id in pair] for pair in sent]


def test_real_conversations(conversations):
    """Real conversations about one task: each event is in one row, there is a cause, and JSON holds it all."""
    for one, other in conversations:
        found = diff(one, other)
        assert [row.a.seq for row in found.rows if row.a] == [event.seq for event in one.events]
        assert sorted(row.b.seq for row in found.rows if row.b) == [event.seq for event in other.events]
        assert found.first.cause is Cause.INPUT
        assert json.loads(json.dumps(found.to_json()))["counts"] == found.counts
        assert diff(one, one).same
        assert diff(other, one).counts["same"] == found.counts["same"]
