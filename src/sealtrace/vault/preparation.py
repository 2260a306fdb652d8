"""What has to be asked of others before a record's objects may go: to wrap its key, to sign its manifest.

Either may be a call to a KMS that is away or refuses. Then the record waits, as it does for a store
that is away: sealed, complete, and in the spool if there is one. Each answer is told to the journal before
anything of it is stored, since a second answer would be other bytes, and an object twice.
"""

from __future__ import annotations

from ..errors import VaultDenied, VaultError
from .breaker import Breaker
from .journal import Note
from .openrecord import OpenRecord
from .signing import Signer
from .wrapping import Keyring

__all__ = ["Preparation"]


class Preparation:
    """Makes records ready to be stored.

    Args:
        keyring: Wraps data keys; None where nothing is encrypted.
        signer: Signs manifests; None where nothing is signed.
    """

    def __init__(self, keyring: Keyring | None, signer: Signer | None) -> None:
        self._keyring = keyring
        self._signer = signer
        self.breaker = Breaker()

    def prepare(self, record: OpenRecord, note: Note) -> None:
        """Ask what has to be asked; nothing where all is done.

        Raises:
            VaultError: It is refused, or there is no answer; the record is as it was and may be asked for again.
        """
        data_key, manifest = record.unwrapped, record.unsigned
        if data_key is None and not (manifest and self._signer):
            return
        self.breaker.check()
        try:
            if data_key is not None:
                if self._keyring is None:
                    message = f"record {record.record_id} is encrypted and its key not wrapped yet; set envelope_key"
                    raise VaultDenied(message)
                wrapped = self._keyring.wrap(data_key, record.run_id, record.record_id)
                note(lambda journal: journal.wrapped(wrapped))
                record.wrapped(wrapped)
            if manifest and self._signer is not None:
                signed = self._signer.sign(manifest)
                note(lambda journal: journal.manifest(signed))
                record.signed(signed)
        except VaultError as error:
            self.breaker.failed(error)
            raise
        self.breaker.worked()
