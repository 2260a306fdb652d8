"""Erased runs stay erased, also when something of them is stored later.

What waits in a spool, or a process that still records the run, knows nothing of an erasure: it may
only put. So the eraser leaves a mark, an object below the audit lines that holds the run's id and
nothing else, and whoever may list looks for it: the reader refuses a marked run, recovery throws
away what it finds of one, and `erase --again` and `expire` delete what has been stored all the same.
A mark lives as long as the meta class, longer than any payload.
"""

from __future__ import annotations

import hashlib

from ..errors import VaultDenied
from ..event import canonical_run_id
from . import layout
from .lines import encode_line
from .stores.base import Store

__all__ = ["Tombstones"]

_VERSION = 1


class Tombstones:
    """The marks of erased runs in a store.

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
        data = encode_line({"erased": _VERSION, "run_id": run_id})
        self._store.put(layout.tombstone_key(run_id), data, sha256=hashlib.sha256(data).digest())

    def has(self, run_id: str) -> bool:
        """Whether the run was erased.

        Raises:
            VaultError: The store cannot be asked.
        """
        key = layout.tombstone_key(canonical_run_id(run_id))
        return any(item.key == key for item in self._store.list(key))

    def has_if_allowed(self, run_id: str) -> bool:
        """The same for a role that perhaps may only put: then the answer is no, and it is not asked again.

        Raises:
            VaultUnavailable: The store does not answer.
        """
        if not self._may_ask:
            return False
        try:
            return self.has(run_id)
        except VaultDenied:
            self._may_ask = False
            return False

    def all(self) -> frozenset[str]:
        """The ids of all erased runs.

        Raises:
            VaultError: The store cannot be read.
        """
        found = (layout.parse_tombstone(item.key) for item in self._store.list(layout.ERASED))
        return frozenset(run_id for run_id in found if run_id is not None)
