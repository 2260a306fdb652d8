"""Spans and metrics on the write side, and `sources` to read spans back."""

from __future__ import annotations

from .file_exporter import OTLPFileSpanExporter
from .metadata import ATTRIBUTES
from .metered import MeteredStore
from .metrics import Metrics
from .spans import SpanWriter

__all__ = ["ATTRIBUTES", "MeteredStore", "Metrics", "OTLPFileSpanExporter", "SpanWriter"]
