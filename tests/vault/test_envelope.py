"""Envelope encryption: nothing in the clear, readable with the key only, checked without it, gone with it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sealtrace.errors import (
    ObjectNotFound,
    PayloadErased,
    RecordDamaged,
    SettingsError,
    VaultDenied,
    VaultError,
    VaultUnavailable,
)
from sealtrace.event import EventStatus, Kind
from sealtrace.kms import Kms
from sealtrace.run import load
from sealtrace.settings import Settings
from sealtrace.vault import Audit, Keyring, VaultReader, VaultWriter, carry_out, expire, layout, plan_for_runs
from sealtrace.vault.envelope import DataKey, frames
from sealtrace.vault.lines import deflate
from sealtrace.vault.stored import StoredRecord
from sealtrace.vault.stores import LocalStore
from sealtrace.vault.verify import Damage, verify_run
from sealtrace.vault.wrapping import KeyObject
from vault.kms_server import KmsServer
from vault.records import RUN, Conversation, local, plain
from vault.test_reader import in_days

WORDS = (b"order_id", b"function_call", b"customer", b"lookup", b"temperature", b"\x1f\x8b\x08")
"""What payloads hold; the last is how a gzip member begins."""


def key_file(folder: Path, secret: str = "0f" * 32) -> str:
    """A wrapping key in a file; its setting."""
    path = folder / f"wrap-{secret[:4]}"
    path.write_text(secret + "\n", encoding="ascii")
    return f"file:{path}"


@pytest.fixture(params=["file", "kms"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, kms: KmsServer) -> Settings:
    """Settings with an envelope key of each kind."""
    name = key_file(tmp_path) if request.param == "file" else f"kms:{kms.symmetric()}"
    return Settings(envelope_key=name)


def reader(store: LocalStore, settings: Settings | None, **more: Any) -> VaultReader:
    """A reader with the settings' keys."""
    return VaultReader(store, keyring=Keyring.from_settings(settings) if settings else None, **more)


def _record(store: LocalStore, settings: Settings | None) -> StoredRecord:
    (record,) = reader(store, settings).records(RUN)
    return record


def _key_object(tmp_path: Path) -> Path:
    (found,) = (tmp_path / "vault" / "keys").rglob("*.json")
    return found


def _statuses(record: StoredRecord) -> set[EventStatus]:
    return {event.status for event in record.events()}


def test_a_run_is_read_back_with_its_key(tmp_path: Path, settings: Settings) -> None:
    """With the wrapping key every payload comes back, all at once and one by one; it is four objects."""
    store, run = local(tmp_path), Conversation(60)
    seal = run.store(store, settings)
    assert seal.objects == len(list(store.list(""))) == 4
    record = _record(store, settings)
    assert record.events() == [dataclasses.replace(event, payload=plain(event.payload)) for event in run.events]
    for event in run.events[::17]:
        assert _record(store, settings).payload(event.seq) == plain(event.payload)
    assert load(RUN, vault=store.url, settings=settings).events[3].payload == plain(run.events[3].payload)


def test_nothing_of_a_payload_is_in_the_vault_in_clear(tmp_path: Path, settings: Settings) -> None:
    """No word of a payload, no gzip header and no data key is in any payload object, and names say they are sealed."""
    store = local(tmp_path)
    Conversation(10).store(store, settings)
    payloads = [item.key for item in store.list("") if item.key.startswith(("io/", "content/"))]
    assert len(payloads) == 2
    assert all(key.endswith(".jsonl.gz.enc") for key in payloads)
    for key in payloads:
        assert not [word for word in WORDS if word in store.get(key)]
    keyring = Keyring.from_settings(settings)
    assert keyring is not None
    secret = _record(store, settings)._safe.key().secret
    assert secret not in _key_object(tmp_path).read_bytes()


def test_a_record_without_payloads_has_no_key(tmp_path: Path, kms: KmsServer) -> None:
    """Where nothing is encrypted KMS is not asked, and nothing is missing."""
    store, run = local(tmp_path), Conversation(1)
    writer = VaultWriter(store, Settings(envelope_key=f"kms:{kms.symmetric()}"), ruleset_hash="r")
    for event in run.events:
        writer.append(dataclasses.replace(event, payload=None, status=EventStatus.REDACTION_FAILED))
    assert writer.seal(run.header()).objects == 1
    assert not kms.calls
    assert verify_run(reader(store, None), RUN).ok


