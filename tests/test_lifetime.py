"""Forks and ends of processes: locks are free, nothing is half done, the end is noticed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from sealtrace import lifetime

SOURCE = Path(__file__).parents[1] / "src" / "sealtrace"
HELD_APART = ("lifetime.py", "redaction/aside.py", "replay/", "viewer/")
"""These look after their locks themselves, or never run in a process that records."""


def _forked(child: object) -> int:
    """Exit status of a forked child that runs this; 99 where it raised or waited for ever."""
    pid = os.fork()
    if pid == 0:
        threading.Timer(20, os._exit, (99,)).start()
        try:
            os._exit(0 if child() else 1)  # type: ignore[operator]
        except BaseException:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _held(lock: threading.Lock | threading.RLock, over: threading.Event) -> threading.Thread:
    """Another thread holds the lock until then."""
    has = threading.Event()

    def hold() -> None:
        with lock:
            has.set()
            over.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert has.wait(10)
    return thread


def test_a_lock_another_thread_held_is_free_in_the_child() -> None:
    """The child takes it at once; in the parent it stays held."""
    lock, over = lifetime.fresh_lock(), threading.Event()
    thread = _held(lock, over)
    try:
        assert _forked(lambda: lock.acquire(blocking=False)) == 0
        assert not lock.acquire(blocking=False)
    finally:
        over.set()
        thread.join()


def test_a_lock_of_the_sdk_that_another_thread_held_is_free_in_the_child() -> None:
    """A child forked while another thread starts a trace can start one of its own."""
    from agents import trace
    from agents.tracing import setup, traces

    from sealtrace.agents_sdk import seams

    seams.install()
    over = threading.Event()
    held = [
        lock for module in (setup, traces) for lock in vars(module).values() if isinstance(lock, type(threading.Lock()))
    ]
    assert held
    threads = [_held(lock, over) for lock in held]

    def traced() -> bool:
        with trace("a child's"):
            return True

    try:
        assert _forked(traced) == 0
    finally:
        over.set()
        for thread in threads:
            thread.join()
        seams.uninstall()


def test_every_lock_of_the_recording_side_is_such_a_lock() -> None:
    """No module that runs in a recording process makes a lock that a fork could leave held."""
    making = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"threading\.R?Lock\(\)", path.read_text(encoding="utf-8"))
    }
    assert {name for name in making if not name.startswith(HELD_APART)} == set()


def test_a_fork_waits_for_what_must_be_whole() -> None:
    """Nothing is copied in the middle; afterwards the parent's gate opens again and the child's is open."""
    begun, done, steps = threading.Event(), threading.Event(), ["before"]

    def work() -> None:
        with lifetime.whole_at_fork():
            begun.set()
            done.wait(30)
            steps.append("after")

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    waiting = threading.Timer(0.2, done.set)  # while the main thread is in the fork below
    waiting.start()
    assert _forked(lambda: steps == ["before", "after"] and _opens()) == 0
    thread.join()
    assert _opens()


def _opens() -> bool:
    with lifetime.whole_at_fork():
        return True


def test_the_end_of_a_multiprocessing_child_is_noticed() -> None:
    """A child of each kind calls the end once or more, though it leaves by `os._exit`; and the fork before that."""
    code = (
        "import multiprocessing, os, sys\n"
        "from sealtrace import lifetime\n"
        "main = os.getpid()\n"
        "def say(what): os.write(1, f'{what} {os.getpid() == main}\\n'.encode())\n"
        "arrange = lifetime.watch(lambda: say('forked'), lambda: say('end'))\n"
        "arrange()\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('fork').Process(target=print, args=('ran',))\n"
        "    child.start()\n"
        "    child.join()\n"
        "    sys.exit(child.exitcode)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "forked False"
    assert "end False" in lines
    assert lines[-1] == "end True"
