"""The real S3 server for tests of the vault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from vault.gateway import Gateway
from vault.kms_server import KmsServer

_SCRIPT = Path(__file__).parents[1] / "services" / "radosgw.py"
_REQUIRED = os.environ.get("SEALTRACE_REQUIRE_SERVICES") == "1"


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """A running radosgw whose lifecycle days are two seconds long; skipped where it is not installed."""
    lacking = [name for name in ("radosgw", "ceph-mon", "ceph-osd", "openssl") if shutil.which(name) is None]
    why = f"not installed: {', '.join(lacking)}" if lacking else "the server needs root" if os.geteuid() else ""
    if why and _REQUIRED:
        pytest.fail(why)
    if why:
        pytest.skip(why)
    home = tempfile.mkdtemp(prefix="rgw")  # a short path: it holds unix sockets
    environ = os.environ | {"RGW_LC_SECONDS": "2"}
    try:
        command = [sys.executable, str(_SCRIPT), "start", home]
        done = subprocess.run(command, capture_output=True, check=False, text=True, env=environ)
        if done.returncode:
            pytest.fail(f"radosgw does not start: {done.stderr}")
        yield Gateway(json.loads(done.stdout))
    finally:
        subprocess.run([sys.executable, str(_SCRIPT), "stop", home], check=False)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def kms_server() -> Iterator[KmsServer]:
    """The one KMS of this session; use `kms`."""
    server = KmsServer()
    yield server
    server.close()


@pytest.fixture
def kms(kms_server: KmsServer, monkeypatch: pytest.MonkeyPatch) -> KmsServer:
    """A KMS that boto3's default chain leads to; nothing is counted or refused yet."""
    kms_server.forget()
    kms_server.use(monkeypatch)
    return kms_server
