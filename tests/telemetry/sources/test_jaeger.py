"""Jaeger's HTTP answers, as a real Jaeger gave them; the real one is asked in tests/services."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from sealtrace.errors import SettingsError, TelemetryError, TelemetryFormatError
from sealtrace.settings import Settings
from sealtrace.telemetry.sources import RunQuery, open_source

from .backend import Answer, serving
from .test_otlp import EXPECTED, RUN, TRACE, as_json, message

LEGACY = {
    "traceID": TRACE.lstrip("0"),
    "spans": [
        {
            "traceID": TRACE.lstrip("0"),
            "spanID": "aa",
            "operationName": "invoke_workflow Refunds",
            "references": [],
            "startTime": 1_790_000_000_000_000,
            "duration": 2_000_000,
            "tags": [
                {"key": "sealtrace.run.id", "type": "string", "value": RUN},
                {"key": "sealtrace.span.kind", "type": "string", "value": "trace"},
                {"key": "sealtrace.workflow.name", "type": "string", "value": "Refunds"},
                {"key": "sealtrace.run.status", "type": "string", "value": "error"},
                {"key": "sealtrace.run.events", "type": "int64", "value": 7},
                {"key": "otel.status_code", "type": "string", "value": "ERROR"},
                {"key": "span.kind", "type": "string", "value": "internal"},
            ],
            "logs": [],
            "processID": "p1",
        },
        {
            "traceID": TRACE.lstrip("0"),
            "spanID": "00000000000000ab",
            "operationName": "execute_tool issue_refund",
            "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": "aa"}],
            "startTime": 1_790_000_000_500_000,
            "duration": 10,
            "tags": [
                {"key": "sealtrace.run.id", "type": "string", "value": RUN},
                {"key": "sealtrace.span.kind", "type": "string", "value": "tool"},
                {"key": "gen_ai.tool.name", "type": "string", "value": "issue_refund"},
            ],
            "processID": "p1",
        },
    ],
    "processes": {"p1": {"serviceName": "shop", "tags": []}},
}


def _json(document: Any) -> Answer:
    return 200, "application/json", json.dumps(document).encode()


def _jaeger(path: str, query: dict[str, str]) -> Answer:
    if path == "/api/v3/services":
        return _json({"services": ["jaeger", "shop"]})
    if path == f"/api/v3/traces/{TRACE}":
        document = as_json(message())
        span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        span["attributes"].append({"key": "@jaeger@warnings", "value": {"stringValue": "a remark of Jaeger's"}})
        return _json({"result": document})
    if path == "/api/traces":
        return _json({"data": [LEGACY] if query["service"] == "shop" else [], "errors": None})
    return 404, "application/json", b'{"error":{"httpCode":404,"message":"trace not found"}}'


def test_trace() -> None:
    """A trace comes as it was sent; one that is not known is empty."""
    with serving(_jaeger) as backend:
        source = open_source(f"jaeger://{backend.address}")
        assert source.trace(TRACE.upper()) == [EXPECTED]
        assert backend.asked[-1][1] == {"raw_traces": "true"}
        assert source.trace("f" * 32) == []
        assert source.name == f"jaeger://{backend.address}"


def test_run_is_found_by_its_id_in_every_service() -> None:
    """A run is searched for by tag, and its traces are then read whole."""
    with serving(_jaeger) as backend:
        assert open_source(f"jaeger://{backend.address}").run(RUN) == [EXPECTED]
    searches = [query for path, query in backend.asked if path == "/api/traces"]
    assert [query["service"] for query in searches] == ["jaeger", "shop"]
    assert json.loads(searches[0]["tags"]) == {"sealtrace.run.id": RUN}
    assert int(searches[0]["end"]) - int(searches[0]["start"]) == 30 * 86_400 * 1_000_000


def test_runs_by_metadata() -> None:
    """Conditions go to Jaeger as far as it can take them, and hold in the answer."""
    since = dt.datetime(2026, 9, 1, tzinfo=dt.UTC)
    with serving(_jaeger) as backend:
        source = open_source(f"jaeger://{backend.address}")
        (hit,) = source.runs(RunQuery(service="shop", error=True, tool="issue_refund", since=since), 5)
        assert source.runs(RunQuery(service="shop", error=False), 5) == []
        assert source.runs(RunQuery(service="shop", tool="other"), 5) == []
    assert (hit.run_id, hit.trace_id, hit.name, hit.status) == (RUN, TRACE, "Refunds", "error")
    assert (hit.tools, hit.events, hit.duration_ms) == (("issue_refund",), 7, 2000.0)
    query = backend.asked[0][1]
    assert json.loads(query["tags"]) == {"sealtrace.span.kind": "tool", "gen_ai.tool.name": "issue_refund"}
    assert int(query["start"]) == int(since.timestamp() * 1e6)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, "text/html", b"<html>"), TelemetryFormatError),
        ((200, "application/json", b"[]"), TelemetryFormatError),
        ((200, "application/json", b"{}"), TelemetryFormatError),
        (
            (200, "application/json", b'{"data": [{"spans": 7, "processes": {}}], "services": ["a"]}'),
            TelemetryFormatError,
        ),
        ((401, "text/plain", b"no"), TelemetryError),
        ((500, "text/plain", b"no"), TelemetryError),
        ((302, "text/plain", b"elsewhere"), TelemetryError),
    ],
)
def test_other_answers(answer: Answer, error: type[Exception]) -> None:
    """An answer that is not Jaeger's is an error of ours; a redirect is not followed."""
    with serving(lambda path, query: answer) as backend:
        source = open_source(f"jaeger://{backend.address}")
        with pytest.raises(error, match=r"(?i)jaeger"):
            source.runs(RunQuery(), 5)


def test_nobody_there() -> None:
    """Where nothing listens the error says what to check."""
    with pytest.raises(TelemetryError, match="did not answer"):
        open_source("jaeger://127.0.0.1:1").trace(TRACE)


def test_headers() -> None:
    """The headers of the settings are sent, and never shown in an error."""
    settings = Settings(telemetry_headers="Authorization=Bearer s3cret, X-Scope-OrgID = team")  # type: ignore[arg-type]
    with serving(lambda path, query: (403, "text/plain", b"")) as backend, pytest.raises(TelemetryError) as raised:
        open_source(f"jaeger://{backend.address}", settings).trace(TRACE)
    assert backend.headers["Authorization"] == "Bearer s3cret"
    assert {name.lower(): value for name, value in backend.headers.items()}["x-scope-orgid"] == "team"
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "jaeger://",
        "jaeger://:16686",
        "jaeger://host:port",
        "jaeger+ftp://host",
        "jaeger://user:word@host",
        "jaeger://host?days=0",
        "jaeger://host?days=x",
        "jaeger://[::1",
    ],
)
def test_bad_urls(url: str) -> None:
    """A URL that cannot be used is a SettingsError, and shows no password."""
    with pytest.raises(SettingsError) as raised:
        open_source(url)
    assert "word" not in str(raised.value)


@pytest.mark.parametrize("headers", ["Authorization", "=x", "A=b\r\nC: d"])
def test_bad_headers(headers: str) -> None:
    """Headers that cannot be sent are a SettingsError."""
    with pytest.raises(SettingsError, match="Name=value"):
        open_source("jaeger://host", Settings(telemetry_headers=headers))  # type: ignore[arg-type]
