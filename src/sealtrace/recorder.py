"""Takes events off the agent's thread, in order, and never blocks it.

Everything that costs time (digests, redaction, encoding, storing) happens on one background thread.
A full queue drops the newest payload, keeps the envelope and counts the drop where it can be seen.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from ._guard import report, safely
from .draft import Draft
from .event import canonical_run_id
from .lifetime import fresh_lock, watch
from .record import Record

__all__ = ["Recorder", "Sink"]

_GRACE: Final = 10.0
"""Seconds a record whose runs have ended waits for tool calls that are still open."""

_LINGER: Final = 0.05
"""Seconds the background thread gathers work before it starts: waking it for each event would make
the agent's thread give up the interpreter lock each time."""

_ENVELOPES_PER_EVENT: Final = 10
"""Envelopes are small: this many times `max_events` may wait before whole events are lost."""


class Sink(Protocol):
    """What makes drafts safe and stores them; called on the background thread only."""

    def write(self, draft: Draft, record: Record) -> None:
        """Digest, redact and store one draft."""
        ...

    def seal(self, record: Record) -> bool:
        """Store the record's manifest; False where it has to be tried again later."""
        ...

    def tick(self) -> None:
        """Store what has waited long enough."""
        ...

    def drain(self) -> bool:
        """Store all that can be stored now; True if nothing is left."""
        ...

    def reset(self) -> None:
        """Forget everything: this is a forked child, and the parent stores what is the parent's."""
        ...