def test_an_event_is_one_ranged_read_more_than_its_key(tmp_path: Path, settings: Settings) -> None:
    """One event of a long record costs its manifest, its key and one member, whatever else the record holds."""

    class Counting(LocalStore):
        """A directory that notes what is read."""

        def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
            """See `Store.get`."""
            reads.append((key.split("/", maxsplit=1)[0], length))
            return super().get(key, start=start, length=length)

    reads: list[tuple[str, int | None]] = []
    run = Conversation(200)
    run.store(local(tmp_path), settings)
    (record,) = reader(Counting(tmp_path / "vault"), settings).records(RUN)
    event = next(event for event in run.events if event.kind is Kind.TOOL_CALL)
    assert record.payload(event.seq) == plain(event.payload)
    assert [klass for klass, _ in reads] == ["meta", "content", "keys"]
    assert reads[1][1] is not None


def test_verify_takes_no_key(tmp_path: Path, settings: Settings) -> None:
    """Whoever has no key checks every object of an encrypted run, the wrapped key too, and finds nothing wrong."""
    store = local(tmp_path)
    Conversation(6).store(store, settings)
    for keys in (None, settings):
        found = verify_run(reader(store, keys), RUN)
        assert (found.findings, found.objects) == ((), 4)


def test_without_the_key_payloads_are_denied(tmp_path: Path, settings: Settings) -> None:
    """A reader with no envelope key, or another one, gets envelopes, no payloads, and is told what to set."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store, settings)
    for keys in (None, Settings(envelope_key=key_file(tmp_path, "aa" * 32))):
        record = _record(store, keys)
        assert _statuses(record) == {EventStatus.PAYLOAD_DENIED}
        assert "envelope_key" in record.problems[0]
        assert [event.seq for event in record.envelopes()] == [event.seq for event in run.events]
        with pytest.raises(VaultDenied, match="envelope_key"):
            record.payload(1)


def test_without_the_key_object_payloads_are_erased(tmp_path: Path, settings: Settings) -> None:
    """Once its key object is gone a run says so everywhere: events, single payloads, verify, the loaded run."""
    store = local(tmp_path)
    Conversation(3).store(store, settings)
    _key_object(tmp_path).unlink()
    record = _record(store, settings)
    assert _statuses(record) == {EventStatus.PAYLOAD_ERASED}
    with pytest.raises(PayloadErased):
        record.payload(1)
    found = verify_run(reader(store, None), RUN)
    assert [finding.damage for finding in found.findings] == [Damage.KEY_MISSING]
    run = load(RUN, vault=store.url, settings=settings)
    assert "payload_erased" in {finding.code for finding in run.findings}
    after = verify_run(reader(store, None, clock=in_days(31)), RUN)
    assert after.ok


def test_a_deleted_key_object_cannot_be_made_again(tmp_path: Path, settings: Settings) -> None:
    """A key object of another record in its place, rightly named, opens nothing and is noticed."""
    store = local(tmp_path)
    run, other = Conversation(3), Conversation(3, seed=2, run_id="trace_" + "ef" * 16)
    run.store(store, settings)
    other.store(store, settings)
    mine = next(path for path in (tmp_path / "vault" / "keys").rglob("*.json") if run.record_id in str(path))
    theirs = next(path for path in (tmp_path / "vault" / "keys").rglob("*.json") if other.record_id in str(path))
    mine.unlink()
    (mine.parent / theirs.name).write_bytes(theirs.read_bytes())
    with pytest.raises(RecordDamaged):
        _record(store, settings).events()
    document = json.loads(theirs.read_bytes()) | {"run_id": run.run_id, "record_id": run.record_id}
    (mine.parent / theirs.name).unlink()
    _put_key(store, run, document)
    with pytest.raises(VaultError) as refused:
        _record(store, settings).payload(1)
    assert not isinstance(refused.value, ObjectNotFound)
    found = verify_run(reader(store, None), RUN)
    assert [finding.damage for finding in found.findings] == [Damage.KEY_DAMAGED]


def _put_key(store: LocalStore, run: Conversation, document: dict[str, Any]) -> None:
    import hashlib

    data = json.dumps(document).encode() + b"\n"
    digest = hashlib.sha256(data).digest()
    store.put(layout.key_key(run.run_id, run.record_id, digest), data, sha256=digest)


def test_erasing_begins_with_the_key(tmp_path: Path, settings: Settings) -> None:
    """The key object goes first, so that an erasure that breaks off, or copies elsewhere, leave only noise."""
    store, gone = local(tmp_path), []

    class Locked(LocalStore):
        """A directory whose payloads may not be deleted."""

        def delete(self, key: str) -> None:
            """See `Store.delete`."""
            if not key.startswith("keys/"):
                raise VaultDenied("object lock")
            gone.append(key)
            super().delete(key)

    Conversation(3).store(store, settings)
    locked = Locked(tmp_path / "vault")
    with pytest.raises(VaultDenied):
        carry_out(locked, plan_for_runs(locked, [RUN]), Audit(locked))
    assert len(gone) == 1
    assert len([item for item in store.list("") if layout.parse_key(item.key)]) == 3
    carry_out(store, plan_for_runs(store, [RUN]), Audit(store))
    assert [item.key for item in store.list("") if layout.parse_key(item.key)] == []


def test_a_key_lives_as_long_as_what_it_opens(tmp_path: Path, settings: Settings) -> None:
    """The wrapped key outlives the first class to expire and goes with the last."""
    import datetime as dt

    store = local(tmp_path)
    Conversation(3).store(store, settings)
    now = dt.datetime.now(dt.UTC)
    for days, left in ((8, ["io", "keys", "meta"]), (31, ["meta"])):
        expire(store, settings.retention, now=now + dt.timedelta(days=days))
        assert sorted(item.key.split("/")[0] for item in store.list("")) == left
    assert layout.days_of("keys", settings.retention) > max(settings.retention.io, settings.retention.content)


def test_a_partial_record_is_read_too(tmp_path: Path, settings: Settings) -> None:
    """What was stored of an encrypted record before its process vanished is read without a manifest."""
    store, run = local(tmp_path), Conversation(20)
    writer = VaultWriter(store, settings, ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    writer.flush()
    record = _record(store, settings)
    assert record.partial
    assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]
    assert record.payload(3) == plain(run.events[3].payload)
    assert _statuses(_record(store, None)) == {EventStatus.PAYLOAD_DENIED}


class TestKmsAway:
    """KMS does not answer, or refuses: nothing is stored in the clear, nothing is lost."""

    @pytest.fixture
    def arn(self, kms: KmsServer) -> str:
        """A key to encrypt with."""
        return kms.symmetric()

    def test_nothing_is_stored_until_the_key_is_wrapped(
        self, tmp_path: Path, kms: KmsServer, arn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While KMS is away no object is stored; once it is back the record is there whole."""
        store, run = local(tmp_path), Conversation(100)
        settings = Settings(envelope_key=f"kms:{arn}", segment_bytes=65_536, connect_timeout=0.2, max_attempts=1)
        kms.use(monkeypatch, "http://127.0.0.1:9")
        writer = VaultWriter(store, settings, ruleset_hash="r")
        refused = 0
        for event in run.events:
            try:
                writer.append(event)
            except VaultUnavailable:
                refused += 1
        with pytest.raises(VaultUnavailable):
            writer.seal(run.header())
        assert refused
        assert list(store.list("")) == []
        assert writer.state.last_error is not None
        assert "KMS" in writer.state.last_error
        kms.use(monkeypatch)
        writer._preparation._keyring = Keyring.from_settings(settings)  # boto3 reads its endpoint once
        assert writer.flush()
        writer.seal(run.header())
        assert writer.held_bytes == 0
        record = _record(store, settings)
        assert [event.payload for event in record.events()] == [plain(event.payload) for event in run.events]

    def test_a_refusal_keeps_the_record_as_an_outage_does(self, tmp_path: Path, kms: KmsServer, arn: str) -> None:
        """A disabled key is reported with what to do, and the record waits."""
        kms.disable(arn)
        run = Conversation(2)
        writer = VaultWriter(local(tmp_path), Settings(envelope_key=f"kms:{arn}"), ruleset_hash="r")
        for event in run.events:
            writer.append(event)
        with pytest.raises(VaultUnavailable, match="disabled"):
            writer.seal(run.header())
        assert list(local(tmp_path).list("")) == []
        kms.enable(arn)
        writer.flush()
        assert writer.seal(run.header()).objects == 4

    def test_a_key_that_waits_for_deletion_denies(self, tmp_path: Path, kms: KmsServer, arn: str) -> None:
        """Disabling the KMS key denies every payload at once, and says which key and why."""
        settings = Settings(envelope_key=f"kms:{arn}")
        Conversation(2).store(local(tmp_path), settings)
        kms.disable(arn)
        record = _record(local(tmp_path), settings)
        assert _statuses(record) == {EventStatus.PAYLOAD_DENIED}
        assert arn in record.problems[0]

    def test_one_call_a_record(self, tmp_path: Path, kms: KmsServer, arn: str) -> None:
        """KMS is asked once to store a record of many segments, and once to read all of it, also if it denies."""
        settings = Settings(envelope_key=f"kms:{arn}", segment_bytes=65_536)
        run = Conversation(200)
        assert run.store(local(tmp_path), settings).objects > 5
        assert kms.calls == {"Encrypt": 1}
        record = _record(local(tmp_path), settings)
        record.events()
        record.payload(3)
        assert kms.calls == {"Encrypt": 1, "Decrypt": 1}
        kms.disable(arn)
        record = _record(local(tmp_path), settings)
        for seq in range(5):
            with pytest.raises(VaultDenied):
                record.payload(seq)
        assert kms.calls == {"Encrypt": 1, "Decrypt": 2}

    def test_an_outage_does_not_cost_a_call_per_event(self, tmp_path: Path, kms: KmsServer, arn: str) -> None:
        """While KMS throttles it is asked now and then, not for every event."""
        settings = Settings(envelope_key=f"kms:{arn}", segment_bytes=65_536, max_attempts=1)
        kms.refusal = "ThrottlingException"
        writer, run = VaultWriter(local(tmp_path), settings, ruleset_hash="r"), Conversation(300)
        for event in run.events:
            with contextlib.suppress(VaultUnavailable):
                writer.append(event)
        assert 1 <= kms.calls["Encrypt"] < 20
        assert list(local(tmp_path).list("")) == []

    @pytest.mark.parametrize("code", ["ThrottlingException", "KMSInternalException", "DependencyTimeoutException"])
    def test_a_reader_is_told_that_it_may_try_again(self, tmp_path: Path, kms: KmsServer, arn: str, code: str) -> None:
        """What passes is no denial: reading fails as for a store that is away, and works with the next try."""
        settings = Settings(envelope_key=f"kms:{arn}", max_attempts=1)
        Conversation(2).store(local(tmp_path), settings)
        kms.refusal = code
        record = _record(local(tmp_path), settings)
        with pytest.raises(VaultUnavailable, match=code):
            record.payload(1)
        kms.refusal = None
        assert record.payload(1)

    def test_the_context_binds_a_key_to_its_record(self, tmp_path: Path, kms: KmsServer, arn: str) -> None:
        """A wrapped key does not unwrap for another run, whoever asks."""
        settings = Settings(envelope_key=f"kms:{arn}")
        run = Conversation(2)
        run.store(local(tmp_path), settings)
        found = KeyObject(_key_object(tmp_path).read_bytes(), _key_object(tmp_path).as_posix())
        asked, context = Kms(settings), {"sealtrace:run": RUN, "sealtrace:record": run.record_id}
        assert len(asked.decrypt(arn, found.wrapped, context)) == 32
        with pytest.raises(VaultDenied, match="not for this use"):
            asked.decrypt(arn, found.wrapped, context | {"sealtrace:run": "trace_" + "00" * 16})


