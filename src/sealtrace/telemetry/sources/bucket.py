"""Spans from a bucket: the layout of the collector's S3 exporter, or any other of OTLP objects."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from ...errors import ObjectNotFound, TelemetryError, VaultError
from ...vault import Store
from .otlp import OTLPSource, may_be_traces

__all__ = ["OTLPBucketSource"]


class OTLPBucketSource(OTLPSource):
    """OTLP objects in a bucket.

    The exporter writes an object per batch, so the spans of one trace are in many: every object of
    the last `days` is read for every question. Good for an archive, slow as a backend.

    Args:
        store: Where they are.
        days: How far back to read, by the objects' own dates.
    """

    def __init__(self, store: Store, days: int) -> None:
        self._store = store
        self._days = days

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"otlp+{self._store.url}"

    def _blobs(self) -> Iterator[tuple[str, bytes]]:
        since = dt.datetime.now(dt.UTC) - dt.timedelta(days=self._days)
        try:
            for item in self._store.list(""):
                if item.size and item.modified >= since and may_be_traces(item.key.rpartition("/")[2]):
                    yield from self._one(item.key)
        except VaultError as error:
            raise TelemetryError(f"cannot read spans from {self.name}: {error}") from error

    def _one(self, key: str) -> Iterator[tuple[str, bytes]]:
        try:
            data = self._store.get(key)
        except ObjectNotFound:
            return  # deleted since it was listed
        yield key, data
