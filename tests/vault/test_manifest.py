"""The manifest: plain JSON, strictly read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from sealtrace.errors import RecordDamaged
from sealtrace.event import EventStatus, RunEvent
from sealtrace.vault import Manifest
from sealtrace.vault.manifest import pack_envelope, unpack_envelope
from vault.records import RUN, TRACE, Conversation, local


@pytest.fixture
def stored(tmp_path: Path) -> bytes:
    """A manifest's bytes."""
    store = local(tmp_path)
    return store.get(Conversation(3).store(store).manifest_key)


def _decode(data: bytes) -> Manifest:
    return Manifest.decode(data, f"x/manifest-{hashlib.sha256(data).hexdigest()[:16]}.json")


def test_it_is_plain_json(stored: bytes) -> None:
    """Everything but the envelopes can be read with any JSON tool."""
    document = json.loads(stored)
    assert document["workflow_name"] == "Support"
    assert [segment["class"] for segment in document["segments"]] == ["io", "content"]
    assert document["complete"] is True


def test_it_comes_back_as_it_was(stored: bytes) -> None:
    """Decoding and encoding give the same bytes."""
    assert _decode(stored).encode() == stored


def test_other_bytes_than_the_name_promises_are_damage(stored: bytes) -> None:
    """A manifest under the name of another is refused."""
    with pytest.raises(RecordDamaged, match="name promises"):
        Manifest.decode(stored, "x/manifest-0000000000000000.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("manifest",), 2),
        (("event_count",), "9"),
        (("event_count",), -1),
        (("event_count",), 10**15),
        (("event_count",), True),
        (("complete",), "yes"),
        (("key_ephemeral",), 0),
        (("trace_ids",), [1]),
        (("workflow_name",), {}),
        (("expires_at",), "soon"),
        (("expires_at",), "2026-12-01T00:00:00"),
        (("merkle_root",), "00" * 32),
        (("events",), "!!"),
        (("events",), 7),
        (("events",), "AAAA"),
        (("segments",), {}),
        (("segments",), 3),
        (("segments", 0), None),
        (("segments", 0, "key"), "../../etc/passwd"),
        (("segments", 0, "key"), f"io/v1/ff/{'ff' * 16}/{'01' * 16}/000000-{'0' * 16}.jsonl.gz"),
        (("segments", 0, "class"), "content"),
        (("segments", 0, "root"), "zz"),
        (("segments", 0, "sha256"), "00" * 32),
        (("segments", 0, "bytes"), 1.5),
        (("segments", 0, "expires_at"), None),
        (("segments", 0, "groups"), 1),
        (("segments", 0, "groups", 0), [0, 1, 2]),
        (("segments", 0, "groups", 0, 1), "9"),
        (("segments", 0, "groups", 0, 0), -1),
        (("unknown",), 1),
    ],
)
def test_a_wrong_field_is_damage(stored: bytes, path: tuple[Any, ...], value: Any) -> None:
    """A field of wrong type, range or meaning is refused, never a crash and never believed."""
    document = json.loads(stored)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    with pytest.raises(RecordDamaged):
        _decode(json.dumps(document).encode())


@pytest.mark.parametrize("name", ["run_id", "segments", "events", "merkle_root", "key_id", "complete"])
def test_a_missing_field_is_damage(stored: bytes, name: str) -> None:
    """A manifest without one of its fields is refused."""
    document = json.loads(stored)
    del document[name]
    with pytest.raises(RecordDamaged):
        _decode(json.dumps(document).encode())


def test_envelopes_survive_packing() -> None:
    """Packing leaves out what the header says, and unpacking puts exactly that back."""
    event = dataclasses.replace(Conversation(1).events[3], payload=None, status=EventStatus.PAYLOAD_DROPPED)
    packed = pack_envelope(event, TRACE)
    assert not {"run_id", "record_id", "trace_id", "schema"} & set(packed)
    assert unpack_envelope(packed, event.run_id, event.record_id, TRACE) == event


@pytest.mark.parametrize(
    "change",
    [
        {"seq": -1},
        {"seq": True},
        {"seq": 10**12},
        {"kind": "other"},
        {"status": "fine"},
        {"record_id": "02" * 16},
        {"payload": {}},
        {"digests": []},
        {"duration_ms": "long"},
        {"agent": 5},
        {"schema": 2},
        {"surprise": 1},
    ],
)
def test_a_wrong_envelope_is_refused(change: dict[str, Any]) -> None:
    """An envelope with a field of wrong type or of another record is refused."""
    event: RunEvent = dataclasses.replace(Conversation(1).events[0], payload=None)
    with pytest.raises(ValueError, match=r"\w"):
        unpack_envelope(pack_envelope(event, None) | change, RUN, event.record_id, None)
