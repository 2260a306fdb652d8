"""The key as KMS ciphertext, and changing it: what was spooled or recorded under the old one is still read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

import sealtrace
from sealtrace.cli import run as cli
from sealtrace.errors import SettingsError, VaultDenied
from sealtrace.keys import Keys
from sealtrace.replay.session import material
from sealtrace.settings import Settings, load_settings
from sealtrace.vault import SpoolKey, VaultReader, VaultWriter, layout, recover
from vault.kms_server import KmsServer
from vault.records import RUN, Conversation, local
from vault.test_spool import _die

OLD, NEW = "the old secret of enough bytes", "the new secret of enough bytes"


def _kms_key(kms: KmsServer, secret: str = OLD, **context: str) -> str:
    arn = kms.symmetric()
    return f"kms:{kms.encrypted(arn, secret.encode(), context or {'sealtrace:use': 'key'})}"


def _settings(tmp_path: Path, key: str, *previous: str) -> Settings:
    return Settings(
        spool=tmp_path / "spool", key=SecretStr(key), previous_keys=tuple(SecretStr(item) for item in previous)
    )


def test_a_ciphertext_is_the_secret_it_holds(kms: KmsServer) -> None:
    """The same pseudonyms, digests and key id come of a secret and of its ciphertext, for one call to KMS."""
    wrapped = Settings(key=SecretStr(_kms_key(kms)))
    plain = Keys(OLD.encode())
    for _ in range(3):
        keys = Keys.from_settings(wrapped)
        assert (keys.key_id, keys.tag("a@example.org")) == (plain.key_id, plain.tag("a@example.org"))
        assert not keys.ephemeral
    assert kms.calls["Decrypt"] == 1


def test_a_spool_is_opened_with_the_secret_and_with_its_ciphertext(tmp_path: Path, kms: KmsServer) -> None:
    """A process whose key came from KMS recovers what one with the secret itself left, under the same key id."""
    _left(_settings(tmp_path, OLD), local(tmp_path))
    settings = _settings(tmp_path, _kms_key(kms))
    assert settings.spool is not None
    (found,) = recover(settings.spool, SpoolKey.from_settings(settings), local(tmp_path))
    assert found.problem is None
    (record,) = VaultReader(local(tmp_path)).records(RUN)
    assert record.header is not None
    assert record.header.key_id == Keys(OLD.encode()).key_id


def test_what_is_no_ciphertext_is_refused(kms: KmsServer) -> None:
    """Text that is not base 64, a ciphertext for another use, and a key that may not be used each say so."""
    with pytest.raises(SettingsError, match="base 64"):
        Keys.from_settings(Settings(key=SecretStr("kms:not base 64")))
    with pytest.raises(VaultDenied, match="not for this use"):
        Keys.from_settings(Settings(key=SecretStr(_kms_key(kms, use="other"))))
    kms.refusal = "AccessDeniedException"
    with pytest.raises(VaultDenied, match="policy"):
        Keys.from_settings(Settings(key=SecretStr(_kms_key(kms, "another secret of enough bytes"))))


def test_recording_does_not_begin_without_the_key(kms: KmsServer, vault_url: str) -> None:
    """Where KMS refuses the key, `instrument()` says so instead of recording under another."""
    key = _kms_key(kms, "yet another secret of enough bytes")
    kms.refusal = "AccessDeniedException"
    with pytest.raises(VaultDenied, match="KMS"):
        sealtrace.instrument(vault=vault_url, key=key)


def _left(settings: Settings, store: Any) -> None:
    writer = VaultWriter(store, settings, ruleset_hash="r")
    for event in Conversation(2).events:
        writer.append(event)
    _die(writer)


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "kms"])
def test_a_spool_of_the_old_key_is_drained(tmp_path: Path, kms: KmsServer, wrapped: bool) -> None:
    """A process with a new key stores what one with the old key left, and new files are under the new key."""
    _left(_settings(tmp_path, OLD), local(tmp_path))
    (path,) = (tmp_path / "spool").rglob("*.spool")
    without = _settings(tmp_path, NEW)
    assert without.spool is not None
    (kept,) = recover(without.spool, SpoolKey.from_settings(without), local(tmp_path))
    assert "another key" in str(kept.problem)
    settings = _settings(tmp_path, NEW, _kms_key(kms) if wrapped else OLD)
    (found,) = recover(without.spool, SpoolKey.from_settings(settings), local(tmp_path))
    assert found.problem is None
    assert not path.exists()
    _left(settings, local(tmp_path))
    (path,) = (tmp_path / "spool").rglob("*.spool")
    header = json.loads(path.read_bytes().split(b"\n", 1)[0])
    assert header["key"] == SpoolKey(NEW.encode()).ident != SpoolKey(OLD.encode()).ident


def test_a_session_is_erased_under_each_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session that outlasted a change of keys has two tags; erasing it by its name erases both."""
    store = local(tmp_path)
    for number, secret in enumerate((OLD, NEW, "a third secret of enough bytes")):
        tag = f"tag:{Keys(secret.encode()).tag('chat-7')}"
        Conversation(1, seed=number, run_id=f"trace_{number:032x}").store(store, group_tag=tag)
    monkeypatch.setenv("SEALTRACE_VAULT", store.url)
    monkeypatch.setenv("SEALTRACE_KEY", NEW)
    monkeypatch.setenv("SEALTRACE_PREVIOUS_KEYS", f"{OLD}, {'unused ' * 4}")
    assert cli(["vault", "erase", "--session", "chat-7", "--reason", "left", "--yes"]) == 0
    assert "2 runs" in capsys.readouterr().out
    left = {parts["run"] for item in store.list("") if (parts := layout.parse_key(item.key))}
    assert left == {f"{2:032x}"}


def test_a_record_of_the_old_key_is_compared_with_it() -> None:
    """A rerun takes, of the keys that are set, the one that made the record's pseudonyms."""
    settings = Settings(key=SecretStr(NEW), previous_keys=(SecretStr("unused " * 4), SecretStr(OLD)))
    found = material(settings, Keys(OLD.encode()).key_id)
    assert (found.same_key, found.keys.key_id) == (True, Keys(OLD.encode()).key_id)
    other = material(settings, "00" * 8)
    assert (other.same_key, other.keys.key_id) == (False, Keys(NEW.encode()).key_id)
    assert "SEALTRACE_PREVIOUS_KEYS" in str(other.note)


def test_earlier_keys_are_a_list_and_stay_secret() -> None:
    """The environment separates them by commas, a settings file lists them, and nothing prints them."""
    settings = load_settings({}, environ={"SEALTRACE_KEY": NEW, "SEALTRACE_PREVIOUS_KEYS": f"{OLD},{NEW}"})
    assert [item.get_secret_value() for item in settings.previous_keys] == [OLD, NEW]
    assert OLD not in repr(settings)
    assert OLD not in json.dumps(settings.model_dump(mode="json"))
    assert load_settings({"previous_keys": [OLD]}, environ={}).previous_keys == (SecretStr(OLD),)
