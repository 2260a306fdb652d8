"""What one process writes of one run, while it is being written."""

from __future__ import annotations

import time
from typing import Any, Final

from .event import Kind, new_record_id
from .lifetime import fresh_lock

__all__ = ["Record"]

_RANK: Final = ("ok", "cancelled", "error", "incomplete")


class Record:
    """The running record: gives `seq`, knows when it may be closed, gathers the manifest's facts.

    A record is closed by its own rules, not by the SDK's end of trace alone: spans can end after the
    trace (task cancelled), and a resumed trace has no start and no end. Whatever is running holds
    the record: a trace, a run, a tool call. When the last hold is released it may be closed.

    Attributes:
        run_id: Canonical run id.
        record_id: UUIDv7 hex.
        root: The OpenTelemetry span the run hangs from, where there is one.
        memory: The redactor's memory of this run; touched by the background thread only.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.record_id = new_record_id()
        self.started_ns = time.time_ns()
        self.ended_ns: int | None = None
        self.workflow_name: str | None = None
        self.group_tag: str | None = None
        self.fidelity = "full"
        self.status = "ok"
        self.error_type: str | None = None
        self.trace_ids: dict[str, None] = {}
        self.root: Any = None
        self.agents: dict[str, None] = {}
        self.tools: dict[str, None] = {}
        self.models: dict[str, None] = {}
        self.input_tokens = 0
        self.output_tokens = 0
        self.dropped = 0
        self.redaction_failed = 0
        self.closed = False
        self.memory: Any = None
        self._holds = 0
        self._runs = 0
        self._idle_since: float | None = None
        self._next = 0
        self._ordinals: dict[tuple[str, Kind], int] = {}
        self._lock = fresh_lock()

    def reserve(self) -> int:
        """The next `seq`; to be taken when the thing happens."""
        with self._lock:
            seq = self._next
            self._next += 1
            return seq

    def ordinal(self, frame: str, kind: Kind) -> int:
        """The how-manieth event of this kind in this frame, from 0."""
        with self._lock:
            number = self._ordinals.get((frame, kind), 0)
            self._ordinals[frame, kind] = number + 1
            return number

    @property
    def event_count(self) -> int:
        """How many `seq` were given."""
        return self._next

    @property
    def open_operations(self) -> int:
        """How many holds are left."""
        return max(0, self._holds)

    def hold(self, *, run: bool = False) -> None:
        """Something of this record is running; `run` marks a trace or a Runner call."""
        with self._lock:
            self._holds += 1
            self._runs += run
            self._idle_since = None

    def release(self, *, run: bool = False) -> bool:
        """The counterpart of `hold`; True when nothing is running any more."""
        with self._lock:
            self._holds -= 1
            self._runs -= run
            if self._holds > 0 and self._runs <= 0:
                self._idle_since = time.monotonic()
            return self._holds <= 0

    def stale(self, grace: float) -> bool:
        """Whether all runs ended more than `grace` seconds ago and something is still open."""
        with self._lock:
            return self._idle_since is not None and time.monotonic() - self._idle_since > grace

    def ended_as(self, status: str, error_type: str | None = None) -> None:
        """Note how a run in this record ended; the worst end wins."""
        with self._lock:
            if _RANK.index(status) > _RANK.index(self.status):
                self.status, self.error_type = status, error_type

    def add_usage(self, input_tokens: int, output_tokens: int) -> None:
        """Add one model call's tokens to the totals."""
        with self._lock:
            self.input_tokens += input_tokens
            self.output_tokens += output_tokens

    def count_drop(self) -> None:
        """One more payload was dropped."""
        with self._lock:
            self.dropped += 1