class Recorder:
    """The queue, its thread and the open records.

    Args:
        sink: What stores drafts.
        max_events: Events that may wait with their payload.
        max_bytes: Payload bytes that may wait.
        exit_timeout: Seconds the exit handler may take to store what waits.
        tick_seconds: How often the sink is asked to look at its clock.
    """

    def __init__(
        self, sink: Sink, *, max_events: int, max_bytes: int, exit_timeout: float, tick_seconds: float = 1.0
    ) -> None:
        self._sink = sink
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._exit_timeout = exit_timeout
        self._tick_seconds = tick_seconds
        self.on_closing: Callable[[Record], None] | None = None
        """Called with a record just before it is closed, on whichever thread closes it."""
        self.dropped = 0
        self.lost = 0
        self._start_afresh()
        _live.add(self)
        safely(_arrange)

    def _start_afresh(self) -> None:
        self._condition = threading.Condition()
        self._queue: deque[tuple[Draft | None, Record]] = deque()
        self._bytes = 0
        self._batch = 0
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._drains_wanted = 0
        self._drains_done = 0
        self._clean = True
        self._records: dict[str, Record] = {}
        self._records_lock = fresh_lock()
        self._closing: deque[Record] = deque()
        self._unsealed: list[Record] = []

    # on the agent's thread

    def record(self, sdk_trace_id: str) -> Record:
        """The open record of this run; a new one if there is none or the last one was closed."""
        run_id = canonical_run_id(sdk_trace_id)
        with self._records_lock:
            found = self._records.get(run_id)
            if found is None or found.closed:
                found = self._records[run_id] = Record(run_id)
            return found

    def emit(self, draft: Draft, record: Record) -> None:
        """Queue a draft; never waits for room."""
        with self._condition:
            waiting = len(self._queue)
            if record.closed or self._stopped or waiting >= self._max_events * _ENVELOPES_PER_EVENT:
                self.lost += 1
                return
            if waiting >= self._max_events or self._bytes + draft.size > self._max_bytes:
                draft.drop()
                record.count_drop()
                self.dropped += 1
            self._bytes += draft.size
            self._enqueue(draft, record)

    def release(self, record: Record, *, run: bool = False) -> None:
        """The counterpart of `Record.hold`; closes the record when nothing of it is running."""
        if record.release(run=run):
            self.close(record)

    def close(self, record: Record) -> None:
        """Nothing more will come: store what is left of the record, then its manifest."""
        with self._records_lock:
            if record.closed:
                return
            record.closed = True
            record.ended_ns = time.time_ns()
            if self._records.get(record.run_id) is record:
                del self._records[record.run_id]
        if self.on_closing is not None:
            safely(self.on_closing, record)
        with self._condition:
            self._enqueue(None, record)

    def flush(self, timeout: float) -> bool:
        """Wait until all that was emitted so far is stored.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            True if nothing is left to store; False if time ran out or the store did not take it.
        """
        with self._condition:
            if self._thread is None and not self._queue and self._clean:
                return True
            self._drains_wanted += 1
            wanted = self._drains_wanted
            self._ensure_thread()
            self._condition.notify_all()
            done = self._condition.wait_for(lambda: self._drains_done >= wanted, timeout)
            return done and self._clean

    def shutdown(self, timeout: float) -> bool:
        """Close what is open, flush and stop the thread. Idempotent."""
        with self._records_lock:
            still_open = list(self._records.values())
        for record in still_open:
            if record.open_operations:
                record.ended_as("incomplete")
            self.close(record)
        clean = self.flush(timeout)
        with self._condition:
            self._stopped = True
            self._condition.notify_all()
        return clean

    def at_exit(self) -> None:
        """What the interpreter's exit calls: bounded by `exit_timeout`."""
        if not self._stopped:
            self.shutdown(self._exit_timeout)

    def after_fork(self) -> None:
        """In a forked child: new queue, new thread, no records; the parent keeps its own."""
        self._start_afresh()
        self._sink.reset()

    @property
    def waiting(self) -> tuple[int, int]:
        """Events and payload bytes that wait in memory."""
        return len(self._queue), self._bytes

    def _enqueue(self, draft: Draft | None, record: Record) -> None:
        self._queue.append((draft, record))
        self._ensure_thread()
        if len(self._queue) == 1 or len(self._queue) > self._max_events // 2 or self._bytes > self._max_bytes // 2:
            self._condition.notify_all()

    def _ensure_thread(self) -> None:
        if self._thread is None and not self._stopped:
            self._thread = threading.Thread(target=self._work, name="sealtrace-recorder", daemon=True)
            self._thread.start()

    # on the background thread

    def _work(self) -> None:
        next_tick = time.monotonic() + self._tick_seconds
        while True:
            item, drain = self._next_job(next_tick)
            if item is not None:
                safely(self._handle, *item)
            elif drain:
                self._drain()
            elif self._stopped:
                return
            if time.monotonic() >= next_tick:
                safely(self._tick)
                next_tick = time.monotonic() + self._tick_seconds

    def _next_job(self, next_tick: float) -> tuple[tuple[Draft | None, Record] | None, bool]:
        with self._condition:
            while True:
                if self._queue and (self._batch or self._urgent()):
                    self._batch = max(0, self._batch - 1)
                    draft, record = self._queue.popleft()
                    self._bytes -= draft.size if draft else 0
                    return (draft, record), False
                if self._queue:
                    self._condition.wait_for(self._urgent, _LINGER)
                    self._batch = len(self._queue)
                    continue
                if self._drains_wanted > self._drains_done:
                    return None, True
                pause = next_tick - time.monotonic()
                if self._stopped or pause <= 0:
                    return None, False
                self._condition.wait(pause)

    def _urgent(self) -> bool:
        """Whether somebody waits for the queue, or it is filling up."""
        return (
            self._stopped
            or self._drains_wanted > self._drains_done
            or len(self._queue) > self._max_events // 2
            or self._bytes > self._max_bytes // 2
        )

    def _handle(self, draft: Draft | None, record: Record) -> None:
        if draft is None:
            self._closing.append(record)
        else:
            self._sink.write(draft, record)
        # Sealing waits for the store. Events that wait here are in no spool yet, so they come first.
        while self._closing and not self._queue:
            self._seal_next()

    def _seal_next(self) -> None:
        record = self._closing.popleft()
        if not self._sealed(record):
            self._unsealed.append(record)

    def _sealed(self, record: Record) -> bool:
        try:
            return self._sink.seal(record)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a sink that fails must not lose the record
            report("Sink.seal", error)
            return False

    def _tick(self) -> None:
        with self._records_lock:
            stale = [record for record in self._records.values() if record.stale(_GRACE)]
        for record in stale:
            record.ended_as("incomplete")
            self.close(record)
        self._sink.tick()
        self._retry_seals()
        for _ in range(len(self._closing)):
            self._seal_next()

    def _retry_seals(self) -> None:
        waiting, self._unsealed = self._unsealed, []
        self._unsealed.extend(record for record in waiting if not self._sealed(record))

    def _drain(self) -> None:
        with self._condition:
            wanted = self._drains_wanted
        safely(self._retry_seals)
        while self._closing:
            self._seal_next()
        clean = bool(safely(self._sink.drain)) and not self._unsealed
        with self._condition:
            self._clean = clean
            self._drains_done = wanted
            self._condition.notify_all()


_live: Final[weakref.WeakSet[Recorder]] = weakref.WeakSet()


def _at_exit() -> None:
    for recorder in list(_live):
        safely(recorder.at_exit)


def _after_fork_in_child() -> None:
    for recorder in list(_live):
        safely(recorder.after_fork)


_arrange: Final = watch(_after_fork_in_child, _at_exit)
