"""Searching aside: in a process of its own, so that a foreign library can neither stall nor bring down the agent.

What goes there is text on a pipe, what comes back are positions, and both have a deadline: past it the
process is killed and the payload dropped. It gets none of the agent's environment but what Python
needs to start, is not heard on any of the agent's streams, and ends when the agent does.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from ..errors import RedactionFailed
from .detector import SEPARATOR, Span

__all__ = ["Aside"]

_log: Final = logging.getLogger("sealtrace")

_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
"""Nothing that could be a credential."""

_LONGEST_ANSWER: Final = 1 << 26
_START_SECONDS: Final = 120.0
_REST_SECONDS: Final = 30.0
"""How long one that did not start is left alone; payloads are dropped meanwhile."""

_all: Final[set[Aside]] = set()
"""A few for the life of the process: one that is merely forgotten would leave a process behind."""


class Aside:
    """One process that reads texts and answers with what it found, one JSON line each; its first line says it is ready.

    Args:
        name: What errors call it.
        module: The module it runs.
        arguments: What the module is told.
        seconds: How long one search may take.
    """

    def __init__(self, name: str, module: str, arguments: Sequence[str] = (), *, seconds: float) -> None:
        self._name = name
        self._command = ("-P", "-m", module, *arguments, str(seconds))
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._rest_until = 0.0
        self._told = False
        _all.add(self)

    def start(self) -> None:
        """Begin to start it, and wait for nothing."""
        with self._lock, contextlib.suppress(OSError):
            self._running()

    def prepare(self) -> None:
        """Start it and wait until it is ready, which takes seconds; if it never is, searches say so."""
        with self._lock, contextlib.suppress(RedactionFailed):
            self._wait_until_ready(time.monotonic() + _START_SECONDS)

    def search(self, text: str) -> list[Span]:
        """What it finds in a text.

        Raises:
            RedactionFailed: It took too long, stopped, or answered with nonsense; the payload must be dropped.
        """
        with self._lock:
            deadline = time.monotonic() + self._seconds
            self._wait_until_ready(deadline)
            process = self._running()
            try:
                _send(_pipe(process.stdin), json.dumps(text).encode("ascii") + b"\n", deadline)
                return _checked(json.loads(_line(_pipe(process.stdout), deadline)), text)
            except TimeoutError:
                self._end()
                raise RedactionFailed(f"{self._name} took too long; the payload was dropped") from None
            except (OSError, EOFError, ValueError, TypeError, KeyError):
                self._end()
                raise RedactionFailed(
                    f"{self._name} stopped in the middle of a search; the payload was dropped"
                ) from None

    def close(self) -> None:
        """End the process, and the search it is at; the next search starts another."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def forget(self) -> None:
        """This is a forked child: the process is the parent's."""
        self._lock = threading.Lock()
        process, self._process, self._ready = self._process, None, False
        if process is not None:
            process.returncode = 0  # not ours to wait for
            _close(process)

    def _wait_until_ready(self, deadline: float) -> None:
        if self._ready:
            return
        if time.monotonic() < self._rest_until:
            raise RedactionFailed(f"{self._name} did not start; payloads are dropped until it does")
        try:
            process = self._running()
            _line(_pipe(process.stdout), deadline)
        except TimeoutError:
            raise RedactionFailed(f"{self._name} is still starting; the payload was dropped") from None
        except (OSError, EOFError):
            self._end()
            self._rest_until = time.monotonic() + _REST_SECONDS
            if not self._told:
                self._told = True
                _log.warning(
                    "sealtrace: %s, which the redaction policy asks for, did not start: payloads are dropped. "
                    "Try `%s -m %s` to see why.",
                    self._name,
                    sys.executable,
                    " ".join(self._command[2:]),
                )
            raise RedactionFailed(f"{self._name} did not start; payloads are dropped until it does") from None
        self._ready = True

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # A context of its own: a rerun's guard refuses processes, and this one is ours.
            self._process = contextvars.Context().run(self._start)
        return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        environment["OMP_NUM_THREADS"] = "1"
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback there would quote content
            env=environment,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the agent
        )
        for stream in (process.stdin, process.stdout):
            os.set_blocking(_pipe(stream), False)
        return process

    def _end(self) -> None:
        process, self._process, self._ready = self._process, None, False
        if process is not None:
            process.kill()
            _close(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)


def _pipe(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise OSError("no pipe")
    return stream.fileno()


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _send(pipe: int, data: bytes, deadline: float) -> None:
    rest = memoryview(data)
    while rest:
        _wait(pipe, select.POLLOUT, deadline)
        rest = rest[os.write(pipe, rest[:65_536]) :]


def _line(pipe: int, deadline: float) -> bytes:
    out = bytearray()
    while not out.endswith(b"\n"):
        _wait(pipe, select.POLLIN, deadline)
        piece = os.read(pipe, 65_536)
        out += piece
        if not piece or len(out) > _LONGEST_ANSWER:
            raise EOFError
    return bytes(out)


def _wait(pipe: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(pipe, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError


def _checked(answer: Any, text: str) -> list[Span]:
    """Positions that are positions in this text, within one string."""
    out: list[Span] = []
    for start, end, kind in answer:
        if type(start) is not int or type(end) is not int or type(kind) is not str:
            raise TypeError("not a find")
        if not 0 <= start < end <= len(text) or SEPARATOR in text[start:end]:
            raise ValueError("not a position in the text")
        out.append((start, end, kind))
    return out


def _end_all() -> None:
    for aside in list(_all):
        aside.close()


def _forget_all() -> None:
    for aside in list(_all):
        aside.forget()


atexit.register(_end_all)
with contextlib.suppress(AttributeError):  # not on Windows
    os.register_at_fork(after_in_child=_forget_all)
