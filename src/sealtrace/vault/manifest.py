"""The description of a record, written last: no manifest, partial record.

It is plain JSON. The one part that is packed is `events`, gzipped JSON lines in base 85 (Python's
`base64.b85encode`; a twentieth smaller than base 64 and as safe in JSON): the envelopes that are not
in a meta segment of their own, which for a usual run are all of them. Each line is an envelope
without what the header says already (see `pack_envelope`).
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import hashlib
import re
from typing import Any, Final

from ..errors import RecordDamaged
from ..event import RunEvent
from . import layout, merkle
from .envelope import ALGORITHM
from .lines import decode_line, deflate, encode_line, inflate, storable
from .segment import Group

__all__ = ["MANIFEST_VERSION", "Manifest", "RecordHeader", "SegmentInfo", "pack_envelope", "unpack_envelope"]

MANIFEST_VERSION: Final = 1

_MAX_EVENTS: Final = 10_000_000
_HEX64: Final = re.compile(r"[0-9a-f]{64}\Z")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordHeader:
    """What a record says of its run. Times are RFC 3339; ids are hex.

    Attributes:
        fidelity: `full`, or `trace` where the SDK's seams were not all there.
        status: `ok`, `error`, `cancelled` or `incomplete`.
        dropped: Payloads dropped for want of room.
        redaction_failed: Payloads dropped because they could not be made safe.
        open_events: Operations that had not ended when the record was closed.
        group_tag: Keyed tag of the SDK's `group_id`.
        key_id: Which key made pseudonyms and digests.
        key_ephemeral: That key lived only as long as the process.
        event_count: How many `seq` were given; fewer stored events mean loss.
    """

    run_id: str
    record_id: str
    workflow_name: str | None
    started_at: str
    ended_at: str
    trace_ids: tuple[str, ...]
    root_span_id: str | None
    fidelity: str
    status: str
    dropped: int
    redaction_failed: int
    open_events: int
    agents: tuple[str, ...]
    tools: tuple[str, ...]
    models: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    group_tag: str | None
    sdk_version: str
    sealtrace_version: str
    key_id: str
    key_ephemeral: bool
    event_count: int


_TEXTS: Final = (
    "run_id", "record_id", "started_at", "ended_at", "fidelity", "status", "sdk_version", "sealtrace_version", "key_id",
)  # fmt: skip
_TEXTS_OR_NONE: Final = ("workflow_name", "root_span_id", "group_tag")
_TUPLES: Final = ("trace_ids", "agents", "tools", "models")
_COUNTS: Final = ("dropped", "redaction_failed", "open_events", "input_tokens", "output_tokens", "event_count")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """What the manifest says of one segment."""

    key: str
    klass: str
    sha256: str
    bytes: int
    lines: int
    root: str
    expires_at: str
    groups: tuple[Group, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A record's manifest.

    Attributes:
        header: What the record says of its run.
        segments: Its segments, in the order they were written.
        envelopes: Stored form of the envelopes kept in the manifest itself.
        ruleset_hash: The redaction rules that were in force.
        merkle_root: Over the segments' roots and the envelopes, hex.
        created_at: When it was written.
        expires_at: When the manifest itself may be deleted.
        complete: The recording process closed the record itself; False where it was recovered.
        sealed_by: Names the data key that the payload segments are encrypted under; None where they are not.
        signature: `algorithm`, `key`, `value`; None where it is not signed.
    """

    header: RecordHeader
    segments: tuple[SegmentInfo, ...]
    envelopes: tuple[bytes, ...]
    ruleset_hash: str
    merkle_root: str
    created_at: str
    expires_at: str
    complete: bool
    sealed_by: str | None = None
    signature: dict[str, str] | None = None

    @staticmethod
    def root_of(segments: tuple[SegmentInfo, ...], envelopes: tuple[bytes, ...]) -> str:
        """The record's Merkle root."""
        leaves = [bytes.fromhex(segment.root) for segment in segments]
        return merkle.root([*leaves, merkle.root([merkle.leaf(line) for line in envelopes])]).hex()

    def encode(self) -> bytes:
        """The manifest as it is stored, without its signature, which is over just these bytes."""
        document: dict[str, Any] = {
            "manifest": MANIFEST_VERSION,
            **dataclasses.asdict(self.header),
            "ruleset": self.ruleset_hash,
            "merkle_root": self.merkle_root,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "complete": self.complete,
            **({} if self.sealed_by is None else {"envelope": {"algorithm": ALGORITHM, "key": self.sealed_by}}),
            "segments": [_segment_json(segment) for segment in self.segments],
            "events": base64.b85encode(deflate(b"".join(self.envelopes))).decode() if self.envelopes else "",
        }
        return encode_line(storable(document))

    @classmethod
    def decode(cls, data: bytes, key: str) -> Manifest:
        """Read a stored manifest.

        Raises:
            RecordDamaged: It is not one, is of a newer version, or its digest is not the key's.
        """
        if hashlib.sha256(data).hexdigest()[:16] != key.rpartition("manifest-")[2].removesuffix(".json"):
            raise RecordDamaged(f"{key}: the manifest's bytes are not the ones its name promises", key=key)
        document = decode_line(data, key)
        if document.pop("manifest", None) != MANIFEST_VERSION:
            raise RecordDamaged(f"{key}: not a manifest of version {MANIFEST_VERSION}", key=key)
        try:
            manifest = cls._checked(document, key)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordDamaged(f"{key}: the manifest is not sound ({error})", key=key) from None
        if manifest.merkle_root != cls.root_of(manifest.segments, manifest.envelopes):
            raise RecordDamaged(f"{key}: the Merkle root is not the one of what the manifest lists", key=key)
        return manifest

    @classmethod
    def _checked(cls, document: dict[str, Any], key: str) -> Manifest:
        packed = base64.b85decode(_text(document.pop("events")))
        lines = tuple(line + b"\n" for line in inflate(packed, key).split(b"\n") if line)
        segments = document.pop("segments")
        own = {name: document.pop(name) for name in ("ruleset", "merkle_root", "created_at", "expires_at")}
        complete = document.pop("complete")
        signature = document.pop("signature", None)
        sealed_by = _sealed_by(document.pop("envelope", None), segments)
        header = _header(document)
        if type(complete) is not bool:
            raise ValueError("complete is not a boolean")
        for name in ("created_at", "expires_at"):
            _time(own[name])
        return cls(
            header=header,
            segments=tuple(_segment(item, header) for item in segments),
            envelopes=lines,
            ruleset_hash=_text(own["ruleset"]),
            merkle_root=_text(own["merkle_root"]),
            created_at=own["created_at"],
            expires_at=own["expires_at"],
            complete=complete,
            sealed_by=sealed_by,
            signature=None if signature is None else _signature(signature),
        )


