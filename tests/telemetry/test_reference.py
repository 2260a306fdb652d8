"""The allow-list and its reference page."""

from __future__ import annotations

from pathlib import Path

from sealtrace.telemetry import ATTRIBUTES
from sealtrace.telemetry.metadata import Gate
from sealtrace.telemetry.reference import page

ROOT = Path(__file__).parents[2]


def test_page_is_current() -> None:
    """docs/attributes.md is what the generator writes from the allow-list."""
    assert (ROOT / "docs/attributes.md").read_text(encoding="utf-8") == page()


def test_closed_sets_have_words() -> None:
    """An attribute has a closed set of words if, and only if, its gate needs one."""
    for item in ATTRIBUTES.values():
        assert bool(item.words) == (item.gate in (Gate.WORD, Gate.WORDS)), item.key


def test_no_content_key_is_allowed() -> None:
    """None of the conventions' content attributes is on the list."""
    content = ("messages", "instructions", "arguments", "result", "definitions", "description", "query", "documents")
    assert [key for key in ATTRIBUTES if key.endswith(content)] == []


def test_fewer_than_half_of_the_default_limit() -> None:
    """All attributes together stay well under the 128 a span may have, so that none is ever evicted."""
    assert len(ATTRIBUTES) < 64
