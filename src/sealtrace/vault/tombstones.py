"""Erased runs and sessions stay erased, also when something of them is stored later.

What waits in a spool, or a process that still records the run, knows nothing of an erasure: it may
only put. So the eraser leaves marks, small objects below the audit lines: one for each run, with its id and
nothing else, and one for a session that was erased, with the digest of its tag and the time. Whoever may list
looks for them: the reader refuses what is marked, recovery throws it away, and `erase --again` and `expire`
delete what has been stored all the same. A session's mark holds for records that began before it, so
what the session does afterwards is recorded as ever. Marks live as long as the meta class, longer than any
payload.
"""

from __future__ import annotations

import hashlib
from typing import Final

from ..errors import VaultDenied
from ..event import canonical_run_id
from . import layout
from .lines import encode_line
from .manifest import RecordHeader
from .stores.base import Store

__all__ = ["ErasedSessions", "Tombstones"]

_VERSION: Final = 1


class ErasedSessions:
    """Which sessions were erased, and when last.

    Args:
        times: Time of the last erasure by the digest of the session's tag.
    """

    def __init__(self, times: dict[str, str]) -> None:
        self._times = times

    def __bool__(self) -> bool:
        return bool(self._times)

    def cover(self, header: RecordHeader | None) -> bool:
        """Whether the record belongs to an erased session and began before that was erased."""
        if header is None or header.group_tag is None:
            return False
        erased = self._times.get(layout.tag_digest(header.group_tag))
        return erased is not None and layout.mark_time(header.started_at) <= erased


class Tombstones:
    """The marks in a store.

    Args:
        store: The vault's store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._may_ask = True

    def put(self, run_id: str) -> None:
        """Mark a run as erased; doing so again changes nothing.

        Raises:
            VaultError: The mark cannot be stored.
        """
        run_id = canonical_run_id(run_id)
        self._put(layout.tombstone_key(run_id), {"run_id": run_id})

    def put_session(self, tag: str, now: str) -> None:
        """Mark what a session has recorded up to now (RFC 3339, UTC) as erased.

        Raises:
            VaultError: The mark cannot be stored.
        """
        self._put(layout.session_tombstone_key(tag, now), {"session": layout.tag_digest(tag), "at": now})

    def _put(self, key: str, what: dict[str, str]) -> None:
        data = encode_line({"erased": _VERSION, **what})
        self._store.put(key, data, sha256=hashlib.sha256(data).digest())

    def has(self, run_id: str) -> bool:
        """Whether the run was erased.

        Raises:
            VaultError: The store cannot be asked.
        """
        key = layout.tombstone_key(canonical_run_id(run_id))
        return any(item.key == key for item in self._store.list(key))

    def has_if_allowed(self, run_id: str, header: RecordHeader | None = None) -> bool:
        """Whether the run, or the session its header names, was erased, for a role that perhaps may only put.

        Such a role does not learn it: then the answer is no, and it is not asked again.

        Raises:
            VaultUnavailable: The store does not answer.
        """
        if not self._may_ask:
            return False
        try:
            return self.has(run_id) or self.sessions().cover(header)
        except VaultDenied:
            self._may_ask = False
            return False

    def all(self) -> frozenset[str]:
        """The ids of all runs that were erased by name.

        Raises:
            VaultError: The store cannot be read.
        """
        found = (layout.parse_tombstone(item.key) for item in self._store.list(layout.ERASED))
        return frozenset(run_id for run_id in found if run_id is not None)

    def sessions(self) -> ErasedSessions:
        """The sessions that were erased.

        Raises:
            VaultError: The store cannot be read.
        """
        times: dict[str, str] = {}
        for item in self._store.list(layout.ERASED_SESSIONS):
            parts = item.key.removeprefix(layout.ERASED_SESSIONS).removesuffix(".json").split("/")
            if len(parts) == 2:
                digest, time = parts
                times[digest] = max(time, times.get(digest, ""))
        return ErasedSessions(times)
