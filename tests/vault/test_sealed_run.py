"""A real run, recorded encrypted: loaded, shown and rerun with the key, and by nobody without it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sealtrace
from replay.world import RUN_ID, World, again, record, support
from sealtrace.cli import run as cli
from sealtrace.errors import NotComparable
from sealtrace.event import EventStatus
from sealtrace.replay.report import Outcome
from sealtrace.vault.lines import inflate
from vault.kms_server import KmsServer
from vault.test_envelope import key_file


@pytest.fixture
def run(tmp_path: Path, vault_url: str, monkeypatch: pytest.MonkeyPatch) -> sealtrace.Run:
    """A recorded run whose payloads are encrypted."""
    monkeypatch.setenv("SEALTRACE_ENVELOPE_KEY", key_file(tmp_path))
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    return record(support, vault_url, world=World())


def _payload_bytes(tmp_path: Path) -> bytes:
    files = [path for klass in ("io", "content") for path in (tmp_path / "vault" / klass).rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".enc"}
    return b"".join(path.read_bytes() for path in files)


def test_it_is_rerun_as_any_other(run: sealtrace.Run) -> None:
    """With the key in the settings nothing else is different: every payload is there and the rerun is the same."""
    assert {event.status for event in run.events} <= {EventStatus.RECORDED, EventStatus.JOINED}
    session, after = again(support, run, world=World())
    assert session.report.outcome is Outcome.SAME
    assert after.done == []


def test_its_words_are_nowhere_in_the_vault(run: sealtrace.Run, tmp_path: Path) -> None:
    """No word of the conversation is in a payload object, and none of its bytes is gzip any more."""
    said = str([event.payload for event in run.events])
    data = _payload_bytes(tmp_path)
    for word in ("Paris", "refund", "function_call", "instructions"):
        assert word in said
        assert word.encode() not in data
    with pytest.raises(sealtrace.SealtraceError):
        inflate(data, "payloads")


def test_kms_may_hold_every_key(
    tmp_path: Path, vault_url: str, kms: KmsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pseudonyms, payloads and signatures all under KMS keys a run is recorded, loaded, rerun and verified."""
    signing, arn = kms.signing(), kms.symmetric()
    key = f"kms:{kms.encrypted(arn, b'a secret of enough bytes', {'sealtrace:use': 'key'})}"
    monkeypatch.setenv("SEALTRACE_ENVELOPE_KEY", f"kms:{arn}")
    monkeypatch.setenv("SEALTRACE_SIGNING_KEY", f"kms:{signing}")
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    recorded = record(support, vault_url, world=World(), key=key)
    assert kms.calls["Encrypt"] == kms.calls["Sign"] == 1
    assert all(event.payload is not None for event in recorded.events)
    session, _ = again(support, recorded, world=World(), key=key)
    assert session.report.outcome is Outcome.SAME
    (tmp_path / "verify.pem").write_bytes(kms.public_pem(signing))
    monkeypatch.setenv("SEALTRACE_VERIFY_KEYS", str(tmp_path / "verify.pem"))
    monkeypatch.delenv("SEALTRACE_SIGNING_KEY")
    assert cli(["verify", RUN_ID]) == 0


def test_without_the_key_object_it_says_erased(
    run: sealtrace.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deleting the key object leaves the run's outline; showing says so, verifying too, and rerunning refuses."""
    assert cli(["verify", RUN_ID]) == 0
    for path in (tmp_path / "vault" / "keys").rglob("*.json"):
        path.unlink()
    capsys.readouterr()
    assert cli(["show", RUN_ID]) == 0
    assert "payload erased" in capsys.readouterr().out
    assert cli(["verify", RUN_ID]) == 27
    erased = sealtrace.load(RUN_ID)
    assert len(erased.events) == len(run.events)
    with pytest.raises(NotComparable, match="erased"), sealtrace.rerun(erased):
        pass


def test_without_the_setting_it_says_what_to_set(
    run: sealtrace.Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader without the envelope key is denied payloads and told which setting is missing."""
    assert run.events
    monkeypatch.delenv("SEALTRACE_ENVELOPE_KEY")
    assert cli(["show", RUN_ID]) == 0
    out = capsys.readouterr().out
    assert "payload denied" in out
    assert "envelope_key" in out
    assert cli(["verify", RUN_ID]) == 0
