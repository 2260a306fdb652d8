"""Finds objects that somebody wrote over, in a bucket that keeps versions, and makes the written one current again.

Only AWS can refuse a put that overwrites. Elsewhere a stolen writer credential can put other bytes under a key that
is taken; every key holds the digest of its bytes, so the version that was stored first is known again by its name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Final

from ...errors import ObjectNotFound, RecordDamaged
from .base import ObjectVersion
from .s3 import S3Store

__all__ = ["Replaced", "find_replaced", "put_back"]

_DIGEST: Final = re.compile(r"-([0-9a-f]{16})\.(?:json|jsonl\.gz|jsonl\.gz\.enc)\Z")


@dataclasses.dataclass(frozen=True, slots=True)
class Replaced:
    """An object whose current bytes are not the ones its key was made from.

    Attributes:
        key: Its key.
        false: The versions above the right one, the newest first.
        right: The newest version that fits the key; None if none is left.
    """

    key: str
    false: tuple[ObjectVersion, ...]
    right: ObjectVersion | None


def find_replaced(store: S3Store, prefix: str) -> Iterator[Replaced]:
    """The objects whose key begins so and that were written over.

    What was deleted stays deleted: it is not looked at. Objects of one version only are not read; `verify` does.

    Raises:
        VaultUnavailable: Not now.
        VaultDenied: Not with these credentials.
    """
    for key, group in itertools.groupby(store.versions(prefix), key=lambda found: found.key):
        versions = list(group)
        named = _DIGEST.search(key)
        if named is None or len(versions) == 1 or versions[0].marker:
            continue
        at = next((number for number, found in enumerate(versions) if _fits(store, found, named[1])), None)
        if at != 0:
            yield Replaced(key, tuple(versions[:at]), versions[at] if at is not None else None)


def _fits(store: S3Store, found: ObjectVersion, digest: str) -> bool:
    if found.marker:
        return False
    try:
        return hashlib.sha256(store.get(found.key, version=found.version)).hexdigest()[:16] == digest
    except (ObjectNotFound, RecordDamaged):  # gone meanwhile; larger than anything of ours
        return False


def put_back(store: S3Store, replaced: Replaced) -> bool:
    """Remove what lies above the right version, so that it is the current one again; whether there is one.

    Raises:
        VaultUnavailable: Not now.
        VaultDenied: Not with these credentials, or a lock keeps what should go.
    """
    if replaced.right is None:
        return False
    for found in replaced.false:
        store.delete_version(replaced.key, found.version)
    return True
