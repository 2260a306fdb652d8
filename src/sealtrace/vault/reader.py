"""Finds records in a vault; `stored` reads one."""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Callable, Iterator
from typing import Final

from ..errors import RecordDamaged, RunErased
from ..event import canonical_run_id
from ..settings import Retention
from . import layout
from .audit import Audit
from .stored import StoredRecord
from .stores.base import ObjectInfo, Store
from .tombstones import Tombstones
from .wrapping import Keyring

__all__ = ["VaultReader"]

_MAX_SCANNED: Final = 20_000
"""Manifests looked at where there is no index to ask."""


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class VaultReader:
    """Finds records in a store.

    Args:
        store: The vault's store.
        retention: Days per class, for records without a manifest; a manifest says its own.
        clock: What time it is, which decides what has expired.
        audit: Is told before a record's payloads are read.
        keyring: Unwraps the data keys of encrypted records.
    """

    def __init__(
        self,
        store: Store,
        retention: Retention | None = None,
        *,
        clock: Callable[[], dt.datetime] | None = None,
        audit: Audit | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self.store = store
        self._keyring = keyring
        self._retention = retention or Retention.model_validate({})
        self._clock = clock or _now
        self._audit = audit

    def records(self, run_id: str) -> list[StoredRecord]:
        """The run's records, oldest first; empty if the vault knows none.

        Raises:
            RunErased: The run was erased; what has been stored of it since is not read.
            VaultError: The store cannot be read.
        """
        run_id = canonical_run_id(run_id)
        tombstones = Tombstones(self.store)
        refusal = RunErased(f"{run_id} was erased; `sealtrace vault audit` says when, by whom and why")
        if tombstones.has(run_id):
            raise refusal
        by_record: dict[str, list[ObjectInfo]] = {}
        for klass in layout.CLASSES:
            for item in self.store.list(layout.run_prefix(klass, run_id)):
                parts = layout.parse_key(item.key)
                if parts is not None and parts["record"] is not None:
                    by_record.setdefault(parts["record"], []).append(item)
        found = [self._stored(run_id, name, by_record[name]) for name in sorted(by_record)]
        sessions = tombstones.sessions()
        if sessions and any(record.covered(sessions) for record in found):
            raise refusal
        return found

    def recent(self, limit: int, *, erased: bool = False) -> Iterator[StoredRecord]:
        """Records with a manifest, newest first, without those of erased runs and sessions.

        Args:
            limit: Most records to look at.
            erased: Those of erased sessions too, for who erases.

        Raises:
            VaultError: The store cannot be read.
        """
        sessions = Tombstones(self.store).sessions()
        # Names say nothing of time, so all are listed; only the newest are kept.
        for item in heapq.nlargest(limit, self._manifests(), key=lambda item: item.modified):
            parts = layout.parse_key(item.key)
            assert parts is not None
            record = self._stored(f"trace_{parts['run']}", str(parts["record"]), [item])
            if erased or not sessions or not record.covered(sessions):
                yield record

    def _manifests(self) -> Iterator[ObjectInfo]:
        erased = Tombstones(self.store).all()
        for item in self.store.list(f"{layout.META}/v1/"):
            parts = layout.parse_key(item.key)
            if parts is not None and parts["manifest"] is not None and f"trace_{parts['run']}" not in erased:
                yield item

    def _stored(self, run_id: str, record_id: str, objects: list[ObjectInfo]) -> StoredRecord:
        return StoredRecord(
            self.store,
            run_id,
            record_id,
            objects,
            retention=self._retention,
            clock=self._clock,
            audit=self._audit,
            keyring=self._keyring,
        )

    def find_trace(self, trace_id: str) -> str | None:
        """The run that has this OpenTelemetry trace id, by looking through the manifests.

        Raises:
            VaultError: The store cannot be read.
        """
        for record in self.recent(_MAX_SCANNED):
            try:
                header = record.header
            except RecordDamaged:
                continue
            if header is not None and trace_id in header.trace_ids:
                return record.run_id
        return None
