"""What a payload store must be able to do; small on purpose."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator
from typing import Final, Protocol

from ...errors import RecordDamaged

__all__ = ["MAX_OBJECT", "ObjectInfo", "ObjectVersion", "Store", "refuse_large"]

MAX_OBJECT: Final = 16 * 1024 * 1024
"""Most bytes that are read of one object; what we write stays below half of it."""


def refuse_large(key: str, size: int) -> None:
    """Refuse to read what nobody of ours wrote.

    Raises:
        RecordDamaged: The object is larger than `MAX_OBJECT`.
    """
    if size > MAX_OBJECT:
        raise RecordDamaged(f"{key} has {size} bytes; objects of a vault have at most {MAX_OBJECT}", key=key)


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as a listing shows it."""

    key: str
    size: int
    modified: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of an object, where a bucket keeps versions.

    Attributes:
        key: The object's key.
        version: What the server calls it.
        modified: When it was written.
        marker: It says that the object was deleted, and has no bytes.
    """

    key: str
    version: str
    modified: dt.datetime
    marker: bool


class Store(Protocol):
    """An append-only store of small immutable objects."""

    @property
    def url(self) -> str:
        """What to call it in messages; holds no credentials."""
        ...

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        """Store an object once. The same bytes already there count as stored.

        Raises:
            ObjectExists: Other bytes are there.
            VaultUnavailable: Not now; trying again may help.
            VaultDenied: Not with these credentials.
        """
        ...

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """Read an object, or `length` bytes of it from `start`.

        Raises:
            ObjectNotFound: There is none.
            RecordDamaged: It is larger than `MAX_OBJECT`.
            VaultUnavailable: Not now.
            VaultDenied: Not with these credentials.
        """
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """All objects whose key begins so, by key.

        Raises:
            VaultUnavailable: Not now.
            VaultDenied: Not with these credentials.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove an object; not an error if there is none.

        Raises:
            VaultUnavailable: Not now.
            VaultDenied: Not with these credentials.
        """
        ...
