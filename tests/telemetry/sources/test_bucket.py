"""Spans in a bucket, laid out as the collector's S3 exporter does, on an S3 server in this process."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

from sealtrace.errors import SettingsError, TelemetryError, TelemetryFormatError
from sealtrace.settings import Settings
from sealtrace.telemetry.sources import RunQuery, open_source

from .test_otlp import RUN, TRACE, line, message

PREFIX = "otel/traces/year=2026/month=12/day=01/hour=09/minute=30"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Address of an S3 server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def settings(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """How to reach it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return Settings(endpoint_url=endpoint, region="us-east-1", addressing_style="path")


@pytest.fixture
def put(endpoint: str, settings: Settings) -> Iterator[Callable[[str, bytes], None]]:
    """Puts an object into the bucket `telemetry`."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="telemetry")
    yield lambda key, data: client.put_object(Bucket="telemetry", Key=key, Body=data)
    for item in client.list_objects_v2(Bucket="telemetry").get("Contents", []):
        client.delete_object(Bucket="telemetry", Key=item["Key"])
    client.delete_bucket(Bucket="telemetry")
    client.close()


def test_a_trace_that_is_scattered_over_objects(put: Callable[[str, bytes], None], settings: Settings) -> None:
    """Its spans come together, from JSON and protobuf, zipped or not; other signals and traces stay out."""
    put(f"{PREFIX}/prod-traces_0193.json", line(message(TRACE, "0000000000000001")))
    put(f"{PREFIX}/traces_0194.json.gz", gzip.compress(line(message(TRACE, "0000000000000002"))))
    put(f"{PREFIX}/traces_0195.binpb", message(TRACE, "0000000000000003").SerializeToString())
    put(f"{PREFIX}/traces_0196.binpb", message("9" * 32, run=f"trace_{'9' * 32}").SerializeToString())
    put(f"{PREFIX}/logs_0197.binpb", b"something else")
    put("elsewhere/traces_0198.binpb", b"of somebody else")
    source = open_source("otlp+s3://telemetry/otel/traces?days=1", settings)
    assert [span.span_id[-1] for span in source.trace(TRACE)] == ["1", "2", "3"]
    assert [span.span_id[-1] for span in source.run(RUN)] == ["1", "2", "3"]
    assert {hit.run_id for hit in source.runs(RunQuery(), 10)} == {RUN, f"trace_{'9' * 32}"}
    assert source.name == "otlp+s3://telemetry/otel/traces"


def test_what_is_not_otlp(put: Callable[[str, bytes], None], settings: Settings) -> None:
    """An object that is something else is named in the error."""
    put(f"{PREFIX}/traces_0193.json", b"[]\n")
    with pytest.raises(TelemetryFormatError, match="traces_0193"):
        open_source("otlp+s3://telemetry", settings).runs(RunQuery(), 10)


def test_a_bucket_that_is_not_there(settings: Settings) -> None:
    """A bucket that cannot be read is a TelemetryError."""
    with pytest.raises(TelemetryError, match="no-such-bucket"):
        open_source("otlp+s3://no-such-bucket", settings).trace(TRACE)


@pytest.mark.parametrize("url", ["otlp+s3://", "otlp+s3://UPPER", "otlp+s3://telemetry?days=none"])
def test_bad_urls(url: str, settings: Settings) -> None:
    """A URL that names no bucket, or no number of days, is a SettingsError."""
    with pytest.raises(SettingsError):
        open_source(url, settings)
