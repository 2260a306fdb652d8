"""What waits for the vault, on disk: encrypted, redacted bytes only, readable after kill -9.

```
{spool}/{process}/lock                  held (flock) while the process lives
{spool}/{process}/{record_id}.spool     one file per record that is not wholly stored
{spool}/{process}/{record_id}.notes     what a recovery that died too had made of it
```

A file is a header line of JSON (which key, the wrapped data key) and frames:
`u32 length | u32 crc32 | AES-256-GCM ciphertext and tag`. Each file has a data key of its own, so the
frame's number serves as nonce; with the record id it is also the authenticated data, so a frame that
is moved, removed or repeated is noticed. There is no fsync per frame: what `write` has taken survives
the process, only not the machine's power.

A file is a log of what the writer did, and playing it again gives the same objects, byte for byte
(see `recovery`). Without `key` the wrapping key lives in this process's memory only: then the
spool bounds memory and outlasts outages, but a dead process's records cannot be recovered.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import fcntl
import json
import math
import os
import secrets
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import VaultError
from ..keys import previous_secrets, secret_of
from ..settings import Settings

__all__ = ["Orphan", "Spool", "SpoolFile", "SpoolKey", "SpoolUnreadable", "orphans"]

_MAGIC: Final = "sealtrace-spool-1"
_MAX_FRAME: Final = 16 * 1024 * 1024
_MAX_HEADER: Final = 4096
_SUFFIX: Final = ".spool"
_FRESH: Final = ".new"
_NOTES: Final = ".notes"
_LOOK_SECONDS: Final = 5.0
"""How old the knowledge of what other processes have in the spool may be."""

_WRITE: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE: Final = _WRITE | os.O_CREAT | os.O_EXCL
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class SpoolUnreadable(VaultError):
    """A spool file is of another key, or its beginning is damaged.

    Attributes:
        mortal: Its key lived in a process that is gone; nobody will ever read it.
    """

    def __init__(self, message: str, *, mortal: bool = False) -> None:
        super().__init__(message)
        self.mortal = mortal


class SpoolKey:
    """Wraps the files' data keys.

    Attributes:
        ident: Names the key in file headers; None for one that dies with the process.
    """

    def __init__(self, secret: bytes | None, previous: Sequence[bytes] = ()) -> None:
        material = secrets.token_bytes(32) if secret is None else secret
        self._wrap = AESGCM(_derived(material, b"sealtrace/spool/v1"))
        self.ident = None if secret is None else _ident(material)
        self._previous = {_ident(item): AESGCM(_derived(item, b"sealtrace/spool/v1")) for item in previous}

    @classmethod
    def from_settings(cls, settings: Settings) -> SpoolKey:
        """The key that `key` gives, or a random one; those of `previous_keys` open files too.

        Raises:
            SettingsError: A key is no KMS ciphertext though it says so.
            VaultError: A key is KMS ciphertext, and KMS refuses or does not answer.
        """
        return cls(secret_of(settings), previous_secrets(settings))

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Encrypt a data key."""
        nonce = secrets.token_bytes(12)
        return nonce + self._wrap.encrypt(nonce, key, context)

    def knows(self, ident: str | None) -> bool:
        """Whether this key, or an earlier one, may have wrapped what a file header says so of."""
        return ident == self.ident or ident in self._previous

    def unwrap(self, wrapped: bytes, context: bytes, ident: str | None) -> bytes:
        """Decrypt a data key.

        Raises:
            InvalidTag: It is of another key, or not of this file.
        """
        cipher = self._wrap if ident == self.ident else self._previous[str(ident)]
        return cipher.decrypt(wrapped[:12], wrapped[12:], context)


