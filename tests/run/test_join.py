"""The join: statuses, gaps, and the collector as a witness."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from run.halves import RUN, Conversation, seal_span, span, spans_of
from sealtrace.errors import VaultDenied
from sealtrace.event import EventStatus, Kind
from sealtrace.run import Finding
from sealtrace.run.join import Joined, join
from sealtrace.settings import Retention, Settings
from sealtrace.telemetry.sources import SpanRecord
from sealtrace.vault import StoredRecord, VaultReader
from sealtrace.vault.stores import LocalStore
from vault.records import plain


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """An empty vault."""
    return LocalStore(tmp_path / "vault")


def joined(store: LocalStore, spans: Sequence[SpanRecord], **asked: bool) -> Joined:
    """Join all of run `RUN`."""
    options = {"asked_vault": True, "asked_telemetry": True} | asked
    return join(RUN, VaultReader(store).records(RUN), spans, **options)


def statuses(found: Joined) -> set[EventStatus]:
    """The statuses that occur."""
    return {event.status for record in found.records for event in record.events}


def codes(found: Joined, *, serious: bool = True) -> list[str]:
    """The codes of the findings."""
    return [finding.code for finding in found.findings if finding.serious is serious]


def test_both_halves_whole(store: LocalStore) -> None:
    """Every event that has its payload and its span is joined, and nothing is complained of."""
    run = Conversation(3)
    seal = run.store(store)
    found = joined(store, [*spans_of(run), seal_span(run, seal)])
    assert statuses(found) == {EventStatus.JOINED}
    assert codes(found) == []
    assert [event.payload for event in found.records[0].events] == [plain(event.payload) for event in run.events]


def test_without_a_telemetry_source_no_span_counts_as_missing(store: LocalStore) -> None:
    """Payloads alone are no defect where spans were not asked for."""
    Conversation(1).store(store)
    found = joined(store, [], asked_telemetry=False)
    assert statuses(found) == {EventStatus.RECORDED}
    assert codes(found) == []


def test_spans_that_were_sampled_out_are_missing_one_by_one(store: LocalStore) -> None:
    """An event whose span the collector lacks says so; the others are joined."""
    run = Conversation(2)
    run.store(store)
    found = joined(store, spans_of(run, without=frozenset({3, 4})))
    by_seq = {event.seq: event.status for event in found.records[0].events}
    assert [seq for seq, status in by_seq.items() if status is EventStatus.SPAN_MISSING] == [3, 4]
    assert by_seq[2] is EventStatus.JOINED


def test_a_span_of_another_trace_with_the_same_span_id_is_not_the_events(store: LocalStore) -> None:
    """Span ids are unique in their trace only."""
    run = Conversation(1)
    run.store(store)
    elsewhere = [dataclasses.replace(item, trace_id="ee" * 16) for item in spans_of(run)]
    assert statuses(joined(store, elsewhere)) == {EventStatus.SPAN_MISSING}


def test_a_record_without_a_manifest_is_partial(store: LocalStore) -> None:
    """What a killed process left is shown, and said to be partial."""
    run = Conversation(2)
    run.store(store)
    manifest = next(item.key for item in store.list("meta/") if "manifest" in item.key)
    segments = [item.key for item in store.list("content/")]
    store.delete(manifest)
    found = joined(store, spans_of(run))
    assert segments
    assert found.records[0].partial
    assert codes(found).count("partial_record") == 1


def test_a_sealed_record_that_lost_its_manifest_contradicts_the_collector(store: LocalStore) -> None:
    """Taking a manifest away makes a record look merely partial; the seal span knows better."""
    run = Conversation(1)
    seal = run.store(store)
    store.delete(seal.manifest_key)
    assert "witness_mismatch" in codes(joined(store, [*spans_of(run), seal_span(run, seal)]))


@pytest.mark.parametrize(
    "claim", [{"sealtrace.run.merkle_root": "00" * 32}, {"sealtrace.run.events": 999}], ids=["root", "events"]
)
def test_the_collector_and_the_vault_must_agree(store: LocalStore, claim: dict[str, Any]) -> None:
    """A record that is not the one the collector saw sealed is called out."""
    run = Conversation(1)
    seal = run.store(store)
    assert codes(joined(store, [*spans_of(run), seal_span(run, seal, **claim)])) == ["witness_mismatch"]


def test_another_records_seal_says_nothing_of_this_one(store: LocalStore) -> None:
    """A seal is compared with the record it names."""
    run = Conversation(1)
    seal = run.store(store)
    other = dataclasses.replace(
        seal_span(run, seal),
        attributes={**seal_span(run, seal).attributes, "sealtrace.record.id": "ff" * 16, "sealtrace.run.events": 1},
    )
    assert "witness_mismatch" not in codes(joined(store, [*spans_of(run), other]))


def test_lost_events_are_a_gap(store: LocalStore) -> None:
    """Numbers that were given and not stored are named."""
    run = Conversation(2)
    kept = [event for event in run.events if event.seq not in (3, 4, 6)]
    run.events[:] = kept
    run.store(store, event_count=len(kept) + 3)
    found = joined(store, [], asked_telemetry=False)
    assert found.records[0].gaps == (3, 4, 6)
    assert "3-4, 6" in next(finding.message for finding in found.findings if finding.code == "gap")


def test_an_event_only_the_collector_knows_is_shown_without_its_payload(store: LocalStore) -> None:
    """A span that claims an event the vault lost fills the gap and is counted as a loss."""
    run = Conversation(2)
    spans = spans_of(run)
    lost = next(event for event in run.events if event.kind is Kind.TOOL_CALL)
    run.events.remove(lost)
    run.store(store, event_count=len(run.events) + 1)
    found = joined(store, spans)
    event = next(event for event in found.records[0].events if event.seq == lost.seq)
    assert (event.kind, event.status, event.payload) == (Kind.TOOL_CALL, EventStatus.PAYLOAD_MISSING, None)
    assert "only_in_spans" in codes(found)
    assert found.records[0].gaps == ()


def test_spans_alone_still_give_the_events(store: LocalStore) -> None:
    """Without a vault the spans' first events are there, without payloads."""
    run = Conversation(2)
    found = joined(store, spans_of(run), asked_vault=False)
    (record,) = found.records
    assert not record.in_vault
    assert statuses(found) == {EventStatus.PAYLOAD_MISSING}
    assert {Kind.GENERATION, Kind.TOOL_CALL} <= {event.kind for event in record.events}
    assert codes(found) == ["no_payloads"]


