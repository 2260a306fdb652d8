"""A process that records on two threads while it starts children that record a run each and end at once.

    python -m vault.prefork.forking fork|spawn|forkserver|bare CHILDREN FOLDER

Each run that ended leaves an empty file of its id's name in the folder. A `bare` child is made by `os.fork`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents import gen_trace_id

import sealtrace
from sealtrace.cli._demo_agent import run_support_desk


def converse(folder: Path) -> None:
    """One run, with nothing after it that waits for its payloads."""
    sealtrace.instrument()
    run_id = gen_trace_id()
    asyncio.run(run_support_desk(run_id))
    (folder / run_id).touch()


def _bare(folder: Path) -> Callable[[], None]:
    pid = os.fork()
    if pid == 0:
        converse(folder)
        sys.exit()

    def join() -> None:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    return join


def _started(method: str, folder: Path) -> Callable[[], None]:
    if method == "bare":
        return _bare(folder)
    context: Any = multiprocessing.get_context(method)
    child = context.Process(target=converse, args=(folder,))
    child.start()

    def join() -> None:
        child.join()
        assert child.exitcode == 0

    return join


def main(method: str, children: int, folder: Path) -> None:
    """Record beside the children until the last has ended."""
    # Once before any fork: the SDK's data models are finished at first use, under a lock that no fork sets free.
    converse(folder)
    over = threading.Event()

    def keep_recording() -> None:
        while not over.wait(0.02):
            converse(folder)

    threads = [threading.Thread(target=keep_recording) for _ in range(2)]
    for thread in threads:
        thread.start()
    for first in range(0, children, 4):
        for join in [_started(method, folder) for _ in range(first, min(first + 4, children))]:
            join()
    over.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
