"""Nothing goes out of a rerun: sockets, name look-ups and processes are refused in its context.

The guard is an audit hook, so nothing that goes through Python's own modules can get around it; a
library that brings its own networking in C (gRPC, libcurl, libpq) is not seen. It acts only where a
rerun's context is current; threads that the rerun's code starts get that context while a rerun is
open, live code in the same process never does.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import functools
import multiprocessing.process
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

__all__ = ["BLOCKED", "GUARD", "allowed", "close_guard", "open_guard"]

BLOCKED: Final = frozenset(
    {
        "socket.connect",
        "socket.sendto",
        "socket.sendmsg",
        "socket.bind",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "os.startfile",
        "pty.spawn",
        "webbrowser.open",
        "urllib.Request",
    }
)
"""Audit events that mean something is about to leave the process."""


class Guard(Protocol):
    """Whoever refuses; raises."""

    def refuse(self, event: str) -> None:
        """Something is about to happen that must not."""
        ...


GUARD: Final[ContextVar[Guard | None]] = ContextVar("sealtrace_guard", default=None)
"""The rerun that this context belongs to, while it may not touch the outside."""

_lock: Final = threading.Lock()
_open = 0
_hooked = False
_undo: Final[list[Callable[[], None]]] = []
_submitting = threading.local()


def open_guard() -> None:
    """Put the guard in force; counted."""
    global _open, _hooked  # noqa: PLW0603 - there is one interpreter to guard
    with _lock:
        if not _hooked:
            sys.addaudithook(_audit)
            _hooked = True
        _open += 1
        if _open == 1:
            _carry_context()


def close_guard() -> None:
    """The counterpart of `open_guard`."""
    global _open  # noqa: PLW0603
    with _lock:
        _open -= 1
        if _open == 0:
            while _undo:
                _undo.pop()()


@contextmanager
def allowed() -> Generator[None]:
    """Let this block reach the outside: a sandbox the user named, a live model the user asked for."""
    token = GUARD.set(None)
    try:
        yield
    finally:
        GUARD.reset(token)


def _audit(event: str, _arguments: tuple[Any, ...]) -> None:
    if event in BLOCKED and _open > 0:
        guard = GUARD.get()
        if guard is not None:
            guard.refuse(event)


def _carry_context() -> None:
    """Executors and threads start with an empty context; one that a rerun starts gets the rerun's."""
    submit: Any = concurrent.futures.ThreadPoolExecutor.submit
    start = threading.Thread.start

    @functools.wraps(submit)
    def carried_submit(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        work = fn if GUARD.get() is None else functools.partial(contextvars.copy_context().run, fn)
        _submitting.now = True
        try:
            return submit(self, work, *args, **kwargs)
        finally:
            _submitting.now = False

    @functools.wraps(start)
    def carried_start(self: threading.Thread) -> None:
        # A pool's worker outlives the rerun and serves others, so it gets nothing.
        if GUARD.get() is not None and not getattr(_submitting, "now", False):
            self.run = functools.partial(contextvars.copy_context().run, self.run)  # type: ignore[method-assign]
        start(self)

    concurrent.futures.ThreadPoolExecutor.submit = carried_submit  # type: ignore[method-assign]
    threading.Thread.start = carried_start  # type: ignore[method-assign]
    _undo.append(lambda: setattr(concurrent.futures.ThreadPoolExecutor, "submit", submit))
    _undo.append(lambda: setattr(threading.Thread, "start", start))
    _refuse_processes()


def _refuse_processes() -> None:
    """`multiprocessing` spawns its processes past the audit events."""
    owner: Any = multiprocessing.process.BaseProcess
    start = owner.start

    @functools.wraps(start)
    def guarded_start(self: Any) -> None:
        guard = GUARD.get()
        if guard is not None:
            guard.refuse("multiprocessing.Process")
        start(self)

    owner.start = guarded_start
    _undo.append(lambda: setattr(owner, "start", start))
