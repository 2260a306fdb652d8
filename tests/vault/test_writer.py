"""The writer: few objects, nothing lost when the store is away, drops counted."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sealtrace.errors import VaultDenied, VaultUnavailable
from sealtrace.event import EventStatus, Kind, RunEvent
from sealtrace.settings import Retention, Settings
from sealtrace.vault import VaultReader, VaultWriter
from sealtrace.vault.segment import MAX_LINE
from sealtrace.vault.stores import LocalStore
from vault.records import RUN, Conversation, header, local, plain


class Unsteady(LocalStore):
    """A directory that refuses while `refusal` is set, and counts what it is asked."""

    refusal: Exception | None = None
    asked = 0

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        """See `Store.put`."""
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        super().put(key, data, sha256=sha256)


def _writer(store: LocalStore, **settings: Any) -> VaultWriter:
    return VaultWriter(store, Settings(**settings), ruleset_hash="r")


def _bytes_of(run: Conversation, tmp_path: Path, **settings: Any) -> dict[str, bytes]:
    store = local(tmp_path)
    run.store(store, Settings(**settings))
    return {item.key: store.get(item.key) for item in store.list("")}


def test_a_usual_run_is_three_objects(tmp_path: Path) -> None:
    """Input and output, the rest, and the manifest: three objects, as the seal says."""
    store = local(tmp_path)
    seal = Conversation(20).store(store)
    found = list(store.list(""))
    assert seal.objects == len(found) == 3
    assert seal.bytes == sum(item.size for item in found)
    assert (seal.events, seal.status, seal.dropped) == (62, "ok", 0)


@pytest.mark.parametrize("turns", [20, 40])
def test_stored_bytes_stay_small(tmp_path: Path, turns: int) -> None:
    """A record, manifest and envelopes included, is at most 0.4 of its unique content."""
    run = Conversation(turns)
    assert run.store(local(tmp_path)).bytes <= 0.4 * run.unique_bytes


def test_kinds_kept_equally_long_share_an_object(tmp_path: Path) -> None:
    """With the same days for all payloads a run is two objects."""
    keys = _bytes_of(Conversation(3), tmp_path, retention=Retention(io=7, content=7, meta=400))
    assert sorted(key.split("/")[0] for key in keys) == ["content", "meta"]


def test_a_full_segment_is_stored_before_the_end(tmp_path: Path) -> None:
    """A long record is stored in parts, envelopes with them, and is read back whole."""
    store, run = local(tmp_path), Conversation(100)
    writer = _writer(store, segment_bytes=65_536)
    for event in run.events:
        writer.append(event)
    early = [item.key.split("/")[0] for item in store.list("")]
    assert {"content", "meta"} <= set(early)
    assert not any("manifest" in item.key for item in store.list(""))
    writer.seal(run.header())
    (record,) = VaultReader(store).records(RUN)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert record.gaps() == []


def test_tick_stores_what_is_old_and_leaves_what_is_new(tmp_path: Path) -> None:
    """A record open for longer than `segment_seconds` is stored by the next tick, others are not."""
    store, run = local(tmp_path), Conversation(2)
    for seconds, stored in ((3600.0, False), (1e-9, True)):
        writer = _writer(store, segment_seconds=seconds)
        writer.append(run.events[0])
        writer.tick()
        assert bool(list(store.list(""))) is stored


@pytest.mark.parametrize("refusal", [VaultUnavailable("away"), VaultDenied("no")])
def test_nothing_is_lost_while_the_store_refuses(tmp_path: Path, refusal: Exception) -> None:
    """Unavailable or denied, everything is kept and the record ends up the same as without trouble."""
    store, run = Unsteady(tmp_path / "vault"), Conversation(60)
    writer = _writer(store, segment_bytes=65_536)
    store.refusal = refusal
    for event in run.events:
        try:
            writer.append(event)
        except VaultUnavailable:
            continue
    with pytest.raises(VaultUnavailable):
        writer.flush()
    with pytest.raises(VaultUnavailable):
        writer.seal(run.header())
    store.refusal = None
    assert writer.flush()  # also asks a store that was being left alone
    seal = writer.seal(run.header())
    (record,) = VaultReader(store).records(RUN)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert seal.objects == len(list(store.list("")))
    assert writer.held_bytes == 0


def test_an_outage_does_not_cost_a_request_per_event(tmp_path: Path) -> None:
    """While the store is away it is asked now and then, not for every event."""
    store, run = Unsteady(tmp_path / "vault"), Conversation(300)
    writer = _writer(store, segment_bytes=65_536)
    store.refusal = VaultUnavailable("away")
    for event in run.events:
        with contextlib.suppress(VaultUnavailable):
            writer.append(event)
    assert 1 <= store.asked < 20
    assert writer.state.last_error == "away"


def test_what_waits_is_bounded_and_drops_are_counted(tmp_path: Path) -> None:
    """Beyond `spool_bytes` payloads are dropped, envelopes stay, and record and seal say how many."""
    store, run = Unsteady(tmp_path / "vault"), Conversation(100, tool_bytes=8192)
    writer = _writer(store, spool_bytes=65_536)
    store.refusal = VaultUnavailable("away")
    for event in run.events:
        writer.append(event)
    assert writer.held_bytes < 65_536 + 20_000 + 400 * len(run.events)
    store.refusal = None
    assert writer.flush()
    seal = writer.seal(run.header(dropped=2))
    (record,) = VaultReader(store).records(RUN)
    dropped = [event for event in record.events() if event.status is EventStatus.PAYLOAD_DROPPED]
    assert len(dropped) > 10
    assert seal.dropped == len(dropped) + 2 == record.manifest.header.dropped  # type: ignore[union-attr]
    assert record.gaps() == []


def test_a_giant_payload_is_dropped_alone(tmp_path: Path) -> None:
    """One payload too large for an object costs that payload only, and objects stay under 8 MB."""
    store, run = local(tmp_path), Conversation(2)
    giant = dataclasses.replace(run.events[3], payload={"result": "x" * MAX_LINE})
    events = [*run.events[:3], giant, *run.events[4:]]
    writer = _writer(store)
    for event in events:
        writer.append(event)
    seal = writer.seal(run.header())
    (record,) = VaultReader(store).records(RUN)
    found = record.events()
    assert found[3].status is EventStatus.PAYLOAD_DROPPED
    assert [e.payload for e in found if e.seq != 3] == [plain(e.payload) for e in events if e.seq != 3]
    assert seal.dropped == 1


def test_objects_stay_under_eight_megabytes(tmp_path: Path) -> None:
    """Incompressible payloads of three megabytes each, whatever the settings, make no larger object."""
    import random

    store, run = local(tmp_path), Conversation(1)
    writer = _writer(store, segment_bytes=10**9)
    noise = random.Random(1).randbytes(1_500_000).hex()
    for seq in range(5):
        writer.append(dataclasses.replace(run.events[0], seq=seq, kind=Kind.CUSTOM, payload=noise + str(seq)))
    writer.seal(run.header(event_count=5))
    assert max(item.size for item in store.list("")) < 8_000_000
    assert [event.payload for event in VaultReader(store).records(RUN)[0].events()] == [
        noise + str(n) for n in range(5)
    ]


def test_the_same_events_give_the_same_segments(tmp_path: Path) -> None:
    """Writing a record again gives the same objects but for the manifest's time: a retry is harmless."""
    run = Conversation(5)
    first, second = _bytes_of(run, tmp_path / "a"), _bytes_of(run, tmp_path / "b")
    assert {k: v for k, v in first.items() if "manifest" not in k} == {
        k: v for k, v in second.items() if "manifest" not in k
    }


