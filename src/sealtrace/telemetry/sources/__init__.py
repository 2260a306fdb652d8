"""Where spans can be read from."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from ...errors import SettingsError
from ...settings import Settings, load_settings
from ...vault import open_store
from .bucket import OTLPBucketSource
from .http import days_of
from .jaeger import JaegerSource
from .otlp import OTLPFileSource
from .span import RunHit, RunQuery, Source, SpanRecord
from .tempo import TempoSource

__all__ = ["RunHit", "RunQuery", "Source", "SpanRecord", "open_source"]


def open_source(url: str, settings: Settings | None = None) -> Source:
    """The source a URL names.

    Args:
        url: `otlp+file:///path`, where the path may be a file, a folder or a pattern;
            `otlp+s3://bucket/prefix`, as the collector's S3 exporter writes it;
            `jaeger://host:16686` or `tempo://host:3200`, with `jaeger+https://` and `tempo+https://`
            for TLS, `/base` for a path in front of the API and `?days=90` for how far back to search.
        settings: For `telemetry_headers` and the bucket's endpoint; the settings in force by default.

    Raises:
        SettingsError: The URL names no source that there is.
    """
    scheme, separator, rest = url.partition("://")
    if separator and rest:
        if scheme == "otlp+file":
            return OTLPFileSource(unquote(rest))
        known = settings if settings is not None else load_settings()
        if scheme == "otlp+s3":
            address, _, query = rest.partition("?")
            return OTLPBucketSource(open_store(f"s3://{address}", known), days_of(query))
        if scheme.partition("+")[0] in _BACKENDS:
            return _BACKENDS[scheme.partition("+")[0]](url, known)
    raise SettingsError(
        f"{scheme or url!r} is no telemetry source; use otlp+file:///path/to/traces.jsonl, jaeger://host:16686 or"
        " tempo://host:3200",
        setting="telemetry",
    )


_BACKENDS: Final[dict[str, type[JaegerSource | TempoSource]]] = {"jaeger": JaegerSource, "tempo": TempoSource}
