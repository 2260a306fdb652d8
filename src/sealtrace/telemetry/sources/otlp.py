"""Spans from files: what `OTLPFileSpanExporter`, the collector's file exporter and its S3 exporter write."""

from __future__ import annotations

import abc
import glob
import gzip
import io
import logging
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import TelemetryError, TelemetryFormatError
from ...event import canonical_run_id
from .decode import from_json, from_protobuf
from .span import RunHit, RunQuery, SpanRecord, hits

__all__ = ["OTLPFileSource", "OTLPSource", "may_be_traces"]

_log: Final = logging.getLogger("sealtrace")
_MAX_MESSAGE: Final = 64 * 1024 * 1024
_MAX_FILE: Final = 1024 * 1024 * 1024
_START: Final = b'{"resourceSpans"'
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_NOT_TRACES: Final = re.compile(r"(?:^|.*_|.*-)(?:logs|metrics)_[^/]*\Z|\..*")
"""Neighbours of trace files in a folder: other signals of the collector's S3 exporter, hidden files."""


class OTLPSource(abc.ABC):
    """OTLP JSON lines and protobuf, gzipped or not, wherever they lie.

    A last record that was cut off (the writer is still writing, or died) is passed over and said so.

    Attributes:
        torn: Records that were cut off and passed over in the last read.
    """

    torn = 0

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What to call it in messages."""

    @abc.abstractmethod
    def _blobs(self) -> Iterator[tuple[str, bytes]]:
        """Names and bytes of everything there is to read."""

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """All spans of a trace."""
        return self._traces({trace_id.lower()})

    def run(self, run_id: str) -> list[SpanRecord]:
        """All spans of all traces that carry this run id."""
        wanted = canonical_run_id(run_id)
        found = self._read((wanted.encode(),))
        return self._traces({span.trace_id for span in found if span.attributes.get("sealtrace.run.id") == wanted})

    def runs(self, query: RunQuery, limit: int) -> list[RunHit]:
        """Runs, newest first."""
        return list(hits(self.spans(), query))[:limit]

    def spans(self) -> list[SpanRecord]:
        """Every span, each once (retries and forks write some twice), by start time.

        Raises:
            TelemetryError: No file is there, or one cannot be read.
            TelemetryFormatError: A file holds something else.
        """
        return self._read(())

    def _traces(self, trace_ids: set[str]) -> list[SpanRecord]:
        if not trace_ids:
            return []
        needles = [form for trace_id in trace_ids for form in _forms(trace_id)]
        return [span for span in self._read(tuple(needles)) if span.trace_id in trace_ids]

    def _read(self, needles: tuple[bytes, ...]) -> list[SpanRecord]:
        """Spans of the records that hold one of these byte strings; looking is far cheaper than decoding."""
        self.torn = 0
        once: dict[tuple[str, str], SpanRecord] = {}
        for name, data in self._blobs():
            try:
                for span in self._blob(_unzipped(name, data), needles):
                    once[span.trace_id, span.span_id] = span
            except TelemetryFormatError as error:
                raise TelemetryFormatError(f"{name}: {error}") from None
        return sorted(once.values(), key=lambda span: span.start_ns)

    def _blob(self, data: bytes, needles: tuple[bytes, ...]) -> Iterator[SpanRecord]:
        if not data.strip():
            return
        if data.startswith(_ZSTD) or data[4:8] == _ZSTD:
            raise TelemetryFormatError("compressed with zstd; let the collector write it uncompressed or with gzip")
        if data.lstrip()[:1] == b"{":
            yield from self._json_lines(data, needles)
        else:
            yield from self._messages(data, needles)

    def _json_lines(self, data: bytes, needles: tuple[bytes, ...]) -> Iterator[SpanRecord]:
        lines = data.split(b"\n")
        complete = not lines[-1].strip()
        lines = [line for line in lines if line.strip()]
        if len(lines) > 1 and not lines[0].rstrip().endswith(b"}"):
            yield from from_json(data)  # one document, laid out over many lines
            return
        for index, line in enumerate(lines):
            last = index == len(lines) - 1 and not complete
            if not last and needles and not any(needle in line for needle in needles):
                continue
            yield from self._line(line, last=last)

    def _line(self, line: bytes, *, last: bool) -> list[SpanRecord]:
        try:
            return from_json(line)
        except TelemetryFormatError:
            # A writer that died in mid-line leaves its half in front of the next writer's first line.
            rest = line.rfind(_START, 1)
            if rest < 0 and not last:
                raise
            self._torn()
            return self._line(line[rest:], last=last) if rest > 0 else []

    def _messages(self, data: bytes, needles: tuple[bytes, ...]) -> Iterator[SpanRecord]:
        if not _is_prefixed(data):
            yield from from_protobuf(data)
            return
        position = 0
        while position < len(data):
            start = position + 4
            position = start + struct.unpack(">I", data[position:start].ljust(4, b"\xff"))[0]
            if position > len(data):
                self._torn()
                return
            message = data[start:position]
            if not needles or any(needle in message for needle in needles):
                yield from from_protobuf(message)

    def _torn(self) -> None:
        self.torn += 1
        _log.warning("a record of %s was cut off and is passed over", self.name)


class OTLPFileSource(OTLPSource):
    """Files of this machine.

    Args:
        path: A file, a folder (all files in it, at any depth) or a glob pattern.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"otlp+file://{self._path}"

    def _blobs(self) -> Iterator[tuple[str, bytes]]:
        for path in self._files():
            try:
                with path.open("rb") as file:
                    yield str(path), file.read(_MAX_FILE + 1)
            except OSError as error:
                raise TelemetryError(f"cannot read {path}: {error}") from error

    def _files(self) -> list[Path]:
        path = Path(self._path)
        if path.is_dir():
            found = sorted(item for item in path.rglob("*") if item.is_file() and may_be_traces(item.name))
        elif path.is_file():
            found = [path]
        else:
            found = sorted(Path(item) for item in glob.glob(self._path, recursive=True) if Path(item).is_file())  # noqa: PTH207 - an absolute pattern
        if not found:
            raise TelemetryError(f"no OTLP file at {self._path}; check SEALTRACE_TELEMETRY or the path of the exporter")
        return found


def may_be_traces(name: str) -> bool:
    """Whether a file of this name in a folder is to be read; the collector's S3 exporter names the signal."""
    return not _NOT_TRACES.match(name)


def _forms(trace_id: str) -> tuple[bytes, ...]:
    try:
        return trace_id.encode(), trace_id.upper().encode(), bytes.fromhex(trace_id)
    except ValueError:
        return (trace_id.encode("utf-8", "replace"),)


def _unzipped(name: str, data: bytes) -> bytes:
    if data.startswith(_GZIP):
        try:
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(_MAX_FILE + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise TelemetryError(f"cannot read {name}: {error}") from error
    if len(data) > _MAX_FILE:
        raise TelemetryError(f"{name} has more than {_MAX_FILE} bytes; let the collector rotate its files")
    return data


def _is_prefixed(data: bytes) -> bool:
    """Whether this is a 4-byte length and a message, as the collector writes, or a message alone.

    A message alone begins with the tag of field 1 (0x0a), which as a length's first byte would mean
    more than 167 million.
    """
    return len(data) >= 4 and 0 < struct.unpack(">I", data[:4])[0] <= _MAX_MESSAGE
