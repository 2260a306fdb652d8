"""A WSGI application for a prefork server: each request is a run of the support desk, its answer the run's id.

`/` answers when the run has ended, as applications do; `/flushed` once sealtrace was asked to store it, with what
it said. With `--preload` this module runs in the master, so recording and its thread are there before any fork.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from agents import gen_trace_id

import sealtrace
from sealtrace.cli._demo_agent import run_support_desk

sealtrace.instrument()
asyncio.run(run_support_desk(f"trace_{os.environ['MASTER_RUN']}"))


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """One run."""
    run_id = gen_trace_id()
    asyncio.run(run_support_desk(run_id))
    stored = sealtrace.flush(5) if environ["PATH_INFO"] == "/flushed" else None
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"run": run_id, "pid": os.getpid(), "stored": stored}).encode()]
