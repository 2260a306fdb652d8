"""A store that tells the metrics, and other processes, how its uploads fared."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .metrics import Metrics

if TYPE_CHECKING:
    from ..vault import ObjectInfo, Store, TroubleFile

__all__ = ["MeteredStore"]


class MeteredStore:
    """The store it is given, with every `put` measured.

    Args:
        store: What stores.
        metrics: What is told.
        trouble: What is told of failures.
    """

    def __init__(self, store: Store, metrics: Metrics, trouble: TroubleFile | None = None) -> None:
        self._store = store
        self._metrics = metrics
        self._trouble = trouble

    @property
    def url(self) -> str:
        """What to call it in messages."""
        return self._store.url

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        """Store an object, and say how long it took and what came of it."""
        started = time.perf_counter()
        error_type: str | None = None
        try:
            self._store.put(key, data, sha256=sha256)
        except BaseException as error:
            error_type = getattr(error, "reason", None) or type(error).__name__
            if self._trouble is not None:
                self._trouble.failed(error)
            raise
        else:
            if self._trouble is not None:
                self._trouble.worked()
        finally:
            self._metrics.stored(time.perf_counter() - started, len(data), error_type)

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """Read an object."""
        return self._store.get(key, start=start, length=length)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects whose key begins so."""
        return self._store.list(prefix)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._store.delete(key)
