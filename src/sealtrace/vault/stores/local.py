"""A vault in a directory: for one machine, for tests, for the demo."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import secrets
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from ...errors import ObjectExists, ObjectNotFound, VaultDenied, VaultError, VaultUnavailable
from .base import ObjectInfo

__all__ = ["LocalStore"]

_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
_TEMPORARY: Final = ".tmp-"


class LocalStore:
    """Objects are files: mode 0600 in folders of mode 0700, never overwritten, never half there.

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
        path = self._path(key)
        with self._errors(key):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(temporary, path)
            except FileExistsError:
                if self.get(key) != data:
                    raise ObjectExists(f"{key} is already stored with other bytes", key=key) from None
            finally:
                temporary.unlink(missing_ok=True)

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """See `Store.get`."""
        path = self._path(key)
        with self._errors(key):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if start:
                    file.seek(start)
                return file.read(-1 if length is None else length)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `Store.list`."""
        folder = self._root / prefix.rpartition("/")[0]
        with self._errors(prefix):
            for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
                key = path.relative_to(self._root).as_posix()
                if not key.startswith(prefix) or path.name.startswith(_TEMPORARY) or not path.is_file():
                    continue
                about = path.stat()
                yield ObjectInfo(key, about.st_size, dt.datetime.fromtimestamp(about.st_mtime, dt.UTC))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        with self._errors(key), contextlib.suppress(FileNotFoundError):
            self._path(key).unlink()

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if not all(_PART.match(part) for part in parts):
            raise VaultError(f"{key!r} is not a key this vault can have", key=key)
        return self._root.joinpath(*parts)

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
