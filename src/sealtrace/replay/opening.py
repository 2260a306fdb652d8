"""A run by whatever names it: an id, a link, or a golden's file."""

from __future__ import annotations

from pathlib import Path

from ..run import Run, load
from . import golden

__all__ = ["open_run"]


def open_run(name: str, *, vault: str | None = None, telemetry: str | None = None, reason: str | None = None) -> Run:
    """Open a recorded run.

    Args:
        name: Path of a golden (it ends in `.json`), else what `sealtrace.load` takes.
        vault: As for `sealtrace.load`.
        telemetry: As for `sealtrace.load`.
        reason: As for `sealtrace.load`; a golden is a file of the project and read without.

    Raises:
        SealtraceError: As `sealtrace.load` and `golden.load` do.
    """
    if name.endswith(".json") and "://" not in name:
        return golden.load(Path(name)).run
    return load(name, vault=vault, telemetry=telemetry, reason=reason)
