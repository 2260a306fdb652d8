"""Erasing is complete, planned first and accounted for; expiring goes by what the manifest says."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from sealtrace.settings import Retention, Settings
from sealtrace.vault import Audit, VaultReader, VaultWriter, audit_lines, carry_out, expire, layout, plan_for_runs
from sealtrace.vault.erasure import plan_for_session
from sealtrace.vault.stores import LocalStore
from vault.records import RUN, Conversation, local

OTHER = "trace_" + "ef" * 16


def test_a_run_is_erased_in_all_classes_and_records(tmp_path: Path) -> None:
    """Both records of a run go from every class; another run and the audit lines stay."""
    store = local(tmp_path)
    for seed, run_id in ((1, RUN), (2, RUN), (3, OTHER)):
        Conversation(3, seed=seed, run_id=run_id).store(store)
    store.put(f"io/v1/ab/{'ab' * 16}/odd.txt", b"left by somebody", sha256=b"")
    plan = plan_for_runs(store, [RUN, "trace_" + "00" * 16])
    assert plan.runs == (RUN,)
    assert len(plan.objects) == 7
    assert VaultReader(store).records(RUN)
    assert carry_out(store, plan, Audit(store, who="ada", reason="art. 17")) == 7
    assert [item.key for item in store.list("") if "ab" * 16 in item.key] == [layout.tombstone_key(RUN)]
    assert len(VaultReader(store).records(OTHER)) == 1
    begun, done = audit_lines(store)
    assert (begun.what, begun.who, begun.reason, begun.about["runs"]) == ("erase", "ada", "art. 17", [RUN])
    assert (done.what, done.about["objects"]) == ("erased", 7)


def test_what_is_stored_meanwhile_goes_too(tmp_path: Path) -> None:
    """An object of the run that appears while it is being erased does not survive."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store)
    late = Conversation(2, seed=9)

    def progress(done: int, _total: int) -> None:
        if done == 1:
            late.store(store)

    assert carry_out(store, plan_for_runs(store, [RUN]), Audit(store), progress=progress) == 6
    assert plan_for_runs(store, [RUN]).objects == ()


def test_a_session_is_found_by_its_tag(tmp_path: Path) -> None:
    """All runs of a session are planned, runs of others are not, and unfinished ones are pointed out."""
    store = local(tmp_path)
    for number, tag in enumerate(["s1", "s2", "s1", None]):
        Conversation(1, seed=number, run_id=f"trace_{number:032x}").store(store, group_tag=tag)
    unfinished = Conversation(1, run_id=OTHER)
    writer = VaultWriter(store, Settings(), ruleset_hash="r")
    for event in unfinished.events:
        writer.append(event)
    writer.flush()
    plan = plan_for_session(store, ["s1"])
    assert plan.runs == (f"trace_{0:032x}", f"trace_{2:032x}")
    assert plan.undecided == (OTHER,)
    carry_out(store, plan, Audit(store))
    assert len(list(VaultReader(store).recent(10))) == 2


@pytest.mark.parametrize(
    ("days", "left"),
    [(6, {"io", "content", "meta"}), (8, {"io", "meta"}), (31, {"meta"}), (401, set[str]())],
)
def test_each_class_expires_in_its_time(tmp_path: Path, days: int, left: set[str]) -> None:
    """Payloads go after their days, envelopes and manifests later, as the manifest says."""
    store = local(tmp_path)
    Conversation(3).store(store)
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    would = expire(store, Retention(), now=moment, dry_run=True)
    assert len(list(store.list(""))) == 3
    assert expire(store, Retention(), now=moment) == would
    assert {item.key.split("/")[0] for item in store.list("")} == left


def test_the_manifest_decides_and_not_todays_settings(tmp_path: Path) -> None:
    """A record written under longer retention keeps it; a partial one goes by age."""
    store = local(tmp_path)
    Conversation(1).store(store, Settings(retention=Retention(io=300, content=300, meta=400)))
    unfinished = Conversation(1, run_id=OTHER)
    writer = VaultWriter(store, Settings(), ruleset_hash="r")
    for event in unfinished.events:
        writer.append(event)
    writer.flush()
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=10)
    gone = expire(store, Retention(), now=moment, audit=Audit(store))
    assert {item.key.split("/")[0] for item in gone} == {"content"}
    assert all(OTHER[6:] in item.key for item in gone)
    assert audit_lines(store)[0].what == "expired"


def test_a_damaged_manifest_falls_back_to_age(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody keeps payloads for ever by spoiling a manifest."""
    store = LocalStore(tmp_path / "vault")
    seal = Conversation(1).store(store)
    (tmp_path / "vault" / seal.manifest_key).write_bytes(b"{}")
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=40)
    assert len(expire(store, Retention(), now=moment)) == 2
    assert "goes by age" in caplog.text
