"""A comparison as one HTML file.

The file holds recorded content, so it can do nothing: all text is escaped, there is no script, and
its content security policy allows nothing but its own style sheet, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from typing import Final

from .diff import Change, Diff, Row
from .jsondiff import Difference
from .wording import EXPLAINED, plain, window

__all__ = ["to_html"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.2rem; } h2 { font-size: 1rem; margin-top: 2rem; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .5rem; border-top: 1px solid var(--line); }
.verdict { border: 1px solid var(--line); border-left: .5rem solid; padding: .5rem 1rem; }
.same { border-left-color: #2a7; } .different { border-left-color: #c33; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.sides > div { background: var(--soft); padding: .3rem .6rem; min-width: 0; }
.changed td:first-child, .moved td:first-child { border-left: .35rem solid #d90; }
.added td:first-child { border-left: .35rem solid #2a7; }
.removed td:first-child { border-left: .35rem solid #c33; }
.carried td:first-child { border-left: .35rem dotted #d90; }
.same-row td { color: #888; }
"""

_LONG: Final = 4000


def to_html(found: Diff) -> str:
    """A self-contained page: the verdict, the one difference that explains the rest, all events."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return "".join(
        [
            "<!doctype html>\n",
            '<html lang="en"><head><meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_escaped(policy)}">\n',
            '<meta name="referrer" content="no-referrer">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            "<title>sealtrace diff</title>\n",
            f"<style>{_STYLE}</style></head><body>\n",
            *_verdict(found),
            *_table(found),
            "</body></html>\n",
        ]
    )


def _escaped(text: str) -> str:
    return html.escape(plain(text), quote=True)


def _verdict(found: Diff) -> Iterator[str]:
    first = found.first
    yield f"<h1>A <code>{_escaped(found.a)}</code> and B <code>{_escaped(found.b)}</code></h1>\n"
    if first is None:
        yield f'<div class="verdict same"><strong>SAME</strong>: {found.matched} events match.</div>\n'
    else:
        yield '<div class="verdict different">'
        yield f"<strong>DIFFERENT</strong> at {_where(first)}, class <strong>{_escaped(str(first.cause))}</strong>"
        yield f": {_escaped(EXPLAINED[first.cause])}." if first.cause is not None else ""
        yield f"<br>{found.matched} events match before; {found.later} later differences follow.</div>\n"
        if first.shown is not None:
            yield _sides(first.shown)
    for note in found.notes:
        yield f"<p>Note: {_escaped(note)}.</p>\n"


def _where(row: Row) -> str:
    numbers = [f"{name}:{event.seq}" for name, event in (("A", row.a), ("B", row.b)) if event is not None]
    return f"<code>{' '.join(numbers)}</code> {_escaped(row.title)}"


def _sides(difference: Difference) -> str:
    recorded, got = window(difference.recorded, difference.got, limit=_LONG)
    return (
        f"<p><code>{_escaped(difference.path)}</code></p>"
        f'<div class="sides"><div>A<pre>{html.escape(recorded)}</pre></div>'
        f"<div>B<pre>{html.escape(got)}</pre></div></div>\n"
    )


def _table(found: Diff) -> Iterator[str]:
    counts = ", ".join(f"{count} {change}" for change, count in found.counts.items() if count)
    yield f"<h2>All events: {counts}</h2>\n<table><tr><th>A</th><th>B</th><th>event</th><th></th></tr>\n"
    for row in found.rows:
        sides = [str(event.seq) if event is not None else "" for event in (row.a, row.b)]
        style = "same-row" if row.change is Change.SAME else str(row.change)
        label = "" if row.change is Change.SAME else str(row.change)
        yield f'<tr class="{style}"><td>{sides[0]}</td><td>{sides[1]}</td><td>{_escaped(row.title)}'
        if row.differences:
            yield f"<details><summary>{len(row.differences)} differences</summary>"
            yield from (_sides(difference) for difference in row.differences)
            yield "</details>"
        yield f"</td><td>{label}</td></tr>\n"
    yield "</table>\n"