def test_an_event_without_payload_by_nature_is_not_missing(tmp_path: Path) -> None:
    """An event whose payload is None from the start is read back as recorded, not as lost."""
    store, run = local(tmp_path), Conversation(1)
    event = dataclasses.replace(run.events[0], kind=Kind.CHECKPOINT, payload=None)
    writer = _writer(store)
    writer.append(event)
    writer.seal(run.header(event_count=1))
    assert VaultReader(store).records(RUN)[0].events() == [event]


def test_hostile_text_is_stored_and_read(tmp_path: Path) -> None:
    """Lone surrogates, newlines, NaN and depth in payload, envelope and header cannot break a record."""
    store, run = local(tmp_path), Conversation(1)
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    bad = '\ud800"}\n{"kind":"msg"'
    event = dataclasses.replace(
        run.events[0],
        agent=bad,
        config={"c": deep, bad: float("nan")},
        payload={"deep": deep, bad: [float("inf"), bad]},
    )
    writer = _writer(store)
    writer.append(event)
    writer.seal(run.header(workflow_name=bad, event_count=1))
    (record,) = VaultReader(store).records(RUN)
    (found,) = record.events()
    assert found.agent == '\ufffd"}\n{"kind":"msg"'
    assert found.payload['\ufffd"}\n{"kind":"msg"'] == ["inf", '\ufffd"}\n{"kind":"msg"']
    assert record.header is not None
    assert json.dumps(found.payload["deep"]).count("[") < 64


def test_records_do_not_mix(tmp_path: Path) -> None:
    """Two records written in turns, of one run and of two, stay apart."""
    store = local(tmp_path)
    runs = [Conversation(4, seed=1), Conversation(4, seed=2), Conversation(4, seed=3, run_id="trace_" + "ef" * 16)]
    writer = _writer(store)
    for events in zip(*(run.events for run in runs), strict=True):
        for event in events:
            writer.append(event)
    for run in runs:
        writer.seal(run.header())
    for run in runs:
        record = next(r for r in VaultReader(store).records(run.run_id) if r.record_id == run.record_id)
        assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]


def test_reset_and_abandon_forget(tmp_path: Path) -> None:
    """A forked child forgets its parent's records; an abandoned one is written no further."""
    store, run = local(tmp_path), Conversation(2)
    writer = _writer(store)
    for forget in (writer.reset, lambda: writer.abandon(run.record_id)):
        writer.append(run.events[0])
        assert writer.held_bytes > 0
        forget()
        assert writer.held_bytes == 0
        assert writer.flush()
    assert list(store.list("")) == []


def test_a_record_without_events_can_be_sealed(tmp_path: Path) -> None:
    """A record in which nothing happened still gets its manifest."""
    store = local(tmp_path)
    seal = _writer(store).seal(header(RUN, "01" * 16))
    assert seal.objects == 1
    (record,) = VaultReader(store).records(RUN)
    assert record.events() == []


def test_events_carry_every_field_through(tmp_path: Path) -> None:
    """Envelope and payload come back equal, field by field."""
    run = Conversation(3)
    run.store(local(tmp_path))
    found: list[RunEvent] = VaultReader(local(tmp_path)).records(RUN)[0].events()
    assert found == [dataclasses.replace(event, payload=plain(event.payload)) for event in run.events]
