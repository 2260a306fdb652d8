"""`sealtrace serve`: what it listens on, for whom, and what it refuses to open."""

from __future__ import annotations

import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import serialization

from sealtrace.cli import run as sealtrace
from services.servers import free_port, running

from .conftest import Demo
from .test_visits import TOKEN

_MAIN = "from sealtrace.cli import main; main()"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "viewer")])
    now = dt.datetime.now(dt.UTC)
    ends = now + dt.timedelta(days=1)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, ends)
    made = builder.add_extension(here, critical=False).sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


def test_it_serves_on_loopback(demo: Demo, tmp_path: Path) -> None:
    """The command as users start it answers on 127.0.0.1 and says where, and its log has no content and no address."""
    port = free_port()
    command = [sys.executable, "-c", _MAIN, "serve", "--port", str(port), "--vault", demo.vault]
    url = f"http://127.0.0.1:{port}"
    log = tmp_path / "log"
    with running(command, {}, f"{url}/healthz", log):
        answer = httpx.get(f"{url}/runs/{demo.run.id}?event=5")
        assert "R-2048" in answer.text
        assert "server" not in answer.headers
        assert httpx.get(url, headers={"Host": "evil.test"}).status_code == 421
    assert log.read_text(encoding="utf-8").strip() == f"sealtrace viewer: {url}/runs (stop with Ctrl-C)"


def test_a_port_that_is_free(demo: Demo) -> None:
    """With port 0 it takes one and says which; interrupted, it ends as interrupted commands do."""
    command = [sys.executable, "-c", _MAIN, "serve", "--port", "0", "--vault", demo.vault]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.match(r"sealtrace viewer: (http://127\.0\.0\.1:\d+)/runs", process.stdout.readline())
            assert found is not None
            assert httpx.get(f"{found[1]}/healthz").text == "ok\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_other_machines_come_by_tls_and_token(demo: Demo, tls: tuple[Path, Path], tmp_path: Path) -> None:
    """On all addresses with TLS and a token, the token opens the page and nothing else does."""
    port = free_port()
    certificate, key = tls
    options = ["--host", "0.0.0.0", "--port", str(port), "--tls-cert", str(certificate), "--tls-key", str(key)]
    command = [sys.executable, "-c", _MAIN, "serve", "--vault", demo.vault, *options]
    trusted = ssl.create_default_context(cafile=str(certificate))
    url = f"https://127.0.0.1:{port}"
    with _serving(command, {"SEALTRACE_VIEWER_TOKEN": TOKEN}, url, trusted, tmp_path / "log"):
        with httpx.Client(verify=trusted, base_url=url) as client:
            assert client.get("/runs").status_code == 401
            shown = client.get(f"/runs/{demo.run.id}", headers={"Authorization": f"Bearer {TOKEN}"})
            assert shown.status_code == 200
            assert shown.headers["strict-transport-security"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/runs")


def _serving(command: list[str], env: dict[str, str], url: str, trusted: ssl.SSLContext, log: Path) -> Any:
    """As `running`, for a server whose certificate only the test knows."""
    import contextlib
    import os
    import time

    @contextlib.contextmanager
    def until() -> Iterator[None]:
        with log.open("wb") as output:
            process = subprocess.Popen(command, env={**os.environ, **env}, stdout=output, stderr=subprocess.STDOUT)
            try:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline:
                    assert process.poll() is None, log.read_text(errors="replace")
                    with contextlib.suppress(httpx.HTTPError):
                        httpx.get(f"{url}/healthz", verify=trusted)
                        break
                yield
            finally:
                process.terminate()
                process.wait(20)

    return until()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "SEALTRACE_VIEWER_TOKEN"),
        (["--host", "::"], "SEALTRACE_VIEWER_TOKEN"),
        (["--host", "viewer.internal"], "SEALTRACE_VIEWER_TOKEN"),
        (["--host", "0.0.0.0", "--insecure-http"], "SEALTRACE_VIEWER_TOKEN"),
        (["--tls-cert", "cert.pem"], "--tls-key"),
        (["--tls-key", "key.pem"], "--tls-cert"),
        (["--tls-cert", "nothing.pem", "--tls-key", "nothing.pem"], "cannot be used"),
    ],
)
def test_no_door_is_left_open(demo: Demo, capsys: pytest.CaptureFixture[str], options: list[str], says: str) -> None:
    """Without a token nobody else is let in, with no flag whatever; half a certificate is none."""
    assert sealtrace(["serve", "--vault", demo.vault, *options]) == 1
    assert says in capsys.readouterr().err


def test_no_token_in_the_clear(demo: Demo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With a token but without TLS, other machines are refused unless the flag says that a proxy has it."""
    monkeypatch.setenv("SEALTRACE_VIEWER_TOKEN", TOKEN)
    assert sealtrace(["serve", "--vault", demo.vault, "--host", "0.0.0.0"]) == 1
    assert "--insecure-http" in capsys.readouterr().err
    monkeypatch.setenv("SEALTRACE_VIEWER_TOKEN", "short")
    assert sealtrace(["serve", "--vault", demo.vault]) == 1
    assert "16 characters" in capsys.readouterr().err


def test_nothing_to_show(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without a vault and a source there is nothing to serve."""
    assert sealtrace(["serve"]) == 1
    assert "SEALTRACE_VAULT" in capsys.readouterr().err


def test_a_port_that_is_taken(demo: Demo, capsys: pytest.CaptureFixture[str]) -> None:
    """Where something else listens, the command says so and how to go on."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        assert sealtrace(["serve", "--vault", demo.vault, "--port", str(other.getsockname()[1])]) == 1
    assert "--port" in capsys.readouterr().err
