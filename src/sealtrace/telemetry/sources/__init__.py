"""Where spans can be read from."""

from __future__ import annotations

from urllib.parse import unquote

from ...errors import SettingsError
from .otlp import OTLPFileSource
from .span import RunHit, RunQuery, Source, SpanRecord

__all__ = ["RunHit", "RunQuery", "Source", "SpanRecord", "open_source"]


def open_source(url: str) -> Source:
    """The source a URL names: `otlp+file:///path`, where the path may be a file, a folder or a pattern.

    Raises:
        SettingsError: The URL names no source that there is.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "otlp+file" and rest:
        return OTLPFileSource(unquote(rest))
    raise SettingsError(
        f"{scheme or url!r} is no telemetry source; use otlp+file:///path/to/traces.jsonl", setting="telemetry"
    )
