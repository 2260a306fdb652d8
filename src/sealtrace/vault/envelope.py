"""Client-side encryption of payload segments, member by member, under a key of the record's own.

```
segment:  frame frame frame …           frame:  u32 length | nonce 12 | AES-256-GCM ciphertext | tag 16
```

What is encrypted is a gzip member, so a frame is what a member was: one event is one ranged read, and
digests, Merkle root and signature are over ciphertext and can be checked by whoever has no key.

From the record's 256-bit data key three are derived: one encrypts, one makes nonces, one is the name
(`ident`) by which the manifest holds the record to this very key. A nonce is the keyed digest of what it is
used for, place and content: playing a spool again gives the same bytes, and other content, which
another zlib may make of the same lines, never meets the same nonce. The authenticated data is the
place: record, class, segment and member, so nothing can be moved.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import RecordDamaged

__all__ = ["ALGORITHM", "DataKey", "frames"]

ALGORITHM: Final = "AES-256-GCM"

_NONCE: Final = 12
_OVERHEAD: Final = _NONCE + 16
_HEAD: Final = 4


class DataKey:
    """The key of one record.

    Args:
        secret: 32 bytes.
        record_id: The record.

    Attributes:
        secret: The 32 bytes; they are stored wrapped only.
        ident: Names the key without giving it away, 32 hex digits.
    """

    def __init__(self, secret: bytes, record_id: str) -> None:
        self.secret = secret
        self._record_id = record_id
        self._cipher = AESGCM(_derived(secret, b"sealtrace/envelope/content/v1"))
        self._nonce_key = _derived(secret, b"sealtrace/envelope/nonce/v1")
        self.ident = _derived(secret, b"sealtrace/envelope/ident/v1")[:16].hex()

    @classmethod
    def new(cls, record_id: str) -> DataKey:
        """A fresh key."""
        return cls(secrets.token_bytes(32), record_id)

    def sealer(self, klass: str) -> Callable[[bytes, int, int], bytes]:
        """Encrypts members of a class's segments; see `seal`."""
        return lambda member, seq, index: self.seal(member, klass, seq, index)

    def seal(self, member: bytes, klass: str, seq: int, index: int) -> bytes:
        """The frame of a member.

        Args:
            member: The gzip member.
            klass: Its segment's class.
            seq: Its segment's first event.
            index: Which member of the segment it is.
        """
        place = self._place(klass, seq, index)
        nonce = hmac.digest(self._nonce_key, place + b"\n" + member, "sha256")[:_NONCE]
        sealed = nonce + self._cipher.encrypt(nonce, member, place)
        return len(sealed).to_bytes(_HEAD) + sealed

    def open(self, frame: bytes, klass: str, seq: int, index: int, *, key: str) -> bytes:
        """The member of a frame; the counterpart of `seal`.

        Args:
            frame: The frame.
            klass: Its segment's class.
            seq: Its segment's first event.
            index: Which member of the segment it is.
            key: The object's key, for messages.

        Raises:
            RecordDamaged: It is of another place, another key, or was changed.
        """
        (sealed,) = frames(frame, key)
        try:
            place = self._place(klass, seq, index)
            return self._cipher.decrypt(sealed[_HEAD : _HEAD + _NONCE], sealed[_HEAD + _NONCE :], place)
        except InvalidTag:
            raise RecordDamaged(f"{key}: member {index} does not decrypt with the record's key", key=key) from None

    def _place(self, klass: str, seq: int, index: int) -> bytes:
        return f"sealtrace/member/v1\n{self._record_id}\n{klass}\n{seq}\n{index}".encode()


def frames(data: bytes, key: str) -> list[bytes]:
    """The frames of a sealed segment.

    Raises:
        RecordDamaged: It is cut off, or is none.
    """
    out: list[bytes] = []
    position = 0
    while position < len(data):
        length = int.from_bytes(data[position : position + _HEAD])
        end = position + _HEAD + length
        if length <= _OVERHEAD or end > len(data):
            raise RecordDamaged(f"{key}: it is no whole sealed segment", key=key)
        out.append(data[position:end])
        position = end
    return out


def _derived(secret: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)