class SpoolFile:
    """One record's file. It is opened for each frame, so that nothing is inherited by a fork."""

    def __init__(self, path: Path, key: SpoolKey) -> None:
        self.path = path
        self._key = key
        self._cipher: AESGCM | None = None
        self._context = path.name.encode()
        self._frames = 0
        self.size = 0

    def create(self, *first: bytes) -> None:
        """Make the file with its first frames, whole or not at all, in place of one of that name.

        Raises:
            OSError: It cannot be made.
        """
        data_key = secrets.token_bytes(32)
        self._cipher = AESGCM(data_key)
        wrapped = base64.b64encode(self._key.wrap(data_key, self._context)).decode()
        header = json.dumps({"format": _MAGIC, "key": self._key.ident, "wrapped": wrapped}).encode() + b"\n"
        self._frames = self.size = 0
        for frame in first:
            header += self._sealed(frame)
            self._frames += 1
        fresh = self.path.with_suffix(_FRESH)
        fresh.unlink(missing_ok=True)
        self._write(fresh, header, _CREATE)
        fresh.rename(self.path)

    def append(self, frame: bytes) -> None:
        """Add a frame; it is in the system's hands when this returns.

        Raises:
            OSError: There is no room; the file is as it was before.
        """
        self._write(self.path, self._sealed(frame), _WRITE)
        self._frames += 1

    def _sealed(self, frame: bytes) -> bytes:
        assert self._cipher is not None
        sealed = self._cipher.encrypt(_nonce(self._frames), frame, self._aad(self._frames))
        return len(sealed).to_bytes(4) + zlib.crc32(sealed).to_bytes(4) + sealed

    def _write(self, path: Path, data: bytes, flags: int) -> None:
        descriptor = os.open(path, flags, 0o600)
        written = 0
        try:
            written = os.write(descriptor, data)
        finally:
            if written != len(data):
                # A torn frame would hide every later one from recovery.
                os.ftruncate(descriptor, self.size)
            os.close(descriptor)
        if written != len(data):
            raise OSError(errno.ENOSPC, "no room in the spool")
        self.size += written

    def sync(self) -> None:
        """Have the file outlast a power cut."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self.path, _READ)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

    def frames(self) -> Iterator[bytes]:
        """Every whole frame in order; a torn or damaged one and all after it are left out.

        Raises:
            SpoolUnreadable: The file is of another key, or its beginning is damaged.
        """
        with os.fdopen(os.open(self.path, _READ), "rb") as file:
            cipher = self._opened(file.readline(_MAX_HEADER))
            number = 0
            while len(head := file.read(8)) == 8:
                length, checksum = int.from_bytes(head[:4]), int.from_bytes(head[4:])
                sealed = file.read(length) if length <= _MAX_FRAME else b""
                if len(sealed) != length or zlib.crc32(sealed) != checksum:
                    return
                try:
                    yield cipher.decrypt(_nonce(number), sealed, self._aad(number))
                except InvalidTag:
                    return
                number += 1

    def notes(self) -> SpoolFile:
        """The file beside this one in which a recovery says what it did.

        It is never this one that grows: a torn frame at its end may have used the next nonce already.
        """
        return SpoolFile(self.path.with_suffix(_NOTES), self._key)

    def _opened(self, line: bytes) -> AESGCM:
        try:
            header = json.loads(line)
            ident, wrapped, form = header["key"], base64.b64decode(header["wrapped"]), header["format"]
        except (ValueError, KeyError, TypeError, binascii.Error):
            raise SpoolUnreadable(f"{self.path}: the beginning is damaged") from None
        if form != _MAGIC or not self._key.knows(ident):
            raise SpoolUnreadable(
                f"{self.path} is of another key, or another format (key {ident})", mortal=ident is None
            )
        try:
            return AESGCM(self._key.unwrap(wrapped, self._context, ident))
        except InvalidTag:
            raise SpoolUnreadable(f"{self.path} is of another process", mortal=ident is None) from None

    def _aad(self, number: int) -> bytes:
        return self._context + number.to_bytes(8)

    def remove(self) -> None:
        """Delete the file, and what recoveries noted of it."""
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(_NOTES).unlink(missing_ok=True)


class Spool:
    """This process's part of the spool.

    Args:
        root: The spool's directory, shared by all processes of this user.
        key: Wraps data keys.
        limit: Bytes that all processes, living and dead, may have in it before a new record gets no file.
    """

    def __init__(self, root: Path, key: SpoolKey, limit: int = 2**63) -> None:
        self.root = root
        self.key = key
        self._limit = limit
        self._looked_at = -math.inf
        self._others = 0
        self.used = 0
        """Bytes in this process's files."""
        self._folder: Path | None = None
        self._lock = -1

    @classmethod
    def from_settings(cls, settings: Settings) -> Spool | None:
        """The spool the settings ask for; None if none."""
        if settings.spool is None:
            return None
        return cls(settings.spool, SpoolKey.from_settings(settings), settings.spool_total_bytes)

    def file(self, record_id: str, first: bytes) -> SpoolFile:
        """A new file for a record, with its first frame.

        Raises:
            OSError: The directory cannot be used, belongs to others, or is full.
        """
        if self._folder is None:
            self._folder, self._lock = _claim(self.root)
        if self._total() >= self._limit:
            raise OSError(errno.EDQUOT, f"{self.root} has reached spool_total_bytes; drain it or give it more")
        out = SpoolFile(self._folder / f"{record_id}{_SUFFIX}", self.key)
        out.create(first)
        return out

    def _total(self) -> int:
        """Bytes of all processes' files; those of others as they were some seconds ago."""
        if time.monotonic() - self._looked_at > _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._others = sum(_size(path) for path in self.root.glob(f"*/*{_SUFFIX}") if path.parent != self._folder)
        return self._others + self.used

    def release(self) -> None:
        """Let go of this process's part, as a forked child must of its parent's."""
        if self._lock >= 0:
            # Closing a descriptor that a fork shares does not release the parent's lock.
            os.close(self._lock)
        self._folder, self._lock, self.used = None, -1, 0


