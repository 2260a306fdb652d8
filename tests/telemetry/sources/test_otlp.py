"""OTLP files: every form they come in, torn ends, and what is refused."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from sealtrace.errors import SettingsError, TelemetryError, TelemetryFormatError
from sealtrace.telemetry.sources import RunQuery, SpanRecord, open_source
from sealtrace.telemetry.sources.decode import from_json, from_protobuf
from sealtrace.telemetry.sources.otlp import OTLPFileSource

RUN = f"trace_{'0a' * 16}"
TRACE = "0123456789abcdef0123456789abcdef"


def message(trace: str = TRACE, *span_ids: str, run: str = RUN) -> TracesData:
    """A message with these spans, of all the value types there are."""
    data = TracesData()
    resource = data.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = resource.scope_spans.add()
    scope.scope.name = "sealtrace"
    for number, span_id in enumerate(span_ids or ("00000000000000aa",)):
        span = scope.spans.add(
            trace_id=bytes.fromhex(trace), span_id=bytes.fromhex(span_id), name=f"span {number}", kind=3
        )
        span.start_time_unix_nano, span.end_time_unix_nano = 1_790_000_000_000_000_001 + number, 2**63 - 1
        span.status.code = 2
        if number:
            span.parent_span_id = bytes.fromhex(span_ids[0])
        span.attributes.add(key="sealtrace.run.id").value.string_value = run
        span.attributes.add(key="sealtrace.seq").value.int_value = 2**62 + 1
        span.attributes.add(key="gen_ai.request.temperature").value.double_value = 0.1
        span.attributes.add(key="sealtrace.guardrail.tripped").value.bool_value = True
        reasons = span.attributes.add(key="gen_ai.response.finish_reasons").value.array_value
        reasons.values.add().string_value = "stop"
    return data


def as_json(data: TracesData, *, integers: bool = True) -> dict[str, Any]:
    """The OTLP JSON form: hex ids, enums as numbers or names."""
    document = MessageToDict(data, use_integers_for_enums=integers)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return document


def framed(*messages: TracesData) -> bytes:
    """Messages as the collector's file exporter writes them."""
    return b"".join(struct.pack(">I", len(raw)) + raw for raw in (item.SerializeToString() for item in messages))


def line(data: TracesData) -> bytes:
    """One line of OTLP JSON."""
    return json.dumps(as_json(data)).encode() + b"\n"


EXPECTED = SpanRecord(
    trace_id=TRACE,
    span_id="00000000000000aa",
    parent_span_id=None,
    name="span 0",
    kind=3,
    start_ns=1_790_000_000_000_000_001,
    end_ns=2**63 - 1,
    attributes={
        "sealtrace.run.id": RUN,
        "sealtrace.seq": 2**62 + 1,
        "gen_ai.request.temperature": 0.1,
        "sealtrace.guardrail.tripped": True,
        "gen_ai.response.finish_reasons": ["stop"],
    },
    resource={"service.name": "shop"},
    scope="sealtrace",
    status_code=2,
)


def _numbers_as_numbers(document: dict[str, Any]) -> dict[str, Any]:
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["startTimeUnixNano"] = int(span["startTimeUnixNano"])
    span["traceId"] = span["traceId"].upper()
    for pair in span["attributes"]:
        if "intValue" in pair["value"]:
            pair["value"]["intValue"] = int(pair["value"]["intValue"])
    return document


