"""The spool: private, encrypted, torn tails cut, everything recovered once."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from sealtrace.errors import VaultUnavailable
from sealtrace.event import EventStatus
from sealtrace.settings import Settings
from sealtrace.vault import VaultReader, VaultWriter
from sealtrace.vault.recovery import Recovered, recover, waiting
from sealtrace.vault.spool import Spool, SpoolFile, SpoolKey, SpoolUnreadable
from sealtrace.vault.stores import LocalStore
from vault.records import RUN, Conversation, header, local, plain
from vault.test_writer import Unsteady

_SECRET = "a secret of more than sixteen bytes"


def _settings(tmp_path: Path, **more: Any) -> Settings:
    values: dict[str, Any] = {"spool": tmp_path / "spool", "key": SecretStr(_SECRET), **more}
    return Settings(**values)


def _recover(tmp_path: Path, store: LocalStore, secret: str | None = _SECRET) -> list[Recovered]:
    key = SpoolKey(secret.encode() if secret else None)
    return list(recover(tmp_path / "spool", key, store))


def _die(writer: VaultWriter) -> None:
    """What the kernel does for a process that ends: its lock is gone, its files stay."""
    assert writer._spool is not None
    writer._spool.release()


def _file(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "spool").rglob("*.spool")
    return found


def _record(tmp_path: Path, run: Conversation, **settings: Any) -> VaultWriter:
    writer = VaultWriter(local(tmp_path), _settings(tmp_path, **settings), ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    return writer


def test_a_dead_process_record_is_recovered(tmp_path: Path) -> None:
    """A record whose process died open is stored whole, and says that nobody closed it."""
    run = Conversation(10)
    _die(_record(tmp_path, run))
    (found,) = _recover(tmp_path, local(tmp_path))
    assert (found.events, found.complete, found.problem) == (len(run.events), False, None)
    (record,) = VaultReader(local(tmp_path)).records(RUN)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert record.manifest is not None
    assert not record.manifest.complete
    assert record.manifest.header.status == "incomplete"
    assert record.gaps() == []
    assert _recover(tmp_path, local(tmp_path)) == []
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_living_process_is_left_alone(tmp_path: Path) -> None:
    """While its process lives nobody else takes a record."""
    writer = _record(tmp_path, Conversation(2))
    assert _recover(tmp_path, local(tmp_path)) == []
    assert waiting(tmp_path / "spool") == (0, 0)
    _die(writer)
    assert waiting(tmp_path / "spool")[0] == 1


def test_a_stored_record_leaves_nothing(tmp_path: Path) -> None:
    """Once the manifest is stored the record's file is gone."""
    run = Conversation(5)
    writer = _record(tmp_path, run)
    writer.seal(run.header())
    assert list((tmp_path / "spool").rglob("*.spool")) == []
    assert writer.state.spool_bytes == 0


def test_a_closed_record_waits_on_disk_only(tmp_path: Path) -> None:
    """When the store is away a closed record leaves memory, and the same process stores it later."""
    store, run = Unsteady(tmp_path / "vault"), Conversation(50)
    writer = VaultWriter(store, _settings(tmp_path), ruleset_hash="r")
    store.refusal = VaultUnavailable("away")
    for event in run.events:
        writer.append(event)
    with pytest.raises(VaultUnavailable):
        writer.seal(run.header())
    assert writer.held_bytes == 0
    assert writer.state.parked_records == 1
    assert writer.state.spool_bytes > 0
    store.refusal = None
    assert writer.flush()
    seal = writer.seal(run.header())
    (record,) = VaultReader(store).records(RUN)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert record.manifest is not None
    assert record.manifest.complete
    assert (seal.events, seal.objects) == (len(run.events), 3)
    assert writer.state.parked_records == writer.state.spool_bytes == 0


