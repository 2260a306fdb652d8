"""What each address of the viewer shows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from ..errors import ObjectNotFound, RunNotFound, SealtraceError, SettingsError, TelemetryError, VaultDenied, VaultError
from ..event import Kind, RunEvent, canonical_run_id
from ..run import parse_reference
from ..run.findings import NO_PAYLOAD, items
from .html import Child, Html, document, join, page, tag
from .library import Library, OpenRun, ReasonNeeded
from .links import Links
from .listed import asked_for, fits, runs_body
from .panel import Read, panel
from .problems import Refused, status_of
from .rail import neighbours
from .shown import Page, rail_piece, run_body
from .visits import Visit

__all__ = ["Pages"]

_RUN: Final = re.compile(r"(?:trace_)?[0-9a-f]{32}\Z")
_TRACE: Final = re.compile(r"[0-9a-fA-F]{32}\Z")
_NUMBER: Final = re.compile(r"[0-9]{1,9}\Z")
_RECORD: Final = re.compile(r"[0-9a-f]{32}\Z")
_SETTINGS_ONLY: Final = frozenset({"vault", "bucket", "endpoint", "endpoint_url", "region", "telemetry", "source"})
"""What a link may not say: where to read is the affair of whoever started the server."""

_WORDS: Final = 200
_AT_LEAST: Final = 8
_NEWEST: Final = 1_000
"""Items of a conversation that are read with a request, from its end."""
_LISTED: Final = 500
"""Kept reports that are listed, newest first."""


class Pages:
    """Makes the pages; each method answers one kind of address.

    Args:
        library: Opens runs.
        ask: Makes the form that asks a visitor why, and leads back to an address.
        nav: What else stands in the head of every page.
    """

    def __init__(self, library: Library, ask: Callable[[Visit, str], Html], nav: Child = None) -> None:
        self._library = library
        self._ask = ask
        self._nav = nav

    def _shown(self, title: str, body: Child, *, current: str | None = None, status: int = 200) -> Response:
        return HTMLResponse(page(title, body, nav=self._nav, current=current), status)

    # lists

    def runs(self, request: Request, visit: Visit) -> Response:
        """`/runs`: a list, or straight to the run that was named whole."""
        given = request.query_params
        named = _named(given.get("q", ""))
        if named is not None:
            return RedirectResponse(named, 303)
        rows, trouble, status = [], None, 200
        try:
            asked = asked_for(given)
        except ValueError as error:
            asked, trouble, status = asked_for({**given, "since": ""}), f"since: {error}", 400
        services = self._library.source is not None
        if trouble is None:
            try:
                rows = self._library.runs(asked.query, asked.limit)
            except (VaultError, TelemetryError, SettingsError) as error:
                trouble, status = str(error), status_of(error)
        if trouble is None and asked.text and not any(fits(row, asked.text) for row in rows):
            own = self._by_own_id(asked.text, visit)
            if own is not None:
                return RedirectResponse(own, 303)
        body = runs_body(asked, rows, self._library.places, services=services, trouble=trouble)
        return self._shown("Runs", body, current="/runs", status=status)

    def _by_own_id(self, text: str, visit: Visit) -> str | None:
        """The address of the run that was given this id by whoever started it; None where there is none."""
        try:
            return Links(self._library.open(canonical_run_id(text), visit.reason).opened.run).run()
        except SealtraceError:
            return None

    def trace(self, request: Request, visit: Visit) -> Response:
        """`/traces/{trace_id}`: the run that is in this trace."""
        trace_id = request.path_params["trace_id"]
        _refuse_settings(request.query_params)
        if not _TRACE.match(trace_id):
            raise Refused(400, "A trace id is 32 hex digits.")
        found = self._library.open(f"/traces/{trace_id.lower()}", visit.reason)
        event = _number(request.query_params, "event")
        return RedirectResponse(_address(Links(found.opened.run).run(), event), 303)

    # a run

    def run(self, request: Request, visit: Visit) -> Response:
        """`/runs/{run_id}`: the run's page, at an event or at a line."""
        found = self._opened(request, visit)
        run = found.opened.run
        shown = self._page_of(request, found)
        selected: Child = tag("p", "No event of this run is known.", class_="nothing", id="panel")
        if shown.current is not None:
            selected = self._open(request, visit, found, shown)
        elif run.events:
            selected = tag("p", "No line holds these words.", class_="nothing", id="panel")
        return self._shown(f"{run.workflow or 'Run'} {run.id}"[:120], run_body(shown, selected))

    def event(self, request: Request, visit: Visit) -> Response:
        """`/runs/{run_id}/events/{seq}`: the panel of one event alone."""
        found = self._opened(request, visit)
        shown = self._page_of(request, found, event=request.path_params["seq"])
        return HTMLResponse(document("event", tag("div", self._open(request, visit, found, shown), id="open")))

    def lines(self, request: Request, visit: Visit) -> Response:
        """`/runs/{run_id}/lines?line=N`: the piece of the lines that holds the Nth."""
        found = self._opened(request, visit)
        # Which event is open the page knows that asks; none is, as far as this piece goes.
        piece = dataclasses.replace(self._page_of(request, found), current=None)
        return HTMLResponse(document("lines", rail_piece(piece)))

    def event_json(self, request: Request, visit: Visit) -> Response:
        """`/runs/{run_id}/events/{seq}.json`: one event as it was stored."""
        found = self._opened(request, visit)
        event = found.opened.run.event(_valid_number(request.path_params["seq"]), _record(request.query_params))
        payload = None
        if event.status not in NO_PAYLOAD:
            payload = self._library.payload(found, event, visit.reason).payload
        return JSONResponse({**event.envelope(), "payload": payload})

    def _opened(self, request: Request, visit: Visit) -> OpenRun:
        run_id = request.path_params["run_id"]
        _refuse_settings(request.query_params)
        if not _RUN.match(run_id):
            words = "A run id is `trace_` and 32 hex digits. An id of your own is found by the search at /runs."
            raise Refused(400, words)
        return self._library.open(run_id, visit.reason)

    def _page_of(self, request: Request, found: OpenRun, *, event: str | None = None) -> Page:
        given = request.query_params
        run, rail = found.opened.run, found.rail
        wanted = given.get("q", "").strip()[:_WORDS]
        lines = rail.matching(wanted)
        first = _number(given, "line")
        number = _valid_number(event) if event is not None else _number(given, "event")
        if number is not None:
            current: RunEvent | None = run.event(number, _record(given))
        else:
            start = first if first is not None and first < len(lines) else 0
            current = next((event for line in lines[start:] for event in line.events), None)
        links = Links(run, wanted)
        return Page(
            run=run, rail=rail, lines=lines, links=links, current=current, wanted=wanted, first=first,
            prices=self._library.prices,
        )  # fmt: skip

    def _open(self, request: Request, visit: Visit, found: OpenRun, shown: Page) -> Html:
        """The panel of the event that is open, between the ways to those beside it."""
        event = shown.current
        if event is None:
            raise RunNotFound("the run has no such event", run=shown.run.id)
        before, after = neighbours(shown.lines, event)
        calls = found.calls
        other = calls.call(event) if event.kind is Kind.TOOL_RESULT else None
        if event.kind is Kind.TOOL_CALL:
            other = calls.result(event)
        asked = request.query_params.get("view")
        view = asked if asked in ("json", "whole") else "text"
        read = self._read(visit, found, event, shown.links, whole=view != "text")
        beside = self._read(visit, found, other, shown.links) if other is not None else None
        if beside is not None and beside.asks is not None:  # one form is enough, and leads back to this event
            beside = Read(beside.event, trouble="It is shown as soon as a reason has been given.")
        ways = [_step("← event", before, shown.links, "before"), " ", _step("event →", after, shown.links, "after")]
        steps = tag("nav", ways, class_="steps", aria_label="Event before and next event",
                    data_line=shown.position)  # fmt: skip
        return join([steps, panel(read, beside, calls, shown.links, view=view)])

    def _read(self, visit: Visit, found: OpenRun, event: RunEvent, links: Links, *, whole: bool = False) -> Read:
        if event.status in NO_PAYLOAD:
            return Read(event)
        # What is new in a request is shown; the thousand messages before it may lie anywhere in the record.
        newest = None if whole else min(_NEWEST, max(_AT_LEAST, len(items(event.digests.get("input_new")))))
        try:
            found_out = self._library.payload(found, event, visit.reason, newest)
            return Read(event, found_out.payload, left_out=found_out.left_out, whole=whole)
        except ReasonNeeded:
            return Read(event, asks=self._ask(visit, links.event(event) or links.run()))
        except VaultDenied as error:
            return Read(event, trouble=f"Your credentials may not read this: {error}")
        except ObjectNotFound as error:
            return Read(event, trouble=f"It is not there any more: {error}")
        except VaultError as error:
            return Read(event, trouble=str(error))

    # two runs

    def compare(self, request: Request, visit: Visit) -> Response:
        """`/compare?a=&b=`: where two runs part, or a form that asks which."""
        from ..replay.diff import diff  # noqa: PLC0415 - only this page needs it
        from ..replay.jsondiff import parse_path  # noqa: PLC0415
        from . import compared  # noqa: PLC0415

        given = request.query_params
        _refuse_settings(given)
        a, b = given.get("a", "").strip(), given.get("b", "").strip()
        ignore = [word for word in given.get("ignore", "").split() if word][:20]
        if not a or not b:
            body: Child = [tag("h1", "Compare two runs"), compared.form(a, b, ignore)]
            return self._shown("Compare", body, current="/compare")
        try:
            for path in ignore:
                parse_path(path)
        except ValueError as error:
            raise Refused(400, str(error)) from None
        one, two = (self._library.whole(_reference(name), visit.reason) for name in (a, b))
        found = compared.body(diff(one, two, ignore=ignore), links=True)
        return self._shown("Comparison", [found, compared.form(a, b, ignore)], current="/compare")

    def export(self, request: Request, visit: Visit) -> Response:
        """`/runs/{run_id}/export`: the run as one file to take away."""
        from . import exported  # noqa: PLC0415 - only this page needs it

        found = self._opened(request, visit)
        run = self._library.whole(found.opened.run.id, visit.reason)
        try:
            file = exported.run_file(run).encode("utf-8", "replace")
        except SettingsError:
            largest = exported.LARGEST // 1024 // 1024
            words = f"The file of this run would be larger than {largest} MB: `sealtrace export --max-mb` writes it."
            raise Refused(413, words) from None
        headers = {"Content-Disposition": f'attachment; filename="{canonical_run_id(run.id)}.html"'}
        return Response(file, media_type="text/html; charset=utf-8", headers=headers)

    # reruns

    def reruns(self, request: Request, visit: Visit) -> Response:  # noqa: ARG002 - every page has a visitor
        """`/reruns`: the reports that were kept."""
        from . import reran  # noqa: PLC0415 - only these pages need it

        shelf = self._library.shelf()
        if shelf is None:
            words = "No directory of kept reports is set: set SEALTRACE_REPORTS, then `sealtrace rerun --keep`."
            listed: Child = tag("p", words, class_="nothing")
        else:
            listed = reran.shelf(shelf.reports()[:_LISTED])
        return self._shown("Reruns", [tag("h1", "Reruns"), listed], current="/reruns")

    def rerun(self, request: Request, visit: Visit) -> Response:
        """`/reruns/{name}`: one report. It quotes payloads, so it is read as they are."""
        from . import reran  # noqa: PLC0415

        report = self._library.report(request.path_params["name"], visit.reason)
        return self._shown("Rerun", reran.body(report, links=True), current="/reruns")


