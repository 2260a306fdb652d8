"""A run for people to read on a terminal, or in a file it is piped to.

Nothing recorded reaches the output as it is: see `safe.neutralise`. Content of payloads always has
a bar before it, so that it cannot pass itself off as a line of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from ..event import EventStatus, Kind, RunEvent
from .findings import NO_PAYLOAD, facts, held_by_server, items
from .gist import gist
from .run import Run, RunStatus
from .safe import neutralise, one_line
from .tree import Node

__all__ = ["console", "duration", "render_event", "render_payloads", "render_run"]

_WIDE: Final = 10_000
"""Columns where there is no terminal: a pipe gets whole lines."""

_LONGEST: Final = 4_000
"""Characters of one string shown when all payloads of a run are shown."""

_BAR: Final = "│ "
_INNER_BAR: Final = "┊ "
_STATUS_STYLE: Final = {
    RunStatus.COMPLETE: "green",
    RunStatus.DAMAGED: "bold red",
    RunStatus.PARTIAL: "yellow",
    RunStatus.METADATA_ONLY: "yellow",
    RunStatus.SPANS_ONLY: "yellow",
    RunStatus.PAYLOADS_ONLY: "cyan",
}
_KIND_STYLE: Final = {"agent": "bold", "trace": "bold", "frame": "bold", "model": "cyan", "generation": "cyan"}
_FADED: Final = frozenset({"span", "input", "output"})


def console(file: Any = None, *, colour: bool | None = None) -> Console:
    """A console that adds nothing of its own: no markup, no links, no guessing at highlights.

    Args:
        file: Where to write; standard output by default.
        colour: True or False to force it; by default only on a terminal, and not with NO_COLOR.
    """
    made = Console(
        file=file,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
        force_terminal=colour,
        legacy_windows=False,
    )
    if not made.is_terminal:
        made.width = _WIDE
    return made


def render_run(run: Run) -> RenderableType:
    """What the run was, what is wrong with its record, and its tree."""
    return Group(*_header(run), Text(), *(_branch(node) for node in run.tree()))


def _header(run: Run) -> Iterator[Text]:
    yield _pair("run", run.id)
    yield _pair("trace", ", ".join(run.trace_ids) or "none: it left no spans")
    if run.workflow:
        yield _pair("workflow", run.workflow)
    status = _pair("status", "")
    status.append(run.status.value, _STATUS_STYLE[run.status])
    yield status
    yield _pair("outcome", run.outcome)
    times = f"{run.started_at or '?'}" + (f", {duration(run.duration_ms)}" if run.duration_ms is not None else "")
    yield _pair("started", times)
    if run.agents:
        yield _pair("agents", ", ".join(run.agents))
    if run.tools:
        yield _pair("tools", ", ".join(run.tools))
    usage = run.usage
    tokens = f"{usage['input_tokens']} in, {usage['output_tokens']} out, {usage['requests']} model calls"
    yield _pair("tokens", tokens)
    redactions = _redactions(run.events)
    yield _pair("redacted", redactions or "nothing")
    for finding in run.findings:
        where = f" (event {finding.seq})" if finding.seq is not None else ""
        yield Text(f"! {one_line(finding.message, 400)}{where}", "yellow" if finding.serious else "dim")


def _pair(name: str, value: str) -> Text:
    return Text.assemble((f"{name:<9}", "dim"), one_line(value, 400))


def _redactions(events: Iterable[RunEvent]) -> str:
    counts: dict[str, int] = {}
    for event in events:
        for kind, count in event.redactions.items():
            counts[kind] = counts.get(kind, 0) + count
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _branch(node: Node) -> Tree:
    branch = Tree(_line(node), guide_style="dim")
    _grow(branch, node.children)
    return branch


def _grow(branch: Tree, children: list[Node]) -> None:
    for child in children:
        _grow(branch.add(_line(child)), child.children)


def _line(node: Node) -> Text:
    style = _KIND_STYLE.get(node.kind, "dim" if node.kind in _FADED else "")
    line = Text(one_line(node.label), style, no_wrap=True)
    if node.duration_ms is not None:
        line.append(f"  {duration(node.duration_ms)}", "dim")
    if node.tokens is not None and any(node.tokens):
        line.append(f"  {node.tokens[0]}+{node.tokens[1]} tokens", "dim")
    if node.events:
        line.append("  " + " ".join(f"#{event.seq}" for event in node.events), "blue")
    if node.error_type:
        line.append(f"  ✗ {one_line(node.error_type)}", "bold red")
    for mark in node.marks:
        line.append(f"  [{one_line(mark)}]", "yellow")
    return line


def duration(milliseconds: float) -> str:
    """A duration in the unit that fits it."""
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.2f} s" if seconds < 60 else f"{int(seconds // 60)} min {seconds % 60:.0f} s"


# payloads


def render_event(event: RunEvent) -> RenderableType:
    """One event: its envelope and its whole payload."""
    return Group(*_envelope(event), *_payload(event, event.payload, None))


def render_payloads(run: Run) -> RenderableType:
    """Every event's payload in order, shortened; see `gist`."""
    lines: list[Text] = []
    before: dict[tuple[str, str], RunEvent] = {}
    for event in run.events:
        key = (event.record_id, event.frame)
        payload = gist(event, before.get(key))
        if event.kind is Kind.GENERATION:
            before[key] = event
        lines += [Text(), _title(event), *_payload(event, payload, _LONGEST)]
    return Group(*lines)