def test_a_closed_record_of_a_dead_process_is_recovered_as_closed(tmp_path: Path) -> None:
    """A record that was closed and could not be stored keeps its own manifest, status and all."""
    store, run = Unsteady(tmp_path / "vault"), Conversation(5)
    writer = VaultWriter(store, _settings(tmp_path), ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    store.refusal = VaultUnavailable("away")
    with pytest.raises(VaultUnavailable):
        writer.seal(run.header(status="cancelled"))
    _die(writer)
    (found,) = _recover(tmp_path, local(tmp_path))
    assert found.complete
    (record,) = VaultReader(local(tmp_path)).records(RUN)
    assert record.header == run.header(status="cancelled")


def test_what_was_stored_before_the_death_is_not_stored_again(tmp_path: Path) -> None:
    """Segments stored while the process lived are the ones the recovered manifest lists."""
    run = Conversation(100)
    _die(_record(tmp_path, run, segment_bytes=65_536))
    before = {item.key for item in local(tmp_path).list("")}
    assert before
    _recover(tmp_path, local(tmp_path))
    (record,) = VaultReader(local(tmp_path)).records(RUN)
    assert record.manifest is not None
    listed = {segment.key for segment in record.manifest.segments}
    assert before <= listed
    assert {item.key for item in record.objects if "manifest" not in item.key} == listed
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]


@pytest.mark.parametrize("cut", [1, 7, 100, 1000])
def test_a_torn_tail_is_cut(tmp_path: Path, cut: int) -> None:
    """A file that ends in the middle of a frame gives every event before it, and none of it."""
    run = Conversation(5)
    _die(_record(tmp_path, run))
    path = _file(tmp_path)
    os.truncate(path, path.stat().st_size - cut)
    (found,) = _recover(tmp_path, local(tmp_path))
    assert 0 < found.events < len(run.events)
    (record,) = VaultReader(local(tmp_path)).records(RUN)
    events = record.events()
    assert [event.payload for event in events] == [plain(event.payload) for event in run.events[: len(events)]]


def test_any_changed_byte_ends_the_record_there(tmp_path: Path) -> None:
    """A flipped byte anywhere is noticed: events before it are recovered, nothing wrong is."""
    run = Conversation(3)
    _die(_record(tmp_path, run))
    path = _file(tmp_path)
    whole = path.read_bytes()
    for position in range(0, len(whole), 97):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        file = SpoolFile(path, SpoolKey(_SECRET.encode()))
        frames: list[bytes] = []
        with contextlib.suppress(SpoolUnreadable):
            frames = list(file.frames())
        path.write_bytes(whole)
        good = list(file.frames())
        assert frames == good[: len(frames)]
        assert len(frames) < len(good)


def test_moved_and_removed_frames_are_noticed(tmp_path: Path) -> None:
    """A frame left out, or a file under another name, does not decrypt."""
    spool = Spool(tmp_path / "spool", SpoolKey(_SECRET.encode()))
    file = spool.file("01" * 16, b"frame 0")
    edges = [file.size]
    for number in range(1, 4):
        file.append(b"frame %d" % number)
        edges.append(file.size)
    data = file.path.read_bytes()
    file.path.write_bytes(data[: edges[1]] + data[edges[2] :])
    assert list(file.frames()) == [b"frame 0", b"frame 1"]
    other = file.path.with_name(f"{'02' * 16}.spool")
    other.write_bytes(data)
    with pytest.raises(SpoolUnreadable):
        list(SpoolFile(other, spool.key).frames())


def test_nothing_can_be_read_from_the_disk(tmp_path: Path) -> None:
    """No payload, name or id of the run is in the file in clear, and modes are private."""
    run = Conversation(3)
    _record(tmp_path, run)
    path = _file(tmp_path)
    data = path.read_bytes()
    for word in (b"support", b"lookup", b"order_id", b"role", run.run_id.encode(), b"gpt-x"):
        assert word not in data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(item.stat().st_mode) for item in (path.parent, path.parent.parent)} == {0o700}


def test_another_key_leaves_the_record_where_it_is(tmp_path: Path) -> None:
    """A process with another key reports what it cannot read and removes nothing."""
    _die(_record(tmp_path, Conversation(2)))
    (found,) = _recover(tmp_path, local(tmp_path), "quite another secret of length")
    assert found.problem is not None
    assert "another key" in found.problem or "of another" in found.problem
    assert _recover(tmp_path, local(tmp_path))[0].problem is None


def test_without_a_key_a_dead_process_record_is_lost_and_said_to_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With a key in memory only, what a dead process left can never be read: it is removed with a warning."""
    writer = _record(tmp_path, Conversation(2), key=None)
    _die(writer)
    (found,) = _recover(tmp_path, local(tmp_path), None)
    assert found.problem is not None
    assert "lost a record" in caplog.text
    assert list((tmp_path / "spool").rglob("*.spool")) == []


def test_a_directory_of_others_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A spool that others may read is refused, recording goes on in memory and the log says so."""
    (tmp_path / "spool").mkdir(mode=0o755)
    run = Conversation(2)
    writer = _record(tmp_path, run)
    assert writer.seal(run.header()).events == len(run.events)
    assert "mode 0700" in caplog.text
    assert list((tmp_path / "spool").iterdir()) == []


