"""Pages as files: one file each, which asks for nothing and runs nothing.

What is written holds recorded content, so its content security policy allows its own style sheet, by
hash, and nothing else: no script, no picture, no address, not even a form.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from ..replay.diff import Diff
from ..replay.report import Report
from . import compared, reran
from .html import Child, Html, document, tag

__all__ = ["diff_file", "rerun_file", "self_contained"]

_SHEETS = ("viewer.css", "differences.css")


def diff_file(found: Diff) -> str:
    """The comparison of two runs as one file."""
    return self_contained("sealtrace diff", compared.body(found, links=False))


def rerun_file(report: Report) -> str:
    """The report of a rerun as one file."""
    return self_contained("sealtrace rerun", reran.body(report, links=False))


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
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("style", Html(style)),
    ]
    return document(title, tag("main", list(body)), head=head, class_="file")


@cache
def _style() -> str:
    folder = files("sealtrace.viewer") / "static"
    return "".join((folder / name).read_text(encoding="utf-8") for name in _SHEETS)
