"""The queue and its thread: order, bounds, flush, fork."""

from __future__ import annotations

import os
import threading

import pytest

from sealtrace.draft import Draft
from sealtrace.event import Kind
from sealtrace.record import Record
from sealtrace.recorder import Recorder


class MemorySink:
    """A sink that keeps what it gets, and can be told to wait or to fail."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self.sealed: list[Record] = []
        self.order: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.refuse_seals = 0
        self.raises: BaseException | None = None
        self.resets = 0

    def write(self, draft: Draft, record: Record) -> None:
        self.gate.wait(10)
        if self.raises is not None:
            raise self.raises
        self.drafts.append(draft)
        self.order.append("event")

    def seal(self, record: Record) -> bool:
        if self.refuse_seals:
            self.refuse_seals -= 1
            return False
        self.sealed.append(record)
        self.order.append("seal")
        return True

    def tick(self) -> None: ...

    def drain(self) -> bool:
        return True

    def reset(self) -> None:
        self.resets += 1
        self.drafts.clear()


@pytest.fixture
def sink():
    """What the recorder writes to."""
    return MemorySink()


@pytest.fixture
def recorder(sink):
    """A small recorder, stopped after the test."""
    made = Recorder(sink, max_events=20, max_bytes=10_000, exit_timeout=5, tick_seconds=0.01)
    yield made
    sink.gate.set()
    made.shutdown(5)


def draft(record: Record, *, size: int = 10) -> Draft:
    """A draft with the next seq of the record."""
    return Draft(
        record=record, seq=record.reserve(), kind=Kind.CUSTOM, ordinal=0, started_ns=0, payload={"a": 1}, size=size
    )


def test_events_arrive_in_the_order_they_were_emitted(recorder, sink):
    """What is emitted is written, once each and in order."""
    record = recorder.record("trace_" + "0" * 32)
    for _ in range(15):
        recorder.emit(draft(record), record)
    assert recorder.flush(5)
    assert [d.seq for d in sink.drafts] == list(range(15))


def test_a_full_queue_drops_the_newest_payload_and_keeps_the_envelope(recorder, sink):
    """Beyond the limit the payload goes, the envelope stays and the drop is counted on the record."""
    sink.gate.clear()
    record = recorder.record("trace_" + "1" * 32)
    for _ in range(40):
        recorder.emit(draft(record), record)
    sink.gate.set()
    assert recorder.flush(5)
    dropped = [d for d in sink.drafts if d.dropped]
    assert len(sink.drafts) == 40
    assert 19 <= len(dropped) <= 20
    assert all(d.payload == {} for d in dropped)
    assert record.dropped == recorder.dropped == len(dropped)
    assert [d.seq for d in sink.drafts] == list(range(40))


def test_the_queue_is_bounded_in_bytes_too(recorder, sink):
    """One payload larger than what may wait is dropped, the next small one is kept."""
    sink.gate.clear()
    record = recorder.record("trace_" + "2" * 32)
    recorder.emit(draft(record, size=20_000), record)
    recorder.emit(draft(record, size=100), record)
    sink.gate.set()
    assert recorder.flush(5)
    assert [d.payload for d in sink.drafts] == [{}, {"a": 1}]


def test_a_sink_that_raises_anything_does_not_stop_the_thread(recorder, sink):
    """BaseException and MemoryError from the sink are survived; later drafts are written."""
    record = recorder.record("trace_" + "3" * 32)
    for error in (ValueError(), MemoryError(), GeneratorExit(), BaseException()):
        sink.raises = error
        recorder.emit(draft(record), record)
        assert recorder.flush(5)
    sink.raises = None
    recorder.emit(draft(record), record)
    assert recorder.flush(5)
    assert len(sink.drafts) == 1


def test_a_closed_record_is_sealed_after_its_events(recorder, sink):
    """The manifest is stored last, and nothing is accepted for the record afterwards."""
    record = recorder.record("trace_" + "4" * 32)
    record.hold(run=True)
    recorder.emit(draft(record), record)
    recorder.release(record, run=True)
    assert recorder.flush(5)
    assert sink.sealed == [record]
    recorder.emit(draft(record), record)
    assert recorder.lost == 1
    assert recorder.record("trace_" + "4" * 32) is not record


def test_a_refused_seal_is_tried_again(recorder, sink):
    """A vault that does not answer now gets the manifest later."""
    sink.refuse_seals = 2
    record = recorder.record("trace_" + "5" * 32)
    recorder.emit(draft(record), record)
    recorder.close(record)
    for _ in range(200):
        if recorder.flush(5) and sink.sealed:
            break
    assert sink.sealed == [record]


def test_seq_is_unique_and_gapless_under_threads(recorder, sink):
    """Eight threads taking seq from one record never get the same one and leave no gap."""
    record = recorder.record("trace_" + "6" * 32)
    taken: list[int] = []

    def take() -> None:
        taken.extend(record.reserve() for _ in range(2000))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(16_000))


def test_open_records_are_closed_as_incomplete_at_shutdown(recorder, sink):
    """A run that is still going when the process ends leaves a sealed record that says so."""
    record = recorder.record("trace_" + "7" * 32)
    record.hold(run=True)
    recorder.emit(draft(record), record)
    assert recorder.shutdown(5)
    assert sink.sealed == [record]
    assert record.status == "incomplete"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_starts_afresh(recorder, sink):
    """The child has none of the parent's drafts or records and a working thread of its own."""
    record = recorder.record("trace_" + "8" * 32)
    recorder.emit(draft(record), record)
    assert recorder.flush(5)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        fresh = recorder.record("trace_" + "8" * 32)
        recorder.emit(draft(fresh), fresh)
        ok = recorder.flush(5) and fresh is not record and len(sink.drafts) == 1 and sink.resets == 1
        os.write(write, b"1" if ok else b"0")
        os._exit(0)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(sink.drafts) == 1


def test_events_that_wait_come_before_seals(sink):
    """A seal waits for the store, and events that wait meanwhile are in no spool: they are written first."""
    recorder = Recorder(sink, max_events=20, max_bytes=10_000, exit_timeout=5, tick_seconds=60)
    sink.gate.clear()
    records = [recorder.record(f"trace_{number:032x}") for number in range(3)]
    for record in records:
        recorder.emit(draft(record), record)
        recorder.close(record)
    sink.gate.set()
    assert recorder.flush(5)
    assert sink.order == ["event"] * 3 + ["seal"] * 3
    assert sink.sealed == records
    recorder.shutdown(5)
