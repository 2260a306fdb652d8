"""The secret behind pseudonyms and digests, and what is derived from it.

One secret per tenant gives three independent keys (HKDF-SHA256, RFC 5869). With no secret a random
one lives and dies with the process: everything still works, but pseudonyms and digests of two
processes cannot be compared, and records say so by their key id.

The secret may be given as KMS ciphertext, `kms:` and what `aws kms encrypt` printed: then no settings
file and no environment holds it, and who may record under it is the KMS key's policy. It is decrypted
when it is first needed, once in a process.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .errors import SettingsError
from .kms import SCHEME, Kms
from .settings import Settings

__all__ = ["Keys", "previous_secrets", "secret_of"]

_CONTEXT: Final = {"sealtrace:use": "key"}
"""The encryption context of a secret; other ciphertexts of the same KMS key cannot be passed off for one."""

_decrypted: dict[str, bytes] = {}

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

    @classmethod
    def from_settings(cls, settings: Settings) -> Keys:
        """The keys of the setting `key`.

        Raises:
            SettingsError: The secret is too short, or no KMS ciphertext though it says so.
            VaultError: It is KMS ciphertext, and KMS refuses or does not answer.
        """
        return cls(secret_of(settings))

    @classmethod
    def all_from_settings(cls, settings: Settings) -> list[Keys]:
        """The keys of `key` and of `previous_keys`, those in force first.

        Raises:
            SettingsError: See `from_settings`.
            VaultError: See `from_settings`.
        """
        return [cls.from_settings(settings), *(cls(secret) for secret in previous_secrets(settings))]

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


def secret_of(settings: Settings) -> bytes | None:
    """The secret of the setting `key`; None where none is set.

    Raises:
        SettingsError: It is no KMS ciphertext though it says so.
        VaultError: KMS refuses, or does not answer.
    """
    return _plain(settings.key.get_secret_value(), settings) if settings.key is not None else None


def previous_secrets(settings: Settings) -> list[bytes]:
    """The secrets of `previous_keys`: what was recorded or spooled under them can still be read.

    Raises:
        SettingsError: See `secret_of`.
        VaultError: See `secret_of`.
    """
    return [_plain(item.get_secret_value(), settings) for item in settings.previous_keys]


def _plain(value: str, settings: Settings) -> bytes:
    if not value.startswith(SCHEME):
        return value.encode()
    if value not in _decrypted:
        try:
            ciphertext = base64.b64decode(value.removeprefix(SCHEME), validate=True)
        except binascii.Error:
            message = "after kms: a key must be KMS ciphertext in base 64, as `aws kms encrypt` prints it"
            raise SettingsError(message, setting="key") from None
        # The ciphertext names its KMS key; it comes from the settings, so nobody else chose that.
        _decrypted[value] = Kms(settings).decrypt(None, ciphertext, _CONTEXT)
    return _decrypted[value]
