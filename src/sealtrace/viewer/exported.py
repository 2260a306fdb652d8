"""Pages as files: one file each, which asks for nothing and runs nothing.

What is written holds recorded content, so its content security policy allows its own style sheet, by
hash, and nothing else: no script, no picture, no address, not even a form.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final

from .._version import __version__
from ..errors import SettingsError
from ..event import Kind, RunEvent, timestamp
from ..replay.diff import Diff
from ..replay.report import Report
from ..run import Run
from . import compared, reran
from .calls import Calls
from .html import Child, Html, document, tag
from .links import Links
from .panel import Read, panel
from .rail import Rail
from .shown import Page, head_of, rail_of

__all__ = ["LARGEST", "diff_file", "rerun_file", "run_file", "self_contained"]

LARGEST: Final = 64 * 1024 * 1024
"""Characters of a run's file, unless asked otherwise: what a browser still opens at once."""

_SHEETS: Final = ("viewer.css", "differences.css", "exported.css")


def diff_file(found: Diff) -> str:
    """The comparison of two runs as one file."""
    return self_contained("sealtrace diff", compared.body(found, links=False))


def rerun_file(report: Report) -> str:
    """The report of a rerun as one file."""
    return self_contained("sealtrace rerun", reran.body(report, links=False))


def run_file(run: Run, *, largest: int = LARGEST) -> str:
    """A run as one file: its lines, and every event with what could be read of its payload.

    Args:
        run: The run, with its payloads.
        largest: Characters it may have.

    Raises:
        SettingsError: It would have more.
    """
    rail, links = Rail(run), _Anchors(run)
    lines = rail_of(Page(run=run, rail=rail, lines=rail.lines, links=links, whole=True))
    pieces: list[Html] = [tag("nav", lines, aria_label="Events of the run", class_="events")]
    size = len(pieces[0])
    for piece in _panels(run, rail, links):
        pieces.append(piece)
        size += len(piece)
        if size > largest:
            raise SettingsError(
                f"the file of this run would be larger than {largest / 1024 / 1024:g} MB: raise --max-mb, or read the"
                " run with `sealtrace serve`, which loads a payload when its event is opened",
                setting="max_mb",
            )
    body = tag("div", pieces[0], tag("div", pieces[1:], class_="opened"), class_="split")
    return self_contained(f"sealtrace {run.id}", [head_of(run, links), body, _origin()])


def _origin() -> Html:
    """What can be read changes with time, and a file does not: it says when it was written."""
    now = tag("time", timestamp(time.time_ns())[:19] + "Z")
    words = [
        f"Written by sealtrace {__version__} at ",
        now,
        ": what could be read then, redacted when it was recorded.",
    ]
    return tag("footer", tag("p", words, " Payloads expire in the vault; this file does not."), class_="which")


def _panels(run: Run, rail: Rail, links: Links) -> Iterator[Html]:
    calls = Calls(run.events)
    for event in rail.stops:
        other = calls.call(event) if event.kind is Kind.TOOL_RESULT else None
        if event.kind is Kind.TOOL_CALL:
            other = calls.result(event)
        earlier = calls.earlier_generation(event) if event.kind is Kind.GENERATION else None
        read = Read(event, event.payload, before=earlier.payload if earlier is not None else None)
        shown = panel(read, Read(other, other.payload) if other is not None else None, calls, links)
        yield shown
        if _CUT in shown:
            whole = tag("pre", json.dumps(event.payload, ensure_ascii=False, indent=2), class_="json")
            yield tag("details", tag("summary", f"#{event.seq} as JSON, all of it"), whole, class_="fold")


_CUT: Final = ' class="cut"'
"""In markup, and only there, a quotation mark is a quotation mark: recorded text has none."""


class _Anchors(Links):
    """Addresses inside of a file."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._numbers = {record.record_id: number for number, record in enumerate(run.records, 1)}

    def event(self, event: RunEvent, *, view: str | None = None) -> str | None:
        """The event's panel."""
        return f"#{self.anchor(event)}" if view is None else None

    def anchor(self, event: RunEvent) -> str:
        """What the event's panel is called; with its record where there are several."""
        if len(self._numbers) == 1:
            return f"event-{event.seq}"
        return f"record-{self._numbers.get(event.record_id, 0)}-event-{event.seq}"

    def json(self, event: RunEvent) -> str | None:  # noqa: ARG002 - the form is that of the served page
        """A file has each event's JSON in itself, where it is needed."""
        return None

    def compare(self) -> str | None:
        """A file compares nothing."""
        return None

    def export(self) -> str | None:
        """It is the export."""
        return None


def self_contained(title: str, body: Iterable[Child]) -> str:
    """A page that needs nothing else.

    Args:
        title: What the browser calls it.
        body: What is in it.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = [
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("style", Html(style)),
    ]
    return document(title, tag("main", list(body)), head=head, class_="file")


@cache
def _style() -> str:
    folder = files("sealtrace.viewer") / "static"
    return "".join((folder / name).read_text(encoding="utf-8") for name in _SHEETS)
