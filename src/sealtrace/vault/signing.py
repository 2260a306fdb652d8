"""Ed25519 signatures of manifests: who wrote a record, not whether what it says is true.

The signature is the manifest's last field and covers every byte before it. Make a key pair with

    openssl genpkey -algorithm ed25519 -out signing.pem
    openssl pkey -in signing.pem -pubout -out verify.pem

and give `signing_key` to the recording process, `verify_keys` to whoever verifies. The second file
may hold several public keys, one after another: that is how keys are rotated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from ..errors import SettingsError
from ..settings import Settings

__all__ = ["Signer", "Verifier", "split_signed"]

_ALGORITHM: Final = "ed25519"
_FIELD: Final = b',"signature":{'
_PEM: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


class Signer:
    """Signs manifests.

    Attributes:
        key_id: Names the public key: 16 hex digits of its SHA-256.
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key = key.public_key()
        self.key_id = _key_id(self.public_key)

    @classmethod
    def from_settings(cls, settings: Settings) -> Signer | None:
        """The signer the settings ask for; None if none.

        Raises:
            SettingsError: The file cannot be read or holds no Ed25519 private key.
        """
        if settings.signing_key is None:
            return None
        try:
            key = load_pem_private_key(settings.signing_key.read_bytes(), None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            message = f"{settings.signing_key} cannot be read as a private key ({type(error).__name__})"
            raise SettingsError(message, setting="signing_key") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SettingsError(f"{settings.signing_key} is no Ed25519 key", setting="signing_key")
        return cls(key)

    def sign(self, document: bytes) -> bytes:
        """The same JSON line with the signature as its last field."""
        value = base64.b64encode(self._key.sign(document)).decode()
        field = json.dumps({"algorithm": _ALGORITHM, "key": self.key_id, "value": value}, separators=(",", ":"))
        return document[:-2] + _FIELD[:-1] + field.encode() + b"}\n"


class Verifier:
    """Knows the public keys whose signatures count.

    Args:
        keys: The keys.
    """

    def __init__(self, keys: list[Ed25519PublicKey]) -> None:
        self._keys = {_key_id(key): key for key in keys}

    @classmethod
    def from_settings(cls, settings: Settings) -> Verifier | None:
        """The keys of `verify_keys`, or the one that belongs to `signing_key`; None if neither is set.

        Raises:
            SettingsError: The file cannot be read or holds something else.
        """
        if settings.verify_keys is not None:
            return cls(_public_keys(settings.verify_keys))
        signer = Signer.from_settings(settings)
        return cls([signer.public_key]) if signer is not None else None

    def knows(self, key_id: str) -> bool:
        """Whether this key's signatures count."""
        return key_id in self._keys

    def valid(self, signed: bytes, signature: dict[str, Any]) -> bool:
        """Whether the signature is of these bytes and by a known key."""
        key = self._keys.get(signature["key"])
        if key is None or signature["algorithm"] != _ALGORITHM:
            return False
        try:
            key.verify(base64.b64decode(signature["value"], validate=True), signed)
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


def split_signed(data: bytes) -> bytes:
    """The bytes a signed manifest's signature covers; all of them where it has none."""
    place = data.rfind(_FIELD)
    return data if place < 0 else data[:place] + b"}\n"


def _public_keys(path: Path) -> list[Ed25519PublicKey]:
    try:
        blocks = _PEM.findall(path.read_bytes())
        keys = [load_pem_public_key(block) for block in blocks]
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        message = f"{path} cannot be read as public keys ({type(error).__name__})"
        raise SettingsError(message, setting="verify_keys") from None
    found = [key for key in keys if isinstance(key, Ed25519PublicKey)]
    if not found or len(found) != len(keys):
        raise SettingsError(f"{path} must hold Ed25519 public keys only", setting="verify_keys")
    return found


def _key_id(key: Ed25519PublicKey) -> str:
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]
