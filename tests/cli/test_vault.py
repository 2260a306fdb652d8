"""`sealtrace vault` and `sealtrace spool`: what they print, do and exit with."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer
from pydantic import SecretStr

from sealtrace.cli import run
from sealtrace.errors import RunErased
from sealtrace.keys import Keys
from sealtrace.settings import Settings
from sealtrace.vault import VaultReader, VaultWriter, layout
from sealtrace.vault.stores import LocalStore
from vault.records import RUN, Conversation

SECRET = "a secret of more than sixteen bytes"
OTHER = "trace_" + "ef" * 16


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStore:
    """A vault with two runs, named in the environment."""
    store = LocalStore(tmp_path / "vault")
    tag = f"tag:{Keys(SECRET.encode()).tag('chat-7')}"
    Conversation(2).store(store, group_tag=tag)
    Conversation(2, seed=2, run_id=OTHER).store(store)
    monkeypatch.setenv("SEALTRACE_VAULT", store.url)
    monkeypatch.setenv("SEALTRACE_KEY", SECRET)
    return store


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_ls_and_stats_say_what_is_there(vault: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Records newest first with their figures, and counts by class that add up."""
    rows = _json(capsys, "vault", "ls")
    assert {row["run_id"] for row in rows} == {RUN, OTHER}
    assert all((row["events"], row["status"], row["complete"]) == (8, "ok", True) for row in rows)
    assert run(["vault", "ls"]) == 0
    assert RUN in capsys.readouterr().out
    found = _json(capsys, "vault", "stats")
    assert {klass: row["objects"] for klass, row in found.items()} == {"io": 2, "content": 2, "meta": 2, "keys": 0}
    assert sum(row["bytes"] for row in found.values()) == sum(item.size for item in vault.list(""))
    assert run(["vault", "stats"]) == 0
    assert "content: 2 objects" in capsys.readouterr().out


