"""The doctor on where payloads go: each way in which storing fails is told, with what to do."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import gen_trace_id

import sealtrace
from sealtrace.cli import run
from sealtrace.cli._checks import Level
from sealtrace.cli._demo_agent import run_support_desk
from sealtrace.errors import VaultDenied
from sealtrace.settings import Settings
from sealtrace.vault import SpoolKey, TroubleFile, VaultWriter, troubles
from sealtrace.vault.spool import Spool
from sealtrace.vault.stores import LocalStore
from vault.records import Conversation

OK = (200, "")


class _Answers(http.server.BaseHTTPRequestHandler):
    """Answers every reading request with one answer, and every writing one with another."""

    reading: tuple[int, str]
    writing: tuple[int, str]

    def do_GET(self) -> None:
        self._say(*self.reading)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._say(*self.writing)

    def _say(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>m</Message></Error>" if code else "<ListBucketResult/>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Starts a server that answers so, and has the settings lead to it; returns its handler, to change the answers."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(reading: tuple[int, str], writing: tuple[int, str]) -> Any:
        handler = type("Handler", (_Answers,), {"reading": reading, "writing": writing})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        for name, value in {
            "SEALTRACE_VAULT": "s3://payloads/agents",
            "SEALTRACE_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "SEALTRACE_ADDRESSING_STYLE": "path",
            "SEALTRACE_MAX_ATTEMPTS": "1",
            "SEALTRACE_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
        }.items():
            monkeypatch.setenv(name, value)
        return handler

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def _rows(capsys: pytest.CaptureFixture[str], what: str) -> list[tuple[str, str]]:
    run(["doctor", "--json"])
    document = json.loads(capsys.readouterr().out)
    return [(row["level"], row["text"]) for row in document["rows"] if row["what"] == what]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (403, "RequestTimeTooSkewed", "clock"),
        (400, "ExpiredToken", "expired"),
        (503, "SlowDown", "fewer requests"),
        (404, "NoSuchBucket", "no such bucket"),
        (403, "InvalidAccessKeyId", "check the role"),
        (403, "SignatureDoesNotMatch", "check the role"),
        (500, "InternalError", "cannot take this now"),
    ],
)
def test_what_hinders_storing_is_bad_and_said(
    s3: Callable[..., Any], capsys: pytest.CaptureFixture[str], status: int, code: str, words: str
) -> None:
    """Whatever the bucket answers to a look and to a put, its own word for it and what to do are in the row."""
    s3((status, code), (status, code))
    ((level, text),) = _rows(capsys, "payloads")
    assert level == Level.BAD
    assert words in text
    assert code in text or code == "NoSuchBucket"


@pytest.mark.parametrize(
    ("reading", "writing", "level", "words"),
    [
        ((403, "AccessDenied"), (400, "BadDigest"), Level.OK, "as for a writer"),
        (OK, (400, "BadDigest"), Level.OK, "may list too"),
        ((403, "AccessDenied"), (403, "AccessDenied"), Level.BAD, "role's policy"),
        (OK, (403, "AccessDenied"), Level.BAD, "role's policy"),
        (OK, (403, "KMS.NotFoundException"), Level.BAD, "KMS"),
    ],
    ids=["writer", "owner", "stranger", "reader", "no-key"],
)
def test_a_put_is_tried_and_stores_nothing(
    s3: Callable[..., Any], capsys: pytest.CaptureFixture[str], reading: Any, writing: Any, level: str, words: str
) -> None:
    """Only that a put would be taken is good news: a checksum that is wrong shows it and stores nothing."""
    s3(reading, writing)
    ((found, text),) = _rows(capsys, "payloads")
    assert (found, words in text) == (level, True)


def test_no_credentials_are_bad(
    s3: Callable[..., Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without credentials the row names boto3's chain; it is not taken for a writer that may not list."""
    s3(OK, OK)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    ((level, text),) = _rows(capsys, "payloads")
    assert level == Level.BAD
    assert "default chain" in text


def test_a_process_in_trouble_is_seen_from_outside(
    s3: Callable[..., Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While a recording process cannot store, the doctor names it, since when and why; afterwards it does not."""
    monkeypatch.setenv("SEALTRACE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("SEALTRACE_KEY", "k" * 32)
    handler = s3(OK, (400, "ExpiredToken"))
    sealtrace.instrument()
    asyncio.run(run_support_desk(gen_trace_id()))
    assert not sealtrace.flush(10)
    ((level, text),) = _rows(capsys, "storing")
    assert level == Level.BAD
    assert "(ExpiredToken)" in text
    assert "asked for anew" in text
    handler.writing = (503, "SlowDown")
    assert not sealtrace.flush(10)
    ((_, later),) = _rows(capsys, "storing")
    assert "fewer requests" in later
    assert later.split("since ")[1].split(" ")[0] == text.split("since ")[1].split(" ")[0]
    handler.writing = OK
    assert sealtrace.flush(30)
    assert _rows(capsys, "storing") == []


def test_what_a_dead_process_said_is_dropped(tmp_path: Path) -> None:
    """A file of a process that is gone, or whose number another has now, is no trouble and does not stay."""
    trouble = TroubleFile(tmp_path)
    trouble.failed(VaultDenied("no", reason="AccessDenied"))
    ((file,), (found,)) = list(tmp_path.iterdir()), troubles(tmp_path)
    assert found.reason == "AccessDenied"
    assert file.stat().st_mode & 0o077 == 0
    file.write_text(json.dumps(json.loads(file.read_text()) | {"born": "1"}))
    assert list(troubles(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_what_waits_in_the_spool_is_told(
    vault_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of a dead process are counted, and a process whose part of the spool is full is named."""
    settings = Settings(spool=tmp_path / "spool", key="k" * 32, spool_bytes=65_536)  # type: ignore[arg-type]
    writer = VaultWriter(LocalStore(tmp_path / "vault"), settings, ruleset_hash="r")
    for event in Conversation(4).events:
        writer.append(event)
    writer.reset()  # its lock is free now, as if it were dead
    living = Spool(tmp_path / "spool", SpoolKey.from_settings(settings))
    living.file("01", bytes(70_000))
    for name, value in {"SPOOL": str(tmp_path / "spool"), "KEY": "k" * 32, "SPOOL_BYTES": "65536"}.items():
        monkeypatch.setenv(f"SEALTRACE_{name}", value)
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    rows = _rows(capsys, "waiting")
    living.release()
    assert [level for level, _ in rows] == [Level.NOTE, Level.BAD]
    assert "1 records" in rows[0][1]
    assert "spool drain" in rows[0][1]
    assert "dropped" in rows[1][1]
