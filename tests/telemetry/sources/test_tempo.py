"""Tempo's wire format, byte by byte, from a server that speaks it."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from sealtrace.errors import TelemetryFormatError
from sealtrace.telemetry.sources import RunQuery, open_source
from sealtrace.telemetry.sources.tempo import TempoSource

from .backend import Answer, serving
from .test_otlp import EXPECTED, RUN, TRACE, message

ROOTED = "0" * 20 + "123456789abc"


def _varint(number: int) -> bytes:
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def _field(number: int, value: bytes | int) -> bytes:
    """One protobuf field: a varint or a length and bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def by_id(trace: bytes, *, partial: bool = False) -> bytes:
    """tempopb.TraceByIDResponse: 1 trace, 2 metrics, 3 status, 4 message."""
    metrics = _field(2, _field(1, 1234))
    return _field(1, trace) + metrics + (_field(3, 1) + _field(4, b"too large") if partial else b"")


def _tempo(path: str, query: dict[str, str]) -> Answer:
    if path == f"/api/v2/traces/{TRACE}":
        return 200, "application/protobuf", by_id(message().SerializeToString())
    if path == f"/api/v2/traces/{ROOTED}":
        return 200, "application/protobuf", by_id(message(ROOTED).SerializeToString(), partial=True)
    if path == "/api/search":
        # Tempo drops an id's leading zeros.
        found = [{"traceID": TRACE}, {"traceID": ROOTED.lstrip("0"), "rootServiceName": "shop"}]
        return 200, "application/json", json.dumps({"traces": found[: int(query["limit"])], "metrics": {}}).encode()
    return 404, "text/plain", b"404 page not found"


def test_trace() -> None:
    """A trace comes from v2 in protobuf; one that is not known is empty."""
    with serving(_tempo) as backend:
        source = open_source(f"tempo://{backend.address}")
        assert source.trace(TRACE) == [EXPECTED]
        assert backend.headers["Accept"] == "application/protobuf"
        assert source.trace("f" * 32) == []


def test_a_part_of_a_trace_is_said_to_be_one() -> None:
    """When Tempo returns a part only, the source says of which trace."""
    with serving(_tempo) as backend:
        source = open_source(f"tempo://{backend.address}")
        assert isinstance(source, TempoSource)
        assert len(source.trace(ROOTED)) == 1
        assert source.partial == {ROOTED}


def test_older_releases() -> None:
    """Where there is no v2, v1's answer is read, which is the trace alone."""

    def old(path: str, query: dict[str, str]) -> Answer:
        if path == f"/api/traces/{TRACE}":
            return 200, "application/protobuf", message().SerializeToString()
        return 404, "text/plain", b"404 page not found"

    with serving(old) as backend:
        assert open_source(f"tempo://{backend.address}/").trace(TRACE) == [EXPECTED]


def test_run_is_found_by_its_id() -> None:
    """A run is searched for in TraceQL, from a start on, and ids get their zeros back."""
    with serving(_tempo) as backend:
        spans = open_source(f"tempo://{backend.address}?days=7").run(RUN)
    assert [span.trace_id for span in spans] == [TRACE, ROOTED]
    query = backend.asked[0][1]
    assert query["q"] == f'{{ span.sealtrace.run.id = "{RUN}" }}'
    assert int(query["end"]) - int(query["start"]) == 7 * 86_400


def test_runs_by_metadata() -> None:
    """Each condition becomes a set of spans that the trace must have, with its quotes escaped."""
    since = dt.datetime(2026, 9, 1, tzinfo=dt.UTC)
    with serving(_tempo) as backend:
        hits = open_source(f"tempo://{backend.address}").runs(RunQuery(service="shop", since=since), 1)
        open_source(f"tempo://{backend.address}").runs(RunQuery(error=True, agent='a"b\\', tool="t"), 1)
    assert [hit.run_id for hit in hits] == [RUN]
    searches = [query for path, query in backend.asked if path == "/api/search"]
    assert searches[0]["start"] == str(int(since.timestamp()))
    assert searches[0]["q"] == '{ span.sealtrace.span.kind = "trace" && resource.service.name = "shop" }'
    assert searches[1]["q"] == (
        '{ span.sealtrace.span.kind = "trace" && span.sealtrace.run.status = "error" }'
        ' && { span.sealtrace.span.kind = "agent" && span.gen_ai.agent.name = "a\\"b\\\\" }'
        ' && { span.sealtrace.span.kind = "tool" && span.gen_ai.tool.name = "t" }'
    )


@pytest.mark.parametrize(
    "answer",
    [
        (200, "application/json", b'{"batches": []}'),
        (200, "application/protobuf", b"\x0a\xff"),
        (200, "application/protobuf", by_id(b"\x0a\x02\x00")),
        (200, "text/html", b"<html>"),
    ],
)
def test_other_answers(answer: Answer) -> None:
    """What is not Tempo's answer is a TelemetryFormatError, for a trace as for a search."""
    with serving(lambda path, query: answer) as backend:
        source = open_source(f"tempo://{backend.address}")
        with pytest.raises(TelemetryFormatError):
            source.trace(TRACE)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"traces": [{}]}', b'{"traces": 7}'])
def test_other_answers_to_a_search(body: bytes) -> None:
    """A search that is answered with something else is a TelemetryFormatError."""
    with serving(lambda path, query: (200, "application/json", body)) as backend:
        source = open_source(f"tempo://{backend.address}")
        with pytest.raises(TelemetryFormatError):
            source.run(RUN)