def _step(words: str, event: RunEvent | None, links: Links, name: str) -> Html:
    if event is None:
        return tag("span", words.replace("event", "no event"), class_=f"step {name}", aria_disabled="true")
    return tag(
        "a", words.replace("event", f"event {event.seq}"), href=links.event(event), class_=f"step {name}",
        data_seq=event.seq, data_record=event.record_id,
    )  # fmt: skip


def _named(text: str) -> str | None:
    """The address of the run a text names whole; None where it is words to look for."""
    given = text.strip()
    if not given.startswith(("http://", "https://", "/runs/", "/traces/")) and not _RUN.match(given.lower()):
        return None
    try:
        reference = parse_reference(given)
    except RunNotFound as error:
        raise Refused(400, str(error)) from None
    if reference.run_id is None:
        return _address(f"/traces/{reference.trace_id}", reference.event)
    digits = reference.run_id if reference.trace_id is None else reference.trace_id
    return _address(f"/runs/{digits}", reference.event)


def _address(path: str, event: int | None) -> str:
    return path if event is None else f"{path}?event={event}"


def _reference(text: str) -> str:
    """A run as it was typed into a form: an id, or a link of which only the id counts."""
    reference = parse_reference(text)
    if reference.run_id is None:
        return f"/traces/{reference.trace_id}"
    return reference.run_id if reference.trace_id is None else reference.trace_id


def _refuse_settings(given: Mapping[str, str]) -> None:
    named = sorted(_SETTINGS_ONLY & {name.lower() for name in given})
    if named:
        raise Refused(
            400,
            f"A link may name a run and an event, but not the {named[0]}: where to read comes from the settings of"
            " whoever started this server, and from nowhere else.",
        )


def _number(given: Mapping[str, str], name: str) -> int | None:
    return _valid_number(given[name]) if name in given else None


def _valid_number(text: str) -> int:
    if not _NUMBER.match(text):
        raise Refused(400, "An event or a line is named by its number.")
    return int(text)


def _record(given: Mapping[str, str]) -> str | None:
    record = given.get("record")
    if record is not None and not _RECORD.match(record):
        raise Refused(400, "A record id is 32 hex digits.")
    return record
