"""No content leaves the process but, redacted, into the vault: the whole matrix."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import agents.tracing
import pytest

import sealtrace
from canary.channels import CHANNELS, MODELS, SHAPES, Canaries, Kept, Place, channels
from canary.scan import found
from canary.scenario import MODES, RUN, STREAMED, SYNC, Desk
from loopback.otel import OtelCapture
from loopback.server import LoopbackServer

# The SDK's `run_sync` shuts down the async generators of a loop that it then goes on using.
pytestmark = pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")

KEY = "a key that is only used in tests"
OPEN = {
    "raw_group_id": True,
    "trace_metadata_keys": ("tier", "absent"),
    "replay_url": "https://replay.example/base",
    "feature_flags": ("beta=on",),
}
SETTINGS = {"default": {}, "most open": OPEN, "sensitive flag off": {}}
BY_REQUEST = {"default": set(), "most open": {"group_id"}, "sensitive flag off": set()}
"""What each setting puts on spans because the user asked for it; it shows that the scan sees them."""

OPAQUE = {"input_image", "input_file", "tool_image", "reasoning_encrypted"}
"""Content in an encoding of its own, in which no detector can know a secret."""


@contextlib.contextmanager
def our_logs(otel: OtelCapture) -> Iterator[None]:
    """Everything that we and OpenTelemetry log, at its most talkative, sent over OTLP."""
    handler = otel.handler()
    loggers = [logging.getLogger(name) for name in ("sealtrace", "opentelemetry")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


def vault_bytes(vault_url: str) -> list[bytes]:
    """All objects of a directory vault, keys included, unpacked."""
    root = Path(url2pathname(urlparse(vault_url).path))
    out = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            out += [str(path.relative_to(root)).encode(), gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data]
    return out


def record(desk: Desk, otel: OtelCapture, vault_url: str, **settings: object) -> None:
    """Run the whole scenario with sealtrace on, and get everything out of the process."""
    with our_logs(otel):
        sealtrace.instrument(vault=vault_url, key=KEY, **settings)
        desk.run_all()
        assert sealtrace.flush(10.0)
        agents.flush_traces()
        sealtrace.uninstrument()
        otel.flush()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_content_leaves_but_into_the_vault(
    setting: str,
    mode: str,
    model: str,
    vendor: LoopbackServer,
    otel: OtelCapture,
    vault_url: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No canary is in any OTLP byte, log, output or request to the vendor's traces; the vault has what it should."""
    caplog.set_level(logging.DEBUG, "sealtrace")
    canaries = Canaries()
    strings = canaries.of.values()
    desk = Desk(model, mode, canaries, vendor, sensitive=setting != "sensitive flag off")
    if setting == "most open":
        agents.tracing.get_trace_provider()  # as where something was traced before: the SDK's exporter is there already

    record(desk, otel, vault_url, **SETTINGS[setting])

    exported = {signal: canaries.names(found(strings, *bodies)) for signal, bodies in otel.raw().items()}
    assert exported == {"traces": BY_REQUEST[setting], "metrics": set(), "logs": set()}
    assert len(otel.spans()) > 20
    assert canaries.names(found(strings, *(text.encode() for text in our_records(caplog)))) == set()
    assert canaries.names(found(strings, *(text.encode() for text in capfd.readouterr()))) == set()
    assert vendor.ingested == []
    assert unknown_paths(vendor) == set()

    stored = canaries.names(found(strings, *vault_bytes(vault_url)))
    wanted = channels(model, streamed=mode == STREAMED)
    assert {channel.name for channel in wanted if channel.kept is Kept.YES} - stored == set()
    assert {channel.name for channel in CHANNELS if channel.kept is Kept.NO} & stored == set()


@pytest.mark.parametrize(("model", "mode"), [("responses", RUN), ("chat", STREAMED), ("own", SYNC)])
def test_with_tracing_off_content_is_only_in_the_vault(
    model: str,
    mode: str,
    vendor: LoopbackServer,
    otel: OtelCapture,
    vault_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the SDK's tracing is off and recording was asked for, there are payloads, no spans and no leaks."""
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    canaries = Canaries()
    desk = Desk(model, mode, canaries, vendor)

    record(desk, otel, vault_url, record_when_tracing_disabled=True)

    assert [span.name for span in otel.spans() if span.kind] == []
    assert [found(canaries.of.values(), *bodies) for bodies in otel.raw().values()] == [set()] * 3
    assert vendor.ingested == []
    stored = canaries.names(found(canaries.of.values(), *vault_bytes(vault_url)))
    from_tracing = {channel.name for channel in CHANNELS if channel.place is Place.TRACING}
    wanted = channels(model, streamed=mode == STREAMED)
    assert {channel.name for channel in wanted if channel.kept is Kept.YES} - stored - from_tracing == set()
    assert {channel.name for channel in CHANNELS if channel.kept is Kept.NO} & stored == set()


def test_switching_tracing_off_switches_recording_off(
    vendor: LoopbackServer, otel: OtelCapture, vault_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the SDK's tracing is off and nothing else was asked for, nothing is kept anywhere."""
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    desk = Desk("own", RUN, Canaries(), vendor)

    record(desk, otel, vault_url)

    assert otel.spans() == []
    assert vault_bytes(vault_url) == []
    assert vendor.ingested == []


@pytest.mark.parametrize(("model", "mode"), [("responses", STREAMED), ("chat", SYNC), ("own", RUN)])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "plain"])
def test_secrets_do_not_reach_the_vault(
    shape: str, model: str, mode: str, vendor: LoopbackServer, otel: OtelCapture, vault_url: str
) -> None:
    """A canary in the shape of a secret is in no vault object and no OTLP byte, whichever channel it came by."""
    canaries = Canaries(shape)
    desk = Desk(model, mode, canaries, vendor)

    record(desk, otel, vault_url, **{**OPEN, "raw_group_id": True})

    stored = vault_bytes(vault_url)
    assert canaries.names(found(canaries.of.values(), *stored)) - OPAQUE == set()
    assert b"<EMAIL:" in b"".join(stored) or shape != "email"
    for signal, bodies in otel.raw().items():
        assert canaries.names(found(canaries.of.values(), *bodies)) == set(), signal


def our_records(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What we and OpenTelemetry logged, traceback and arguments included."""
    formatter = logging.Formatter("%(name)s %(message)s")
    ours = [record for record in caplog.records if record.name.startswith(("sealtrace", "opentelemetry"))]
    return [
        f"{formatter.format(record)} {record.args!r} {json.dumps(record.__dict__, default=repr)}" for record in ours
    ]


def unknown_paths(server: LoopbackServer) -> set[str]:
    """Requests to anything but the model and the collector."""
    known = ("/v1/responses", "/v1/chat/completions", "/otlp/v1/traces", "/otlp/v1/metrics", "/otlp/v1/logs")
    return {request.path for request in server.requests if request.path.split("?")[0] not in known}
