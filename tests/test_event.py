"""The event: its stored form, its ids, its shared values."""

from __future__ import annotations

import dataclasses
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.event import (
    SCHEMA_VERSION,
    EventStatus,
    Kind,
    RunEvent,
    Shared,
    canonical_run_id,
    new_record_id,
    resolve_shared,
    run_hex,
    timestamp,
)

RUN = f"trace_{'ab' * 16}"
RECORD = "cd" * 16

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
maybe = st.none() | st.text()
events = st.builds(
    RunEvent,
    run_id=st.text("0123456789abcdef", min_size=32, max_size=32).map("trace_{}".format),
    record_id=st.text("0123456789abcdef", min_size=32, max_size=32),
    seq=st.integers(0),
    ts=st.integers(0, 4_000_000_000_000_000_000).map(timestamp),
    kind=st.sampled_from(Kind),
    frame=st.text(),
    ordinal=st.integers(0),
    agent=maybe,
    model=maybe,
    parent_seq=st.none() | st.integers(0),
    call_id=maybe,
    trace_id=st.none() | st.text("0123456789abcdef", min_size=32, max_size=32),
    span_id=st.none() | st.text("0123456789abcdef", min_size=16, max_size=16),
    sdk_span_id=maybe,
    duration_ms=st.none() | st.floats(0, allow_infinity=False),
    error_type=maybe,
    actor=st.none() | st.dictionaries(st.text(), json_values, min_size=1),
    config=st.none() | st.dictionaries(st.text(), json_values, min_size=1),
    digests=st.dictionaries(st.text(), st.text()),
    redactions=st.dictionaries(st.text(), st.integers(1)),
    status=st.sampled_from(EventStatus),
    payload=json_values,
)


def minimal(**changes: Any) -> dict[str, Any]:
    """The least an event can be, in its stored form, with these changes."""
    event = RunEvent(run_id=RUN, record_id=RECORD, seq=0, ts=timestamp(0), kind=Kind.INPUT, payload={"input": "hello"})
    return {**event.to_json(), **changes}


@given(events)
def test_the_stored_form_reads_back_equal(event: RunEvent) -> None:
    """An event written as JSON text and read again is the same event."""
    assert RunEvent.from_json(json.loads(json.dumps(event.to_json()))) == event


@given(events)
def test_the_envelope_holds_no_payload_and_nothing_empty(event: RunEvent) -> None:
    """The metadata half is the whole without the payload, and says only what is known."""
    envelope = event.envelope()
    assert "payload" not in envelope
    assert all(value is not None and value != {} for value in envelope.values())
    assert RunEvent.from_json(envelope) == dataclasses.replace(event, payload=None)


@pytest.mark.parametrize("field", ["run_id", "record_id", "seq", "ts", "kind", "frame", "ordinal"])
def test_a_missing_field_is_refused_by_name(field: str) -> None:
    """What every event has cannot be missing, and the error names it."""
    data = minimal()
    del data[field]
    with pytest.raises(ValueError, match=field):
        RunEvent.from_json(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": "0"},
        {"seq": True},
        {"ordinal": 1.0},
        {"kind": "dream"},
        {"status": "fine"},
        {"schema": SCHEMA_VERSION + 1},
        {"schema": None},
        {"colour": "red"},
    ],
)
def test_what_is_not_an_event_is_refused(changes: dict[str, Any]) -> None:
    """A wrong type, an unknown word, an unknown field or a newer schema is a ValueError that says which."""
    (name, value), *_ = changes.items()
    with pytest.raises(ValueError, match=f"{name}|{value}"):
        RunEvent.from_json(minimal(**changes))


def test_run_ids_are_canonical() -> None:
    """The SDK's ids and bare hex name the same run; any other string maps to a safe id, always the same."""
    assert canonical_run_id(RUN) == RUN
    assert canonical_run_id("ab" * 16) == RUN
    assert run_hex(RUN) == "ab" * 16
    mine = canonical_run_id("../my own id\n")
    assert mine == canonical_run_id("../my own id\n") != canonical_run_id("../my own id")


@given(st.text())
def test_any_string_maps_to_a_safe_run_id(text: str) -> None:
    """Whatever a user passes as trace id, the run id is `trace_` and 32 hex digits, and stays as it is."""
    mapped = canonical_run_id(text)
    assert mapped.startswith("trace_")
    assert len(run_hex(mapped)) == 32
    assert set(run_hex(mapped)) <= set("0123456789abcdef")
    assert canonical_run_id(mapped) == mapped


def test_record_ids_are_uuid7_and_sort_by_time() -> None:
    """A record id is a UUIDv7 of now: version and variant are right, the time is in front."""
    before = time.time_ns() // 1_000_000
    made = [new_record_id() for _ in range(500)]
    after = time.time_ns() // 1_000_000
    assert len(set(made)) == 500
    assert {(name[12], name[16] in "89ab", len(name)) for name in made} == {("7", True, 32)}
    assert all(before <= int(name[:12], 16) <= after for name in made)


@given(st.integers(0, 4_000_000_000_000_000_000))
def test_timestamps_are_rfc3339_utc_with_microseconds(unix_ns: int) -> None:
    """A timestamp reads back to the microsecond, and text order is time order."""
    text = timestamp(unix_ns)
    read = datetime.fromisoformat(text)
    assert read.tzinfo == UTC
    assert text.endswith("Z")
    assert len(text) == 27
    assert (read - datetime.fromtimestamp(0, UTC)) // (datetime.resolution) == unix_ns // 1000
    assert timestamp(unix_ns + 1_000) > text


def test_shared_values_come_out_redacted() -> None:
    """Every shared value is replaced by what it was redacted to, wherever it stands."""
    shared = Shared({"content": "secret"})
    shared.redacted, shared.is_redacted = {"content": "<X>"}, True
    assert resolve_shared({"a": [shared, 1, {"b": shared}]}) == {
        "a": [{"content": "<X>"}, 1, {"b": {"content": "<X>"}}]
    }


def test_a_raw_shared_value_is_never_handed_out() -> None:
    """Before redaction the value cannot be had, and the error does not quote it."""
    with pytest.raises(ValueError, match="before it was redacted") as caught:
        resolve_shared([Shared("secret")])
    assert "secret" not in str(caught.value)