def test_keys_are_rotated_by_naming_the_old(tmp_path: Path, kms: KmsServer) -> None:
    """A reader with a new key and the old ones named reads records of each, files and KMS mixed."""
    names = [key_file(tmp_path), f"kms:{kms.symmetric()}", f"kms:{kms.symmetric()}"]
    for number, name in enumerate(names):
        Conversation(2, seed=number).store(local(tmp_path), Settings(envelope_key=name))
    settings = Settings(envelope_key=names[2], previous_envelope_keys=(names[0], names[1]))
    records = reader(local(tmp_path), settings).records(RUN)
    assert [_statuses(record) for record in records] == [{EventStatus.RECORDED}] * 3
    half = reader(local(tmp_path), Settings(envelope_key=names[2], previous_envelope_keys=(names[1],))).records(RUN)
    assert [_statuses(record) for record in half].count({EventStatus.PAYLOAD_DENIED}) == 1


def test_a_new_key_that_may_not_be_used_does_not_hide_the_old(tmp_path: Path, kms: KmsServer) -> None:
    """Where the first key refuses, the others are asked; where all refuse, the first refusal is told."""
    old, new = kms.symmetric(), kms.symmetric()
    Conversation(2).store(local(tmp_path), Settings(envelope_key=f"kms:{old}"))
    kms.disable(new)
    settings = Settings(envelope_key=f"kms:{new}", previous_envelope_keys=(f"kms:{old}",))
    assert _statuses(_record(local(tmp_path), settings)) == {EventStatus.RECORDED}
    kms.disable(old)
    record = _record(local(tmp_path), settings)
    assert _statuses(record) == {EventStatus.PAYLOAD_DENIED}
    assert new in record.problems[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [("vault:x", "kms:KEY or file:"), ("file:/nowhere/at/all", "cannot be read"), ("kms:", "kms:KEY or file:")],
)
def test_a_key_that_is_none_is_refused_at_the_start(tmp_path: Path, name: str, words: str) -> None:
    """A writer whose envelope key cannot be used is not made: nothing could be stored in the clear by mistake."""
    with pytest.raises(SettingsError, match=words):
        VaultWriter(local(tmp_path), Settings(envelope_key=name), ruleset_hash="r")
    with pytest.raises(SettingsError, match="fewer than"):
        VaultWriter(local(tmp_path), Settings(envelope_key=key_file(tmp_path, "short")), ruleset_hash="r")
    with pytest.raises(SettingsError, match="envelope_key"):
        Keyring.from_settings(Settings(previous_envelope_keys=(key_file(tmp_path),)))


