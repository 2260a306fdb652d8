"""`sealtrace check RUN`: is a recorded run acceptable?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._exits import OK, PROBLEM
from ._options import AsJson, Reason, Telemetry, Vault, print_json

if TYPE_CHECKING:
    from ..replay.checks import CheckResult

__all__ = ["check"]


def check(
    run: Annotated[str, typer.Argument(metavar="RUN", help="An id, a link or a golden file.")],
    checks: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE[:NAME]",
            help="Also your own checks: all of a module, or one. The module is imported from here.",
            show_default=False,
        ),
    ] = None,
    builtin: Annotated[
        bool, typer.Option(help="Ask the five that come with sealtrace: schema, identity, citations, freshness, scope.")
    ] = True,
    vault: Vault = None,
    telemetry: Telemetry = None,
    reason: Reason = None,
    json: AsJson = False,
) -> int:
    """Check a recorded run: output schema, identity, citations, freshness, tool scope, and what you add.

    Reads only. Exit code 0: nothing stands against it; 1: a check failed or broke; 3: not found.
    """
    from ..replay.builtin import defaults
    from ..replay.checks import find_checks, run_checks
    from ..replay.opening import open_run

    # As `python -m` does: a module of the project that is worked in can be named.
    sys.path.insert(0, str(Path.cwd()))
    wanted = [*(defaults() if builtin else ()), *(one for name in checks or () for one in find_checks(name))]
    results = run_checks(open_run(run, vault=vault, telemetry=telemetry, reason=reason), wanted)
    if json:
        print_json([result.to_json() for result in results])
    else:
        _print(results)
    return OK if all(result.ok for result in results) else PROBLEM


def _print(results: list[CheckResult]) -> None:
    from ..replay.text import render_checks
    from ..run.text import console

    console().print(render_checks(results))
