"""A Celery application on folders instead of a broker: each task is a run of the support desk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from celery import Celery

import sealtrace
from sealtrace.cli._demo_agent import run_support_desk

_HOME = Path(os.environ["CELERY_HOME"])

app = Celery("tasks", broker="filesystem://", backend=f"file://{_HOME / 'results'}")
app.conf.update(
    broker_transport_options={
        "data_folder_in": str(_HOME / "queue"),
        "data_folder_out": str(_HOME / "queue"),
        "control_folder": str(_HOME / "control"),
    },
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    worker_enable_remote_control=False,
)
sealtrace.instrument()


@app.task
def converse(run_id: str) -> int:
    """One run; which process made it."""
    asyncio.run(run_support_desk(run_id))
    return os.getpid()