def test_a_frame_opens_in_its_own_place_only() -> None:
    """Record, class, segment and member are authenticated, and every bit of the frame is."""
    key = DataKey.new("01" * 16)
    member = deflate(b"line\n" * 50)
    frame = key.seal(member, "io", 7, 2)
    assert key.open(frame, "io", 7, 2, key="k") == member
    other = DataKey(key.secret, "02" * 16)
    for opener, klass, seq, index in (
        (key, "content", 7, 2),
        (key, "io", 8, 2),
        (key, "io", 7, 3),
        (other, "io", 7, 2),
    ):
        with pytest.raises(RecordDamaged):
            opener.open(frame, klass, seq, index, key="k")
    for place in range(4, len(frame)):
        changed = frame[:place] + bytes([frame[place] ^ 1]) + frame[place + 1 :]
        with pytest.raises(RecordDamaged):
            key.open(changed, "io", 7, 2, key="k")
    with pytest.raises(RecordDamaged):
        frames(frame[:-1], "k")


def test_a_nonce_is_never_used_for_two_contents() -> None:
    """The same place and content give the same bytes, another place or content (of another zlib) another nonce."""
    key = DataKey.new("01" * 16)
    seen = {key.seal(b"a", "io", 0, 0)[4:16]}
    assert key.seal(b"a", "io", 0, 0) == DataKey(key.secret, "01" * 16).seal(b"a", "io", 0, 0)
    for content, seq, index in ((b"b", 0, 0), (b"a", 1, 0), (b"a", 0, 1)):
        nonce = key.seal(content, "io", seq, index)[4:16]
        assert nonce not in seen
        seen.add(nonce)
    assert DataKey.new("01" * 16).secret != key.secret
