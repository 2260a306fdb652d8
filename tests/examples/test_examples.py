"""Every example runs as its own text says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealtrace import load

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run an example in a process of its own; warnings are errors there too."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


def test_quickstart(tmp_path: Path) -> None:
    """It records a run, reads it back joined, and its tool's e-mail address is a pseudonym."""
    done = example("quickstart.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert ": complete, 6 events" in done.stdout
    assert "<EMAIL:" in done.stdout
    assert "lena.hofmann@example.com" not in done.stdout
    run_id = done.stdout.split(": complete")[0].splitlines()[-1]
    run = load(run_id, vault=(tmp_path / "vault").as_uri(), telemetry=f"otlp+{(tmp_path / 'traces.jsonl').as_uri()}")
    assert run.status == "complete"


@pytest.fixture
def bucket() -> Iterator[dict[str, str]]:
    """An empty bucket on a loopback server, as environment variables."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "SEALTRACE_ENDPOINT_URL": f"http://{host}:{port}",
        "SEALTRACE_ADDRESSING_STYLE": "path",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=environment["SEALTRACE_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    client.create_bucket(Bucket="payloads")
    client.close()
    yield environment
    server.stop()


def test_s3(bucket: dict[str, str]) -> None:
    """It stores a run in the bucket by class, and reads it back from there, redacted."""
    done = example("s3.py", SEALTRACE_VAULT="s3://payloads/agents", **bucket)
    assert done.returncode == 0, done.stderr
    assert ": complete" in done.stdout
    assert "io/v1/" in done.stdout
    assert "meta/v1/" in done.stdout
    assert "<EMAIL:" in done.stdout
    assert "ana.pop@example.com" not in done.stdout


def test_s3_says_when_the_bucket_does_not_take_it(bucket: dict[str, str]) -> None:
    """A bucket that is not there is a failure with words, not a lost run without any."""
    done = example("s3.py", SEALTRACE_VAULT="s3://missing-bucket/agents", **bucket)
    assert done.returncode == 1
    assert "did not take the payloads" in done.stderr
    assert "Traceback" not in done.stderr


def test_s3_wants_a_bucket() -> None:
    """Without an address it says which variable to set."""
    done = example("s3.py")
    assert done.returncode == 64
    assert "SEALTRACE_VAULT" in done.stderr


def test_tau_bench(tmp_path: Path) -> None:
    """Real conversations are recorded whole, in order and equal after redaction."""
    if "SEALTRACE_TEST_DATA" not in os.environ:
        pytest.skip("SEALTRACE_TEST_DATA does not name the tau-bench file")
    done = example("tau_bench.py", "--limit", os.environ.get("SEALTRACE_TEST_RUNS", "25"), "--dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["runs_wrong"] == 0
    assert figures["gaps"] == 0
    assert figures["objects"] <= 3 * figures["runs"]
    assert figures["tool_calls"] > 0
    assert figures["redactions"] > 0