def test_the_quota_drops_payloads_and_keeps_the_rest(tmp_path: Path) -> None:
    """A spool that is too small costs the newest payloads, never envelopes, and the record counts them."""
    store, run = Unsteady(tmp_path / "vault"), Conversation(200, tool_bytes=4096)
    writer = VaultWriter(store, _settings(tmp_path, spool_bytes=200_000), ruleset_hash="r")
    store.refusal = VaultUnavailable("away")
    for event in run.events:
        writer.append(event)
    assert 200_000 <= writer.state.spool_bytes < 200_000 + 1_000 * len(run.events)
    assert writer.state.dropped > 0
    store.refusal = None
    writer.flush()
    seal = writer.seal(run.header())
    (record,) = VaultReader(store).records(RUN)
    dropped = [event for event in record.events() if event.status is EventStatus.PAYLOAD_DROPPED]
    assert seal.dropped == len(dropped) == writer.state.dropped
    assert record.gaps() == []


def test_a_full_disk_costs_the_spool_and_not_the_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """When no more can be written the record goes on in memory, and no torn frame stays behind."""
    script = f"""
import resource, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from vault.records import *
from vault.test_spool import _settings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
tmp = Path({str(tmp_path)!r})
run = Conversation(50)
writer = VaultWriter(local(tmp), _settings(tmp), ruleset_hash="r")
for number, event in enumerate(run.events):
    if number == 20:
        size = next((tmp / "spool").rglob("*.spool")).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    writer.append(event)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.seal(run.header())
print(run.record_id)
"""
    assert resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "memory only" in done.stderr
    (record,) = VaultReader(local(tmp_path)).records(RUN)
    assert record.record_id == done.stdout.strip()
    assert len(record.events()) == 152
    assert list((tmp_path / "spool").rglob("*.spool")) == []


@pytest.mark.parametrize("how", [[], ["sealed"]], ids=["plain", "sealed"])
def test_kill_minus_nine_loses_nothing_acknowledged(how: list[str]) -> None:
    """Fifty processes killed at random moments: every acknowledged event is found again, none torn."""
    script = Path(__file__).with_name("kill9.py")
    done = subprocess.run([sys.executable, str(script), "50", "7", *how], capture_output=True, text=True, check=False)
    figures = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert figures["faults"] == 0
    assert figures["acknowledged"] > 100
    assert figures["recovered_open"] > 5


def test_a_later_process_recovers_by_itself(tmp_path: Path) -> None:
    """A writer's first tick stores what dead processes left."""
    _die(_record(tmp_path, Conversation(3)))
    later = VaultWriter(local(tmp_path), _settings(tmp_path), ruleset_hash="r")
    later.tick()
    assert later.state.recovered == 1
    assert not VaultReader(local(tmp_path)).records(RUN)[0].partial


