"""What a command's exit code means, and how errors are said; `docs/cli.md` has the table."""

from __future__ import annotations

import sys
from typing import Final

from ..errors import NotComparable, RunErased, RunNotFound, SealtraceError

__all__ = ["DIFFERENT", "NOT_FOUND", "OK", "PROBLEM", "USAGE", "code_of", "say"]

OK: Final = 0
"""Done; nothing wrong; the same."""

PROBLEM: Final = 1
"""The command found a problem, or failed."""

DIFFERENT: Final = 2
"""A rerun diverged, or two runs differ. Nothing else ends with 2."""

NOT_FOUND: Final = 3
"""There is no such run or event, or no more, or what is there cannot be compared."""

USAGE: Final = 64
"""The command line was wrong; `EX_USAGE` of sysexits(3), so that it cannot be taken for a difference."""


def code_of(error: SealtraceError) -> int:
    """The exit code of an error that ended a command."""
    return NOT_FOUND if isinstance(error, RunNotFound | RunErased | NotComparable) else PROBLEM


def say(error: SealtraceError) -> None:
    """One line on standard error: what happened and what to do, no traceback."""
    from ..run.safe import one_line

    sys.stderr.write(f"sealtrace: {one_line(str(error), 2000)}\n")
