"""What came of a rerun, as a page: where it parted from its record, in the middle of the record.

Above it stands what the rerun came to, below it what it never came to. A rerun runs the user's code,
so nothing here starts one: the page shows a report that `sealtrace rerun` has written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..replay.kept import KeptReport
from ..replay.report import Divergence, Fate, Mode, Outcome, Report, Step
from ..replay.wording import EXPLAINED
from .html import Child, Html, tag
from .links import event_address, run_link
from .sides import two_values

__all__ = ["body", "shelf"]

_NEAR: Final = 5
"""So many events next to the divergence stand open; those farther off are folded away."""

_MODES: Final = {
    Mode.RERUN: "A simulation on recorded model answers and tool results; nothing left the process.",
    Mode.COMPARE: "A live comparison: the model was asked again, tool results are the recorded ones.",
    Mode.RESUME: "A simulation up to an event, live from there on.",
}
_STYLES: Final = {Outcome.SAME: "same", Outcome.DIVERGED: "different", Outcome.NOT_COMPARABLE: "unsure"}
_COUNTS: Final = ("recorded", "served", "live", "refused", "unconsumed")


def body(report: Report, *, links: bool) -> list[Html]:
    """The report: how it ended, the divergence among the recorded events, what was served and refused.

    Args:
        report: The report.
        links: Let event numbers lead to the run's own page; a file stands alone and has none.
    """
    return [
        tag("h1", "Rerun of ", run_link(report.run_id, links=links)),
        _verdict(report),
        *_notes(report),
        *_course(report, report.run_id if links else None),
        *_receipt(report),
    ]


def shelf(reports: Sequence[KeptReport]) -> list[Html]:
    """The list of kept reports."""
    if not reports:
        command = tag("code", "sealtrace rerun RUN --entry MODULE:NAME --keep")
        return [tag("p", "No report is kept. ", command, " reruns a recorded run and keeps what came of it.")]
    lines = [
        tag("tr", tag("td", tag("a", kept.at, href=f"/reruns/{kept.name}")), tag("td", tag("code", kept.run_id)))
        for kept in reports
    ]
    return [tag("table", tag("thead", _headings("Made", "Run")), tag("tbody", lines))]


def _headings(*names: str) -> Html:
    return tag("tr", [tag("th", name, scope="col") for name in names])


def _verdict(report: Report) -> Html:
    found = report.divergence
    cause = [" Class ", tag("strong", found.cause), f": {EXPLAINED[found.cause]}."] if found is not None else None
    matched = f"{report.matched} of {report.total} recorded events were come to and found as recorded."
    lines: list[Child] = [
        [tag("strong", str(report.outcome).upper()), " ", tag("span", f"[{report.mode}]", class_="mode"), cause],
        report.reason,
        f"{_MODES[report.mode]}{_live_from(report)}",
        f"{matched} Exit code {report.exit_code}.",
    ]
    style = f"verdict {_STYLES[report.outcome]}"
    return tag("section", [tag("p", line) for line in lines if line], class_=style, aria_label="Outcome")


def _live_from(report: Report) -> str:
    return f" It was live from event {report.live_from}." if report.live_from is not None else ""


def _notes(report: Report) -> Iterator[Html]:
    said = list(report.notes)
    if report.ignored:
        said.append("not looked at: " + ", ".join(f"{path} ({count})" for path, count in report.ignored.items()))
    if report.by_kind:
        said.append(f"{report.by_kind} redacted values were compared by kind only")
    if said:
        yield tag("ul", [tag("li", note) for note in said], class_="notes", aria_label="Notes")


# the record's events, and where the rerun left them


def _course(report: Report, run: str | None) -> Iterator[Html]:
    steps, found = report.steps, report.divergence
    if not steps and found is None:
        return
    yield tag("h2", "The recorded events, and where the rerun parted from them" if found else "The recorded events")
    if found is None:
        yield from _folded(steps, "events", run)
        return
    at, own = _place(steps)
    yield from _folded(steps[: max(0, at - _NEAR)], "earlier events", run)
    yield from _open(steps[max(0, at - _NEAR) : at], run)
    yield _parting(report, found, run)
    rest = steps[at + own :]
    yield from _open(rest[:_NEAR], run)
    yield from _folded(rest[_NEAR:], "later events", run)


def _place(steps: Sequence[Step]) -> tuple[int, int]:
    """Where the divergence stands among the events, and whether it is one of them (1) or between two (0)."""
    for index, step in enumerate(steps):
        if step.fate is Fate.DIVERGED:
            return index, 1
    used = [index for index, step in enumerate(steps) if step.fate is Fate.USED]
    return (used[-1] + 1 if used else 0), 0


def _folded(steps: Sequence[Step], what: str, run: str | None) -> Iterator[Html]:
    if steps:
        yield tag("details", tag("summary", f"{len(steps)} {what}: {_fates(steps)}"), _steps(steps, run))


def _fates(steps: Iterable[Step]) -> str:
    fates = [step.fate for step in steps]
    return ", ".join(f"{fates.count(fate)} {fate}" for fate in Fate if fate in fates)


def _open(steps: Sequence[Step], run: str | None) -> Iterator[Html]:
    if steps:
        yield _steps(steps, run)


def _steps(steps: Sequence[Step], run: str | None) -> Html:
    lines = [
        tag(
            "tr",
            tag("td", _event(step.record_id, step.seq, run)),
            tag("td", " ".join(name for name in (step.kind, step.agent, step.tool) if name)),
            tag("td", step.fate),
            class_=f"fate-{step.fate.name.lower()}",
        )
        for step in steps
    ]
    return tag("table", tag("thead", _headings("Event", "What", "In the rerun")), tag("tbody", lines), class_="rows")


def _event(record_id: str | None, seq: int, run: str | None) -> Html:
    if run is None:
        return tag("code", f"#{seq}")
    return tag("a", f"#{seq}", href=event_address(run, seq, record_id))


def _parting(report: Report, found: Divergence, run: str | None) -> Html:
    names = " ".join(name for name in (found.kind, found.agent, found.tool) if name)
    where: Child = _event(found.record_id, found.seq, run) if found.seq is not None else "no recorded event"
    later = f"{report.later} later differences are not shown: most of them are caused by this one."
    return tag(
        "section",
        tag("h3", "First divergence: ", where, f" {names}"),
        tag("p", found.message),
        tag("p", "frame ", tag("code", found.frame or "-"), class_="dim"),
        two_values(found.difference, "Recorded", "Got"),
        tag("p", later, class_="dim") if report.later else None,
        class_="verdict different",
        aria_label="First divergence",
    )


# the receipt


def _receipt(report: Report) -> Iterator[Html]:
    receipt = report.receipt
    touched = "The network was touched." if receipt.network_touched else "No network was touched."
    guarded = "Sockets and new processes were guarded." if receipt.guarded else "Nothing guarded the outside."
    yield tag("h2", "Served, refused, left over")
    yield tag("p", f"{touched} {guarded}")
    lines = [
        tag("tr", tag("th", name, scope="row"), [tag("td", getattr(surface, count)) for count in _COUNTS])
        for name, surface in receipt.surfaces.items()
    ]
    if lines:
        yield tag("table", tag("thead", _headings("Surface", *_COUNTS)), tag("tbody", lines), class_="counts")
    for title, counts in (("Blocked", receipt.blocked), ("Taken by a sandbox", receipt.redirected)):
        if counts:
            yield tag("h3", title)
            yield tag("ul", [tag("li", tag("code", name), f": {count}") for name, count in counts.items()])
