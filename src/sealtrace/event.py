"""The run event: one thing that happened in a run, in order.

An event has two halves. The *envelope* is metadata and outlives the payload; the *payload* is
content, is redacted before it leaves the process and never enters a span. `docs/event.schema.json`
is the JSON Schema of the stored form.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import random
import re
import time
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

__all__ = [
    "SCHEMA_VERSION",
    "EventStatus",
    "Kind",
    "RunEvent",
    "Shared",
    "canonical_run_id",
    "new_record_id",
    "resolve_shared",
    "run_hex",
    "timestamp",
]

SCHEMA_VERSION: Final = 1

JSON: TypeAlias = Any
"""Plain JSON: None, bool, int, float, str, list, dict with str keys."""


class Kind(StrEnum):
    """What happened."""

    INPUT = "input"
    GENERATION = "generation"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    HANDOFF = "handoff"
    GUARDRAIL = "guardrail"
    OUTPUT = "output"
    APPROVAL = "approval"
    RETRIEVAL = "retrieval"
    CHECKPOINT = "checkpoint"
    MCP_TOOLS = "mcp_tools"
    CUSTOM = "custom"
    ERROR = "error"


class EventStatus(StrEnum):
    """Where the two halves of an event stand.

    The first three are written by the recorder, the others are found by the join.
    """

    RECORDED = "recorded"
    PAYLOAD_DROPPED = "payload dropped"
    REDACTION_FAILED = "redaction failed"
    JOINED = "joined"
    PAYLOAD_EXPIRED = "payload expired"
    PAYLOAD_DENIED = "payload denied"
    PAYLOAD_MISSING = "payload missing"
    PAYLOAD_ERASED = "payload erased"
    SPAN_MISSING = "span missing"
    PARTIAL_RECORD = "partial record"


class Shared:
    """A value that many events of one record repeat: a message, the instructions, the tool list.

    It sits in a raw payload in place of the value. Identity is the point: the same `Shared` is
    redacted once, digested once and stored once, however many generations quote it.

    Attributes:
        value: The raw snapshot, plain JSON.
        redacted: What the redactor made of it; only meaningful once `is_redacted`.
        redactions: How many values of each kind were replaced in it.
        digest: Keyed HMAC of the raw value, once computed.
    """

    __slots__ = ("digest", "is_redacted", "redacted", "redactions", "value")

    def __init__(self, value: JSON) -> None:
        self.value = value
        self.redacted: JSON = None
        self.is_redacted = False
        self.redactions: dict[str, int] = {}
        self.digest: str | None = None


def resolve_shared(value: JSON) -> JSON:
    """Plain JSON from a redacted payload: every `Shared` replaced by what it was redacted to.

    Raises:
        ValueError: A `Shared` has not been redacted; raw content is never handed out by accident.
    """
    if isinstance(value, Shared):
        if not value.is_redacted:
            raise ValueError("a shared value was asked for before it was redacted")
        return value.redacted
    if isinstance(value, dict):
        items: dict[str, JSON] = value
        return {key: resolve_shared(item) for key, item in items.items()}
    if isinstance(value, list):
        elements: list[JSON] = value
        return [resolve_shared(item) for item in elements]
    return value


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One event of a run.

    Attributes:
        run_id: `trace_` and 32 hex digits: the SDK trace id, see `canonical_run_id`.
        record_id: Which process's record it belongs to; UUIDv7 hex.
        seq: Strictly monotonic in the record, given when the thing happens.
        ts: When it happened, RFC 3339 UTC with microseconds.
        kind: What happened.
        frame: Where in the nesting it happened, for example `run:0/tool:call_1/run:0`.
        ordinal: The how-manieth event of this kind in this frame, from 0.
        agent: The agent's name, through the identifier gate.
        model: The model's name.
        parent_seq: The event that caused it: tool_result to tool_call to generation.
        call_id: The model's tool call id.
        trace_id: OpenTelemetry trace id, 32 hex digits.
        span_id: OpenTelemetry span id, 16 hex digits.
        sdk_span_id: The Agents SDK's own span id.
        duration_ms: How long it took, milliseconds.
        error_type: Class name of the exception it ended with; never a message.
        actor: Authority in force: who, scopes, policy, approval.
        config: What the model call was configured with, metadata only.
        digests: Keyed HMACs of raw values, by field.
        redactions: How many values of each kind were replaced in the payload.
        status: See `EventStatus`.
        payload: Plain JSON, redacted; None where there is none (see `status`).
        schema: Version of this form.
    """

    run_id: str
    record_id: str
    seq: int
    ts: str
    kind: Kind
    frame: str = ""
    ordinal: int = 0
    agent: str | None = None
    model: str | None = None
    parent_seq: int | None = None
    call_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    sdk_span_id: str | None = None
    duration_ms: float | None = None
    error_type: str | None = None
    actor: dict[str, JSON] | None = None
    config: dict[str, JSON] | None = None
    digests: dict[str, JSON] = dataclasses.field(default_factory=dict[str, JSON])
    redactions: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    status: EventStatus = EventStatus.RECORDED
    payload: JSON = None
    schema: int = SCHEMA_VERSION

    def envelope(self) -> dict[str, JSON]:
        """The metadata half as JSON: no payload, nothing that is None or empty."""
        out: dict[str, JSON] = {}
        for name in _ENVELOPE:
            value = getattr(self, name)
            if value is None or value == {}:
                continue
            out[name] = str(value) if isinstance(value, StrEnum) else value
        return out

    def to_json(self) -> dict[str, JSON]:
        """Both halves as JSON; the payload is always there, None where it is not known."""
        return {**self.envelope(), "payload": self.payload}

    @classmethod
    def from_json(cls, data: dict[str, JSON]) -> RunEvent:
        """Read the form `to_json` and `envelope` write.

        Raises:
            ValueError: A field is missing, unknown or of the wrong type, or the schema is newer.
        """
        if data.get("schema") != SCHEMA_VERSION:
            raise ValueError(f"event schema {data.get('schema')!r} is not {SCHEMA_VERSION}")
        unknown = set(data) - set(_ENVELOPE) - {"payload"}
        if unknown:
            raise ValueError(f"unknown event fields: {sorted(unknown)}")
        for name, kind in _REQUIRED.items():
            if type(data.get(name)) is not kind:
                raise ValueError(f"event field {name!r} is missing or not {kind.__name__}")
        fields = dict(data)
        fields["kind"] = Kind(data["kind"])
        fields["status"] = EventStatus(data.get("status", EventStatus.RECORDED))
        return cls(**fields)


