"""Wraps the data keys of records, under a KMS key or a key in a file.

A wrapped key is an object of its own, `keys/v1/…/key-{sha16}.json`. Without it a record's payloads are
noise, wherever copies of them lie: to delete it is to erase them.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import RecordDamaged, SettingsError, VaultDenied
from ..kms import SCHEME, Kms, WrongKmsKey
from ..settings import Settings
from .envelope import DataKey
from .lines import decode_line, encode_line

__all__ = ["KeyObject", "Keyring"]

_VERSION: Final = 1
_FILE: Final = "file:"
_SECRET: Final = 32
_SHORTEST: Final = 16


class _WrappingKey(Protocol):
    """Encrypts data keys."""

    @property
    def name(self) -> str:
        """Which key it is, as key objects say it; gives nothing away."""
        ...

    def wrap(self, secret: bytes, context: dict[str, str]) -> bytes:
        """Encrypt."""
        ...

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes | None:
        """Decrypt; None where another key is needed.

        Raises:
            VaultError: The key's keeper refuses, or does not answer.
        """
        ...


class KeyObject:
    """A wrapped data key as it is stored.

    Attributes:
        data: The object's bytes.
        ident: The data key's name.
        wrapping: The name of the key that wraps it.
    """

    def __init__(self, data: bytes, key: str) -> None:
        """Read one.

        Raises:
            RecordDamaged: It is none, or its bytes are not the ones its name promises.
        """
        self.data = data
        if hashlib.sha256(data).hexdigest()[:16] != key.rpartition("key-")[2].removesuffix(".json"):
            raise RecordDamaged(f"{key}: the key's bytes are not the ones its name promises", key=key)
        document = decode_line(data, key)
        try:
            version = document["key"]
            self.run_id, self.record_id, self.ident, self.wrapping = (
                str(document[name]) for name in ("run_id", "record_id", "ident", "wrapping")
            )
            self.wrapped = base64.b64decode(document["wrapped"], validate=True)
        except (KeyError, TypeError, ValueError):
            raise RecordDamaged(f"{key}: it is no wrapped key", key=key) from None
        if version != _VERSION or f"/{self.run_id.removeprefix('trace_')}/{self.record_id}/" not in key:
            raise RecordDamaged(f"{key}: it is no wrapped key of this record", key=key)


class Keyring:
    """The keys that wrap data keys: the first is used, all are tried to unwrap."""

    def __init__(self, keys: list[_WrappingKey]) -> None:
        self._keys = keys

    @classmethod
    def from_settings(cls, settings: Settings) -> Keyring | None:
        """The keys of `envelope_key` and `previous_envelope_keys`; None if neither is set.

        Raises:
            SettingsError: One cannot be read, or names no key.
        """
        names = [settings.envelope_key, *settings.previous_envelope_keys]
        if settings.envelope_key is None and settings.previous_envelope_keys:
            message = "previous_envelope_keys are for unwrapping only; set envelope_key as well"
            raise SettingsError(message, setting="envelope_key")
        kms = Kms(settings)
        keys = [_wrapping_key(name, kms) for name in names if name is not None]
        return cls(keys) if keys else None

    def wrap(self, data_key: DataKey, run_id: str, record_id: str) -> bytes:
        """The key object of a record.

        Raises:
            VaultError: The key's keeper refuses, or does not answer.
        """
        key = self._keys[0]
        return encode_line(
            {
                "key": _VERSION,
                "run_id": run_id,
                "record_id": record_id,
                "ident": data_key.ident,
                "wrapping": key.name,
                "wrapped": base64.b64encode(key.wrap(data_key.secret, _context(run_id, record_id))).decode(),
            }
        )

    def unwrap(self, found: KeyObject, key: str) -> DataKey:
        """The data key of a key object.

        Raises:
            RecordDamaged: What is in it is another key than it says.
            VaultDenied: None of these keys wrapped it, or it may not be used.
            VaultError: The key's keeper does not answer.
        """
        denial: VaultDenied | None = None
        scheme = found.wrapping.partition(":")[0]
        for wrapping in self._keys:
            if wrapping.name.partition(":")[0] != scheme:
                continue
            try:
                secret = wrapping.unwrap(found.wrapped, _context(found.run_id, found.record_id))
            except VaultDenied as error:
                denial = denial or error  # whoever may not use this key may well use the one it takes
                continue
            if secret is not None:
                data_key = DataKey(secret, found.record_id)
                if len(secret) != _SECRET or data_key.ident != found.ident:
                    raise RecordDamaged(f"{key}: it holds another key than it says", key=key)
                return data_key
        if denial is not None:
            raise denial
        if any(wrapping.name == found.wrapping for wrapping in self._keys):
            raise RecordDamaged(f"{key}: it does not open with the key that is said to have wrapped it", key=key)
        message = f"{key}: it takes {found.wrapping}; name that key in envelope_key or previous_envelope_keys"
        raise VaultDenied(message, key=key)


class _FileKey:
    """A key in a file: every process that has it reads every record."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(_derived(secret, b"sealtrace/wrapping/v1"))
        self.name = f"{_FILE}{_derived(secret, b'sealtrace/wrapping-id/v1')[:8].hex()}"

    def wrap(self, secret: bytes, context: dict[str, str]) -> bytes:
        nonce = secrets.token_bytes(12)
        return nonce + self._cipher.encrypt(nonce, secret, _authenticated(context))

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes | None:
        try:
            return self._cipher.decrypt(wrapped[:12], wrapped[12:], _authenticated(context))
        except (InvalidTag, ValueError):
            return None


class _KmsKey:
    """A symmetric KMS key: who may read is the key's policy, and each unwrapping is in AWS's audit trail."""

    def __init__(self, key: str, kms: Kms) -> None:
        self._key = key
        self._kms = kms
        self.name = f"{SCHEME}{key}"

    def wrap(self, secret: bytes, context: dict[str, str]) -> bytes:
        # Encrypting a key of ours instead of asking for one: members can be sealed while KMS is away.
        return self._kms.encrypt(self._key, secret, context)

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes | None:
        try:
            return self._kms.decrypt(self._key, wrapped, context)
        except WrongKmsKey:
            return None


def _wrapping_key(name: str, kms: Kms) -> _WrappingKey:
    if name.startswith(SCHEME) and len(name) > len(SCHEME):
        return _KmsKey(name.removeprefix(SCHEME), kms)
    if not name.startswith(_FILE):
        raise SettingsError("an envelope key is written kms:KEY or file:/path", setting="envelope_key")
    path = Path(name.removeprefix(_FILE).removeprefix("//"))
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror})", setting="envelope_key") from None
    if len(secret) < _SHORTEST:
        message = f"{path} holds fewer than {_SHORTEST} bytes; make one with `openssl rand -hex 32`"
        raise SettingsError(message, setting="envelope_key")
    return _FileKey(secret)


def _context(run_id: str, record_id: str) -> dict[str, str]:
    return {"sealtrace:run": run_id, "sealtrace:record": record_id}


def _authenticated(context: dict[str, str]) -> bytes:
    return encode_line({"use": "sealtrace/wrapping/v1", **context})


def _derived(secret: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)
