"""What a fork and a process's end mean for us: locks that are free in a child, and a word before the end.

A fork copies a lock as it is. One that another thread held just then is never released in the child, and what runs
on the agent's thread would wait for ever; so every lock that the agent's thread may take comes from `fresh_lock`.
Modules are copied half imported too, and the child cannot import them again: what our own thread imports late, it
imports inside `whole_at_fork`.

Children of `multiprocessing` and of Celery's pool leave by `os._exit`, which runs no exit handler: what their
last run recorded would die with the background thread. `multiprocessing` has finalizers of its own for that,
Celery a signal. Both modules are looked up, never imported: who uses them has them loaded.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any, Final

__all__ = ["adopt", "fresh_lock", "watch", "whole_at_fork"]

_FORK_WAITS: Final = 30.0
"""Seconds a fork waits at most for what must be whole: importing boto3 takes one or two, many on a busy machine."""

_locks: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def fresh_lock() -> threading.Lock:
    """A lock that is free in a forked child, whoever held it at the fork.

    Only for what is whole between any two steps of the interpreter: a child may see the holder's work half done.
    """
    made = threading.Lock()
    adopt(made)
    return made


def adopt(lock: threading.Lock) -> None:
    """Free somebody else's lock in forked children as well."""
    _locks.add(lock)


def _free_locks() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # noqa: SLF001 - what `threading` and `logging` do with theirs


class _Gate:
    """Shut while something must not be copied half done."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._held = False

    def before_fork(self) -> None:
        self._held = self.lock.acquire(timeout=_FORK_WAITS)

    def in_parent(self) -> None:
        if self._held:
            self.lock.release()

    def in_child(self) -> None:
        self.lock = threading.RLock()


_gate: Final = _Gate()


@contextlib.contextmanager
def whole_at_fork() -> Generator[None]:
    """No fork while this lasts, if it does not last long: a child has all of it or nothing."""
    with _gate.lock:
        yield


with contextlib.suppress(AttributeError):  # not on Windows
    os.register_at_fork(after_in_child=_free_locks)
    os.register_at_fork(before=_gate.before_fork, after_in_parent=_gate.in_parent, after_in_child=_gate.in_child)


class _Watch:
    """What is called, and what has been arranged for it in this process."""

    def __init__(self, after_fork: Callable[[], None], at_end: Callable[[], None]) -> None:
        self._after_fork = after_fork
        self._at_end = at_end
        self._follows_children = False

    def forked(self) -> None:
        """In a forked child, before anything else runs in it."""
        self._after_fork()
        self.arrange()

    def arrange(self) -> None:
        """See to it that the end is noticed in whatever kind of process this is."""
        processes = sys.modules.get("multiprocessing.process")
        util = sys.modules.get("multiprocessing.util")
        if util is not None and not self._follows_children:
            # A child forgets inherited finalizers first and calls these then; its own children inherit this.
            util.register_after_fork(self, lambda _: self._finalize(util))
            self._follows_children = True
            if processes is not None and processes.parent_process() is not None:
                self._finalize(util)
        signals = sys.modules.get("celery.signals")
        if signals is not None:
            signals.worker_process_shutdown.connect(self._celery_ends, weak=False, dispatch_uid="sealtrace")

    def _finalize(self, util: Any) -> None:
        util.Finalize(None, self._at_end, exitpriority=0)

    def _celery_ends(self, **_: Any) -> None:
        self._at_end()


def watch(after_fork: Callable[[], None], at_end: Callable[[], None]) -> Callable[[], None]:
    """Call these when this process turns out to be a forked child, and when it ends. Neither may raise.

    Args:
        after_fork: Called in each forked child, first.
        at_end: Called once or more before the process ends.

    Returns:
        To be called once there is something to store at the end: it looks again at what kind of process this is.
    """
    made: Final = _Watch(after_fork, at_end)
    atexit.register(at_end)
    with contextlib.suppress(AttributeError):  # not on Windows
        os.register_at_fork(after_in_child=made.forked)
    return made.arrange