def _child(tmp_path: str, number: int) -> None:
    path = Path(tmp_path)
    run = Conversation(3, seed=number, run_id=f"trace_{number:032x}")
    writer = VaultWriter(local(path), _settings(path), ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    writer.seal(run.header())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_spool(tmp_path: Path, method: str) -> None:
    """Four processes with one spool and one vault: each record is there once and whole."""
    context: Any = multiprocessing.get_context(method)
    workers = [context.Process(target=_child, args=(str(tmp_path), number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    for number in range(4):
        (record,) = VaultReader(local(tmp_path)).records(f"trace_{number:032x}")
        assert (len(record.events()), record.gaps()) == (11, [])
    assert list((tmp_path / "spool").rglob("*.spool")) == []


def test_a_fork_in_the_middle_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Prefork: the children reset and record their own, the parent's open record goes on, nothing is twice."""
    run = Conversation(20)
    writer = VaultWriter(local(tmp_path), _settings(tmp_path), ruleset_hash="r")
    for event in run.events[:30]:
        writer.append(event)
    busy = threading.Event()
    holder = threading.Thread(target=busy.wait, daemon=True)
    holder.start()
    pids: list[int] = []
    for number in range(1, 5):
        pid = os.fork()
        if pid == 0:
            try:
                writer.reset()
                own = Conversation(3, seed=number, run_id=f"trace_{number:032x}")
                for event in own.events:
                    writer.append(event)
                writer.seal(own.header())
                os._exit(0)
            except BaseException:
                os._exit(1)
        pids.append(pid)
    busy.set()
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0, 0, 0]
    assert _recover(tmp_path, local(tmp_path)) == []
    for event in run.events[30:]:
        writer.append(event)
    writer.seal(run.header())
    for run_id, count in [(RUN, 62), *((f"trace_{number:032x}", 11) for number in range(1, 5))]:
        (record,) = VaultReader(local(tmp_path)).records(run_id)
        assert (len(record.events()), record.gaps()) == (count, [])


def test_a_parent_that_dies_after_a_fork_is_recovered(tmp_path: Path) -> None:
    """A child that lives on does not keep its dead parent's lock."""
    run = Conversation(3)
    ready, go = os.pipe(), os.pipe()
    parent = os.fork()
    if parent == 0:
        writer = _record(tmp_path, run)
        if os.fork() == 0:
            writer.reset()
            os.close(go[1])
            os.write(ready[1], b"x")
            os.read(go[0], 1)  # lives until the test ends
        os._exit(0)
    os.waitpid(parent, 0)
    assert os.read(ready[0], 1) == b"x"
    found = _recover(tmp_path, local(tmp_path))
    for end in (*ready, *go):
        os.close(end)
    assert [item.events for item in found] == [len(run.events)]


def test_a_long_outage_costs_bounded_memory(tmp_path: Path) -> None:
    """Ten thousand events in a hundred runs while the store is away: all stored later, few bytes held meanwhile."""
    store = Unsteady(tmp_path / "vault")
    writer = VaultWriter(store, _settings(tmp_path, spool_bytes=256 * 1024 * 1024), ruleset_hash="r")
    store.refusal = VaultUnavailable("away")
    runs = [Conversation(33, seed=n, run_id=f"trace_{n:032x}", tool_bytes=500) for n in range(100)]
    most = 0
    for run in runs:
        for event in run.events:
            with contextlib.suppress(VaultUnavailable):
                writer.append(event)
        with contextlib.suppress(VaultUnavailable):
            writer.seal(run.header())
        most = max(most, writer.held_bytes)
    assert sum(len(run.events) for run in runs) >= 10_000
    assert most < 1_000_000
    store.refusal = None
    assert writer.flush()
    for run in runs:
        assert writer.seal(run.header()).events == len(run.events)
    reader = VaultReader(store)
    assert all(not record.partial and record.gaps() == [] for run in runs for record in reader.records(run.run_id))
    assert len(list(reader.recent(1000))) == 100
    assert writer.state == dataclasses.replace(writer.state, spool_bytes=0, held_bytes=0, parked_records=0, dropped=0)


def test_a_recovered_header_counts_what_it_finds(tmp_path: Path) -> None:
    """What the envelopes tell is in the recovered header; what only the process knew is not made up."""
    run = Conversation(4)
    _die(_record(tmp_path, run))
    _recover(tmp_path, local(tmp_path))
    found = VaultReader(local(tmp_path)).records(RUN)[0].header
    assert found is not None
    usual = header(RUN, run.record_id)
    assert (found.trace_ids, found.agents, found.models) == (usual.trace_ids, usual.agents, usual.models)
    assert (found.workflow_name, found.fidelity, found.event_count) == (None, "trace", len(run.events))
    assert found.started_at == min(event.ts for event in run.events)


def test_all_processes_share_one_limit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where dead processes have filled the spool, new records are recorded in memory only, whole, with a warning."""
    for seed in range(2):
        _die(_record(tmp_path, Conversation(40, seed=seed), spool_bytes=10**9))
    full = waiting(tmp_path / "spool")[1]
    run = Conversation(3, run_id="trace_" + "ef" * 16)
    writer = _record(tmp_path, run, spool_total_bytes=full)
    assert "spool_total_bytes" in caplog.text
    assert waiting(tmp_path / "spool") == (2, full)
    assert writer.state.spool_bytes == 0
    assert writer.seal(run.header()).dropped == 0
    (record,) = VaultReader(local(tmp_path)).records(run.run_id)
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    roomy = _record(tmp_path, Conversation(3, run_id="trace_" + "12" * 16), spool_total_bytes=full + 1)
    assert roomy.state.spool_bytes > 0