def _title(event: RunEvent) -> Text:
    title = Text(f"#{event.seq} {event.kind.value}", "bold")
    for detail in (event.agent, event.model, event.call_id):
        if detail:
            title.append(f"  {one_line(detail)}", "dim")
    style = "yellow" if event.status in NO_PAYLOAD or event.status is EventStatus.PARTIAL_RECORD else "dim"
    title.append(f"  {event.status.value}", style)
    return title


def _envelope(event: RunEvent) -> Iterator[Text]:
    yield _title(event)
    for name, value in event.envelope().items():
        if name not in _IN_TITLE:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield _pair_wide(name, text)


_IN_TITLE: Final = ("schema", "seq", "kind", "status", "digests")


def _pair_wide(name: str, value: str) -> Text:
    return Text.assemble((f"  {name:<13}", "dim"), one_line(value, 1000))


def _payload(event: RunEvent, payload: Any, longest: int | None) -> Iterator[Text]:
    held = held_by_server(event)
    if held is not None:
        yield Text(f"  ! {one_line(held, 400)}", "yellow")
    if payload is None:
        yield Text(f"  no payload: {event.status.value}", "yellow")
        return
    for depth, name, text in _flat(payload, 0, longest):
        yield Text.assemble((f"  {_BAR}", "dim"), "  " * depth, (name, "cyan"), text)


def _flat(value: Any, depth: int, longest: int | None) -> Iterator[tuple[int, str, str]]:
    """Lines of `(depth, name, text)`; every recorded character in them is neutralised."""
    if isinstance(value, dict) and value:
        for name, item in facts(value).items():
            yield from _entry(f"{one_line(name)}:", item, depth, longest)
    elif isinstance(value, list) and value:
        for item in items(value):
            # The first line of an item shares its line with the dash.
            lines = _flat(item, depth + 1, longest)
            _, name, text = next(lines)
            yield depth, f"- {name}", text
            yield from lines
    else:
        yield from _entry("", value, depth, longest)


def _entry(name: str, value: Any, depth: int, longest: int | None) -> Iterator[tuple[int, str, str]]:
    head = f"{name} " if name else ""
    if isinstance(value, dict | list) and value:
        yield depth, name, ""
        yield from _flat(value, depth + 1, longest)
    elif isinstance(value, str):
        yield from _string(head, value, depth, longest)
    else:
        yield depth, head, json.dumps(value)


def _string(head: str, value: str, depth: int, longest: int | None) -> Iterator[tuple[int, str, str]]:
    text = neutralise(value)
    if longest is not None and len(text) > longest:
        text = f"{text[:longest]}… ({len(text) - longest} characters more; see --event)"
    lines = text.split("\n")
    if len(lines) == 1:
        yield depth, head, text
        return
    yield depth, head.rstrip(), ""
    for line in lines:
        yield depth + 1, _INNER_BAR, line
