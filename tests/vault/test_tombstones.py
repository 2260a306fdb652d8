"""What is erased stays erased: neither a spool nor a process that still records brings it back."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealtrace.errors import RunErased, VaultDenied, VaultUnavailable
from sealtrace.settings import Retention, Settings
from sealtrace.vault import Audit, Tombstones, VaultReader, VaultWriter, audit_lines, carry_out, expire, layout
from sealtrace.vault.erasure import plan_again, plan_for_runs, plan_for_session
from sealtrace.vault.recovery import Recovered, recover
from sealtrace.vault.spool import SpoolKey
from sealtrace.vault.stores import LocalStore, ObjectInfo
from sealtrace.vault.verify import Damage, verify_run
from vault.records import RUN, Conversation, header, local
from vault.test_spool import _die, _settings
from vault.test_writer import Unsteady

OTHER = "trace_" + "ef" * 16


class WriteOnly(LocalStore):
    """A directory whose credentials may only put, and which counts what else is asked of it."""

    refusal: type[Exception] = VaultDenied
    asked = 0

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `Store.list`."""
        self.asked += 1
        raise self.refusal(prefix)


def _erase(store: LocalStore, *, absent: bool = False) -> None:
    carry_out(store, plan_for_runs(store, [RUN], absent=absent), Audit(store, who="ada"))


def _left(tmp_path: Path, *runs: Conversation) -> Settings:
    """Records in the spool of a process that died."""
    settings = _settings(tmp_path)
    writer = VaultWriter(local(tmp_path), settings, ruleset_hash="r")
    for run in runs:
        for event in run.events:
            writer.append(event)
    _die(writer)
    return settings


def _recover(settings: Settings, store: LocalStore) -> list[Recovered]:
    assert settings.spool is not None
    return list(recover(settings.spool, SpoolKey.from_settings(settings), store))


def _objects(store: LocalStore) -> list[str]:
    return [item.key for item in store.list("") if layout.parse_key(item.key) is not None]


def test_recovery_throws_away_what_was_erased(tmp_path: Path) -> None:
    """A role that may list stores nothing of an erased run, removes it from the spool, and stores the others."""
    settings = _left(tmp_path, Conversation(3), Conversation(3, seed=2, run_id=OTHER))
    _erase(local(tmp_path), absent=True)
    found = {item.run_id: item.erased for item in _recover(settings, local(tmp_path))}
    assert found == {RUN: True, OTHER: False}
    assert all(OTHER[6:] in key for key in _objects(local(tmp_path)))
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_writer_alone_stores_it_and_nobody_reads_it(tmp_path: Path) -> None:
    """A role that may only put asks once, stores, and the reader, the listing and verify refuse the run."""
    runs = [Conversation(2, seed=seed) for seed in range(3)]
    settings = _left(tmp_path, *runs)
    _erase(local(tmp_path), absent=True)
    store = WriteOnly(tmp_path / "vault")
    assert [item.erased for item in _recover(settings, store)] == [False] * 3
    assert store.asked == 1
    reader = VaultReader(local(tmp_path))
    with pytest.raises(RunErased, match=RUN):
        reader.records(RUN)
    assert list(reader.recent(10)) == []
    assert reader.find_trace("cd" * 16) is None
    found = verify_run(reader, RUN)
    assert [finding.damage for finding in found.findings] == [Damage.ERASED]


def test_an_answer_that_does_not_come_keeps_the_record(tmp_path: Path) -> None:
    """Where the store cannot be asked just now, nothing is stored and nothing thrown away."""
    settings = _left(tmp_path, Conversation(2))
    store = WriteOnly(tmp_path / "vault")
    store.refusal = VaultUnavailable
    with pytest.raises(VaultUnavailable):
        _recover(settings, store)
    assert len(list((tmp_path / "spool").rglob("*.spool"))) == 1


@pytest.mark.parametrize("sweep", ["again", "expire"])
def test_a_process_that_goes_on_recording_is_swept(tmp_path: Path, sweep: str) -> None:
    """What is stored of a run after its erasure goes with the next sweep, another run's objects stay."""
    store, run = local(tmp_path), Conversation(3)
    Conversation(2, seed=2, run_id=OTHER).store(store)
    writer = VaultWriter(store, Settings(), ruleset_hash="r")
    for event in run.events[:4]:
        writer.append(event)
    writer.flush()
    _erase(store)
    for event in run.events[4:]:
        writer.append(event)
    writer.seal(run.header())
    assert any(RUN[6:] in key for key in _objects(store))
    if sweep == "again":
        carry_out(store, plan_again(store), Audit(store))
    else:
        expire(store, Retention(), audit=Audit(store))
    assert len(_objects(store)) == 3
    assert all(OTHER[6:] in key for key in _objects(store))
    assert plan_again(store).runs == ()