def test_erase_is_a_dry_run_first(vault: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --yes nothing goes; with it the run goes, and the audit says who and why."""
    assert run(["vault", "erase", "--run", RUN, "--reason", "art. 17"]) == 0
    assert "would erase 3 objects" in capsys.readouterr().out
    assert len(VaultReader(vault).records(RUN)) == 1
    assert run(["vault", "erase", "--run", RUN, "--reason", "art. 17", "--who", "ada", "--yes"]) == 0
    assert "erased 3 objects" in capsys.readouterr().out
    with pytest.raises(RunErased, match="vault audit"):
        VaultReader(vault).records(RUN)
    assert len(VaultReader(vault).records(OTHER)) == 1
    lines = _json(capsys, "vault", "audit")
    assert [(line["what"], line["who"], line["reason"]) for line in lines] == [
        ("erase", "ada", "art. 17"),
        ("erased", "ada", "art. 17"),
    ]
    assert run(["vault", "audit"]) == 0
    assert "by ada: art. 17" in capsys.readouterr().out


def test_a_session_is_erased_by_its_group_id(vault: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    """The session's own name finds its runs through the key, and nobody else's."""
    found = _json(capsys, "vault", "erase", "--session", "chat-7", "--reason", "left", "--yes")
    assert (found["runs"], found["erased"]) == ([RUN], 3)
    assert len(VaultReader(vault).records(OTHER)) == 1


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--reason", "x"], "either --run or --session", 1),
        (["--reason", " ", "--run", RUN], "needs a reason", 1),
        (["--reason", "x", "--run", RUN, "--session", "s"], "either --run or --session", 1),
        (["--reason", "x", "--run", RUN, "--again"], "either --run or --session", 1),
        (["--reason", "x", "--run", "trace_" + "00" * 16], "--absent", 3),
    ],
)
def test_erase_refuses_what_it_cannot_mean(
    vault: LocalStore, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str, code: int
) -> None:
    """No target, two targets, no reason and an unknown run are refused with words and nothing done."""
    assert run(["vault", "erase", *arguments, "--yes"]) == code
    assert words in capsys.readouterr().err
    assert len(list(vault.list(""))) == 6


def test_a_session_needs_the_key(
    vault: LocalStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the key the tag cannot be made, and the message says so."""
    monkeypatch.delenv("SEALTRACE_KEY")
    assert run(["vault", "erase", "--session", "chat-7", "--reason", "x"]) == 1
    assert "key" in capsys.readouterr().err


def test_expire_deletes_only_with_yes(vault: LocalStore, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing is past its time in a fresh vault; an old partial record is, and goes with --yes only."""
    assert _json(capsys, "vault", "expire") == {"objects": 0, "bytes": 0, "deleted": False}
    import os

    for item in list(vault.list("")):
        if "manifest" in item.key:
            vault.delete(item.key)
        else:
            os.utime(tmp_path / "vault" / item.key, (0, 0))
    assert _json(capsys, "vault", "expire")["objects"] == 4
    assert run(["vault", "expire"]) == 0
    assert "would delete 4" in capsys.readouterr().out
    assert run(["vault", "expire", "--yes"]) == 0
    assert list(vault.list("io/")) == []


def test_a_directory_needs_no_bucket_commands(vault: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Init and check are for buckets and say so."""
    for command in ("init", "check"):
        assert run(["vault", command]) == 1
        assert "no bucket" in capsys.readouterr().err


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_a_bucket_is_set_up_and_checked(
    endpoint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket that is not there fails the check, init makes it, and only the access log is then missing."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "SEALTRACE_ENDPOINT_URL": endpoint,
        "SEALTRACE_REGION": "us-east-1", "SEALTRACE_ADDRESSING_STYLE": "path",
        "SEALTRACE_VAULT": f"s3://v-{uuid.uuid4().hex[:8]}/team",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert run(["vault", "check"]) == 1
    assert "vault init" in capsys.readouterr().err
    assert run(["vault", "init"]) == 0
    assert "bucket: made" in capsys.readouterr().out
    report = _json(capsys, "vault", "check", code=1)
    assert [problem["name"] for problem in report["problems"]] == ["access-log"]
    assert run(["vault", "check"]) == 1
    assert "✗ access-log" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "key"), [("cloudformation", "Resources"), ("terraform", "resource"), ("policies", "writer")]
)
def test_init_prints_without_touching_anything(form: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Templates and policies are printed as JSON with no server to ask."""
    assert run(["vault", "init", "--print", form, "--vault", "s3://my-vault/team"]) == 0
    assert key in json.loads(capsys.readouterr().out)
    assert run(["vault", "init", "--print", "poetry", "--vault", "s3://my-vault/team"]) == 1
    assert "cloudformation" in capsys.readouterr().err


def _left(tmp_path: Path, secret: str) -> str:
    settings = Settings(spool=tmp_path / "spool", key=SecretStr(secret))
    writer = VaultWriter(LocalStore(tmp_path / "vault"), settings, ruleset_hash="r")
    left = Conversation(3, seed=5, run_id="trace_" + "12" * 16)
    for event in left.events:
        writer.append(event)
    assert writer._spool is not None
    writer._spool.release()  # as the kernel does for a process that ends
    return left.run_id


def test_a_spool_is_counted_and_drained(
    vault: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a dead process left is counted, stored, and then no longer there."""
    run_id = _left(tmp_path, SECRET)
    monkeypatch.setenv("SEALTRACE_SPOOL", str(tmp_path / "spool"))
    found = _json(capsys, "spool", "status")
    assert (found["records"], found["recoverable"]) == (1, True)
    assert run(["spool", "drain"]) == 0
    assert "stored 1 records" in capsys.readouterr().out
    assert len(VaultReader(vault).records(run_id)) == 1
    assert run(["spool", "status"]) == 0
    assert "0 records" in capsys.readouterr().out
    assert _json(capsys, "spool", "drain") == []


def test_a_spool_of_another_key_is_a_problem(
    vault: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is reported with exit code 1 and stays for whoever has the key."""
    _left(tmp_path, "another secret of enough bytes")
    monkeypatch.setenv("SEALTRACE_SPOOL", str(tmp_path / "spool"))
    assert run(["spool", "drain"]) == 1
    assert "another key" in capsys.readouterr().out
    assert _json(capsys, "spool", "status")["records"] == 1


def test_a_run_erased_before_its_spool_is_drained_stays_erased(
    vault: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that only waits in a spool is erased with --absent, and draining throws it away and says so."""
    run_id = _left(tmp_path, SECRET)
    monkeypatch.setenv("SEALTRACE_SPOOL", str(tmp_path / "spool"))
    arguments = ["vault", "erase", "--run", run_id, "--reason", "art. 17", "--yes"]
    assert run(arguments) == 3
    assert run([*arguments, "--absent"]) == 0
    assert "1 runs: erased 0 objects" in capsys.readouterr().out
    assert run(["spool", "drain"]) == 0
    assert "threw away 1 records" in capsys.readouterr().out
    assert _json(capsys, "spool", "status")["records"] == 0
    assert [item.key for item in vault.list("") if run_id[6:] in item.key] == [layout.tombstone_key(run_id)]
    assert run(["show", run_id]) == 3
    assert "was erased" in capsys.readouterr().err


def test_what_came_back_is_erased_again(vault: LocalStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --again what a writer stored after the erasure goes, and other runs stay."""
    assert run(["vault", "erase", "--run", RUN, "--reason", "x", "--yes"]) == 0
    Conversation(2, seed=3).store(vault)
    capsys.readouterr()
    assert _json(capsys, "vault", "erase", "--again", "--reason", "x")["objects"] == 3
    found = _json(capsys, "vault", "erase", "--again", "--reason", "x", "--yes")
    assert (found["runs"], found["erased"]) == ([RUN], 3)
    assert _json(capsys, "vault", "erase", "--again", "--reason", "x", "--yes")["runs"] == []
    assert len(VaultReader(vault).records(OTHER)) == 1


def test_without_a_spool_the_commands_say_so(vault: LocalStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither status nor drain guesses a directory."""
    for command in ("status", "drain"):
        assert run(["spool", command]) == 1
        assert "SEALTRACE_SPOOL" in capsys.readouterr().err
