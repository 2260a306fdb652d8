"""Recovery of encrypted and signed records: once, whole, never in the clear, also when it dies itself."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from sealtrace.errors import VaultUnavailable
from sealtrace.settings import Settings
from sealtrace.vault import Keyring, Preparation, Signer, VaultReader, VaultWriter, Verifier, verify_run
from sealtrace.vault.recovery import Recovered, recover
from sealtrace.vault.spool import SpoolKey
from sealtrace.vault.stores import LocalStore
from sealtrace.vault.verify import Damage
from vault.kms_server import KmsServer
from vault.records import RUN, Conversation, local, plain
from vault.test_envelope import WORDS, key_file
from vault.test_spool import _die

_SECRET = "a secret of more than sixteen bytes"


def _settings(tmp_path: Path, **more: Any) -> Settings:
    values: dict[str, Any] = {
        "spool": tmp_path / "spool",
        "key": SecretStr(_SECRET),
        "envelope_key": key_file(tmp_path),
        "max_attempts": 1,
        **more,
    }
    return Settings(**values)


def _recover(store: LocalStore, settings: Settings) -> list[Recovered]:
    assert settings.spool is not None
    preparation = Preparation(Keyring.from_settings(settings), Signer.from_settings(settings))
    return list(recover(settings.spool, SpoolKey.from_settings(settings), store, preparation=preparation))


def _left(settings: Settings, store: LocalStore, run: Conversation, *, closed: bool = False) -> None:
    """A record of a process that died, having stored what it could."""
    writer = VaultWriter(store, settings, ruleset_hash="r")
    for event in run.events:
        with contextlib.suppress(VaultUnavailable):
            writer.append(event)
    if closed:
        with pytest.raises(VaultUnavailable):
            writer.seal(run.header())
        assert writer.held_bytes == 0
    _die(writer)


def _payloads(store: LocalStore, settings: Settings) -> list[Any]:
    (record,) = VaultReader(store, keyring=Keyring.from_settings(settings)).records(RUN)
    return [event.payload for event in record.events()]


def _expected(run: Conversation) -> list[Any]:
    return [plain(event.payload) for event in run.events]


def _damages(store: LocalStore, settings: Settings | None = None) -> list[Damage]:
    verifier = Verifier.from_settings(settings) if settings is not None else None
    return [finding.damage for finding in verify_run(VaultReader(store), RUN, verifier=verifier).findings]


class Breaking(LocalStore):
    """A directory that takes some objects and then breaks off: at once, or just after having stored one."""

    left = 0
    after = False

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        """See `Store.put`."""
        if self.left == 0 and not self.after:
            raise VaultUnavailable("broken off")
        super().put(key, data, sha256=sha256)
        if self.left == 0:
            raise VaultUnavailable("stored, and broken off before it was said")
        self.left -= 1


def test_an_encrypted_record_is_recovered_under_its_own_key(tmp_path: Path) -> None:
    """Segments stored while the process lived, and the rest, are listed once and open with one key."""
    settings, run = _settings(tmp_path, segment_bytes=65_536), Conversation(100)
    _left(settings, local(tmp_path), run)
    before = {item.key for item in local(tmp_path).list("")}
    assert len([key for key in before if key.startswith("keys/")]) == 1
    (found,) = _recover(local(tmp_path), settings)
    assert found.problem is None
    after = {item.key for item in local(tmp_path).list("")}
    assert before < after
    assert len([key for key in after if key.startswith("keys/")]) == 1
    assert _payloads(local(tmp_path), settings) == _expected(run)
    assert _damages(local(tmp_path)) == [Damage.INCOMPLETE]


def test_the_spool_shows_no_key(tmp_path: Path) -> None:
    """Neither the data key nor a payload can be read from a spool file without its own key."""
    settings, run = _settings(tmp_path), Conversation(3)
    writer = VaultWriter(local(tmp_path), settings, ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    data_key = writer._open[run.record_id].record.data_key
    assert data_key is not None
    (path,) = (tmp_path / "spool").rglob("*.spool")
    content = path.read_bytes()
    assert data_key.secret not in content
    assert data_key.secret.hex().encode() not in content
    assert not [word for word in WORDS[:-1] if word in content]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_recovery_that_breaks_off_is_not_done_differently_again(tmp_path: Path, kms: KmsServer, after: bool) -> None:
    """However often recovery breaks off, there are one key, one manifest and each segment once."""
    signing, wrapping = kms.signing(), kms.symmetric()
    settings = _settings(tmp_path, envelope_key=f"kms:{wrapping}", signing_key=f"kms:{signing}")
    run, store = Conversation(6), Breaking(tmp_path / "vault")
    _left(settings, store, run)
    assert list(store.list("")) == []
    store.after = after
    for taken in range(4):
        store.left = taken
        with pytest.raises(VaultUnavailable):
            _recover(store, settings)
    store.left = 99
    assert [item.problem for item in _recover(store, settings)] == [None]
    assert kms.calls["Encrypt"] == kms.calls["Sign"] == 1
    assert sorted(item.key.split("/")[0] for item in store.list("")) == ["content", "io", "keys", "meta"]
    assert _payloads(store, settings) == _expected(run)
    assert _damages(store, settings) == [Damage.INCOMPLETE]


def test_a_torn_tail_is_cut_alike_each_time(tmp_path: Path) -> None:
    """However often recovery dies, it gives the events before the tear, in one manifest."""
    settings, run, store = _settings(tmp_path), Conversation(6), Breaking(tmp_path / "vault")
    _left(settings, store, run)
    (path,) = (tmp_path / "spool").rglob("*.spool")
    os.truncate(path, path.stat().st_size - 100)
    for _ in range(2):
        with pytest.raises(VaultUnavailable):
            _recover(store, settings)
    store.left = 99
    (found,) = _recover(store, settings)
    assert 0 < found.events < len(run.events)
    assert _damages(store) == [Damage.INCOMPLETE]
    assert _payloads(store, settings) == _expected(run)[: found.events]


def test_a_key_that_cannot_be_wrapped_keeps_the_record_and_not_the_others(tmp_path: Path, kms: KmsServer) -> None:
    """With KMS away, or no envelope key set, an encrypted record stays in the spool and others are stored."""
    other = Conversation(2, seed=2, run_id="trace_" + "ef" * 16)
    sealed = _settings(tmp_path, envelope_key=f"kms:{kms.symmetric()}")
    kms.refusal = "KMSInternalException"
    run = Conversation(3)
    _left(sealed, local(tmp_path), run, closed=True)
    _left(_settings(tmp_path, envelope_key=None), Breaking(tmp_path / "vault"), other)
    assert list(local(tmp_path).list("")) == []
    for settings, word in ((sealed, "KMS"), (_settings(tmp_path, envelope_key=None), "envelope_key")):
        problems = {item.run_id: item.problem for item in _recover(local(tmp_path), settings)}
        assert word in str(problems[RUN])
        assert problems.get(other.run_id) is None
    assert all(other.run_id[6:] in item.key for item in local(tmp_path).list(""))
    kms.refusal = None
    assert [(item.complete, item.problem) for item in _recover(local(tmp_path), sealed)] == [(True, None)]
    assert _payloads(local(tmp_path), sealed) == _expected(run)
    assert _damages(local(tmp_path)) == []


def test_a_closed_record_waits_for_its_signature_on_disk(tmp_path: Path, kms: KmsServer) -> None:
    """While KMS cannot sign, a closed record leaves memory, and whoever stores it later signs it as closed."""
    settings = _settings(tmp_path, envelope_key=None, signing_key=f"kms:{kms.signing()}")
    run = Conversation(4)
    kms.refusal = "DependencyTimeoutException"
    _left(settings, local(tmp_path), run, closed=True)
    assert not any("/manifest-" in item.key for item in local(tmp_path).list(""))
    kms.refusal = None
    (found,) = _recover(local(tmp_path), settings)
    assert (found.complete, found.problem) == (True, None)
    assert _damages(local(tmp_path), settings) == []


def test_a_recovery_leaves_the_file_as_it_found_it(tmp_path: Path) -> None:
    """What recovery notes lies beside, under another data key: no nonce of the file's own key is used again."""
    settings, store = _settings(tmp_path), Breaking(tmp_path / "vault")
    _left(settings, store, Conversation(3))
    (path,) = (tmp_path / "spool").rglob("*.spool")
    os.truncate(path, path.stat().st_size - 10)
    before, seen = path.read_bytes(), set[str]()
    for taken in range(3):
        store.left = taken
        with pytest.raises(VaultUnavailable):
            _recover(store, settings)
        assert path.read_bytes() == before
        notes = path.with_suffix(".notes").read_bytes()
        seen.add(json.loads(notes.split(b"\n", 1)[0])["wrapped"])
        assert not [word for word in WORDS[:-1] if word in notes]
    assert len(seen) == 1
    store.left = 99
    _recover(store, settings)
    assert list((tmp_path / "spool").iterdir()) == []


def test_notes_nobody_can_read_are_as_none(tmp_path: Path) -> None:
    """Damaged notes cost nothing: the record is recovered from its own file."""
    settings, store, run = _settings(tmp_path), Breaking(tmp_path / "vault"), Conversation(3)
    _left(settings, store, run)
    with pytest.raises(VaultUnavailable):
        _recover(store, settings)
    (path,) = (tmp_path / "spool").rglob("*.notes")
    path.write_bytes(b"{}\n")
    store.left = 99
    assert [item.problem for item in _recover(store, settings)] == [None]
    assert _payloads(store, settings) == _expected(run)
    assert list((tmp_path / "spool").iterdir()) == []
