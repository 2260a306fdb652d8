"""What the doctor says of keys: which are in force, and what would keep records from being stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sealtrace.cli import run
from sealtrace.cli._checks import Level, Row
from sealtrace.cli._keychecks import key_rows
from sealtrace.keys import Keys
from sealtrace.settings import load_settings
from vault.kms_server import KmsServer
from vault.test_envelope import key_file

OLD, NEW = "the old secret of enough bytes", "the new secret of enough bytes"


def _rows(**environ: str) -> dict[str, Row]:
    settings = load_settings({}, environ={f"SEALTRACE_{name.upper()}": value for name, value in environ.items()})
    return {row.what: row for row in key_rows(settings)}


def test_keys_are_named_by_their_ids() -> None:
    """The ids of the key in force and of earlier ones are shown, as manifests have them; secrets are not."""
    found = _rows(key=NEW, previous_keys=OLD)
    assert found["key"] == Row("key", Level.OK, f"set, id {Keys(NEW.encode()).key_id}")
    assert Keys(OLD.encode()).key_id in found["earlier keys"].text
    assert not any(secret in row.text for row in found.values() for secret in (OLD, NEW))
    assert set(_rows(key=NEW)) == {"key"}
    assert _rows()["key"].level is Level.NOTE


def test_a_key_in_kms_is_the_one_it_holds(kms: KmsServer) -> None:
    """The id shown is the secret's, not its ciphertext's; where KMS refuses, that is bad."""
    wrapped = f"kms:{kms.encrypted(kms.symmetric(), OLD.encode(), {'sealtrace:use': 'key'})}"
    assert _rows(key=wrapped)["key"].text.endswith(Keys(OLD.encode()).key_id)
    kms.refusal = "AccessDeniedException"
    other = f"kms:{kms.encrypted(kms.symmetric(), NEW.encode(), {'sealtrace:use': 'key'})}"
    assert _rows(key=other)["key"].level is Level.BAD


def test_what_encrypts_and_signs_is_tried(tmp_path: Path, kms: KmsServer) -> None:
    """Keys that work are named, one that KMS refuses is bad, and says that records would wait."""
    settings = {"envelope_key": f"kms:{kms.symmetric()}", "signing_key": f"kms:{kms.signing()}"}
    found = _rows(**settings)
    assert {found[what].level for what in ("encryption", "signing")} == {Level.OK}
    assert "ecdsa-p256-sha256" in found["signing"].text
    kms.refusal = "DisabledException"
    found = _rows(**settings)
    for what in ("encryption", "signing"):
        assert found[what].level is Level.BAD
        assert "would wait" in found[what].text
    assert _rows(envelope_key=key_file(tmp_path))["encryption"].level is Level.OK
    assert _rows(envelope_key="file:/nowhere")["encryption"].level is Level.BAD


def test_the_command_shows_them(
    vault_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sealtrace doctor` has the rows, and fails where an envelope key cannot be used."""
    monkeypatch.setenv("SEALTRACE_KEY", NEW)
    monkeypatch.setenv("SEALTRACE_ENVELOPE_KEY", key_file(tmp_path))
    assert run(["doctor", "--json", "--vault", vault_url]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["encryption"]["level"] == "ok"
    monkeypatch.setenv("SEALTRACE_ENVELOPE_KEY", "file:/nowhere")
    assert run(["doctor", "--json", "--vault", vault_url]) == 1