class Orphan:
    """What a process left that is no longer alive; locked while it is looked at.

    Attributes:
        folder: Its directory.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    def files(self, key: SpoolKey) -> list[SpoolFile]:
        """Its records' files, oldest first."""
        return [SpoolFile(path, key) for path in sorted(self.folder.glob(f"*{_SUFFIX}"))]

    def close(self) -> None:
        """Let go of it, and remove it if nothing is left."""
        with contextlib.suppress(OSError):
            for path in self.folder.glob(f"*{_FRESH}"):
                path.unlink()  # its process died while making it, before it took an event
            if not any(self.folder.glob(f"*{_SUFFIX}")):
                for path in self.folder.glob(f"*{_NOTES}"):
                    path.unlink()  # a recovery died after it had removed the file itself
                (self.folder / "lock").unlink()
                self.folder.rmdir()
        os.close(self._lock)


def orphans(root: Path) -> Iterator[Orphan]:
    """The parts of dead processes, each locked until the next is asked for."""
    try:
        folders = sorted(item for item in root.iterdir() if item.is_dir() and not item.name.startswith("."))
    except FileNotFoundError:
        return
    for folder in folders:
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        orphan = Orphan(folder, lock)
        try:
            yield orphan
        finally:
            orphan.close()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # stored and gone meanwhile


def _claim(root: Path) -> tuple[Path, int]:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise PermissionError(f"{root} must be a directory of this user's own with mode 0700")
    name = secrets.token_hex(8)
    fresh = root / f".{name}"
    fresh.mkdir(mode=0o700)
    lock = os.open(fresh / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Only now under its real name: until it is locked nobody may take it for an orphan.
    folder = fresh.rename(root / name)
    return folder, lock


def _nonce(number: int) -> bytes:
    return number.to_bytes(12)


def _ident(material: bytes) -> str:
    return _derived(material, b"sealtrace/spool-id/v1")[:8].hex()


def _derived(material: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(material)
