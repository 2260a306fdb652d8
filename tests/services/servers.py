"""Real servers for tests: a collector, Jaeger, Prometheus; on loopback, on ports of their own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "collector-config"
CACHE = Path(os.environ.get("SEALTRACE_SERVICES_CACHE") or Path.home() / ".cache/sealtrace-services")
_REQUIRED = os.environ.get("SEALTRACE_REQUIRE_SERVICES") == "1"
_JAEGER = "jaeger-v1.76.0"


def binary(name: str) -> Path:
    """The server's binary; the test is skipped, or fails where servers are required, if it is not built."""
    if name == "otelcol":
        digest = hashlib.sha256((CONFIG / "builder-config.yaml").read_bytes()).hexdigest()[:12]
        path = CACHE / f"otelcol-{digest}"
    else:
        path = CACHE / (_JAEGER if name == "jaeger" else name)
    if path.exists():
        return path
    if name in ("prometheus", "promtool") and (found := shutil.which(name)):
        return Path(found)
    reason = f"{name} is not built; run tests/services/build.sh"
    if _REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free() -> str:
    """A loopback address that nothing listens on."""
    return f"127.0.0.1:{free_port()}"


@contextlib.contextmanager
def running(command: list[str], env: Mapping[str, str], ready: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; the block begins when `ready` answers with 200."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **env}, stdout=output, stderr=subprocess.STDOUT)
        try:
            _await(process, ready, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"{process.args!r} did not get ready:\n{log.read_text(errors='replace')[-4000:]}")


class Jaeger:
    """A running Jaeger with this repository's configuration."""

    def __init__(self, folder: Path) -> None:
        self.http, self.otlp_http, self.otlp_grpc = free(), free(), free()
        self.url = f"jaeger://{self.http}"
        self._folder = folder

    @contextlib.contextmanager
    def run(self) -> Iterator[Jaeger]:
        """Until the block ends."""
        env = {
            "JAEGER_HTTP": self.http,
            "JAEGER_GRPC": free(),
            "JAEGER_OTLP_HTTP": self.otlp_http,
            "JAEGER_OTLP_GRPC": self.otlp_grpc,
            "JAEGER_UI_CONFIG": str(CONFIG / "jaeger/config-ui.json"),
        }
        command = [str(binary("jaeger")), "--config", str(CONFIG / "jaeger/jaeger.yaml")]
        with running(command, env, f"http://{self.http}/api/v3/services", self._folder / "jaeger.log"):
            yield self


class Collector:
    """A running collector with `scrub.yaml` and another of this repository's configurations."""

    def __init__(self, folder: Path, *, jaeger: Jaeger | None = None) -> None:
        self.grpc, self.http = free(), free()
        self.out = folder / "out"
        self.folder = folder
        self.env = {
            "DEV_OUT": str(self.out),
            "DEV_HEALTH": free(),
            "DEV_OTLP_GRPC": self.grpc,
            "DEV_OTLP_HTTP": self.http,
            "DEV_JAEGER": f"http://{jaeger.otlp_http if jaeger is not None else free()}",
        }
        self.health = f"http://{self.env['DEV_HEALTH']}/"
        self.configs = ["dev.yaml"]

    def command(self, *before: str) -> list[str]:
        """The command line."""
        configs = [part for name in ("scrub.yaml", *self.configs) for part in ("--config", str(CONFIG / name))]
        return [str(binary("otelcol")), *before, *configs]

    @contextlib.contextmanager
    def run(self) -> Iterator[Collector]:
        """Until the block ends."""
        with running(self.command(), self.env, self.health, self.folder / "collector.log"):
            yield self


class Gateway(Collector):
    """The production gateway, with certificates and tokens of its own."""

    def __init__(self, folder: Path, *, backend: str, backend_ca: Path, remote_write: str, certificates: Path) -> None:
        super().__init__(folder)
        self.configs = ["gateway.yaml"]
        self.token = "a-token-for-tests"
        (folder / "tokens").write_text(f"an-older-token\n{self.token}\n")
        (folder / "backend-token").write_text("a-backend-token")
        self.env = {
            "GATEWAY_HEALTH": free(),
            "GATEWAY_OTLP_GRPC": self.grpc,
            "GATEWAY_OTLP_HTTP": self.http,
            "GATEWAY_METRICS_PORT": str(free_port()),
            "GATEWAY_TLS_CERT": str(certificates / "server.pem"),
            "GATEWAY_TLS_KEY": str(certificates / "server.key"),
            "GATEWAY_CLIENT_CA": str(certificates / "ca.pem"),
            "GATEWAY_TOKENS_FILE": str(folder / "tokens"),
            "GATEWAY_STATE_DIR": str(folder / "state"),
            "GATEWAY_HMAC_KEY": "0123456789abcdef0123456789abcdef",
            "BACKEND_OTLP": backend,
            "BACKEND_CA": str(backend_ca),
            "BACKEND_TOKEN_FILE": str(folder / "backend-token"),
            "METRICS_REMOTE_WRITE": remote_write,
        }
        self.health = f"http://{self.env['GATEWAY_HEALTH']}/"