FORMS = {
    "json line": line(message()),
    "json without a last newline": line(message()).rstrip(),
    "json laid out": json.dumps(as_json(message()), indent=2).encode(),
    "enum names": json.dumps(as_json(message(), integers=False)).encode(),
    "numbers as numbers, upper-case ids": json.dumps(_numbers_as_numbers(as_json(message()))).encode(),
    "unknown fields": json.dumps({**as_json(message()), "later": [1]}).encode(),
    "raw protobuf": message().SerializeToString(),
    "framed protobuf": framed(message()),
    "gzipped json": gzip.compress(line(message())),
    "gzipped protobuf": gzip.compress(message().SerializeToString()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_span(tmp_path: Path, form: str) -> None:
    """However it is written, the same span comes back, and it is found by trace and by run."""
    path = tmp_path / "traces"
    path.write_bytes(FORMS[form])
    source = open_source(f"otlp+file://{path}")
    assert source.trace(TRACE) == [EXPECTED]
    assert source.run(RUN) == [EXPECTED]
    assert source.trace("f" * 32) == []
    assert source.run("trace_" + "f" * 32) == []
    assert isinstance(source, OTLPFileSource)
    assert source.torn == 0


def _everything(path: Path) -> list[SpanRecord]:
    return OTLPFileSource(str(path)).spans()


def test_folder_pattern_and_file(tmp_path: Path) -> None:
    """A folder is read at any depth, a pattern as it says; other signals and hidden files are passed over."""
    deep = tmp_path / "year=2026/month=12/day=01"
    deep.mkdir(parents=True)
    (tmp_path / "a.jsonl").write_bytes(line(message(TRACE, "0000000000000001")))
    (deep / "traces_0193.json.gz").write_bytes(gzip.compress(line(message(TRACE, "0000000000000002"))))
    (deep / "traces_0194.binpb").write_bytes(message(TRACE, "0000000000000003").SerializeToString())
    (deep / "prod_logs_0195.binpb").write_bytes(b"\x0a\x00")
    (deep / "metrics_0196.json").write_bytes(b"not even JSON")
    (deep / ".hidden").write_bytes(b"neither")
    (tmp_path / "app.json").write_bytes(b'{"resourceLogs":[]}\n')
    assert [span.span_id[-1] for span in _everything(tmp_path)] == ["1", "2", "3"]
    assert [span.span_id[-1] for span in _everything(tmp_path / "*.jsonl")] == ["1"]
    assert [span.span_id[-1] for span in _everything(tmp_path / "**/*.gz")] == ["2"]


def test_duplicates_are_one(tmp_path: Path) -> None:
    """A span that was exported twice, by a retry or a fork, comes back once."""
    path = tmp_path / "traces.jsonl"
    path.write_bytes(line(message()) + line(message()) + line(message(TRACE, "00000000000000aa", "00000000000000ab")))
    assert [span.span_id for span in _everything(path)] == ["00000000000000aa", "00000000000000ab"]


@given(st.data())
def test_a_torn_end_costs_the_last_record_only(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Cut anywhere in the last record, the records before it are all there, and the cut is reported."""
    framing = data.draw(st.sampled_from([framed, line]))
    first, last = framing(message(TRACE, "0000000000000001")), framing(message(TRACE, "0000000000000002"))
    cut = data.draw(st.integers(1, len(last) - 2))
    path = tmp_path_factory.mktemp("torn") / "traces"
    path.write_bytes(first + last[:cut])
    source = OTLPFileSource(str(path))
    assert [span.span_id[-1] for span in source.spans()] == ["1"]
    assert source.torn == 1
    assert [span.span_id[-1] for span in source.trace(TRACE)] == ["1"]


@pytest.mark.parametrize(
    "content",
    [
        b"hello\n",
        b'{"spans": []}\n',
        b'{"resourceSpans": 7}\n',
        b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}\n',
        b'{"resourceSpans": [7]}\n',
        b"[]\n" + b"{}\n",
        b"{" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
        b"\x0a\x02\x00",
        b"\x00\x00\x00\x02\x12\x00",
        b"\x28\xb5\x2f\xfd rest",
        b"\x00\x00\x00\x09\x28\xb5\x2f\xfd rest",
        line(message()).replace(TRACE.encode(), TRACE[:16].encode()),
        line(message()).replace(TRACE.encode(), base64.b64encode(bytes.fromhex(TRACE))),
        line(message()) + b"garbage in between\n" + line(message()),
        message("ab" * 16).SerializeToString().replace(b"\x0a\x10", b"\x0a\x0f", 1),
    ],
)
def test_what_is_not_otlp_is_refused(tmp_path: Path, content: bytes) -> None:
    """Anything else is a TelemetryFormatError that names the file, never a wrong span or another error."""
    path = tmp_path / "traces"
    path.write_bytes(content)
    with pytest.raises(TelemetryFormatError, match="traces"):
        _everything(path)


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    """Random bytes are refused as what they are or hold no span with a wrong id."""
    for decode in (from_json, from_protobuf):
        try:
            found = decode(data)
        except TelemetryFormatError:
            continue
        assert all(len(span.trace_id) == 32 and len(span.span_id) == 16 for span in found)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["resourceSpans", "resource", "scopeSpans", "scope", "spans", "traceId", "attributes", "key", "value"]
            ),
            inner,
        )
    ),
)


@given(_JSON)
def test_random_json(document: Any) -> None:
    """Whatever JSON comes, the only error is ours."""
    with contextlib.suppress(TelemetryFormatError):
        from_json(json.dumps(document))


def test_a_writer_that_died_in_mid_line(tmp_path: Path) -> None:
    """A line cut off by a crash, with the next writer's line on its tail, costs the cut line only."""
    path = tmp_path / "traces.jsonl"
    whole = [line(message(TRACE, f"000000000000000{n}")) for n in (1, 2, 3)]
    path.write_bytes(whole[0] + whole[1][:70] + whole[2])
    source = OTLPFileSource(str(path))
    assert [span.span_id[-1] for span in source.spans()] == ["1", "3"]
    assert source.torn == 1


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    """No file, or one that cannot be unpacked, is a TelemetryError that says which."""
    with pytest.raises(TelemetryError, match="no OTLP file at"):
        _everything(tmp_path / "none")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(line(message()) * 9)[:-20])
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"x" * 999)[:10] + b"\xff" * 40)
    for name in ("cut.gz", "bad.gz"):
        with pytest.raises(TelemetryError, match=name):
            _everything(tmp_path / name)


def test_empty_file_has_no_spans(tmp_path: Path) -> None:
    """A file that was opened and not written to yet is no error."""
    (tmp_path / "traces").touch()
    assert _everything(tmp_path / "traces") == []


@pytest.mark.parametrize("url", ["", "/tmp/x", "ftp://x", "otlp+file://", "jaeger"])
def test_unknown_sources(url: str) -> None:
    """A URL that names no source is a SettingsError."""
    with pytest.raises(SettingsError):
        open_source(url)


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    """Runs come newest first, as many as asked for, with the service they ran in."""
    path = tmp_path / "traces.jsonl"
    old, new = message("1" * 32, run=f"trace_{'1' * 32}"), message("2" * 32, run=f"trace_{'2' * 32}")
    new.resource_spans[0].scope_spans[0].spans[0].start_time_unix_nano += 10**9
    path.write_bytes(line(old) + line(new))
    source = open_source(f"otlp+file://{path}")
    assert [hit.run_id[-1] for hit in source.runs(RunQuery(), 10)] == ["2", "1"]
    assert [hit.run_id[-1] for hit in source.runs(RunQuery(service="shop"), 1)] == ["2"]
    assert source.runs(RunQuery(service="other"), 10) == []
