"""What a process that cannot store tells others of its user, by a file in the spool that is there while it lasts.

Self-metrics say the same to a monitoring; `sealtrace doctor` reads these files, since it is another process than the
one in trouble. A file holds times, the store's own word for the trouble and what to do; never content.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ..errors import VaultError
from ..event import timestamp

__all__ = ["Trouble", "TroubleFile", "troubles"]

_PREFIX: Final = ".trouble-"
_LARGEST: Final = 8192
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A process that has not been able to store.

    Attributes:
        pid: The process.
        since: Since when, RFC 3339.
        reason: What the store calls it.
        message: What it is and what to do.
    """

    pid: int
    since: str
    reason: str
    message: str


class TroubleFile:
    """This process's file.

    Args:
        root: The spool's directory; None where there is none, and then nobody is told.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._said: tuple[int, str] | None = None
        self._since = ""

    def failed(self, error: BaseException) -> None:
        """A put failed; written only when it is news."""
        if self._root is None or not isinstance(error, VaultError):
            return
        pid, reason = os.getpid(), error.reason or type(error).__name__
        if self._said == (pid, reason):
            return
        if self._said is None or self._said[0] != pid:
            self._since = timestamp(time.time_ns())
        self._said = (pid, reason)
        about = {"pid": pid, "born": _born(pid), "since": self._since, "reason": reason, "message": str(error)}
        with contextlib.suppress(OSError):  # a spool that cannot be written is told of elsewhere
            self._path.unlink(missing_ok=True)
            with os.fdopen(os.open(self._path, _CREATE, 0o600), "w", encoding="utf-8") as file:
                json.dump(about, file)

    def worked(self) -> None:
        """A put worked."""
        if self._root is None or self._said is None:
            return
        own, self._said = self._said[0] == os.getpid(), None
        if own:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        assert self._root is not None
        return self._root / f"{_PREFIX}{os.getpid()}.json"


def troubles(root: Path) -> Iterator[Trouble]:
    """What living processes say; what dead ones said is removed."""
    for path in sorted(root.glob(f"{_PREFIX}*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = _read(path)
            pid = int(found["pid"])
            if _born(pid) is None or _born(pid) != found["born"]:
                path.unlink(missing_ok=True)
                continue
            yield Trouble(
                pid=pid, since=str(found["since"]), reason=str(found["reason"]), message=str(found["message"])
            )


def _read(path: Path) -> dict[str, Any]:
    with os.fdopen(os.open(path, _READ), "rb") as file:
        found: dict[str, Any] = json.loads(file.read(_LARGEST))
        return found


def _born(pid: int) -> str | None:
    """When the process was started, as the system counts; None where it is not there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return "another user's"
    with contextlib.suppress(OSError, IndexError):  # not on every system
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
    return "alive"
