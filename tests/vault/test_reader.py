"""The reader: says of each event what became of its payload, and never trusts what it reads."""

from __future__ import annotations

import dataclasses
import datetime as dt
import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealtrace.errors import ObjectNotFound, PayloadExpired, RecordDamaged, VaultDenied
from sealtrace.event import EventStatus, Kind
from sealtrace.settings import Retention, Settings
from sealtrace.vault import VaultReader, VaultWriter, layout
from sealtrace.vault.stores import LocalStore
from vault.records import RUN, TRACE, Conversation, local, plain


class Watched(LocalStore):
    """A directory that notes what is read, and denies what it is told to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[tuple[str, int | None, int | None]] = []
        self.deny = ""

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """See `Store.get`."""
        self.reads.append((key, start, length))
        if self.deny and key.startswith(self.deny):
            raise VaultDenied(f"{key} is not for you", key=key)
        return super().get(key, start=start, length=length)


def _key(store: LocalStore, part: str) -> str:
    (found,) = [item.key for item in store.list("") if part in item.key]
    return found


def _rewrite(root: Path, key: str, data: bytes) -> None:
    (root / "vault" / key).write_bytes(data)


def test_one_event_is_one_ranged_read(tmp_path: Path) -> None:
    """In a run of thousands of events a tool call costs the manifest and one range, not an object."""
    store, run = Watched(tmp_path / "vault"), Conversation(600)
    run.store(store, Settings(segment_bytes=10**7))
    (record,) = VaultReader(store).records(RUN)
    assert record.manifest is not None
    for seq in (2, 902, 1799):
        store.reads.clear()
        assert record.payload(seq) == plain(run.events[seq].payload)
        content = [read for read in store.reads if not read[0].startswith("meta/")]
        assert len(content) == 1, content
        assert content[0][1] is not None


def test_an_event_amid_those_of_another_class_is_one_ranged_read(tmp_path: Path) -> None:
    """Of a class that is known by the envelope only its own group is read, though the other's spans it, too."""
    store, run = Watched(tmp_path / "vault"), Conversation(60)
    at = 100
    run.events[at] = dataclasses.replace(run.events[at], kind=Kind.INPUT, payload={"input": "more"}, digests={})
    run.store(store)
    (record,) = VaultReader(store).records(RUN)
    assert record.envelopes()[at].kind is Kind.INPUT
    store.reads.clear()
    store.deny = "content/"
    assert record.payload(at) == {"input": "more"}
    assert [read[0].partition("/")[0] for read in store.reads] == ["io"]


@pytest.mark.parametrize("seq", [0, 1, 30, 61])
def test_a_payload_with_messages_from_other_groups_is_whole(tmp_path: Path, seq: int) -> None:
    """Input, first and later generations and output are restored with all they quote."""
    run = Conversation(20, tool_bytes=20_000)
    run.store(local(tmp_path))
    assert VaultReader(local(tmp_path)).records(RUN)[0].payload(seq) == plain(run.events[seq].payload)


def test_an_unknown_event_is_not_found(tmp_path: Path) -> None:
    """Asking for a seq that is not stored says so."""
    Conversation(2).store(local(tmp_path))
    with pytest.raises(ObjectNotFound, match="event 99"):
        VaultReader(local(tmp_path)).records(RUN)[0].payload(99)


