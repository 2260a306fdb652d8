"""Addresses of the viewer's own pages; `sealtrace export` has addresses of its own."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from ..event import RunEvent
from ..run import Run
from .html import Html, tag

__all__ = ["Links", "event_address", "run_link"]


class Links:
    """Addresses of a run's pages.

    Args:
        run: The run.
        wanted: The words its lines are narrowed to; kept from page to page.
    """

    def __init__(self, run: Run, wanted: str = "") -> None:
        self._run = run
        self._wanted = wanted
        self._several = len(run.records) > 1

    def run(self) -> str:
        """The run's own page."""
        return f"/runs/{quote(self._run.id, safe='', errors='replace')}"

    def event(self, event: RunEvent, *, view: str | None = None) -> str | None:
        """The run's page at an event."""
        return self._with({"event": str(event.seq), **self._record(event), "view": view, "q": self._wanted or None})

    def anchor(self, event: RunEvent) -> str:  # noqa: ARG002 - where one event is open, it needs no number
        """What the event's panel is called on its page."""
        return "panel"

    def compare(self) -> str | None:
        """Where the run can be held against another; None where there is no such place."""
        return f"/compare{_query({'a': self._run.id})}"

    def export(self) -> str | None:
        """The run as a file; None where it is one."""
        return f"{self.run()}/export"

    def json(self, event: RunEvent) -> str | None:
        """The event as JSON; None where there is nothing to ask."""
        return f"{self.run()}/events/{event.seq}.json{_query(self._record(event))}"

    def lines(self, first: int) -> str | None:
        """The page with the lines from a number on; None where all are there."""
        return self._with({"line": str(first), "q": self._wanted or None})

    def _record(self, event: RunEvent) -> dict[str, str | None]:
        return {"record": event.record_id if self._several else None}

    def _with(self, parameters: dict[str, str | None]) -> str:
        return f"{self.run()}{_query(parameters)}"


def _query(parameters: dict[str, str | None]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given, errors='replace')}" if given else ""


def run_link(run_id: str, *, links: bool) -> Html:
    """A run's id, leading to its page where there is one: a file stands alone."""
    name = tag("code", run_id)
    return tag("a", name, href=f"/runs/{run_id}") if links else name


def event_address(run_id: str, seq: int, record_id: str | None) -> str:
    """A run's page at an event, for who has their numbers only."""
    return f"/runs/{run_id}{_query({'event': str(seq), 'record': record_id or None})}"
