"""The page of a run: what it was, its lines down the side, and one event whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

from ..event import RunEvent
from ..run import Run, RunStatus
from ..run.text import duration
from .html import Child, Html, tag
from .links import Links
from .prices import Prices
from .rail import Axis, Line, Rail

__all__ = ["CHUNK", "Page", "head_of", "rail_of", "rail_piece", "run_body"]

CHUNK: Final = 250
"""Lines that are sent together; the rest of a long run follows when it is scrolled to."""

_ALL: Final = 1_000
"""A run of no more lines than this is sent whole."""

_DEEPEST: Final = 12
_WIDTH: Final = 1000
"""Units of a bar's drawing, whatever its width on the page."""

_TICKS: Final = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What of a run is on a page.

    Attributes:
        run: The run.
        rail: All its lines.
        lines: Those to be shown.
        links: Where things are to be found.
        current: The event that is open.
        wanted: The words the lines are narrowed to.
        first: Where in `lines` to begin, if not at the event.
        whole: Send all lines, however many.
        prices: What models cost; None where no list is set.
    """

    run: Run
    rail: Rail
    lines: Sequence[Line]
    links: Links
    current: RunEvent | None = None
    wanted: str = ""
    first: int | None = None
    whole: bool = False
    prices: Prices | None = None

    @property
    def position(self) -> int | None:
        """Where in `lines` the line of the event that is open stands; None where it is not among them."""
        if self.current is None:
            return None
        line = self.rail.line_of(self.current)
        return next((index for index, other in enumerate(self.lines) if other is line), None)

    def is_open(self, event: RunEvent) -> bool:
        """Whether it is the event that is open."""
        current = self.current
        return current is not None and (event.seq, event.record_id) == (current.seq, current.record_id)


def run_body(page: Page, selected: Child) -> Html:
    """Everything of the page but its shell: `selected` is the panel of the event that is open."""
    return tag(
        "div",
        head_of(page.run, page.links, _cost(page)),
        tag(
            "div",
            tag("nav", _finder(page), rail_of(page), aria_label="Events of the run", class_="events"),
            tag("div", selected, id="open"),
            class_="split",
        ),
        tag("p", id="said", class_="unseen", role="status"),
        _keys(),
        class_="run", data_run=page.links.run(), data_wanted=page.wanted,
    )  # fmt: skip


# the head


def _cost(page: Page) -> str | None:
    """What all model calls cost together; at least that much where it is not known of some."""
    if page.prices is None:
        return None
    calls = [line.node for line in page.rail.lines if line.node.kind in ("model", "generation")]
    costs = [page.prices.of(node) for node in calls]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return "not known"
    return f"{'at least ' if len(known) < len(costs) else ''}{page.prices.said(sum(known))}"


def head_of(run: Run, links: Links, cost: str | None = None) -> Html:
    """What the run was and, where that is known, cost; and what is wrong with its record."""
    facts = [*_facts(run, links), *([("cost", cost)] if cost else [])]
    return tag(
        "header",
        tag("h1", run.workflow or "Run"),
        tag("p", tag("code", run.id, class_="id"), class_="which"),
        tag("dl", [tag("div", tag("dt", name), tag("dd", fact)) for name, fact in facts], class_="summary"),
        _findings(run),
        class_="run-head",
    )


def _facts(run: Run, links: Links) -> Iterator[tuple[str, Child]]:
    yield "record", tag("span", run.status.value, class_=f"mark {_TONE[run.status]}")
    yield "outcome", tag("span", run.outcome, class_="mark quiet" if run.outcome == "ok" else "mark bad")
    yield "began", f"{run.started_at[:19].replace('T', ' ')} UTC" if run.started_at else "not known"
    if run.duration_ms is not None:
        yield "took", duration(run.duration_ms)
    if run.agents:
        yield "agents", ", ".join(run.agents)[:400]
    if run.tools:
        yield "tools", ", ".join(run.tools)[:400]
    usage = run.usage
    yield "tokens", f"{usage['input_tokens']:,} in, {usage['output_tokens']:,} out"
    yield "model calls", usage["requests"]
    yield "redacted", _redactions(run.events) or "nothing"
    if run.trace_ids:
        yield "traces", ", ".join(run.trace_ids[:3])
    if (address := links.compare()) is not None:
        yield "compare", tag("a", "with another run", href=address)
    if (address := links.export()) is not None:
        yield "export", tag("a", "as one HTML file", href=address)


_TONE: Final = {
    RunStatus.COMPLETE: "quiet",
    RunStatus.PAYLOADS_ONLY: "quiet",
    RunStatus.PARTIAL: "warn",
    RunStatus.METADATA_ONLY: "warn",
    RunStatus.SPANS_ONLY: "warn",
    RunStatus.DAMAGED: "bad",
}


def _redactions(events: Sequence[RunEvent]) -> str:
    counts: dict[str, int] = {}
    for event in events:
        for kind, count in event.redactions.items():
            counts[kind] = counts.get(kind, 0) + count
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))[:400]


_FINDINGS: Final = 20


def _findings(run: Run) -> Html | None:
    if not run.findings:
        return None
    shown = [
        tag("li", finding.message[:400], f" (event {finding.seq})" if finding.seq is not None else None,
            class_="serious" if finding.serious else None)
        for finding in run.findings[:_FINDINGS]
    ]  # fmt: skip
    more = len(run.findings) - _FINDINGS
    return tag("ul", shown, tag("li", f"… {more:,} more") if more > 0 else None, class_="findings",
               aria_label="What to know of this record")  # fmt: skip


def _finder(page: Page) -> Html:
    shown, every, wanted = len(page.lines), len(page.rail.lines), page.wanted
    return tag(
        "form",
        tag("label", "Narrow down", for_="find"),
        tag("input", type="search", id="find", name="q", value=wanted, maxlength=200, autocomplete="off",
            placeholder="tool, agent, kind, error, #12"),
        tag("button", "Find", type="submit"),
        tag("a", "all", href=page.links.run()) if wanted else None,
        tag("small", f"{shown:,} of {every:,} lines" if wanted else f"{every:,} lines", role="status"),
        action=page.links.run(), method="get", class_="finder", role="search",
    )  # fmt: skip


def _keys() -> Html:
    keys = (("j", "next event"), ("k", "event before"), ("Enter", "into the event"), ("/", "narrow down"),
            ("g", "first event"), ("c", "copy as JSON"), ("?", "this list"))  # fmt: skip
    rows = [tag("div", tag("dt", tag("kbd", key)), tag("dd", meaning)) for key, meaning in keys]
    close = tag("form", tag("button", "Close", type="submit"), method="dialog")
    return tag("dialog", tag("h2", "Keys", id="keys-title"), tag("dl", rows, class_="fields"), close, id="keys",
               aria_labelledby="keys-title")  # fmt: skip


# the lines


def rail_of(page: Page) -> Html:
    """The lines, or of a long run the piece that holds one line and links to the others."""
    lines = page.lines
    if not lines:
        return tag("p", "No line holds these words.", class_="nothing")
    at = page.first if page.first is not None else page.position or 0
    chosen = at // CHUNK if 0 <= at < len(lines) else 0
    pieces: list[Html] = []
    for number, start in enumerate(range(0, len(lines), CHUNK)):
        part = lines[start : start + CHUNK]
        if page.whole or len(lines) <= _ALL or number == chosen:
            pieces.append(_piece(page, part, start))
        else:
            pieces.append(_waiting(start, len(part), page.links))
    return tag("div", _scale(page.rail.axes[lines[0].axis]), pieces, class_="rail costs" if page.prices else "rail")


def rail_piece(page: Page) -> Html | None:
    """One piece of the lines alone, for a page that has the others."""
    start = (page.first or 0) // CHUNK * CHUNK
    part = page.lines[start : start + CHUNK]
    return _piece(page, part, start) if part else None


def _waiting(start: int, count: int, links: Links) -> Html:
    words = f"lines {start + 1:,} to {start + count:,}"
    return tag("p", tag("a", words, href=links.lines(start)), class_="waiting", data_line=start, data_count=count)


def _piece(page: Page, lines: Sequence[Line], start: int) -> Html:
    rows: list[Html] = []
    axis = lines[0].axis
    for line in lines:
        if line.axis != axis:
            axis = line.axis
            rows.append(tag("li", _scale(page.rail.axes[axis]), class_="axis-row"))
        rows.append(_row(page, line))
    return tag("ol", rows, class_="lines", data_line=start, start=start + 1)


def _gap(nanoseconds: int) -> str:
    hours = nanoseconds / 3.6e12
    return duration(nanoseconds / 1e6) if hours < 1 else f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"


def _scale(axis: Axis) -> Html:
    """The figures over the bars."""
    later = f"{_gap(axis.after_ns)} later" if axis.after_ns else "time"
    marks = [tag("span", duration(axis.length_ns / 1e6 * step / _TICKS) if step else "0") for step in range(_TICKS + 1)]
    return tag("div", tag("span", later, class_="later"), tag("span", marks, class_="ticks"), class_="scale",
               aria_hidden="true")  # fmt: skip


def _row(page: Page, line: Line) -> Html:
    node = line.node
    here = any(page.is_open(event) for event in line.events)
    return tag(
        "li",
        tag("span", _numbers(line, page), class_="numbers"),
        tag("span", _label(line, page), list(_marks(line)), class_=f"what d{min(line.depth, _DEEPEST)}"),
        tag("span", f"{node.tokens[0]:,}+{node.tokens[1]:,}" if node.tokens and any(node.tokens) else None,
            class_="tokens", title="input and output tokens" if node.tokens else None),
        _costs(page, line),
        tag("span", duration(node.duration_ms) if node.duration_ms is not None else None, class_="took"),
        _bar(line, page.rail.axes[line.axis]),
        class_=f"line k-{_kind(line)}{' here' if here else ''}",
    )  # fmt: skip


def _costs(page: Page, line: Line) -> Html | None:
    if page.prices is None:
        return None
    cost = page.prices.of(line.node)
    return tag("span", page.prices.said(cost) if cost is not None else None, class_="cost")


_KINDS: Final = frozenset(
    {"trace", "agent", "model", "generation", "tool", "tool_call", "tool_result", "handoff", "guardrail", "input",
     "output", "error", "approval", "retrieval", "checkpoint", "mcp_tools", "custom", "frame"}
)  # fmt: skip


def _kind(line: Line) -> str:
    return line.node.kind if line.node.kind in _KINDS else "span"


def _numbers(line: Line, page: Page) -> list[Child]:
    """The numbers of its events; the first is the label's own, the others lead to theirs."""
    shown: list[Child] = []
    for event in line.events:
        number = f"#{event.seq}"
        if shown:
            words = f"{line.node.label[:160]}, event {event.seq}"
            shown += [" ", tag("a", number, href=page.links.event(event), class_="go", data_seq=event.seq,
                               data_record=event.record_id, aria_label=words,
                               aria_current="true" if page.is_open(event) else None)]  # fmt: skip
        else:
            shown.append(tag("span", number, aria_hidden="true"))
    return shown


