"""The page of runs: a form to narrow them down, and a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

from ..run.listing import RunRow, moment
from ..run.text import duration
from ..telemetry.sources import RunQuery
from .html import Child, Html, tag

__all__ = ["Asked", "asked_for", "fits", "runs_body"]

_LIMIT: Final = 50
_MOST: Final = 1_000
_LONGEST: Final = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What a visitor asked for.

    Attributes:
        given: The form's fields as they were filled in.
        query: The same for the telemetry source or the vault.
        limit: Most runs to list.
        text: A run id, a trace id, a link, or a piece of any word of a row.
    """

    given: Mapping[str, str]
    query: RunQuery
    limit: int
    text: str


def asked_for(parameters: Mapping[str, str]) -> Asked:
    """Understand the form.

    Raises:
        ValueError: The time is none.
    """
    given = {name: parameters.get(name, "").strip()[:_LONGEST] for name in ("agent", "tool", "service", "since", "q")}
    given["errors"] = "1" if parameters.get("errors") else ""
    count = parameters.get("limit", "")
    limit = min(_MOST, max(1, int(count))) if count.isdecimal() and len(count) < 6 else _LIMIT
    query = RunQuery(
        service=given["service"] or None,
        agent=given["agent"] or None,
        tool=given["tool"] or None,
        error=True if given["errors"] else None,
        since=moment(given["since"]) if given["since"] else None,
    )
    return Asked(given, query, limit, given["q"])


def runs_body(asked: Asked, rows: list[RunRow], places: str, *, services: bool, trouble: str | None = None) -> Html:
    """Everything of the page but its shell.

    Args:
        asked: What was asked for.
        rows: The runs found.
        places: Where was looked.
        services: Whether the place knows services.
        trouble: Why nothing could be looked up.
    """
    fitting = [row for row in rows if fits(row, asked.text)]
    return tag(
        "div",
        tag("h1", "Runs"),
        tag("p", "from ", tag("span", places[:300]), class_="which"),
        _form(asked, services=services),
        tag("p", trouble, class_="nothing", role="alert") if trouble else None,
        _table(fitting) if fitting else tag("p", "No run fits.", class_="nothing") if trouble is None else None,
        _more(asked, rows),
        class_="runs",
    )


def fits(row: RunRow, wanted: str) -> bool:
    """Whether any word of a row holds the given one, in either case."""
    words = (row.run_id, row.trace_id or "", row.workflow or "", row.status, *row.agents, *row.tools)
    return any(wanted.casefold() in word.casefold() for word in words)


def _form(asked: Asked, *, services: bool) -> Html:
    return tag("form", list(_fields(asked, services=services)), action="/runs", method="get", class_="finder",
               role="search")  # fmt: skip


def _fields(asked: Asked, *, services: bool) -> Iterator[Child]:
    fields = [
        ("q", "Run", "id, link or word"),
        ("agent", "Agent", "name"),
        ("tool", "Tool", "name"),
        ("since", "Since", "2h, 7d, 2026-12-01"),
    ]
    if services:
        fields.append(("service", "Service", "service.name"))
    for name, label, hint in fields:
        yield tag(
            "span",
            tag("label", label, for_=f"f-{name}"),
            tag("input", type="search" if name == "q" else "text", id=f"f-{name}", name=name, value=asked.given[name],
                placeholder=hint, maxlength=_LONGEST, autocomplete="off"),
            class_="field",
        )  # fmt: skip
    yield tag(
        "span",
        tag("input", type="checkbox", id="f-errors", name="errors", value="1", checked=bool(asked.given["errors"])),
        tag("label", "errors only", for_="f-errors"),
        class_="field",
    )
    yield tag("button", "Search", type="submit")


def _table(rows: list[RunRow]) -> Html:
    names = ("began (UTC)", "run", "workflow", "ended", "took", "events", "agents", "tools")
    head = tag("tr", [tag("th", name, scope="col") for name in names])
    caption = tag("caption", f"{len(rows):,} {'run' if len(rows) == 1 else 'runs'}, newest first")
    table = tag("table", caption, tag("thead", head), tag("tbody", [_row(row) for row in rows]), class_="list")
    return tag("div", table, class_="wide", role="region", aria_label="Runs found", tabindex="0")


def _row(row: RunRow) -> Html:
    # A source may give any text for an id; the page of one that is none says so.
    address = quote(row.run_id, safe="", errors="replace")
    return tag(
        "tr",
        tag("td", row.started_at[:19].replace("T", " ")),
        tag("td", tag("a", row.run_id[:46], href=f"/runs/{address}", class_="go id")),
        tag("td", (row.workflow or "")[:120]),
        tag("td", tag("span", row.status[:40], class_="mark quiet" if row.status == "ok" else "mark bad")),
        tag("td", duration(row.duration_ms) if row.duration_ms is not None else None, class_="figure"),
        tag("td", row.events, class_="figure"),
        tag("td", ", ".join(row.agents)[:200]),
        tag("td", ", ".join(row.tools)[:200]),
    )


def _more(asked: Asked, rows: list[RunRow]) -> Html | None:
    if len(rows) < asked.limit or asked.limit >= _MOST:
        return None
    given = {name: found for name, found in asked.given.items() if found}
    address = f"/runs?{urlencode({**given, 'limit': str(min(_MOST, asked.limit * 4))})}"
    return tag("p", tag("a", "Look further back", href=address))