def test_payloads_past_their_retention_are_expired(store: LocalStore) -> None:
    """The envelopes outlive the payloads, and each event says why it has none."""
    run = Conversation(1)
    run.store(store, Settings(retention=Retention(io=365 * 200, content=1, meta=365 * 200)))
    later = [_Later(record) for record in VaultReader(store).records(RUN)]
    found = join(RUN, later, spans_of(run), asked_vault=True, asked_telemetry=True)  # type: ignore[arg-type]
    by_kind = {event.kind: event.status for event in found.records[0].events}
    assert by_kind[Kind.GENERATION] is EventStatus.PAYLOAD_EXPIRED
    assert by_kind[Kind.INPUT] is EventStatus.JOINED
    assert "payload_expired" in codes(found)


class _Later:
    """A stored record, read when the payloads of class `content` are past their time."""

    def __init__(self, record: StoredRecord) -> None:
        record.expired = lambda key: key.startswith("content/")  # type: ignore[method-assign]
        self._record = record

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def test_payloads_that_may_not_be_read_are_denied(store: LocalStore) -> None:
    """Credentials that may read the metadata alone give the envelopes, each marked."""
    run = Conversation(1)
    run.store(store)
    found = join(
        RUN, VaultReader(_MetadataOnly(store)).records(RUN), spans_of(run), asked_vault=True, asked_telemetry=True
    )
    assert statuses(found) == {EventStatus.PAYLOAD_DENIED}
    assert "payload_denied" in codes(found)


class _MetadataOnly:
    """A store whose credentials may read class `meta` alone."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        if not key.startswith("meta/"):
            raise VaultDenied(f"{key}: not allowed", key=key)
        return self._store.get(key, start=start, length=length)


def test_altered_bytes_are_damage_and_the_envelopes_stay_readable(store: LocalStore) -> None:
    """One flipped byte in a segment is found; what the manifest itself holds is still shown."""
    run = Conversation(1)
    run.store(store)
    path = Path(store.url.removeprefix("file://")) / next(item.key for item in store.list("content/"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(data))
    found = joined(store, spans_of(run))
    assert "damaged" in codes(found)
    assert [event.seq for event in found.records[0].events] == [event.seq for event in run.events]
    assert EventStatus.JOINED not in statuses(found)


def test_records_come_oldest_first(store: LocalStore) -> None:
    """A run resumed in another process has two records, in the order they were written."""
    second, first = Conversation(1), Conversation(1)
    second.store(store, started_at="2026-12-01T10:00:00.000000Z", ended_at="2026-12-01T10:01:00.000000Z")
    first.store(store, started_at="2026-12-01T09:00:00.000000Z")
    found = joined(store, [], asked_telemetry=False)
    assert [record.record_id for record in found.records] == [first.record_id, second.record_id]


def test_spans_of_other_runs_in_the_trace_are_left_out(store: LocalStore) -> None:
    """A web request may start two runs in one trace; foreign spans stay, the other run's go."""
    run = Conversation(1)
    run.store(store)
    other = span("77" * 8, "trace", "invoke_workflow Other", run_id="trace_" + "99" * 16, record_id="88" * 16)
    foreign = span("66" * 8, None, "GET /tickets")
    found = joined(store, [*spans_of(run), other, foreign])
    names = {item.name for item in found.spans}
    assert "GET /tickets" in names
    assert "invoke_workflow Other" not in names
    (finding,) = found.findings
    assert (finding.code, finding.serious) == ("other_runs", False)
    assert "trace_" + "99" * 16 in finding.message
    assert len(found.records) == 1


