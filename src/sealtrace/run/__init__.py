"""A recorded run: found, joined, and made readable."""

from __future__ import annotations

from .findings import HELD_BY_SERVER, Finding, held_by_server
from .join import JoinedRecord
from .links import Reference, parse_reference
from .loading import load, open_run
from .opened import OpenedRun
from .run import Run, RunStatus
from .tree import Node

__all__ = [
    "HELD_BY_SERVER",
    "Finding",
    "JoinedRecord",
    "Node",
    "OpenedRun",
    "Reference",
    "Run",
    "RunStatus",
    "held_by_server",
    "load",
    "open_run",
    "parse_reference",
]
