"""`sealtrace runs`: which runs there are."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from ..settings import load_settings
from ._options import AsJson, Telemetry, Vault, print_json

if TYPE_CHECKING:
    from ..run.listing import RunRow

__all__ = ["runs"]


def runs(
    limit: Annotated[int, typer.Option(help="Most runs to list.", min=1)] = 20,
    agent: Annotated[str | None, typer.Option(help="Only runs with this agent.", show_default=False)] = None,
    tool: Annotated[str | None, typer.Option(help="Only runs that called this tool.", show_default=False)] = None,
    errors: Annotated[bool, typer.Option("--errors", "--error", help="Only runs that ended with an error.")] = False,
    since: Annotated[
        str | None,
        typer.Option(help="Only runs that began within 30m, 2h or 7d, or since 2026-12-01T09:30.", show_default=False),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(help="Only runs of this service.name; asks the telemetry source.", show_default=False),
    ] = None,
    vault: Vault = None,
    telemetry: Telemetry = None,
    json: AsJson = False,
) -> None:
    """List runs, newest first: from the telemetry source if one is set, else from the vault's manifests."""
    settings = load_settings({"vault": vault, "telemetry": telemetry})
    from ..run.listing import list_runs
    from ..telemetry.sources import RunQuery, open_source
    from ..vault import VaultReader, open_store

    query = RunQuery(
        service=service,
        agent=agent,
        tool=tool,
        error=True if errors else None,
        since=_since(since) if since is not None else None,
    )
    source = open_source(settings.telemetry, settings) if settings.telemetry else None
    reader = None
    if source is None and settings.vault:
        reader = VaultReader(open_store(settings.vault, settings), settings.retention)
    found = list_runs(query, limit, reader, source)
    if json:
        print_json([dataclasses.asdict(row) for row in found])
    else:
        _table(found)


def _since(text: str) -> dt.datetime:
    from ..run.listing import moment

    try:
        return moment(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None


def _table(rows: list[RunRow]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ..run.safe import one_line
    from ..run.text import console, duration

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("started", "run", "workflow", "status", "took", "events", "agents", "tools"):
        numeric = name in ("took", "events")
        table.add_column(name, no_wrap=name in ("started", "run"), justify="right" if numeric else "left")
    for row in rows:
        style = "" if row.status == "ok" else "red"
        cells = (
            row.started_at[:19].replace("T", " "),
            row.run_id,
            row.workflow or "",
            row.status,
            duration(row.duration_ms) if row.duration_ms is not None else "",
            "" if row.events is None else str(row.events),
            ", ".join(row.agents),
            ", ".join(row.tools),
        )
        table.add_row(*(Text(one_line(cell), style if index == 3 else "") for index, cell in enumerate(cells)))
    out = console()
    out.print(table if rows else Text("no runs", "dim"))
