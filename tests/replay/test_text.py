"""A comparison as terminal text."""

from __future__ import annotations

import pytest
from rich.console import Console

from replay.handmade import Conversation, refund
from sealtrace.replay.diff import diff
from sealtrace.replay.text import render_diff

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> \" ' & \x1b]52;c;aGk=\x07 \u202e"


@pytest.fixture
def evil():
    """Two runs whose every free text is an attack, and differs."""
    one = Conversation(agent=EVIL).user(EVIL).asks((EVIL, {EVIL: EVIL})).runs(EVIL).says(EVIL).run()
    other = Conversation(salt="y", agent=EVIL).user(EVIL + "2").asks((EVIL, {EVIL: "2"})).runs("2" + EVIL).says("2")
    return diff(one, other.run(), ignore=[f"$..{name}" for name in ("no", "none")])


def _printed(found, **options):
    console = Console(width=200, force_terminal=False, markup=False, highlight=False, soft_wrap=True)
    with console.capture() as capture:
        console.print(render_diff(found, **options))
    return capture.get()


def test_text_says_what_differs():
    """The terminal shows verdict, class, path, both values and the count of the rest."""
    found = diff(refund("x").run(), refund("y", instructions="TRIAGE v2: route.").run())
    lines = _printed(found).splitlines()
    assert lines[0] == "DIFFERENT  A:2 B:2  generation triage  class: CONFIG"
    assert "2 events match before | 1 changed, 2 carried | same final output" in lines[1]
    assert lines[3:6] == [
        "    at        $.request.instructions",
        '    recorded  "TRIAGE: route."',
        '    got       "TRIAGE v2: route."',
    ]
    assert "2 later differences" in lines[6]


def test_text_of_everything_has_every_event():
    """With every event asked for, each is on a line with its mark."""
    found = diff(refund("x").run(), refund("y", results=(["a"], ["c"], "policy")).run())
    text = _printed(found, every=True)
    assert sum(line[:2] in ("  ", "~ ", ". ") and "A:" in line for line in text.splitlines()) == len(found.rows)


def test_terminal_is_not_obeyed(evil):
    """Recorded escapes and direction marks are shown, not sent."""
    text = _printed(evil, every=True)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_long_values_show_where_they_part():
    """Of two long texts the part that differs is shown, not two equal beginnings."""
    shared = "word " * 200
    one = Conversation().user(shared + "north").says("ok").run()
    found = diff(one, Conversation(salt="y").user(shared + "south").says("ok").run())
    text = _printed(found)
    assert "north" in text
    assert "south" in text
