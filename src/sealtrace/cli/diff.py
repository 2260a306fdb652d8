"""`sealtrace diff A B`: what made two recorded runs part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._private_file import refuse_taken, write_private
from ._options import AsJson, Force, Reason, Telemetry, Vault, print_json

__all__ = ["diff"]


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The run to compare with: an id, a link or a golden file.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The run held against it.")],
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Do not look here, as in `$.request.instructions`.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write one self-contained HTML file here.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every event and difference, not only the first.")] = False,
    force: Force = False,
    vault: Vault = None,
    telemetry: Telemetry = None,
    reason: Reason = None,
    json: AsJson = False,
) -> int:
    """Compare two recorded runs event by event and name the first difference and its cause.

    Reads only. Exit code 0: the same; 2: different; 3: not found or not comparable.
    """
    from ..replay.diff import diff as compare
    from ..replay.opening import open_run

    if html is not None:
        refuse_taken(html, force=force)
    one, other = (open_run(name, vault=vault, telemetry=telemetry, reason=reason) for name in (a, b))
    try:
        found = compare(one, other, ignore=ignore or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--ignore") from error
    if html is not None:
        from ..viewer.exported import diff_file

        write_private(html, diff_file(found), force=force)
    if json:
        print_json(found.to_json())
    else:
        from ..replay.text import render_diff
        from ..run.text import console

        console().print(render_diff(found, every=every))
    return found.exit_code
