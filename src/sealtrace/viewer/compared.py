"""Two runs side by side, as a page: what is in one only, and the first difference by name.

The same markup is the viewer's `/compare` and the file that `sealtrace diff --html` writes; see
`exported`. It needs no script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from ..event import RunEvent
from ..replay.diff import Change, Diff, Row
from ..replay.wording import EXPLAINED
from .html import Html, tag
from .links import event_address, run_link
from .sides import one_value, two_values

__all__ = ["body", "form"]

_OPENED: Final = 500
"""Differences that are on the page; a page with all those of a long run could not be opened."""

_MOST: Final = 20
"""Differences shown of one event."""

_FOLDED: Final = 8
"""So many equal events in a row are folded into one line."""

_WORDS: Final = {
    Change.SAME: "same",
    Change.CHANGED: "changed",
    Change.CARRIED: "carried: repeats what differed before",
    Change.MOVED: "moved",
    Change.ADDED: "only in B",
    Change.REMOVED: "only in A",
}


def body(found: Diff, *, links: bool) -> list[Html]:
    """The comparison: the verdict, the difference that explains the rest, all events.

    Args:
        found: The comparison.
        links: Let event numbers lead to the runs' own pages; a file stands alone and has none.
    """
    return [
        tag("h1", "A ", run_link(found.a, links=links), " and B ", run_link(found.b, links=links)),
        _verdict(found, links=links),
        *_notes(found),
        *_events(found, links=links),
    ]


def form(a: str = "", b: str = "", ignore: Sequence[str] = ()) -> Html:
    """Asks which two runs to compare."""
    fields = [
        tag("label", said, tag("input", name=name, value=value, size=48, required=name != "ignore", autocomplete="off"))
        for name, said, value in (
            ("a", "Run A", a),
            ("b", "Run B", b),
            ("ignore", "Paths not to look at", " ".join(ignore)),
        )
    ]
    return tag("form", fields, tag("button", "Compare"), action="/compare", method="get", class_="pair")


def _verdict(found: Diff, *, links: bool) -> Html:
    first = found.first
    if first is None:
        return tag("div", tag("strong", "SAME"), f": {found.matched} events match.", class_="verdict same")
    cause = first.cause
    named = [", class ", tag("strong", cause), f": {EXPLAINED[cause]}"] if cause is not None else []
    said = [tag("strong", "DIFFERENT"), " at ", _number(first, links=links), " ", first.title, *named, "."]
    after = f"{_many(found.later, 'later difference')}, most of them caused by this one." if found.later else ""
    return tag(
        "section",
        tag("p", said),
        _shown(first),
        tag("p", f"{_many(found.matched, 'event')} match before. ", after, class_="dim"),
        tag("p", _outcome(found), class_="dim"),
        class_="verdict different",
        aria_label="First difference",
    )


def _shown(first: Row) -> Html | None:
    if first.shown is not None:
        return two_values(first.shown, "A", "B")
    if first.change is Change.MOVED and first.a is not None and first.b is not None:
        return tag("p", f"The same event is number {first.a.seq} in A and number {first.b.seq} in B.")
    return tag("p", f"It is {_WORDS[first.change]}.")


def _number(row: Row, *, links: bool) -> list[Html | str]:
    found: list[Html | str] = []
    for name, event in (("A", row.a), ("B", row.b)):
        if event is not None:
            found += [" " if found else "", _event_name(event, f"{name}:{event.seq}", links=links)]
    return found


def _event_name(event: RunEvent, name: str, *, links: bool) -> Html:
    shown = tag("code", name)
    if not links:
        return shown
    return tag("a", shown, href=event_address(event.run_id, event.seq, event.record_id))


def _outcome(found: Diff) -> str:
    if found.outcome is None:
        return "One of them has no final output."
    return "The final outputs are the same." if found.outcome else "The final outputs differ."


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _notes(found: Diff) -> Iterator[Html]:
    if found.notes:
        yield tag("ul", [tag("li", note) for note in found.notes], class_="notes", aria_label="Notes")


def _events(found: Diff, *, links: bool) -> Iterator[Html]:
    counts = ", ".join(f"{count} {change}" for change, count in found.counts.items() if count)
    yield tag("h2", f"All events: {counts}")
    head = [tag("th", name, scope="col") for name in ("A", "B", "Event", "Change")]
    yield tag("table", tag("thead", tag("tr", head)), _bodies(found, links=links), class_="rows pairs")
    closed = sum(row.change is not Change.SAME for row in found.rows[_fitting(found.rows) :])
    if closed:
        yield tag("p", f"{closed} later events that differ are not opened here; `sealtrace diff --json` has all.")


def _fitting(rows: Sequence[Row]) -> int:
    """How many rows can show their differences before the page is too long."""
    total = 0
    for index, row in enumerate(rows):
        if row.change is not Change.SAME:
            total += max(1, min(len(row.differences), _MOST))
        if total > _OPENED:
            return index
    return len(rows)


def _bodies(found: Diff, *, links: bool) -> Iterator[Html]:
    """The table in pieces, long stretches of equal events folded away behind a line that counts them."""
    fitting, done = _fitting(found.rows), 0
    for equal, group in groupby(found.rows, lambda row: row.change is Change.SAME):
        rows = list(group)
        lines = [_row(row, links=links, opened=done + index < fitting) for index, row in enumerate(rows)]
        done += len(rows)
        if equal and len(rows) > _FOLDED:
            folded = tag("summary", f"{len(rows)} events that are the same"), tag("table", lines, class_="rows pairs")
            yield tag("tbody", tag("tr", tag("td", tag("details", folded), colspan=4), class_="folded"))
        else:
            yield tag("tbody", lines)


def _row(row: Row, *, links: bool, opened: bool) -> Html:
    numbers = [
        tag("td", _event_name(event, str(event.seq), links=links) if event is not None else None)
        for event in (row.a, row.b)
    ]
    more = _more(row) if opened else None
    cause = f" ({row.cause})" if row.cause is not None and row.change is Change.CHANGED else ""
    cells = [*numbers, tag("td", row.title, more), tag("td", _WORDS[row.change], cause)]
    return tag("tr", cells, class_=row.change)


def _more(row: Row) -> Html | None:
    """What is behind the line of an event: its differences, or what there is of it on its one side."""
    if row.change in {Change.ADDED, Change.REMOVED}:
        if row.event.payload is None:
            return tag("p", f"no payload: {row.event.status.value}")
        return tag("details", tag("summary", "what it holds"), one_value(row.event.payload))
    if not row.differences:
        return None
    shown = [two_values(difference, "A", "B") for difference in row.differences[:_MOST]]
    left = len(row.differences) - _MOST
    return tag(
        "details",
        tag("summary", _many(len(row.differences), "difference")),
        shown,
        tag("p", f"{left} more in this event") if left > 0 else None,
    )
