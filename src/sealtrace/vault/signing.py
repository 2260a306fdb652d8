"""Signatures of manifests: who wrote a record, not whether what it says is true.

The signature is the manifest's last field and covers every byte before it. Make an Ed25519 key pair with

    openssl genpkey -algorithm ed25519 -out signing.pem
    openssl pkey -in signing.pem -pubout -out verify.pem

and give `signing_key` to the recording process, `verify_keys` to whoever verifies. The second file
may hold several public keys, one after another: that is how keys are rotated.

Or have KMS sign (`signing_key = kms:KEY`, an `ECC_NIST_P256` key): then no process holds the private key.
Whoever verifies needs neither KMS nor AWS, only the public key as PEM.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeGuard

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

from ..errors import SettingsError, VaultDenied
from ..kms import SCHEME, Kms
from ..settings import Settings

__all__ = ["KmsSigningKey", "Signer", "Verifier", "split_signed"]

_ED25519: Final = "ed25519"
_P256: Final = "ecdsa-p256-sha256"
_FIELD: Final = b',"signature":{'
_PEM: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)

_PublicKey: TypeAlias = Ed25519PublicKey | EllipticCurvePublicKey


class KmsSigningKey:
    """A private key that stays in KMS.

    Args:
        key: The KMS key's ARN, id or alias.
        kms: Asks KMS.
    """

    def __init__(self, key: str, kms: Kms) -> None:
        self._key = key
        self._kms = kms
        self._public: EllipticCurvePublicKey | None = None

    def public_key(self) -> EllipticCurvePublicKey:
        """Its public half, asked for once.

        Raises:
            VaultError: KMS refuses, or does not answer, or the key is of another kind.
        """
        if self._public is None:
            found = load_der_public_key(self._kms.public_key(self._key))
            if not _is_p256(found):
                raise VaultDenied(f"{self._key} is no ECC_NIST_P256 key; make one that signs with ECDSA_SHA_256")
            self._public = found
        return self._public

    def sign(self, document: bytes) -> bytes:
        """The signature of a document.

        Raises:
            VaultError: KMS refuses, or does not answer.
        """
        return self._kms.sign(self._key, hashlib.sha256(document).digest())


class Signer:
    """Signs manifests.

    Args:
        key: The private key, or where it is.
    """

    def __init__(self, key: Ed25519PrivateKey | KmsSigningKey) -> None:
        self._key = key

    @classmethod
    def from_settings(cls, settings: Settings) -> Signer | None:
        """The signer the settings ask for; None if none. KMS is not asked yet.

        Raises:
            SettingsError: The file cannot be read or holds no Ed25519 private key.
        """
        if settings.signing_key is None:
            return None
        name = str(settings.signing_key)
        if name.startswith(SCHEME):
            return cls(KmsSigningKey(name.removeprefix(SCHEME), Kms(settings)))
        try:
            key = load_pem_private_key(settings.signing_key.read_bytes(), None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            message = f"{settings.signing_key} cannot be read as a private key ({type(error).__name__})"
            raise SettingsError(message, setting="signing_key") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SettingsError(f"{settings.signing_key} is no Ed25519 key", setting="signing_key")
        return cls(key)

    def public_key(self) -> _PublicKey:
        """The key that verifies.

        Raises:
            VaultError: It is in KMS, which refuses or does not answer.
        """
        return self._key.public_key()

    def sign(self, document: bytes) -> bytes:
        """The same JSON line with the signature as its last field.

        Raises:
            VaultError: The key is in KMS, which refuses or does not answer.
        """
        public = self.public_key()
        value = base64.b64encode(self._key.sign(document)).decode()
        signature = {"algorithm": _algorithm(public), "key": _key_id(public), "value": value}
        return document[:-2] + _FIELD[:-1] + json.dumps(signature, separators=(",", ":")).encode() + b"}\n"


class Verifier:
    """Knows the public keys whose signatures count.

    Args:
        keys: The keys.
    """

    def __init__(self, keys: list[_PublicKey]) -> None:
        self._keys = {_key_id(key): key for key in keys}

    @classmethod
    def from_settings(cls, settings: Settings) -> Verifier | None:
        """The keys of `verify_keys`, or the one that belongs to `signing_key`; None if neither is set.

        Raises:
            SettingsError: The file cannot be read or holds something else.
            VaultError: The signing key is in KMS, which refuses or does not answer.
        """
        if settings.verify_keys is not None:
            return cls(_public_keys(settings.verify_keys))
        signer = Signer.from_settings(settings)
        return cls([signer.public_key()]) if signer is not None else None

    def knows(self, key_id: str) -> bool:
        """Whether this key's signatures count."""
        return key_id in self._keys

    def valid(self, signed: bytes, signature: dict[str, Any]) -> bool:
        """Whether the signature is of these bytes and by a known key."""
        key = self._keys.get(signature["key"])
        if key is None or signature["algorithm"] != _algorithm(key):
            return False
        try:
            value = base64.b64decode(signature["value"], validate=True)
            if isinstance(key, Ed25519PublicKey):
                key.verify(value, signed)
            else:
                key.verify(value, signed, ECDSA(SHA256()))
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


def split_signed(data: bytes) -> bytes:
    """The bytes a signed manifest's signature covers; all of them where it has none."""
    place = data.rfind(_FIELD)
    return data if place < 0 else data[:place] + b"}\n"


def _public_keys(path: Path) -> list[_PublicKey]:
    try:
        blocks = _PEM.findall(path.read_bytes())
        keys = [load_pem_public_key(block) for block in blocks]
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        message = f"{path} cannot be read as public keys ({type(error).__name__})"
        raise SettingsError(message, setting="verify_keys") from None
    found: list[_PublicKey] = [key for key in keys if isinstance(key, Ed25519PublicKey) or _is_p256(key)]
    if not found or len(found) != len(keys):
        raise SettingsError(f"{path} must hold Ed25519 or P-256 public keys only", setting="verify_keys")
    return found


def _is_p256(key: object) -> TypeGuard[EllipticCurvePublicKey]:
    return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)


def _algorithm(key: _PublicKey) -> str:
    return _ED25519 if isinstance(key, Ed25519PublicKey) else _P256


def _key_id(key: _PublicKey) -> str:
    """Names a public key: 16 hex digits of a SHA-256."""
    if isinstance(key, Ed25519PublicKey):
        return hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()[:16]
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()[:16]
