"""What is kept open, what is read, and what is noted of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from run.halves import Conversation, spans_of, write_otlp
from sealtrace.errors import VaultDenied, VaultUnavailable
from sealtrace.event import Kind
from sealtrace.settings import Settings
from sealtrace.vault import audit_lines
from sealtrace.vault.stores import LocalStore
from sealtrace.viewer.library import Library, ReasonNeeded

from .conftest import Counting, Demo


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def filled(folder: Path, count: int, *, turns: int = 2) -> list[str]:
    """A vault with so many runs; their ids."""
    ids = [f"trace_{number:032x}" for number in range(1, count + 1)]
    for run_id in ids:
        Conversation(turns, run_id=run_id).store(LocalStore(folder))
    return ids


def test_few_runs_stay_open(tmp_path: Path) -> None:
    """Whatever is opened, no more than eight runs are held, and the ones used last."""
    ids = filled(tmp_path / "v", 12)
    store = Counting(tmp_path / "v")
    library = Library(Settings(), store=store)
    for run_id in ids:
        library.open(run_id, None)
        library.open(ids[0], None)
    assert len(library._open) == 8
    store.reads.clear()
    library.open(ids[0], None)
    library.open(ids[-1], None)
    assert store.reads == []
    library.open(ids[1], None)
    assert store.reads != []


def test_large_runs_are_let_go_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is events and spans, and the run that is looked at is never let go, however large."""
    monkeypatch.setattr("sealtrace.viewer.library._WEIGHT_KEPT", 30)
    ids = filled(tmp_path / "v", 4, turns=5)
    library = Library(Settings(), store=LocalStore(tmp_path / "v"))
    for run_id in ids:
        opened = library.open(run_id, None)
        assert opened.opened.run.id == run_id
        assert sum(one.weight for one in library._open.values()) <= 30
    monkeypatch.setattr("sealtrace.viewer.library._WEIGHT_KEPT", 1)
    library.open(ids[0], None)
    assert len(library._open) == 1


def test_a_run_is_read_again_when_it_may_have_grown(tmp_path: Path) -> None:
    """An unfinished record is looked at again after seconds, a finished one after minutes."""
    (run_id,) = filled(tmp_path / "v", 1)
    clock = Clock()
    store = Counting(tmp_path / "v")
    library = Library(Settings(), store=store, clock=clock)
    first = library.open(run_id, None)
    clock.now += 60
    assert library.open(run_id, None) is first
    clock.now += 300
    assert library.open(run_id, None) is not first
    manifest = next(item.key for item in store.list("meta/") if "manifest" in item.key)
    store.delete(manifest)
    clock.now += 400
    partial = library.open(run_id, None)
    clock.now += 10
    assert library.open(run_id, None) is not partial


def test_each_payload_is_a_line_in_the_audit(demo: Demo) -> None:
    """Who opens an event leaves who, why and which; opening the run alone reads nothing and leaves nothing."""
    library = Library(demo.settings(read_audit=True, read_reason="on call"))
    store = LocalStore(demo.folder)
    before = len(audit_lines(store))
    opened = library.open(demo.run.id, None)
    assert len(audit_lines(store)) == before
    for seq in (5, 5, 8):
        library.payload(opened, opened.opened.run.event(seq), None)
    lines = audit_lines(store)[before:]
    assert [line.about["seq"] for line in lines] == [5, 5, 8]
    assert {(line.what, line.reason, line.about["run_id"]) for line in lines} == {("read", "on call", demo.run.id)}


def test_no_payload_without_its_line(demo: Demo) -> None:
    """Where the line cannot be stored, nothing is read."""

    class ReadOnly(Counting):
        def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
            raise VaultDenied(f"{key}: may not be written", key=key)

    store = ReadOnly(demo.folder)
    library = Library(demo.settings(read_audit=True), store=store)
    opened = library.open(demo.run.id, None)
    store.reads.clear()
    with pytest.raises(VaultDenied):
        library.payload(opened, opened.opened.run.event(5), None)
    assert store.reads == []