def test_dropped_and_unredactable_payloads_are_counted(store: LocalStore) -> None:
    """What the recorder gave up is said with its number, and stays an event."""
    run = Conversation(1)
    run.events[1] = dataclasses.replace(run.events[1], payload=None, status=EventStatus.PAYLOAD_DROPPED)
    run.events[2] = dataclasses.replace(run.events[2], payload=None, status=EventStatus.REDACTION_FAILED)
    run.store(store, dropped=1, redaction_failed=1)
    found = joined(store, spans_of(run))
    assert [event.status for event in found.records[0].events[1:3]] == [
        EventStatus.PAYLOAD_DROPPED,
        EventStatus.REDACTION_FAILED,
    ]
    assert sorted(codes(found)) == ["dropped", "redaction_failed"]


@pytest.mark.parametrize(
    ("request_fields", "says"),
    [
        ({"previous_response_id": "resp_9"}, "previous_response_id resp_9"),
        ({"conversation_id": "conv_1"}, "conversation_id conv_1"),
        ({"prompt": {"id": "pmpt_3", "version": "7"}}, "prompt pmpt_3 version 7"),
    ],
)
def test_context_the_server_holds_is_pointed_out(store: LocalStore, request_fields: dict[str, Any], says: str) -> None:
    """A request that names its context instead of sending it is marked, and lowers nothing."""
    run = Conversation(1)
    at = next(index for index, event in enumerate(run.events) if event.kind is Kind.GENERATION)
    request = {**run.events[at].payload["request"], **request_fields, "held_by_server": True}
    run.events[at] = dataclasses.replace(run.events[at], payload={**run.events[at].payload, "request": request})
    run.store(store)
    found = joined(store, spans_of(run))
    (finding,) = [item for item in found.findings if item.code == "held_by_server"]
    assert isinstance(finding, Finding)
    assert says in finding.message
    assert "was not recorded" in finding.message
    assert (finding.seq, finding.serious) == (run.events[at].seq, False)


@pytest.mark.parametrize(
    ("changes", "code", "serious"),
    [({"fidelity": "trace"}, "fidelity", True), ({"open_events": 2}, "open_events", False)],
)
def test_what_the_header_admits_is_said(store: LocalStore, changes: dict[str, Any], code: str, serious: bool) -> None:
    """A record from traces alone is less than whole; operations that were still open are good to know."""
    run = Conversation(1)
    run.store(store, **changes)
    assert codes(joined(store, spans_of(run)), serious=serious) == [code]


def test_a_record_recovered_from_a_spool_says_so(store: LocalStore) -> None:
    """What a killed process left has a manifest and may still not be all there was."""
    run = Conversation(1)
    run.store(store)
    (record,) = VaultReader(store).records(RUN)
    assert record.manifest is not None
    record.__dict__["manifest"] = dataclasses.replace(record.manifest, complete=False)
    found = join(RUN, [record], spans_of(run), asked_vault=True, asked_telemetry=True)
    assert codes(found) == ["recovered"]


def test_a_record_that_cannot_be_read_leaves_the_others(store: LocalStore) -> None:
    """One record's manifest may not be read: it is named, and the other record is all there."""
    first, second = Conversation(1, seed=1), Conversation(1, seed=2)
    first.store(store)
    second.store(store)
    found = join(
        RUN, VaultReader(_Without(store, first.record_id)).records(RUN), [], asked_vault=True, asked_telemetry=False
    )
    assert [finding.record_id for finding in found.findings] == [first.record_id]
    assert codes(found) == ["unreadable"]
    assert [len(record.events) for record in found.records if record.record_id == second.record_id] == [5]


class _Without:
    """A store that does not give out one record's objects."""

    def __init__(self, store: LocalStore, record_id: str) -> None:
        self._store, self._record_id = store, record_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        if self._record_id in key:
            raise VaultDenied(f"{key}: not allowed", key=key)
        return self._store.get(key, start=start, length=length)
