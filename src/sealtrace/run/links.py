"""What a user may name a run by: an id of either kind, or a link that was clicked.

A link is only ever a carrier of an id. Its host, scheme and everything but the id and the event
number are ignored: which vault is read, and with whose credentials, comes from the settings alone.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Final
from urllib.parse import parse_qs, urlsplit

from ..errors import RunNotFound
from ..event import canonical_run_id

__all__ = ["Reference", "parse_reference"]

_MAX: Final = 2048
_HEX32: Final = re.compile(r"[0-9a-fA-F]{32}\Z")
_RUN: Final = re.compile(r"(?:trace_)?[0-9a-f]{32}\Z")
_EVENT: Final = re.compile(r"[0-9]{1,9}\Z")
_RUNS: Final = ("runs", "run")
_TRACES: Final = ("traces", "trace")


@dataclasses.dataclass(frozen=True, slots=True)
class Reference:
    """A run as the user named it.

    Attributes:
        text: What the user wrote.
        run_id: The canonical run id it may mean; None where it can only be a trace id.
        trace_id: The OpenTelemetry trace id it may mean; None where it can only be a run id.
        event: The event a link points at.
    """

    text: str
    run_id: str | None
    trace_id: str | None
    event: int | None = None


def parse_reference(text: str) -> Reference:
    """Understand an id or a link.

    * `trace_` and 32 hex digits is a run id;
    * 32 hex digits alone are a run id or an OpenTelemetry trace id, to be tried in this order;
    * `http(s)://…/runs/{id}` and `…/traces/{id}`, each with an optional `?event=N`, are links;
      a path alone (`/runs/{id}`) is one too;
    * anything else is an id that the user gave the SDK.

    Raises:
        RunNotFound: The link holds no valid id, or the text is empty or longer than any id.
    """
    given = text.strip()
    if not given or len(given) > _MAX:
        raise RunNotFound("give a run id, a trace id or a link to a run", run=text[:80])
    if given.startswith(("http://", "https://", "/runs/", "/traces/")):
        return _link(given)
    return _id(given, None)


def _id(given: str, event: int | None) -> Reference:
    if _HEX32.match(given):
        digits = given.lower()
        return Reference(given, canonical_run_id(digits), digits, event)
    return Reference(given, canonical_run_id(given), None, event)


def _link(given: str) -> Reference:
    try:
        parts = urlsplit(given)
    except ValueError:
        raise RunNotFound("that is not a link", run=given) from None
    steps = [step for step in parts.path.split("/") if step]
    event = _event(parts.query)
    if len(steps) >= 2:
        name, identifier = steps[-2:]
        if name in _RUNS and _RUN.match(identifier):
            return Reference(given, canonical_run_id(identifier), None, event)
        if name in _TRACES and _HEX32.match(identifier):
            return Reference(given, None, identifier.lower(), event)
    raise RunNotFound(
        "the link holds no run: it has to end in /runs/ and 32 hex digits, or in /traces/ and 32 hex digits", run=given
    )


def _event(query: str) -> int | None:
    values = parse_qs(query).get("event", [])
    return int(values[0]) if len(values) == 1 and _EVENT.match(values[0]) else None
