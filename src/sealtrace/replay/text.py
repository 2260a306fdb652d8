"""Comparisons and reruns for people to read on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from .checks import CheckResult, Verdict
from .diff import Change, Diff, Row
from .jsondiff import Difference
from .report import Divergence, Outcome, Report
from .wording import EXPLAINED, difference_lines, plain

__all__ = ["render_checks", "render_diff", "render_report"]

_MARKS: Final = {
    Change.SAME: ("  ", "dim"),
    Change.CHANGED: ("~ ", "yellow"),
    Change.CARRIED: (". ", "dim yellow"),
    Change.MOVED: ("> ", "cyan"),
    Change.ADDED: ("+ ", "green"),
    Change.REMOVED: ("- ", "red"),
}
_VERDICTS: Final = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.NOT_APPLICABLE: "dim",
    Verdict.BROKEN: "bold red",
}
_MOST: Final = 20
"""Differences listed per event."""


def render_diff(found: Diff, *, every: bool = False) -> Text:
    """A comparison: the verdict, the difference that explains the rest, the rest counted.

    Args:
        found: The comparison.
        every: List all events with all their differences.
    """
    return Text("\n").join([*_head(found), *(_rows(found) if every else ()), *_notes(found.notes)])


def _head(found: Diff) -> Iterator[Text]:
    first = found.first
    if first is None:
        yield Text.assemble(("SAME", "bold green"), f"  {found.matched} events match")
        return
    verdict = ("DIFFERENT", "bold red")
    yield Text.assemble(verdict, f"  {_where(first)}", ("  class: ", "dim"), (str(first.cause), "bold"))
    yield Text(f"  {found.matched} events match before | {_counted(found)} | {_outcome(found)}", "dim")
    if first.cause is not None:
        yield Text(f"  {EXPLAINED[first.cause]}")
    yield from _about(first)
    if found.later:
        yield Text(f"  {found.later} later differences, most of them caused by this one", "dim")


def _about(row: Row) -> Iterator[Text]:
    if row.shown is not None:
        yield from _difference(row.shown)
    elif row.change is Change.MOVED and row.a is not None and row.b is not None:
        yield Text(f"    the same event is number {row.a.seq} in A and number {row.b.seq} in B")
    else:
        yield Text(f"    only in {'A' if row.b is None else 'B'}")


def _where(row: Row) -> str:
    sides = [f"{name}:{event.seq}" for name, event in (("A", row.a), ("B", row.b)) if event is not None]
    return f"{' '.join(sides)}  {plain(row.title)}"


def _counted(found: Diff) -> str:
    counts = [f"{count} {change}" for change, count in found.counts.items() if count and change != "same"]
    return ", ".join(counts)


def _outcome(found: Diff) -> str:
    if found.outcome is None:
        return "a run has no final output"
    return "same final output" if found.outcome else "another final output"


def _difference(difference: Difference) -> Iterator[Text]:
    return (Text(f"    {line}") for line in difference_lines(difference))


def _rows(found: Diff) -> Iterator[Text]:
    yield Text()
    for row in found.rows:
        mark, style = _MARKS[row.change]
        yield Text(f"{mark}{_where(row)}", style)
        for difference in row.differences[:_MOST]:
            yield from _difference(difference)
        if len(row.differences) > _MOST:
            yield Text(f"    {len(row.differences) - _MOST} more differences in this event", "dim")


def _notes(notes: Iterable[str]) -> Iterator[Text]:
    return (Text(f"  note: {plain(note)}", "dim") for note in notes)


def render_checks(results: Iterable[CheckResult]) -> Text:
    """What each check says, and of which event."""
    lines: list[Text] = []
    for result in results:
        note = f"  ({plain(result.note)})" if result.note is not None else ""
        lines.append(Text.assemble((f"{result.verdict:<15}", _VERDICTS[result.verdict]), plain(result.check), note))
        for violation in result.violations:
            place = f"event {violation.seq}  " if violation.seq is not None else ""
            path = f"  at {plain(violation.path)}" if violation.path is not None else ""
            lines.append(Text(f"    {place}{plain(violation.message)}{path}"))
    return Text("\n").join(lines)


_OUTCOMES: Final = {
    Outcome.SAME: "bold green",
    Outcome.DIVERGED: "bold red",
    Outcome.NOT_COMPARABLE: "bold yellow",
}


def render_report(report: Report) -> Text:
    """A rerun: what it was, how it ended, the one difference, what was served and refused."""
    return Text("\n").join([*_outcome_lines(report), *_served(report), *_notes(report.notes)])


def _outcome_lines(report: Report) -> Iterator[Text]:
    verdict = (str(report.outcome).upper(), _OUTCOMES[report.outcome])
    where = f"  {_of(report.divergence)}" if report.divergence is not None else f"  {plain(report.run_id)}"
    yield Text.assemble(verdict, where, ("  ", ""), (f"[{report.mode}]", "dim"), f"  exit {report.exit_code}")
    if report.reason is not None:
        yield Text(f"  {plain(report.reason)}")
    found = report.divergence
    if found is not None:
        yield Text.assemble(("  class: ", "dim"), (str(found.cause), "bold"), f": {EXPLAINED[found.cause]}")
        yield Text(f"  {plain(found.message)}")
        yield from _difference(found.difference)
    if report.later:
        yield Text(f"  {report.later} later differences not shown, most of them caused by this one", "dim")


def _of(divergence: Divergence) -> str:
    event = f"event {divergence.seq}" if divergence.seq is not None else "no recorded event"
    names = [str(divergence.kind), *(name for name in (divergence.agent, divergence.tool) if name)]
    return f"{event}  {plain(' '.join(names))}"


def _served(report: Report) -> Iterator[Text]:
    receipt = report.receipt
    parts = [f"{report.matched}/{report.total} events matched"]
    parts += [f"{receipt.total(what)} {what}" for what in ("served", "live", "refused", "unconsumed")]
    parts.append("network touched" if receipt.network_touched else "no network touched")
    yield Text(f"  {' | '.join(parts)}", "dim")
    if receipt.blocked:
        counted = ", ".join(f"{count} {plain(name)}" for name, count in receipt.blocked.items())
        yield Text(f"  blocked: {counted}", "yellow")
    if report.ignored:
        counted = ", ".join(f"{plain(path)} ({count})" for path, count in report.ignored.items())
        yield Text(f"  not looked at: {counted}", "yellow")
    if report.by_kind:
        yield Text(f"  {report.by_kind} redacted values compared by kind only", "dim")
