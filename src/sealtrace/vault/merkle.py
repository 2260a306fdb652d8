"""Merkle trees over lines: leaf = H(0x00 | line), node = H(0x01 | left | right), as in RFC 6962."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["leaf", "root"]


def leaf(line: bytes) -> bytes:
    """The leaf of a line."""
    return hashlib.sha256(b"\x00" + line).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaves in order; an odd one moves up as it is."""
    level = list(leaves) or [hashlib.sha256(b"").digest()]
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\x01" + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
        level = pairs + ([level[-1]] if len(level) % 2 else [])
    return level[0]
