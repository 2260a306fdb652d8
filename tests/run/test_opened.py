"""A run opened without payloads says of each event what the whole run says, and reads one by one."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from run.halves import RUN, Conversation, spans_of, write_otlp
from sealtrace.errors import ObjectNotFound, VaultDenied
from sealtrace.event import EventStatus, Kind
from sealtrace.run import OpenedRun, open_run
from sealtrace.telemetry.sources import open_source
from sealtrace.vault import Store, VaultReader, layout
from sealtrace.vault.excerpt import shortened
from sealtrace.vault.stores import LocalStore, ObjectInfo
from vault.records import plain


class Watched:
    """A store that counts what is read of it and can refuse a class.

    Attributes:
        reads: Key, first byte and length of each read; None where an object was read whole.
        denied: Classes that may not be read.
    """

    def __init__(self, inner: Store, *, denied: tuple[str, ...] = ()) -> None:
        self.inner = inner
        self.reads: list[tuple[str, int | None, int | None]] = []
        self.denied = denied
        self.url = inner.url

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        self.reads.append((key, start, length))
        if key.startswith(tuple(f"{klass}/" for klass in self.denied)):
            raise VaultDenied(f"{key} refused", key=key)
        return self.inner.get(key, start=start, length=length)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        return self.inner.list(prefix)

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        raise AssertionError("reading writes nothing")

    def delete(self, key: str) -> None:
        raise AssertionError("reading deletes nothing")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """An empty vault."""
    return LocalStore(tmp_path / "vault")


def opened(store: Store, *, later: dt.timedelta = dt.timedelta(0), whole: bool = False) -> OpenedRun:
    """The run, at a later time."""
    return open_run(RUN, VaultReader(store, clock=lambda: dt.datetime.now(dt.UTC) + later), None, whole=whole)


def test_every_payload_can_be_read_by_itself(store: LocalStore) -> None:
    """One by one, the payloads are those that were stored, and the run's other half is the same as of a whole run."""
    made = Conversation(40)
    made.store(store)
    watched = Watched(store)
    found = opened(watched)
    whole = opened(store, whole=True)
    payload_reads = [read for read in watched.reads if not read[0].startswith("meta/")]
    assert {length for _, _, length in payload_reads} == {1}
    assert [event.envelope() for event in found.run.events] == [event.envelope() for event in whole.run.events]
    assert found.run.status is whole.run.status
    assert all(event.payload is None for event in found.run.events)
    for event, stored in zip(found.run.events, made.events, strict=True):
        assert found.payload(event) == plain(stored.payload)


def test_a_tool_result_costs_one_ranged_read(store: LocalStore) -> None:
    """Far from everything that was read before, a result is one read of a range, and its neighbour none."""
    made = Conversation(800)
    made.store(store)
    watched = Watched(store)
    found = opened(watched)
    for turn in (100, 700, 400):
        watched.reads.clear()
        event = found.run.event(3 * turn)
        assert event.kind is Kind.TOOL_RESULT
        found.payload(event)
        found.payload(found.run.event(3 * turn - 1))
        (read,) = watched.reads
        assert read[1] is not None
        assert read[2] is not None


def test_a_late_request_is_read_from_its_end(store: LocalStore) -> None:
    """Of a conversation of 1,600 messages the last are read, by two ranges at most: its own, and the instructions'."""
    made = Conversation(800)
    made.store(store)
    watched = Watched(store)
    found = opened(watched)
    event = [event for event in found.run.events if event.kind is Kind.GENERATION][-1]
    watched.reads.clear()
    short = found.excerpt(event, 4)
    assert 1 <= len(watched.reads) <= 2
    whole = plain(made.events[event.seq].payload)
    given, kept = whole["request"].pop("input"), short.payload["request"].pop("input")
    assert short.left_out > 1_000
    assert len(kept) >= 4
    assert short.left_out + len(kept) == len(given)
    assert kept == given[short.left_out :]
    assert short.payload == whole
    assert found.payload(event)["request"]["input"] == given


