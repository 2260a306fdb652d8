"""A vault in a directory: for one machine, for tests, for the demo."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final

from ...errors import ObjectExists, ObjectNotFound, VaultDenied, VaultError, VaultUnavailable
from .base import ObjectInfo, refuse_large

__all__ = ["LocalStore"]

_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES: Final = 100
"""How often a folder is made again under a put; each is microseconds, and an eraser on a busy machine wins many."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LocalStore:
    """Objects are files: mode 0600 in folders of mode 0700, never overwritten, never half there.

    Below the root no symbolic link is followed, so nobody who may write there can make a vault read
    or write elsewhere. Every object is first a file of another name, then linked to its own: it is
    there whole or not at all, also after a crash.

    Args:
        root: The directory; made when the first object is stored.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def url(self) -> str:
        """`file://` and the directory."""
        return f"file://{self._root}"

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:  # noqa: ARG002 - the store's signature
        """See `Store.put`."""
        *folders, name = _parts(key)
        for attempt in range(_TRIES):
            try:
                with self._errors(key), self._folder(folders, create=True) as folder:
                    return self._link(folder, name, key, data)
            except ObjectNotFound as error:
                # Somebody erased the last object beside this one, and the folder with it, just now.
                if attempt == _TRIES - 1:
                    raise VaultUnavailable(f"{self.url}: the folder of {key} goes away", key=key) from error
        return None

    def _link(self, folder: int, name: str, key: str, data: bytes) -> None:
        temporary = f".{secrets.token_hex(12)}"
        descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            if self.get(key) != data:
                raise ObjectExists(f"{key} is already stored with other bytes", key=key) from None
        finally:
            os.unlink(temporary, dir_fd=folder)
        os.fsync(folder)

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """See `Store.get`."""
        *folders, name = _parts(key)
        with (
            self._errors(key),
            self._folder(folders) as folder,
            os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file,
        ):
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise VaultDenied(f"{key} is not a regular file in {self.url}; remove it", key=key)
            refuse_large(key, about.st_size - (start or 0) if length is None else length)
            file.seek(start or 0)
            return file.read(-1 if length is None else length)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `Store.list`."""
        *folders, begin = prefix.split("/")
        with self._errors(prefix):
            base = "".join(f"{folder}/" for folder in folders)
            try:
                with self._folder([part for part in folders if part]) as folder:
                    found = sorted(_walk(folder, base), key=lambda item: item.key)
            except FileNotFoundError:
                return
        yield from (item for item in found if item.key.startswith(base + begin))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        *folders, name = _parts(key)
        with self._errors(key), contextlib.suppress(FileNotFoundError), self._folder(folders) as folder:
            os.unlink(name, dir_fd=folder)
        # Names of folders hold run ids: what is erased leaves none behind.
        for depth in range(len(folders), 0, -1):
            with contextlib.suppress(OSError), self._folder(folders[: depth - 1]) as folder:
                os.rmdir(folders[depth - 1], dir_fd=folder)

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str], *, create: bool = False) -> Generator[int]:
        """A descriptor of a folder below the root, reached without following a link."""
        if create:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The root itself is the user's choice, and may well be reached through links.
        current = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                if create:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=current)
                deeper = os.open(part, _FOLDER, dir_fd=current)
                os.close(current)
                current = deeper
            yield current
        finally:
            os.close(current)

    @contextlib.contextmanager
    def _errors(self, key: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError:
            raise ObjectNotFound(f"{key} is not in {self.url}", key=key) from None
        except PermissionError as error:
            raise VaultDenied(f"not allowed in {self.url}: {error.strerror}; check who owns it", key=key) from None
        except OSError as error:
            raise VaultUnavailable(f"{self.url} cannot be used now: {error.strerror}", key=key) from None


def _parts(key: str) -> list[str]:
    parts = key.split("/")
    if not all(_PART.match(part) for part in parts):
        raise VaultError(f"{key!r} is not a key this vault can have", key=key)
    return parts


def _walk(folder: int, base: str) -> Iterator[ObjectInfo]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _PART.match(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                deeper = os.open(entry.name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(deeper, f"{base}{entry.name}/")
                finally:
                    os.close(deeper)
            elif entry.is_file(follow_symlinks=False):
                about = entry.stat(follow_symlinks=False)
                yield ObjectInfo(base + entry.name, about.st_size, dt.datetime.fromtimestamp(about.st_mtime, dt.UTC))
