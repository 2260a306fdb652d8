"""The secret behind pseudonyms and digests, and what is derived from it.

One secret per tenant gives three independent keys (HKDF-SHA256, RFC 5869). With no secret a random
one lives and dies with the process: everything still works, but pseudonyms and digests of two
processes cannot be compared, and records say so by their key id.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .errors import SettingsError

__all__ = ["Keys"]

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class Keys:
    """Keys for one tenant.

    Args:
        secret: At least 16 bytes of secret material, or None for a random one of this process.

    Raises:
        SettingsError: The secret is too short to resist guessing.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        if secret is not None and len(secret) < 16:
            raise SettingsError("the key needs at least 16 bytes; make one with `openssl rand -hex 32`", setting="key")
        self.ephemeral = secret is None
        material = os.urandom(32) if secret is None else secret
        self._pseudonym = _derive(material, b"sealtrace/pseudonym/v1")
        self._digest = _derive(material, b"sealtrace/digest/v1")
        self.key_id = _derive(material, b"sealtrace/key-id/v1")[:8].hex()
        """Names the key without giving it away; 16 hex digits, written into every record."""

    def tag(self, canonical: str) -> str:
        """A pseudonym's tag: 12 lower-case letters, so that no detector ever matches a tag again."""
        mac = hmac.digest(self._pseudonym, canonical.encode("utf-8", "surrogatepass"), "sha256")
        number = int.from_bytes(mac[:8])
        out: list[str] = []
        for _ in range(12):
            number, rest = divmod(number, 26)
            out.append(_LETTERS[rest])
        return "".join(out)

    def digest(self, data: bytes) -> str:
        """Keyed BLAKE2b-128 of raw bytes, 32 hex digits."""
        return hashlib.blake2b(data, digest_size=16, key=self._digest).hexdigest()


def _derive(material: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(material)
