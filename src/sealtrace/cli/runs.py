"""`sealtrace runs`: which runs there are."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Annotated, Any, Final

import typer

from ..errors import SettingsError
from ..event import timestamp
from ..settings import Settings, load_settings
from ._options import AsJson, Telemetry, Vault, print_json

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
    wanted = _Wanted(agent, tool, errors, _moment(since) if since is not None else None, service)
    if service is not None and not settings.telemetry:
        raise SettingsError("the vault does not know services; name a telemetry source for --service")
    if settings.telemetry:
        found = _from_telemetry(settings, wanted, limit)
    elif settings.vault:
        found = _from_vault(settings, wanted, limit)
    else:
        raise SettingsError(
            "nowhere to look: set SEALTRACE_TELEMETRY or SEALTRACE_VAULT, or pass --telemetry or --vault"
        )
    if json:
        print_json([dataclasses.asdict(row) for row in found])
    else:
        _table(found)


@dataclasses.dataclass(frozen=True, slots=True)
class _Wanted:
    agent: str | None
    tool: str | None
    errors: bool
    since: dt.datetime | None
    service: str | None


_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


def _moment(text: str) -> dt.datetime:
    """`2h` is two hours ago; a date without a zone is in this machine's."""
    try:
        if text[-1:] in _UNITS and text[:-1].isdecimal():
            return dt.datetime.now(dt.UTC) - dt.timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
        return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter("write 30m, 2h, 7d or a date and time", param_hint="--since") from None


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    run_id: str
    trace_id: str | None
    workflow: str | None
    started_at: str
    duration_ms: float | None
    status: str
    agents: tuple[str, ...]
    tools: tuple[str, ...]
    events: int | None


def _from_telemetry(settings: Settings, wanted: _Wanted, limit: int) -> list[_Row]:
    from ..telemetry.sources import RunQuery, open_source

    assert settings.telemetry is not None
    query = RunQuery(
        service=wanted.service,
        agent=wanted.agent,
        tool=wanted.tool,
        error=True if wanted.errors else None,
        since=wanted.since,
    )
    return [
        _Row(
            hit.run_id,
            hit.trace_id,
            hit.name,
            timestamp(hit.started_ns),
            round(hit.duration_ms, 3),
            hit.status,
            hit.agents,
            hit.tools,
            hit.events,
        )
        for hit in open_source(settings.telemetry, settings).runs(query, limit)
    ]


def _from_vault(settings: Settings, wanted: _Wanted, limit: int) -> list[_Row]:
    from ..vault import VaultReader, open_store

    assert settings.vault is not None
    # Several records may be of one run, and a filter drops some: look at more manifests than runs wanted.
    headers = (
        _header(record)
        for record in VaultReader(open_store(settings.vault, settings), settings.retention).recent(limit * 50)
    )
    rows: dict[str, _Row] = {}
    for row in headers:
        if row is None or not _fits(row, wanted):
            continue
        rows[row.run_id] = _merged(rows[row.run_id], row) if row.run_id in rows else row
        if len(rows) >= limit:
            break
    return list(rows.values())


def _header(record: Any) -> _Row | None:
    from ..errors import VaultError

    try:
        header = record.header
    except VaultError:
        return _Row(record.run_id, None, None, "", None, "damaged", (), (), None)
    if header is None:
        return None
    length = dt.datetime.fromisoformat(header.ended_at) - dt.datetime.fromisoformat(header.started_at)
    return _Row(
        header.run_id,
        header.trace_ids[0] if header.trace_ids else None,
        header.workflow_name,
        header.started_at,
        round(length.total_seconds() * 1000, 3),
        header.status,
        header.agents,
        header.tools,
        header.event_count,
    )


def _merged(one: _Row, other: _Row) -> _Row:
    first, last = sorted((one, other), key=lambda row: row.started_at)
    ends = (one.status, other.status)
    worst = next((word for word in ("damaged", "incomplete", "error", "cancelled") if word in ends), "ok")
    return dataclasses.replace(
        first,
        duration_ms=None,
        status=worst,
        agents=tuple(dict.fromkeys((*first.agents, *last.agents))),
        tools=tuple(dict.fromkeys((*first.tools, *last.tools))),
        events=(first.events or 0) + (last.events or 0),
    )


def _fits(row: _Row, wanted: _Wanted) -> bool:
    return (
        (wanted.agent is None or wanted.agent in row.agents)
        and (wanted.tool is None or wanted.tool in row.tools)
        and (not wanted.errors or row.status == "error")
        and (wanted.since is None or _began(row) >= wanted.since)
    )


def _began(row: _Row) -> dt.datetime:
    # A record that cannot be read has no time; it is shown rather than hidden.
    return dt.datetime.fromisoformat(row.started_at) if row.started_at else dt.datetime.max.replace(tzinfo=dt.UTC)


def _table(rows: list[_Row]) -> None:
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