def _sealed_by(data: Any, segments: Any) -> str | None:
    """The data key's name; all payloads are encrypted under it, or none is."""
    ident = None if data is None else _text(data["key"])
    if data is not None and (set(data) != {"algorithm", "key"} or data["algorithm"] != ALGORITHM):
        raise ValueError("the envelope is of no known form")
    payloads = [_text(item["key"]) for item in segments if item["class"] != layout.META]
    if any(layout.is_sealed(key) is not (ident is not None) for key in payloads):
        raise ValueError("some payloads are encrypted and others are not")
    return ident


def _signature(data: Any) -> dict[str, str]:
    if set(data) != {"algorithm", "key", "value"}:
        raise ValueError("the signature is of no known form")
    return {name: _text(value) for name, value in data.items()}


def _header(document: dict[str, Any]) -> RecordHeader:
    for name in _TEXTS:
        _text(document[name])
    for name in _TEXTS_OR_NONE:
        if document[name] is not None:
            _text(document[name])
    for name in _TUPLES:
        document[name] = tuple(_text(item) for item in document[name])
    for name in _COUNTS:
        _count(document[name])
    if type(document["key_ephemeral"]) is not bool:
        raise ValueError("key_ephemeral is not a boolean")
    if document["event_count"] > _MAX_EVENTS:
        raise ValueError("event_count is absurd")
    return RecordHeader(**document)