def test_no_manifest_is_partial_and_keeps_what_there_is(tmp_path: Path) -> None:
    """Without its manifest a record reads as partial, with payloads, from segments alone."""
    store, run = local(tmp_path), Conversation(3)
    writer = VaultWriter(store, Settings(), ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    writer.flush()
    (record,) = VaultReader(store).records(RUN)
    assert record.partial
    assert record.header is None
    assert {event.status for event in record.events()} == {EventStatus.PARTIAL_RECORD}
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert record.payload(2) == plain(run.events[2].payload)


def test_payloads_without_envelopes_are_shown_bare(tmp_path: Path) -> None:
    """A process that died between its payloads and its manifest leaves events with seq, kind and payload."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store)
    store.delete(_key(store, "manifest"))
    events = VaultReader(store).records(RUN)[0].events()
    assert [(event.seq, event.kind, event.payload) for event in events] == [
        (event.seq, event.kind, plain(event.payload)) for event in run.events
    ]
    assert {event.status for event in events} == {EventStatus.PARTIAL_RECORD}


def test_gaps_are_reported(tmp_path: Path) -> None:
    """Events that were given a seq and were not stored are listed, at the end too."""
    store, run = local(tmp_path), Conversation(3)
    writer = VaultWriter(store, Settings(), ruleset_hash="r")
    for event in run.events:
        if event.seq not in (4, 7):
            writer.append(event)
    writer.seal(run.header() if not run.events else dataclasses.replace(run.header(), event_count=len(run.events) + 1))
    assert VaultReader(store).records(RUN)[0].gaps() == [4, 7, len(run.events)]


def test_what_has_expired_is_refused_though_it_is_there(tmp_path: Path) -> None:
    """Past its day a payload is not handed out; input and output, kept longer, still are."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store)
    (record,) = VaultReader(store, clock=in_days(8)).records(RUN)
    by_kind = {event.kind: event for event in record.events()}
    assert by_kind[Kind.GENERATION].status is EventStatus.PAYLOAD_EXPIRED
    assert by_kind[Kind.GENERATION].payload is None
    assert by_kind[Kind.INPUT].payload == plain(run.events[0].payload)
    with pytest.raises(PayloadExpired):
        record.payload(1)


def test_a_partial_record_expires_too(tmp_path: Path) -> None:
    """Without a manifest to say when, the segments' age and the reader's own retention decide."""
    store, run = local(tmp_path), Conversation(3)
    writer = VaultWriter(store, Settings(), ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    writer.flush()
    (record,) = VaultReader(store, Retention(), clock=in_days(8)).records(RUN)
    statuses = {event.kind: event.status for event in record.events()}
    assert statuses[Kind.GENERATION] is EventStatus.PAYLOAD_EXPIRED
    assert statuses[Kind.INPUT] is EventStatus.PARTIAL_RECORD


def in_days(days: int) -> Callable[[], dt.datetime]:
    """A clock so many days ahead."""
    return lambda: dt.datetime.now(dt.UTC) + dt.timedelta(days=days)


def test_denied_and_missing_are_told_apart(tmp_path: Path) -> None:
    """A class the credentials may not read is denied; an object that is gone is missing."""
    store, run = Watched(tmp_path / "vault"), Conversation(3)
    run.store(store)
    store.deny = "io/"
    store.delete(_key(store, "content/"))
    record = VaultReader(store).records(RUN)[0]
    statuses = {event.kind: event.status for event in record.events()}
    assert statuses[Kind.INPUT] is EventStatus.PAYLOAD_DENIED
    assert statuses[Kind.GENERATION] is EventStatus.PAYLOAD_MISSING
    assert len(record.problems) == 2


def test_changed_bytes_are_damage(tmp_path: Path) -> None:
    """A segment whose bytes are not the stored ones is refused, whole and by range."""
    store = local(tmp_path)
    Conversation(3).store(store)
    key = _key(store, "content/")
    data = bytearray(store.get(key))
    data[len(data) // 2] ^= 1
    _rewrite(tmp_path, key, bytes(data))
    with pytest.raises(RecordDamaged, match="not the ones"):
        VaultReader(store).records(RUN)[0].events()
    with pytest.raises(RecordDamaged, match="not the ones"):
        VaultReader(store).records(RUN)[0].payload(1)


def test_two_manifests_are_damage(tmp_path: Path) -> None:
    """A second manifest, well-formed as it may be, is a contradiction and is said to be one."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store)
    run.store(store, status="error")
    with pytest.raises(RecordDamaged, match="2 manifests"):
        _ = VaultReader(store).records(RUN)[0].manifest


def test_a_manifest_of_another_record_is_damage(tmp_path: Path) -> None:
    """A manifest copied into another record's place is not believed."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store)
    key = _key(store, "manifest")
    other = key.replace(run.record_id, "07" * 16)
    store.put(other, store.get(key), sha256=b"")
    record = next(item for item in VaultReader(store).records(RUN) if item.record_id == "07" * 16)
    with pytest.raises(RecordDamaged, match="another record"):
        _ = record.manifest


@pytest.mark.parametrize(
    "lines",
    [
        [{"kind": "unheard", "seq": 0, "payload": 1}],
        [{"kind": "custom", "seq": "0", "payload": 1}],
        [{"kind": "custom", "seq": -1, "payload": 1}],
        [{"kind": "custom", "payload": 1}],
        [{"kind": "custom", "seq": 0}],
        [{"seq": 0}],
        [{"kind": "custom", "seq": 0, "payload": 1}] * 2,
        [{"kind": "msg", "id": 1, "value": 1}] * 2,
        [{"kind": "msg", "id": "1", "value": 1}],
        [{"kind": "msg", "id": 1, "value": {"$ref": 1}}],
        [{"kind": "msg", "id": 1}],
        [{"kind": ["custom"], "seq": 0, "payload": 1}],
        [{"kind": "custom", "seq": 0, "payload": {"$list": [[1, 10**12]]}}],
    ],
)
def test_hostile_lines_in_a_partial_record_are_damage(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    """Whoever may write can forge a segment; none of its lines crashes the reader or is believed."""
    data = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    digest = hashlib.sha256(data).digest()
    store = local(tmp_path)
    store.put(layout.segment_key("content", RUN, "01" * 16, 0, digest), data, sha256=digest)
    with pytest.raises(RecordDamaged):
        VaultReader(store).records(RUN)[0].events()


def test_foreign_files_are_ignored(tmp_path: Path) -> None:
    """Objects whose names are not ours do not turn up as records."""
    store = local(tmp_path)
    Conversation(2).store(store)
    store.put(f"meta/v1/ab/{'ab' * 16}/notes.txt", b"x", sha256=b"")
    assert len(VaultReader(store).records(RUN)) == 1
    assert len(list(VaultReader(store).recent(10))) == 1


def test_recent_is_newest_first(tmp_path: Path) -> None:
    """The latest records come first, and no more than asked for."""
    store = local(tmp_path)
    for number in range(5):
        seal = Conversation(1, seed=number, run_id=f"trace_{number:032x}").store(store)
        os.utime(tmp_path / "vault" / seal.manifest_key, (number, number))
    assert [record.run_id for record in VaultReader(store).recent(2)] == [f"trace_{n:032x}" for n in (4, 3)]


def test_a_trace_id_finds_its_run(tmp_path: Path) -> None:
    """A run is found by its OpenTelemetry trace id; an unknown one finds nothing, damage elsewhere is passed over."""
    store = local(tmp_path)
    Conversation(1).store(store)
    bad = Conversation(1, run_id="trace_" + "99" * 16).store(store)
    _rewrite(tmp_path, bad.manifest_key, b"{}")
    assert VaultReader(store).find_trace(TRACE) == RUN
    assert VaultReader(store).find_trace("ee" * 16) is None


def test_an_unknown_run_has_no_records(tmp_path: Path) -> None:
    """An empty or absent vault knows no run."""
    assert VaultReader(local(tmp_path)).records("trace_" + "00" * 16) == []
