"""Decrypts a record's payloads: finds the wrapped data key, has it unwrapped once, opens members."""

from __future__ import annotations

from typing import Final

from ..errors import ObjectNotFound, PayloadErased, RecordDamaged, VaultDenied, VaultError
from . import layout
from .envelope import DataKey, frames
from .stores.base import Store
from .wrapping import KeyObject, Keyring

__all__ = ["Opener", "key_objects"]

_MOST: Final = 16


def key_objects(store: Store, run_id: str, record_id: str) -> list[str]:
    """Keys of the wrapped data keys of a record: one, or two where a recovery died and was done again.

    Raises:
        VaultError: The store cannot be read.
    """
    listed = (item.key for item in store.list(layout.record_prefix(layout.KEYS, run_id, record_id)))
    return [key for key in listed if (parts := layout.parse_key(key)) is not None and parts["wrapped"] is not None]


class Opener:
    """Decrypts one record.

    What the key's keeper refused is not asked for again, event by event.

    Args:
        store: The vault's store.
        run_id: The run.
        record_id: The record.
        keyring: Unwraps the data key; None where none is set.
    """

    def __init__(self, store: Store, run_id: str, record_id: str, keyring: Keyring | None) -> None:
        self._store = store
        self._run_id = run_id
        self._record_id = record_id
        self._keyring = keyring
        self._found: DataKey | None = None
        self._refusal: VaultError | None = None

    def key(self) -> DataKey:
        """The data key.

        Raises:
            PayloadErased: It is gone.
            VaultDenied: These credentials may not have it, or no `envelope_key` is set.
            RecordDamaged: What is stored in its place is not it.
            VaultError: It cannot be had now.
        """
        if self._refusal is not None:
            raise self._refusal
        if self._found is None:
            try:
                self._found = self._unwrapped()
            except (PayloadErased, VaultDenied, RecordDamaged) as error:
                self._refusal = error
                raise
        return self._found

    def _unwrapped(self) -> DataKey:
        names = key_objects(self._store, self._run_id, self._record_id)
        gone = PayloadErased(f"record {self._record_id}: its key is gone, so nobody can read its payloads any more")
        if not names:
            raise gone
        if self._keyring is None:
            raise VaultDenied(f"record {self._record_id} is encrypted; set envelope_key to read its payloads")
        failure: VaultError = gone
        for name in names[:_MOST]:
            try:
                return self._keyring.unwrap(KeyObject(self._store.get(name), name), name)
            except (RecordDamaged, VaultDenied) as error:
                failure = error
            except ObjectNotFound:
                continue  # erased just now
        raise failure

    def members(self, key: str, data: bytes) -> bytes:
        """All gzip members of a sealed segment.

        Raises:
            VaultError: See `key`; `RecordDamaged` also where it does not decrypt.
        """
        return b"".join(self._open(key, frame, index) for index, frame in enumerate(frames(data, key)))

    def member(self, key: str, frame: bytes, index: int) -> bytes:
        """One gzip member of a sealed segment.

        Raises:
            VaultError: See `members`.
        """
        if len(frames(frame, key)) != 1:
            raise RecordDamaged(f"{key}: a range of it is no one member", key=key)
        return self._open(key, frame, index)

    def _open(self, key: str, frame: bytes, index: int) -> bytes:
        parts = layout.parse_key(key)
        if parts is None or parts["klass"] is None or parts["seq"] is None:
            raise RecordDamaged(f"{key}: it is no sealed segment", key=key)
        return self.key().open(frame, parts["klass"], int(parts["seq"]), index, key=key)
