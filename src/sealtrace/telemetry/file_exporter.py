"""Spans to a file, one OTLP JSON document a line: what the collector's file exporter writes.

For a demo, for tests, and for a machine without a collector.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ..lifetime import fresh_lock

__all__ = ["OTLPFileSpanExporter"]

_log: Final = logging.getLogger("sealtrace")
_IDS: Final = ("traceId", "spanId", "parentSpanId")


class OTLPFileSpanExporter(SpanExporter):
    """Appends to a file that only its owner can read.

    Args:
        path: The file; its folder is made if need be.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = fresh_lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line for the batch."""
        document = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        for resource in document.get("resourceSpans", []):
            for scope in resource.get("scopeSpans", []):
                for span in scope.get("spans", []):
                    _hex_ids(span)
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        try:
            with self._lock:
                self._append(line)
        except OSError as error:
            _log.warning("spans could not be written to %s: %s", self._path, error.strerror)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        finally:
            os.close(descriptor)

    def shutdown(self) -> None:
        """Nothing is kept open."""


def _hex_ids(span: dict[str, Any]) -> None:
    # OTLP JSON has ids in hex; protobuf's own JSON mapping has them in base64.
    for name in _IDS:
        if name in span:
            span[name] = base64.b64decode(span[name]).hex()
    for link in span.get("links", []):
        _hex_ids(link)
