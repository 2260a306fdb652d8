"""Files that hold recorded content: for their owner's eyes, and never in the place of another file by accident."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from .errors import SettingsError

__all__ = ["refuse_taken", "write_private"]

_MODE: Final = 0o600


def refuse_taken(path: Path, *, force: bool) -> None:
    """Say before any payload is read that the file could not be written afterwards.

    Raises:
        SettingsError: It is there already, or its directory is not.
    """
    if not path.parent.is_dir():
        raise SettingsError(f"cannot write {path}: there is no directory {path.parent}", setting="file")
    if path.is_dir():
        raise SettingsError(f"cannot write {path}: it is a directory; name a file", setting="file")
    if not force and os.path.lexists(path):
        raise SettingsError(f"{path} is there already: name another file, or overwrite it with --force", setting="file")


def write_private(path: Path, text: str, *, force: bool = False) -> None:
    """Write a file that only its owner may read.

    Args:
        path: The file.
        text: What goes into it.
        force: Put it in the place of what is there; a link is replaced, not followed.

    Raises:
        SettingsError: The file is there already, or cannot be written.
    """
    refuse_taken(path, force=force)
    try:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:60]}.")  # made with mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            _place(beside, path, force=force)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(beside).unlink()
    except FileExistsError:
        raise SettingsError(f"{path} is there already: name another file", setting="file") from None
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror or error}", setting="file") from None


def _place(beside: str, path: Path, *, force: bool) -> None:
    """Whole or not at all: the file appears under its name when it is complete."""
    if force:
        Path(beside).replace(path)
        return
    try:
        path.hardlink_to(beside)
    except OSError as error:
        if isinstance(error, FileExistsError):
            raise
        # A file system without hard links: take the name first, then the content.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE))
        Path(beside).replace(path)