def test_no_payload_without_a_reason(demo: Demo) -> None:
    """With a reason required and none given, the run opens and its payloads do not, one by one or all at once."""
    library = Library(demo.settings(read_reason_required=True))
    opened = library.open(demo.run.id, None)
    assert len(opened.rail.stops) == len(demo.run.events)
    with pytest.raises(ReasonNeeded):
        library.payload(opened, opened.opened.run.event(5), None)
    with pytest.raises(ReasonNeeded):
        library.whole(demo.run.id, None)
    given = library.open(demo.run.id, "ticket")
    assert library.payload(given, given.opened.run.event(5), "ticket").payload == demo.run.event(5).payload


def test_a_partial_record_waits_for_the_reason(tmp_path: Path) -> None:
    """A record without a manifest would be read whole to be opened: not before somebody says why."""
    (run_id,) = filled(tmp_path / "v", 1)
    store = Counting(tmp_path / "v")
    store.delete(next(item.key for item in store.list("meta/") if "manifest" in item.key))
    library = Library(Settings(read_reason_required=True), store=store)
    shut = library.open(run_id, None)
    assert [read for read in store.reads if read[0] != "meta"] == []
    assert any("reason" in finding.message for finding in shut.opened.run.findings)
    assert len(library.open(run_id, "ticket").opened.run.events) > 0


def test_a_small_run_without_spans_is_read_for_its_names(tmp_path: Path) -> None:
    """With no source, a small run's payloads say what its tools are called; it is noted as read."""
    (run_id,) = filled(tmp_path / "v", 1)
    store = LocalStore(tmp_path / "v")
    library = Library(Settings(read_audit=True), store=store)
    opened = library.open(run_id, None)
    assert any(line.node.label == "tool_call lookup" for line in opened.rail.lines)
    assert [line.about["run_id"] for line in audit_lines(store)] == [run_id]


def test_a_large_run_without_spans_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the bound, the run opens by its envelopes, and a byte of each class is all that is read of payloads."""
    monkeypatch.setattr("sealtrace.viewer.library._SMALL", 100)
    (run_id,) = filled(tmp_path / "v", 1)
    store = Counting(tmp_path / "v")
    opened = Library(Settings(), store=store).open(run_id, None)
    assert {length for klass, _, length in store.reads if klass != "meta"} == {1}
    assert len(opened.rail.stops) == len(opened.opened.run.events)


def test_one_event_is_one_ranged_read(tmp_path: Path) -> None:
    """In a run of a thousand events, a tool call and its result are one read of a range."""
    made = Conversation(333)
    made.store(LocalStore(tmp_path / "v"))
    store = Counting(tmp_path / "v")
    settings = Settings(telemetry=write_otlp(tmp_path / "t.jsonl", spans_of(made)))
    library = Library(settings, store=store)
    opened = library.open(made.run_id, None)
    store.reads.clear()
    call = opened.opened.run.event(500)
    assert call.kind is Kind.TOOL_CALL
    library.payload(opened, call, None, 8)
    library.payload(opened, opened.opened.run.event(501), None, 8)
    (read,) = store.reads
    assert None not in read


def test_an_outage_is_an_error_and_not_an_empty_run(demo: Demo) -> None:
    """Where the vault does not answer and no source is set, nothing is opened and the reason is said."""

    class Down(LocalStore):
        def list(self, prefix: str):
            raise VaultUnavailable("the vault does not answer")

    with pytest.raises(VaultUnavailable):
        Library(Settings(), store=Down(demo.folder)).open(demo.run.id, None)
    spans = Library(Settings(telemetry=demo.telemetry), store=Down(demo.folder)).open(demo.run.id, None)
    assert any(finding.code == "unreachable" for finding in spans.opened.run.findings)
