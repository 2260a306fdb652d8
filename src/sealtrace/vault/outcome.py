"""What the writer says of its work."""

from __future__ import annotations

import dataclasses

__all__ = ["Seal", "WriterState"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What was stored of a record, said on the `sealtrace.seal` span."""

    record_id: str
    events: int
    bytes: int
    objects: int
    dropped: int
    status: str
    merkle_root: str
    manifest_key: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WriterState:
    """How the writer is doing, for self-metrics and `doctor`.

    Attributes:
        held_bytes: Bytes that wait in memory.
        spool_bytes: Bytes of this process in the spool.
        open_records: Records being written.
        parked_records: Closed records that wait in the spool only.
        dropped: Payloads dropped so far for want of room.
        recovered: Records of dead processes stored so far.
        spooling: Whether what waits outlives this process's memory.
        last_error: What the store said last, None while all is well.
    """

    held_bytes: int
    spool_bytes: int
    open_records: int
    parked_records: int
    dropped: int
    recovered: int
    spooling: bool
    last_error: str | None
