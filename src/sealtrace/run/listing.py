"""Which runs there are: asked of the telemetry source, else read from the vault's manifests."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Final

from ..errors import SettingsError, VaultError
from ..event import timestamp
from ..telemetry.sources import RunQuery, Source
from ..vault import StoredRecord, VaultReader

__all__ = ["RunRow", "list_runs", "moment"]

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


@dataclasses.dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list.

    Attributes:
        started_at: When it began, RFC 3339; empty where its manifest cannot be read.
        status: How it ended, the worst of its records: ok, cancelled, error, incomplete or damaged.
        events: How many there are, as far as it is known.
    """

    run_id: str
    trace_id: str | None
    workflow: str | None
    started_at: str
    duration_ms: float | None
    status: str
    agents: tuple[str, ...]
    tools: tuple[str, ...]
    events: int | None


def moment(text: str) -> dt.datetime:
    """`2h` is two hours ago; a date without a zone is in this machine's.

    Raises:
        ValueError: It is neither an age nor a date.
    """
    try:
        if text[-1:] in _UNITS and text[:-1].isdecimal():
            return dt.datetime.now(dt.UTC) - dt.timedelta(**{_UNITS[text[-1]]: int(text[:-1])})
        return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise ValueError("write 30m, 2h, 7d or a date and time") from None


def list_runs(query: RunQuery, limit: int, reader: VaultReader | None, source: Source | None) -> list[RunRow]:
    """Runs that fit, newest first; from the source where there is one.

    Raises:
        SettingsError: There is neither, or the vault is asked for what it does not know.
        TelemetryError: The source cannot be read.
        VaultError: The vault cannot be read.
    """
    if query.service is not None and source is None:
        raise SettingsError("the vault does not know services; name a telemetry source for --service")
    if source is not None:
        return _from_source(source, query, limit)
    if reader is not None:
        return _from_vault(reader, query, limit)
    raise SettingsError("nowhere to look: set SEALTRACE_TELEMETRY or SEALTRACE_VAULT, or pass --telemetry or --vault")


def _from_source(source: Source, query: RunQuery, limit: int) -> list[RunRow]:
    return [
        RunRow(
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
        for hit in source.runs(query, limit)
    ]


def _from_vault(reader: VaultReader, query: RunQuery, limit: int) -> list[RunRow]:
    # Several records may be of one run, and a filter drops some: look at more manifests than runs wanted.
    rows: dict[str, RunRow] = {}
    for row in map(_row, reader.recent(limit * 50)):
        if row is None or not _fits(row, query):
            continue
        rows[row.run_id] = _merged(rows[row.run_id], row) if row.run_id in rows else row
        if len(rows) >= limit:
            break
    return list(rows.values())


def _row(record: StoredRecord) -> RunRow | None:
    try:
        header = record.header
    except VaultError:
        return RunRow(record.run_id, None, None, "", None, "damaged", (), (), None)
    if header is None:
        return None
    length = dt.datetime.fromisoformat(header.ended_at) - dt.datetime.fromisoformat(header.started_at)
    return RunRow(
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


def _merged(one: RunRow, other: RunRow) -> RunRow:
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


def _fits(row: RunRow, query: RunQuery) -> bool:
    return (
        (query.agent is None or query.agent in row.agents)
        and (query.tool is None or query.tool in row.tools)
        and (query.error is None or query.error == (row.status == "error"))
        and (query.since is None or _began(row) >= query.since)
    )


def _began(row: RunRow) -> dt.datetime:
    # A record that cannot be read has no time; it is shown rather than hidden.
    return dt.datetime.fromisoformat(row.started_at) if row.started_at else dt.datetime.max.replace(tzinfo=dt.UTC)
