"""The viewer as a web application: who may come in, and which address is whose."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..errors import SealtraceError, SettingsError
from ..settings import Settings, load_settings
from ..telemetry.sources import Source
from ..vault import Store
from .html import Html, page, tag
from .library import Library, ReasonNeeded
from .pages import Pages
from .problems import problem, problem_of
from .safety import Gate
from .visits import CSRF, Visit, Visits

__all__ = ["create_app"]

_log: Final = logging.getLogger("sealtrace")

_FORM_BYTES: Final = 65_536
_FORM_FIELDS: Final = 20
_REASON: Final = 500
_TOKEN: Final = 16
_STATIC: Final = {
    "viewer.css": "text/css",
    "differences.css": "text/css",
    "viewer.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

_Shown: TypeAlias = Callable[[Request, Visit], Response]


def create_app(
    settings: Settings | None = None,
    *,
    store: Store | None = None,
    source: Source | None = None,
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    scheme: str = "http",
) -> ASGIApp:
    """The viewer, ready for an ASGI server.

    Args:
        settings: Which vault and source it reads; those in force by default.
        store: In place of the vault of the settings.
        source: In place of the telemetry source of the settings.
        token: What a visitor has to show; nobody has to where there is none.
        allowed_hosts: Names it answers under, besides loopback's.
        scheme: `https` where it is served by TLS.

    Raises:
        SettingsError: The vault or the source cannot be used, or the token is too short.
    """
    if token is not None and len(token) < _TOKEN:
        raise SettingsError(f"a token has at least {_TOKEN} characters", setting="viewer_token")
    library = Library(settings if settings is not None else load_settings(), store=store, source=source)
    viewer = _Viewer(library, Visits(token, secure=scheme == "https"))
    return Gate(viewer.application(), allowed_hosts, scheme=scheme)


class _Viewer:
    def __init__(self, library: Library, visits: Visits) -> None:
        self._library = library
        self._visits = visits
        nav = tag("a", "Your visit", href="/visit") if self._remembers else None
        self._pages = Pages(library, self._reason_form, nav)
        self._static = {name: (files("sealtrace.viewer") / "static" / name).read_bytes() for name in _STATIC}

    def application(self) -> Starlette:
        pages = self._pages
        return Starlette(
            routes=[
                Route("/", self._front),
                Route("/healthz", self._health),
                Route("/static/{name}", self._file),
                Route("/login", self._login, methods=["POST"]),
                Route("/logout", self._logout, methods=["POST"]),
                Route("/reason", self._give_reason, methods=["POST"]),
                Route("/visit", self._page(self._visit)),
                Route("/runs", self._page(pages.runs)),
                Route("/runs/{run_id}", self._page(pages.run)),
                Route("/runs/{run_id}/lines", self._page(pages.lines)),
                Route("/runs/{run_id}/events/{seq}.json", self._page(pages.event_json, as_json=True)),
                Route("/runs/{run_id}/events/{seq}", self._page(pages.event)),
                Route("/runs/{run_id}/export", self._page(pages.export)),
                Route("/reruns", self._page(pages.reruns)),
                Route("/reruns/{name}", self._page(pages.rerun)),
                Route("/traces/{trace_id}", self._page(pages.trace)),
                Route("/compare", self._page(pages.compare)),
            ],
            exception_handlers={HTTPException: _http_problem},
        )

    def _page(self, shown: _Shown, *, as_json: bool = False) -> Callable[[Request], object]:
        """A page for visitors who may come in; what goes wrong on it becomes a page as well."""

        async def answer(request: Request) -> Response:
            visit = self._visits.of(request)
            if visit.fresh and self._remembers and _from_elsewhere(request):
                return _again(_here(request))
            if not visit.admitted:
                response = self._ask_for_token(request, visit, as_json=as_json)
            else:
                try:
                    response = await run_in_threadpool(shown, request, visit)
                except ReasonNeeded as error:
                    form = None if as_json else self._reason_form(visit, _here(request))
                    response = problem(403, str(error), form, as_json=as_json)
                except SealtraceError as error:
                    response = problem_of(error, as_json=as_json)
                except Exception as error:  # noqa: BLE001 - no page shows a traceback, no log a payload
                    response = _broken(error)
            return self._visits.mark(response, visit) if visit.fresh and self._remembers else response

        return answer

    @property
    def _remembers(self) -> bool:
        """Whether there is anything to be remembered of a visitor."""
        return self._visits.guarded or self._library.needs_reason

    async def _front(self, request: Request) -> Response:  # noqa: ARG002
        return RedirectResponse("/runs", 303)

    async def _health(self, request: Request) -> Response:  # noqa: ARG002
        return PlainTextResponse("ok\n")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            return problem(404, "There is no such file.")
        return Response(self._static[name], media_type=_STATIC[name])

    # forms

    def _ask_for_token(self, request: Request, visit: Visit, *, as_json: bool) -> Response:
        words = "This server shows runs to those who have its token: whoever started it can give it to you."
        form = None
        if not as_json:
            back = _here(request) if request.method != "POST" else "/runs"
            form = self._form(visit, "/login", "token", label="Token", back=back, button="Come in", kind="password")
        return problem(401, words, form, as_json=as_json)

    def _reason_form(self, visit: Visit, back: str) -> Html:
        words = "Payloads are read for a reason here. What you say is kept in the vault's audit, with your name."
        return tag(
            "div",
            tag("p", words),
            self._form(
                visit, "/reason", "reason", label="Why do you read this run?", back=back, button="Read payloads"
            ),
            class_="asks",
        )

    def _form(
        self, visit: Visit, action: str, field: str, *, label: str, back: str, button: str, kind: str = "text"
    ) -> Html:
        return tag(
            "form",
            tag("label", label, for_=field),
            tag("input", type=kind, name=field, id=field, required=True, maxlength=_REASON, autocomplete="off"),
            tag("input", type="hidden", name="back", value=back),
            tag("input", type="hidden", name=CSRF, value=self._visits.csrf(visit)),
            tag("button", button, type="submit"),
            action=action, method="post", class_="ask",
        )  # fmt: skip

    def _visit(self, _: Request, visit: Visit) -> Response:
        """What is remembered of a visitor, and the way out."""
        said = tag("p", "You read payloads for this reason: ", tag("q", visit.reason)) if visit.reason else None
        leave = tag(
            "form",
            tag("input", type="hidden", name=CSRF, value=self._visits.csrf(visit)),
            tag("button", "Forget this visit", type="submit"),
            action="/logout", method="post", class_="ask",
        )  # fmt: skip
        ask = self._reason_form(visit, "/runs") if self._library.needs_reason else None
        return HTMLResponse(page("Your visit", [tag("h1", "Your visit"), said, ask, leave], current="/visit"))

    async def _login(self, request: Request) -> Response:
        visit, given = self._visits.of(request), await _form_of(request)
        if self._visits.too_many():
            return problem(429, "Too many wrong tokens came in; wait a minute.")
        if not self._visits.sent_by(visit, given.get(CSRF, "")):
            return _stale()
        if not self._visits.fits(given.get("token", "")):
            self._visits.failed()
            return problem(401, "That is not the token.", tag("p", tag("a", "Try again", href=_back(given))))
        return self._visits.mark(RedirectResponse(_back(given), 303), self._visits.admit(visit))

    async def _logout(self, request: Request) -> Response:
        visit, given = self._visits.of(request), await _form_of(request)
        if not self._visits.sent_by(visit, given.get(CSRF, "")):
            return _stale()
        self._visits.forget(visit)
        return RedirectResponse("/runs", 303)

    async def _give_reason(self, request: Request) -> Response:
        visit, given = self._visits.of(request), await _form_of(request)
        reason = given.get("reason", "").strip()[:_REASON]
        if not self._visits.sent_by(visit, given.get(CSRF, "")):
            return _stale()
        if not visit.admitted:
            return self._ask_for_token(request, visit, as_json=False)
        if not reason:
            return problem(400, "Say why you read the run.", tag("p", tag("a", "Back", href=_back(given))))
        self._visits.give_reason(visit, reason)
        return RedirectResponse(_back(given), 303)


async def _form_of(request: Request) -> dict[str, str]:
    """The fields of a form, each once; empty where it is none, or longer than any of ours."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > _FORM_BYTES:
            return {}
    try:
        fields = parse_qs(data.decode("utf-8", "replace"), max_num_fields=_FORM_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _stale() -> Response:
    words = "The form is not of this visit: it may be old, or another page sent it. Open the page and try again."
    return problem(403, words)


def _here(request: Request) -> str:
    """The address of this page, to come back to."""
    query = f"?{request.url.query}" if request.url.query else ""
    return f"{request.url.path}{query}"


def _back(given: dict[str, str]) -> str:
    """Where a form leads afterwards: a page of this server, whatever the form says."""
    back = given.get("back", "")
    return back if back.startswith(("/runs", "/traces/", "/compare", "/reruns")) and back.isprintable() else "/runs"


def _from_elsewhere(request: Request) -> bool:
    return request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")


def _again(here: str) -> Response:
    """Asks once more, now from this site itself: a link from elsewhere brings no cookie along."""
    more = tag("p", tag("a", "Go on", href=here))
    return problem(401, "Opening the run.", more, head=tag("meta", http_equiv="refresh", content="0"))


async def _http_problem(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {
        404: "There is no such page. A run is under /runs/ and its id, a trace under /traces/ and its id.",
        405: "This page is only read.",
    }
    return problem(status, words.get(status, "The request could not be answered."))


def _broken(error: Exception) -> Response:
    """Says where it broke in the log, by file and line: what an exception says may quote a payload."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    _log.error("sealtrace viewer: a page could not be made (%s at %s)", type(error).__name__, places)
    return problem(500, "The page could not be made; the server's log says where. The recorded run is not touched.")
