"""Encrypted runs and erasures under the shipped roles, on a server that enforces them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from sealtrace.errors import RunErased, VaultDenied
from sealtrace.event import EventStatus, Kind
from sealtrace.settings import Settings
from sealtrace.vault import (
    Audit,
    Keyring,
    Preparation,
    SpoolKey,
    Tombstones,
    VaultReader,
    VaultWriter,
    carry_out,
    layout,
    plan_again,
    plan_for_runs,
    policies,
    recover,
    verify_run,
)
from sealtrace.vault.stores import S3Store
from vault.gateway import Gateway
from vault.records import Conversation, plain
from vault.test_envelope import key_file
from vault.test_spool import _die

PREFIX = "team/runs"


class Place:
    """A bucket, and a store for each role."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.bucket = gateway.bucket()
        self.writer = self.acting(policies.writer_policy(self.bucket, PREFIX))
        self.reader = self.acting(policies.reader_policy(self.bucket, PREFIX))
        self.custodian = self.acting(policies.custodian_policy(self.bucket, PREFIX))

    def acting(self, policy: dict[str, Any]) -> S3Store:
        """A store with the credentials of a new role."""
        return self.gateway.store(self.bucket, self.gateway.role(policy), PREFIX)

    def left(self, run: Conversation) -> list[str]:
        """Keys of the run's objects."""
        digits = run.run_id[6:]
        return [item.key for item in self.custodian.list("") if layout.parse_key(item.key) and digits in item.key]


@pytest.fixture(scope="module")
def place(gateway: Gateway) -> Place:
    """One bucket for the tests of this module; each has a run of its own."""
    return Place(gateway)


def _run(number: int, turns: int = 3) -> Conversation:
    return Conversation(turns, seed=number, run_id=f"trace_{number:032x}")


def test_a_sealed_run_takes_no_more_rights_than_another(place: Place, tmp_path: Path) -> None:
    """A role that may only put stores it, one that may get and list reads and verifies it; an event is one range."""
    settings, run = Settings(envelope_key=key_file(tmp_path)), _run(1, turns=200)
    assert run.store(place.writer, settings).objects == 4
    reader = VaultReader(place.reader, keyring=Keyring.from_settings(settings))
    (record,) = reader.records(run.run_id)
    event = next(event for event in run.events if event.kind is Kind.TOOL_CALL)
    assert record.header is not None
    place.gateway.requests(place.bucket, "get_obj")
    assert record.payload(event.seq) == plain(event.payload)
    asked = [item["uri"] for item in place.gateway.requests(place.bucket, "get_obj")]
    assert ["/keys/" in uri for uri in asked] == [False, True]
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert verify_run(VaultReader(place.reader), run.run_id).findings == ()


def test_a_role_kept_out_of_the_keys_reads_no_payload(place: Place, tmp_path: Path) -> None:
    """Who may get everything but `keys/` sees envelopes, and verifies all but the key."""
    settings, run = Settings(envelope_key=key_file(tmp_path)), _run(2)
    run.store(place.writer, settings)
    policy = policies.reader_policy(place.bucket, PREFIX)
    kept_out = {
        "Sid": "NoKeys",
        "Effect": "Deny",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{place.bucket}/{PREFIX}/keys/*",
    }
    policy["Statement"].append(kept_out)
    reader = VaultReader(place.acting(policy), keyring=Keyring.from_settings(settings))
    (record,) = reader.records(run.run_id)
    assert {event.status for event in record.events()} == {EventStatus.PAYLOAD_DENIED}
    assert [finding.damage.name for finding in verify_run(reader, run.run_id).findings] == ["DENIED"]


def test_an_erased_run_does_not_come_back_by_a_writer(place: Place, tmp_path: Path) -> None:
    """The custodian erases; a writer that knows nothing stores its spool; nobody reads it; the custodian sweeps it."""
    run = _run(3)
    settings = Settings(
        spool=tmp_path / "spool", key=SecretStr("a secret of enough bytes"), envelope_key=key_file(tmp_path)
    )
    early = _run(3)
    early.store(place.writer, settings)
    writer = VaultWriter(place.writer, settings, ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    _die(writer)
    assert carry_out(place.custodian, plan_for_runs(place.custodian, [run.run_id]), Audit(place.custodian)) == 4
    assert place.left(run) == []
    assert settings.spool is not None
    place.gateway.requests(place.bucket, "list_bucket")
    preparation = Preparation(Keyring.from_settings(settings), None)
    (found,) = recover(settings.spool, SpoolKey.from_settings(settings), place.writer, preparation=preparation)
    assert (found.erased, found.problem) == (False, None)
    assert len(place.gateway.requests(place.bucket, "list_bucket")) == 1
    assert len(place.left(run)) == 4
    with pytest.raises(RunErased):
        VaultReader(place.reader).records(run.run_id)
    carry_out(place.custodian, plan_again(place.custodian), Audit(place.custodian))
    assert place.left(run) == []


def test_only_the_custodian_marks_a_run_as_erased(place: Place) -> None:
    """A stolen writer credential cannot hide a run, or have it swept."""
    run = _run(5)
    run.store(place.writer)
    with pytest.raises(VaultDenied):
        Tombstones(place.writer).put(run.run_id)
    with pytest.raises(VaultDenied):
        Tombstones(place.writer).put_session("tag:x", "2026-12-01T09:30:00Z")
    assert len(VaultReader(place.reader).records(run.run_id)) == 1
    Tombstones(place.custodian).put(run.run_id)
    with pytest.raises(RunErased):
        VaultReader(place.reader).records(run.run_id)


def test_a_recovery_that_may_look_throws_it_away(place: Place, tmp_path: Path) -> None:
    """With credentials that may list, nothing of an erased run is put at all."""
    run = _run(4)
    settings = Settings(spool=tmp_path / "spool", key=SecretStr("a secret of enough bytes"))
    writer = VaultWriter(place.writer, settings, ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    _die(writer)
    plan = plan_for_runs(place.custodian, [run.run_id], absent=True)
    carry_out(place.custodian, plan, Audit(place.custodian))
    assert settings.spool is not None
    both = policies.writer_policy(place.bucket, PREFIX)
    both["Statement"] += policies.reader_policy(place.bucket, PREFIX)["Statement"]
    (found,) = recover(settings.spool, SpoolKey.from_settings(settings), place.acting(both))
    assert found.erased
    assert place.left(run) == []