_ENVELOPE: Final = tuple(f.name for f in dataclasses.fields(RunEvent) if f.name != "payload")
_REQUIRED: Final[dict[str, type]] = {
    "run_id": str,
    "record_id": str,
    "seq": int,
    "ts": str,
    "kind": str,
    "frame": str,
    "ordinal": int,
}

_HEX32: Final = re.compile(r"(?:trace_)?([0-9a-f]{32})\Z")


def canonical_run_id(sdk_trace_id: str) -> str:
    """Map any SDK trace id to `trace_` and 32 hex digits.

    The SDK's own ids already have that form. It lets users pass any string, though, and such a
    string is neither a safe object key nor a safe link, so it is mapped through SHA-256; the same
    string finds the same run again.
    """
    match = _HEX32.match(sdk_trace_id)
    if match:
        return f"trace_{match[1]}"
    return f"trace_{hashlib.sha256(sdk_trace_id.encode('utf-8', 'replace')).hexdigest()[:32]}"


def run_hex(run_id: str) -> str:
    """The 32 hex digits of a canonical run id, as used in object keys."""
    return canonical_run_id(run_id).removeprefix("trace_")


def new_record_id() -> str:
    """A UUIDv7 (RFC 9562) as 32 hex digits: sorts by creation time, needs no coordination."""
    value = (time.time_ns() // 1_000_000) << 80 | _random.getrandbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return f"{value:032x}"


# Of our own, so that an application that seeds `random` neither repeats our ids nor loses its sequence.
_random: Final = random.Random()  # noqa: S311 - ids, not secrets
with contextlib.suppress(AttributeError):  # not on Windows
    os.register_at_fork(after_in_child=_random.seed)


def timestamp(unix_ns: int) -> str:
    """RFC 3339 UTC with microseconds, for example `2026-12-01T09:30:00.123456Z`."""
    seconds, nanos = divmod(unix_ns, 1_000_000_000)
    return f"{_whole_second(seconds)}.{nanos // 1000:06d}Z"


@lru_cache(maxsize=16)
def _whole_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
