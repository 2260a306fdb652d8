"""The description of a record, written last: no manifest, partial record.

It is plain JSON. The one part that is packed is `events`, base64 of gzipped JSON lines: the
envelopes that are not in a meta segment of their own, which for a usual run are all of them.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from typing import Any, Final

from ..errors import RecordDamaged
from ..event import RunEvent
from . import merkle
from .lines import decode_line, deflate, inflate
from .segment import Group

__all__ = ["MANIFEST_VERSION", "Manifest", "RecordHeader", "SegmentInfo", "pack_envelope", "unpack_envelope"]

MANIFEST_VERSION: Final = 1


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
        expires_at: When the manifest itself may be deleted.
    """

    header: RecordHeader
    segments: tuple[SegmentInfo, ...]
    envelopes: tuple[bytes, ...]
    ruleset_hash: str
    expires_at: str
    merkle_root: str

    @staticmethod
    def root_of(segments: tuple[SegmentInfo, ...], envelopes: tuple[bytes, ...]) -> str:
        """The record's Merkle root."""
        leaves = [bytes.fromhex(segment.root) for segment in segments]
        return merkle.root([*leaves, merkle.root([merkle.leaf(line) for line in envelopes])]).hex()

    def encode(self) -> bytes:
        """The manifest as it is stored."""
        document: dict[str, Any] = {
            "manifest": MANIFEST_VERSION,
            **dataclasses.asdict(self.header),
            "ruleset": self.ruleset_hash,
            "merkle_root": self.merkle_root,
            "expires_at": self.expires_at,
            "segments": [_segment_json(segment) for segment in self.segments],
            "events": base64.b64encode(deflate(b"".join(self.envelopes))).decode(),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

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
            packed = base64.b64decode(document.pop("events"), validate=True)
            lines = tuple(line + b"\n" for line in inflate(packed, key).split(b"\n") if line)
            segments = tuple(_segment(item) for item in document.pop("segments"))
            ruleset, merkle_root = document.pop("ruleset"), document.pop("merkle_root")
            expires_at = document.pop("expires_at")
            for name in ("trace_ids", "agents", "tools", "models"):
                document[name] = tuple(document[name])
            header = RecordHeader(**document)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordDamaged(f"{key}: the manifest is not complete ({type(error).__name__})", key=key) from None
        if merkle_root != cls.root_of(segments, lines):
            raise RecordDamaged(f"{key}: the Merkle root is not the one of what the manifest lists", key=key)
        return cls(
            header=header, segments=segments, envelopes=lines, ruleset_hash=ruleset, expires_at=expires_at,
            merkle_root=merkle_root,
        )  # fmt: skip


def _segment_json(segment: SegmentInfo) -> dict[str, Any]:
    return {
        "key": segment.key,
        "class": segment.klass,
        "sha256": segment.sha256,
        "bytes": segment.bytes,
        "lines": segment.lines,
        "root": segment.root,
        "expires_at": segment.expires_at,
        "groups": [list(dataclasses.astuple(group)) for group in segment.groups],
    }


def _segment(data: dict[str, Any]) -> SegmentInfo:
    return SegmentInfo(
        key=data["key"],
        klass=data["class"],
        sha256=data["sha256"],
        bytes=data["bytes"],
        lines=data["lines"],
        root=data["root"],
        expires_at=data["expires_at"],
        groups=tuple(Group(*group) for group in data["groups"]),
    )


def pack_envelope(event: RunEvent, first_trace: str | None) -> dict[str, Any]:
    """An envelope without what the record's header says already."""
    packed = event.envelope()
    for name in ("schema", "run_id", "record_id"):
        del packed[name]
    if packed.get("trace_id") == first_trace:
        packed.pop("trace_id", None)
    if packed["status"] == "recorded":
        del packed["status"]
    return packed


def unpack_envelope(line: dict[str, Any], run_id: str, record_id: str, first_trace: str | None) -> RunEvent:
    """The counterpart of `pack_envelope`.

    Raises:
        ValueError: It is not a valid envelope.
    """
    full = {"schema": 1, "run_id": run_id, "record_id": record_id, "frame": "", **line}
    if first_trace is not None and "trace_id" not in full and "span_id" in full:
        full["trace_id"] = first_trace
    return RunEvent.from_json(full)