def _segment_json(segment: SegmentInfo) -> dict[str, Any]:
    return {
        "key": segment.key,
        "class": segment.klass,
        "sha256": segment.sha256,
        "bytes": segment.bytes,
        "lines": segment.lines,
        "root": segment.root,
        "expires_at": segment.expires_at,
        "groups": [_group_json(group, segment) for group in segment.groups],
    }


def _segment(data: dict[str, Any], header: RecordHeader) -> SegmentInfo:
    klass, key, sha256, root = (_text(data[name]) for name in ("class", "key", "sha256", "root"))
    _time(data["expires_at"])
    parts = layout.parse_key(key)
    # A manifest must not make a reader fetch another record's objects under this one's name.
    own = parts is not None and key.startswith(layout.record_prefix(klass, header.run_id, header.record_id))
    if parts is None or not own or not _HEX64.match(sha256) or parts["sha"] != sha256[:16] or not _HEX64.match(root):
        raise ValueError("a segment is not this record's")
    return SegmentInfo(
        key=key,
        klass=klass,
        sha256=sha256,
        bytes=_count(data["bytes"]),
        lines=_count(data["lines"]),
        root=root,
        expires_at=data["expires_at"],
        groups=tuple(_group(item, sha256) for item in data["groups"]),
    )


def _group_json(group: Group, segment: SegmentInfo) -> list[Any]:
    """Six numbers, and the digest unless it is the beginning of the segment's own."""
    *numbers, digest = dataclasses.astuple(group)
    return numbers if digest == segment.sha256[:32] else [*numbers, digest]


def _group(data: list[Any], sha256: str) -> Group:
    if len(data) not in {6, 7} or any(type(number) is not int or number < -1 for number in data[:6]):
        raise ValueError("a group is not six numbers and a digest")
    digest = _text(data[6]) if len(data) == 7 else sha256[:32]
    group = Group(data[0], data[1], data[2], data[3], data[4], data[5], digest)
    if group.offset < 0 or group.length < 1:
        raise ValueError("a group lies nowhere")
    return group


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("text is missing where it must be")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a count is not a whole number")
    return value


def _time(value: Any) -> None:
    if dt.datetime.fromisoformat(_text(value)).tzinfo is None:
        raise ValueError("a time has no zone")


_OPTIONAL: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("agent", "model", "call_id", "trace_id", "span_id", "sdk_span_id", "error_type"), (str,)),
    **dict.fromkeys(("actor", "config", "digests", "redactions"), (dict,)),
    "parent_seq": (int,),
    "duration_ms": (int, float),
}


def pack_envelope(event: RunEvent, first_trace: str | None) -> dict[str, Any]:
    """An envelope without what the record's header says already."""
    packed = event.envelope()
    for name in ("schema", "run_id", "record_id"):
        del packed[name]
    if packed.get("trace_id") == first_trace and "span_id" in packed:
        packed.pop("trace_id", None)
    if packed["status"] == "recorded":
        del packed["status"]
    return packed


def unpack_envelope(line: dict[str, Any], run_id: str, record_id: str, first_trace: str | None) -> RunEvent:
    """The counterpart of `pack_envelope`.

    Raises:
        ValueError: It is not a valid envelope of this record.
    """
    full: dict[str, Any] = {"schema": 1, "run_id": run_id, "record_id": record_id, "frame": "", **line}
    if first_trace is not None and "trace_id" not in full and "span_id" in full:
        full["trace_id"] = first_trace
    if full["run_id"] != run_id or full["record_id"] != record_id:
        raise ValueError("it is of another record")
    for name, types in _OPTIONAL.items():
        if name in full and type(full[name]) not in types:
            raise ValueError(f"{name!r} has the wrong type")
    if "payload" in full or type(full.get("seq")) is not int or not 0 <= full["seq"] < _MAX_EVENTS:
        raise ValueError("it has no seq, or a payload")
    return RunEvent.from_json(full)
