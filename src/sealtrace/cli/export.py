"""`sealtrace export`: a run as a file that can be read without sealtrace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from .._private_file import refuse_taken, write_private
from ._options import AsJson, Force, Reason, RunArgument, Telemetry, Vault, print_json

__all__ = ["export"]

_MB: Final = 1024 * 1024


def export(
    run: RunArgument,
    html: Annotated[Path, typer.Option(help="Write one self-contained HTML file here.", show_default=False)],
    force: Force = False,
    max_mb: Annotated[int, typer.Option("--max-mb", help="The largest file to write, in MB.", min=1, max=2000)] = 64,
    vault: Vault = None,
    telemetry: Telemetry = None,
    reason: Reason = None,
    json: AsJson = False,
) -> None:
    """Write the page of a run, with all its payloads, as one HTML file.

    The file needs nothing else: no script, no network, no vault. It holds what the vault holds, redacted;
    whoever has it can read it, and it does not expire. It is readable by its owner alone.
    """
    from ..run import load
    from ..run.text import console
    from ..viewer.exported import run_file

    refuse_taken(html, force=force)
    found = load(run, vault=vault, telemetry=telemetry, reason=reason)
    page = run_file(found, largest=max_mb * _MB)
    write_private(html, page, force=force)
    unread = sum(event.payload is None for event in found.events)
    if json:
        size = html.stat().st_size
        print_json({"run": found.id, "file": str(html), "bytes": size, "events": len(found.events), "unread": unread})
        return
    without = f", {unread} of them without payload" if unread else ""
    console().print(f"{html}: {len(found.events)} events{without}. The file holds payloads and does not expire.")