def test_expired_and_denied_are_known_before_anything_is_read(store: LocalStore) -> None:
    """Each class says for itself whether it can be had: past its time, refused, or there."""
    Conversation(3).store(store)
    late = opened(store, later=dt.timedelta(days=8))
    by_kind = {event.kind: event.status for event in late.run.events}
    assert by_kind[Kind.GENERATION] is by_kind[Kind.TOOL_RESULT] is EventStatus.PAYLOAD_EXPIRED
    assert by_kind[Kind.INPUT] is by_kind[Kind.OUTPUT] is EventStatus.RECORDED
    refused = opened(Watched(store, denied=("content",)))
    by_kind = {event.kind: event.status for event in refused.run.events}
    assert by_kind[Kind.GENERATION] is EventStatus.PAYLOAD_DENIED
    assert by_kind[Kind.INPUT] is EventStatus.RECORDED
    with pytest.raises(ObjectNotFound, match="payload denied"):
        refused.payload(refused.run.event(1))


def test_what_was_deleted_is_missing(store: LocalStore, tmp_path: Path) -> None:
    """A class whose objects are gone before their time is missing, and the run opens without it."""
    Conversation(3).store(store)
    for item in list(store.list("content/")):
        store.delete(item.key)
    found = opened(store)
    assert found.run.event(1).status is EventStatus.PAYLOAD_MISSING
    assert found.run.event(0).status is EventStatus.RECORDED


def test_a_partial_record_is_read_whole(store: LocalStore) -> None:
    """Without a manifest nothing says where a payload lies, so the record is read at once."""
    made = Conversation(3)
    made.store(store)
    for item in list(store.list(layout.META)):
        if "manifest" in item.key:
            store.delete(item.key)
    found = opened(store)
    assert found.run.event(2).status is EventStatus.PARTIAL_RECORD
    assert found.payload(found.run.event(2)) == plain(made.events[2].payload)
    assert found.excerpt(found.run.event(4), 1).left_out == 0


def test_spans_alone_have_no_payloads(tmp_path: Path) -> None:
    """A run that only the source knows opens, and asking for a payload says that there is none."""
    made = Conversation(2)
    source = open_source(write_otlp(tmp_path / "traces.jsonl", spans_of(made)))
    found = open_run(RUN, None, source)
    assert len(found.run.events) > 0
    with pytest.raises(ObjectNotFound):
        found.payload(found.run.events[0])


@pytest.mark.parametrize(
    ("ranges", "nearby", "newest", "kept", "left_out"),
    [
        ([[0, 9]], set(), 3, [[7, 9]], 7),
        ([[0, 9]], {5, 6}, 3, [[5, 9]], 5),
        ([[0, 9]], {4, 6}, 3, [[6, 9]], 6),
        ([[0, 4], [9, 9]], set(), 3, [[3, 4], [9, 9]], 3),
        ([[0, 4], [9, 9]], set(), 1, [[9, 9]], 5),
        ([[0, 4]], set(), 0, [], 5),
        ([[0, 4]], set(), 50, [[0, 4]], 0),
        ([], set(), 3, [], 0),
        ([[0, 10**15]], {7}, 2, [[10**15 - 1, 10**15]], 10**15 - 1),
        ([[5, 4]], set(), 2, [], 0),
    ],
)
def test_where_a_conversation_is_cut(
    ranges: list[list[int]], nearby: set[int], newest: int, kept: list[list[int]], left_out: int
) -> None:
    """The last ones stay, and before them what is at hand without a gap; all others are counted."""
    stored = {"request": {"model": "m", "input": {"$list": ranges}}, "response": 1}
    found = shortened(stored, nearby, newest)
    assert found.payload == {"request": {"model": "m", "input": {"$list": kept}}, "response": 1}
    assert found.left_out == left_out


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "text",
        [1],
        {"request": None},
        {"request": {"input": "text"}},
        {"request": {"input": [1, 2]}},
        {"request": {"input": {"$ref": 3}}},
        {"request": {"input": {"$list": "x"}}},
        {"request": {"input": {"$list": [[1]]}}},
        {"request": {"input": {"$list": [[True, 2]]}}},
    ],
)
def test_what_quotes_no_conversation_is_left_alone(stored: object) -> None:
    """A payload of another form, a broken one included, is not touched."""
    before = json.dumps(stored)
    assert shortened(stored, {1}, 1) == shortened(stored, set(), 0)
    assert shortened(stored, {1}, 1).payload == stored
    assert json.dumps(stored) == before