def test_a_session_does_not_call_it_undecided(tmp_path: Path) -> None:
    """What came back of an erased run is not taken for a run whose session nobody knows."""
    store = local(tmp_path)
    _erase(store, absent=True)
    Conversation(2).store(store, group_tag="s1")
    plan = plan_for_session(store, ["s1"])
    assert (plan.runs, plan.undecided) == ((), ())


def _began(when: dt.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


NOW = dt.datetime.now(dt.UTC)
BEFORE, AFTER = _began(NOW - dt.timedelta(hours=1)), _began(NOW + dt.timedelta(hours=1))


def _closed(tmp_path: Path, run: Conversation, **header: str) -> Settings:
    """A closed record that only waits in the spool of a process that died."""
    settings, store = _settings(tmp_path), Unsteady(tmp_path / "vault")
    store.refusal = VaultUnavailable("away")
    writer = VaultWriter(store, settings, ruleset_hash="r")
    for event in run.events:
        with contextlib.suppress(VaultUnavailable):
            writer.append(event)
    with pytest.raises(VaultUnavailable):
        writer.seal(run.header(**header))
    _die(writer)
    return settings


def test_a_session_erased_before_its_spool_is_drained_stays_erased(tmp_path: Path) -> None:
    """A closed run of an erased session is thrown away by recovery; another session's in the same spool is stored."""
    settings = _closed(tmp_path, Conversation(3), group_tag="s1", started_at=BEFORE)
    _closed(tmp_path, Conversation(3, seed=2, run_id=OTHER), group_tag="s2", started_at=BEFORE)
    carry_out(local(tmp_path), plan_for_session(local(tmp_path), ["s1"]), Audit(local(tmp_path)))
    found = {item.run_id: item.erased for item in _recover(settings, local(tmp_path))}
    assert found == {RUN: True, OTHER: False}
    assert len(VaultReader(local(tmp_path)).records(OTHER)) == 1


def test_a_session_that_goes_on_is_recorded_as_ever(tmp_path: Path) -> None:
    """What began before the erasure and was stored after it is refused and swept, what began after it is kept."""
    store = local(tmp_path)
    Conversation(2).store(store, group_tag="s1", started_at=BEFORE)
    plan = plan_for_session(store, ["s1"])
    assert carry_out(store, plan, Audit(store)) == 3
    assert audit_lines(store)[0].about["sessions"] == ["s1"]
    late, later = (Conversation(2, seed=seed, run_id=f"trace_{seed:032x}") for seed in (1, 2))
    late.store(store, group_tag="s1", started_at=BEFORE)
    later.store(store, group_tag="s1", started_at=AFTER)
    reader = VaultReader(store)
    with pytest.raises(RunErased):
        reader.records(late.run_id)
    assert len(reader.records(later.run_id)) == 1
    assert [record.run_id for record in reader.recent(10)] == [later.run_id]
    assert plan_again(store).runs == (late.run_id,)
    gone = expire(store, Retention())
    assert {item.key.split("/")[3] for item in gone} == {late.run_id[6:]}
    assert plan_again(store).runs == ()


def test_a_session_erased_again_is_erased_up_to_then(tmp_path: Path) -> None:
    """The latest erasure counts, in whatever order marks are listed."""
    marks = Tombstones(local(tmp_path))
    for at in (BEFORE, AFTER, _began(NOW)):
        marks.put_session("s1", at)
    covers = marks.sessions().cover
    for started, expected in ((BEFORE, True), (AFTER, True), (_began(NOW + dt.timedelta(hours=2)), False)):
        assert covers(header(RUN, "01" * 16, group_tag="s1", started_at=started)) is expected
    assert not covers(header(RUN, "01" * 16, group_tag="s2", started_at=BEFORE))
    assert not covers(header(RUN, "01" * 16, started_at=BEFORE))
    assert marks.all() == frozenset()


def test_a_mark_is_put_first_once_and_is_no_audit_line(tmp_path: Path) -> None:
    """The mark is there before the first object goes, a second erasure changes nothing, and audits do not show it."""
    store = local(tmp_path)
    Conversation(2).store(store)
    seen: list[bool] = []
    plan = plan_for_runs(store, [RUN])
    carry_out(store, plan, Audit(store), progress=lambda done, total: seen.append(Tombstones(store).has(RUN)))
    assert seen == [True, True, True]
    _erase(store, absent=True)
    assert Tombstones(store).all() == {RUN}
    assert not Tombstones(store).has(OTHER)
    assert [line.what for line in audit_lines(store)] == ["erase", "erased"] * 2


def test_a_mark_outlives_every_payload(tmp_path: Path) -> None:
    """The mark stays as long as the meta class does, and not longer."""
    store = local(tmp_path)
    _erase(store, absent=True)
    now = dt.datetime.now(dt.UTC)
    expire(store, Retention(), now=now + dt.timedelta(days=399))
    assert Tombstones(store).has(RUN)
    expire(store, Retention(), now=now + dt.timedelta(days=401))
    assert not Tombstones(store).has(RUN)
