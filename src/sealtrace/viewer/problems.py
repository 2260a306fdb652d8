"""Pages for what cannot be shown: what happened, and what to do about it; never a traceback."""

from __future__ import annotations

from typing import Final

from starlette.responses import HTMLResponse, JSONResponse, Response

from ..errors import (
    EventNotFound,
    NotComparable,
    ObjectNotFound,
    PayloadErased,
    PayloadExpired,
    RecordDamaged,
    ReportError,
    RunErased,
    RunNotFound,
    SealtraceError,
    SettingsError,
    TelemetryError,
    VaultDenied,
    VaultError,
)
from .html import Child, page, tag
from .library import ReasonNeeded

__all__ = ["Refused", "problem", "problem_of", "status_of"]

_STATUSES: Final[tuple[tuple[type[SealtraceError], int], ...]] = (
    (ReasonNeeded, 403),
    (RunNotFound, 404),
    (ObjectNotFound, 404),
    (NotComparable, 409),
    (ReportError, 404),
    (PayloadExpired, 410),
    (PayloadErased, 410),
    (RunErased, 410),
    (VaultDenied, 403),
    (RecordDamaged, 502),
    (TelemetryError, 502),
    (SettingsError, 503),
    (VaultError, 503),
)
"""The first that fits."""

_NOT_FOUND: Final = (
    "It may be in another vault or telemetry source than those this server reads, its process may not have stored it"
    " yet, it may be past its retention, or the id may be cut short."
)

_TITLES: Final = {
    400: "That is no address of a run",
    401: "A token is needed",
    403: "Not with these credentials",
    404: "Nothing is there",
    405: "That cannot be done here",
    409: "These cannot be compared",
    410: "No longer there",
    413: "Too much",
    421: "Not under this name",
    429: "Too many tries",
    500: "Something broke",
    502: "What answered cannot be used",
    503: "Not to be reached",
}


class Refused(SealtraceError):
    """A request that is not answered.

    Attributes:
        status: The HTTP status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: SealtraceError) -> int:
    """The HTTP status an error is answered with."""
    if isinstance(error, Refused):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def problem_of(error: SealtraceError, *, as_json: bool = False) -> Response:
    """The page of an error; its message says what to do."""
    more = tag("p", _NOT_FOUND) if isinstance(error, RunNotFound) and not isinstance(error, EventNotFound) else None
    return problem(status_of(error), str(error), more, as_json=as_json)


def problem(status: int, words: str, more: Child = None, *, as_json: bool = False, head: Child = None) -> Response:
    """The page of a problem.

    Args:
        status: The HTTP status.
        words: What happened and what to do.
        more: What else is on the page, such as a form.
        as_json: Answer a program instead.
        head: What else the page's head holds.
    """
    headers = {"WWW-Authenticate": 'Bearer realm="sealtrace"'} if status == 401 else None
    if as_json:
        return JSONResponse({"error": words[:2000], "status": status}, status, headers)
    title = _TITLES.get(status, "That did not work")
    body = [
        tag("h1", title),
        tag("p", words[:2000], role="alert"),
        more,
        tag("p", tag("a", "All runs", href="/runs")),
    ]
    return HTMLResponse(page(title, tag("div", body, class_="problem"), head=head), status, headers)
