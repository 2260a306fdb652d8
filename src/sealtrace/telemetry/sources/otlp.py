"""Spans from files: what `OTLPFileSpanExporter` and the collector's file exporter write."""

from __future__ import annotations

import glob
import gzip
import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ...errors import TelemetryError, TelemetryFormatError
from ...event import canonical_run_id
from .decode import from_json, from_protobuf
from .span import RunHit, RunQuery, SpanRecord, hits

__all__ = ["OTLPFileSource"]

_log: Final = logging.getLogger("sealtrace")
_MAX_MESSAGE: Final = 64 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"


class OTLPFileSource:
    """OTLP JSON lines and protobuf files, gzipped or not; a file, a folder or a pattern.

    A last record that was cut off (the writer is still writing, or died) is passed over and said so.

    Args:
        path: A file, a folder (all files in it) or a glob pattern.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.torn = 0

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"otlp+file://{self._path}"

    def trace(self, trace_id: str) -> list[SpanRecord]:
        """All spans of a trace."""
        return [span for span in self.spans() if span.trace_id == trace_id]

    def run(self, run_id: str) -> list[SpanRecord]:
        """All spans of the traces that carry this run id."""
        spans = self.spans()
        wanted = canonical_run_id(run_id)
        traces = {span.trace_id for span in spans if span.attributes.get("sealtrace.run.id") == wanted}
        return [span for span in spans if span.trace_id in traces]

    def runs(self, query: RunQuery, limit: int) -> list[RunHit]:
        """Runs, newest first."""
        return list(hits(self.spans(), query))[:limit]

    def spans(self) -> list[SpanRecord]:
        """Every span, each once (retries and forks write some twice), by start time.

        Raises:
            TelemetryError: No file is there, or one cannot be read.
            TelemetryFormatError: A file holds something else.
        """
        once: dict[tuple[str, str], SpanRecord] = {}
        for path in self._files():
            for span in self._read(path):
                once[span.trace_id, span.span_id] = span
        return sorted(once.values(), key=lambda span: span.start_ns)

    def _files(self) -> list[Path]:
        path = Path(self._path)
        if path.is_dir():
            found = sorted(item for item in path.iterdir() if item.is_file())
        elif path.is_file():
            found = [path]
        else:
            found = sorted(Path(item) for item in glob.glob(self._path, recursive=True) if Path(item).is_file())  # noqa: PTH207 - an absolute pattern
        if not found:
            raise TelemetryError(f"no OTLP file at {self._path}; check SEALTRACE_TELEMETRY or the path of the exporter")
        return found

    def _read(self, path: Path) -> Iterator[SpanRecord]:
        try:
            data = path.read_bytes()
            if data.startswith(_GZIP):
                data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise TelemetryError(f"cannot read {path}: {error}") from error
        if not data.strip():
            return
        try:
            yield from self._json_lines(data) if data.lstrip()[:1] == b"{" else self._messages(data)
        except TelemetryFormatError as error:
            raise TelemetryFormatError(f"{path}: {error}") from None

    def _json_lines(self, data: bytes) -> Iterator[SpanRecord]:
        lines = data.split(b"\n")
        complete = not lines[-1].strip()
        lines = [line for line in lines if line.strip()]
        for index, line in enumerate(lines):
            try:
                yield from from_json(line)
            except TelemetryFormatError:
                if index < len(lines) - 1 or complete:
                    raise
                self._torn()

    def _messages(self, data: bytes) -> Iterator[SpanRecord]:
        if len(data) < 4 or not 0 < struct.unpack(">I", data[:4])[0] <= _MAX_MESSAGE:
            yield from from_protobuf(data)
            return
        position = 0
        while position < len(data):
            end = position + 4 + struct.unpack(">I", data[position : position + 4].ljust(4, b"\0"))[0]
            if position + 4 > len(data) or end > len(data):
                if position == 0:
                    yield from from_protobuf(data)
                    return
                self._torn()
                return
            yield from from_protobuf(data[position + 4 : end])
            position = end

    def _torn(self) -> None:
        self.torn += 1
        _log.warning("the last record of %s was cut off and is passed over", self._path)