def _label(line: Line, page: Page) -> Html:
    label = line.node.label[:160] or line.node.kind
    who = line.agent[:60] if line.agent and line.agent not in label else None
    name = [tag("span", label, class_="name", title=label), [" ", tag("small", who, class_="who")] if who else None]
    if not line.events:
        return tag("span", name, class_="label")
    first = line.events[0]
    number = tag("span", f", event {first.seq}", class_="unseen")
    return tag("a", name, number, href=page.links.event(first), class_="go label", data_seq=first.seq,
               data_record=first.record_id, aria_current="true" if page.is_open(first) else None)  # fmt: skip


def _marks(line: Line) -> Iterator[Child]:
    if line.node.error_type:
        yield _mark(line.node.error_type[:60], "bad")
    for mark in line.node.marks:
        yield _mark(mark[:80], "bad" if mark in ("tripped", "rejected") else "warn")
    if line.redactions:
        yield _mark(f"{line.redactions} redacted", "redacted")


def _mark(words: str, tone: str) -> Html:
    return tag("span", words, class_=f"mark {tone}", title=words)


def _bar(line: Line, axis: Axis) -> Html:
    if not line.start_ns:
        return tag("span", class_="bar")
    left = min(_WIDTH, max(0, (line.start_ns - axis.start_ns) * _WIDTH / axis.length_ns))
    width = min(_WIDTH - left, max(0, (line.end_ns - line.start_ns) * _WIDTH / axis.length_ns))
    drawn = tag("rect", x=f"{min(left, _WIDTH - 3):.1f}", y=0, width=f"{max(3, width):.1f}", height=8)
    return tag("svg", drawn, class_="bar", viewBox=f"0 0 {_WIDTH} 8", preserveAspectRatio="none", aria_hidden="true")
