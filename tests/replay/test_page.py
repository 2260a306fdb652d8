"""A comparison as an HTML file and as terminal text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from replay.handmade import Conversation, refund
from sealtrace.replay.diff import diff
from sealtrace.replay.page import to_html
from sealtrace.replay.text import render_diff

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)> \" ' & \x1b]52;c;aGk=\x07 \u202e"


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def _parsed(page):
    parser = _Tags()
    parser.feed(page)
    return parser


@pytest.fixture
def evil():
    """Two runs whose every free text is an attack, and differs."""
    one = Conversation(agent=EVIL).user(EVIL).asks((EVIL, {EVIL: EVIL})).runs(EVIL).says(EVIL).run()
    other = Conversation(salt="y", agent=EVIL).user(EVIL + "2").asks((EVIL, {EVIL: "2"})).runs("2" + EVIL).says("2")
    return diff(one, other.run(), ignore=[f"$..{name}" for name in ("no", "none")])


def test_page_runs_nothing(evil):
    """Recorded text never becomes a tag, an attribute that acts, or an address to fetch."""
    page = _parsed(to_html(evil))
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "iframe", "link", "object", "embed", "a", "form", "base", "svg"}
    names = {name for _, attributes in page.tags for name in attributes}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert "alert(1)" in "".join(page.text)
    assert "\x1b" not in to_html(evil)
    assert "\u202e" not in to_html(evil)


def test_page_allows_only_its_own_style(evil):
    """The content security policy names the style sheet by its hash and nothing else."""
    text = to_html(evil)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(attributes["content"] for tag, attributes in _parsed(text).tags if "http-equiv" in attributes)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_page_says_what_differs():
    """The verdict, the class, the path and both values are on the page."""
    found = diff(refund("x").run(), refund("y", instructions="TRIAGE v2: route.").run())
    text = "".join(_parsed(to_html(found)).text)
    for word in ("DIFFERENT", "CONFIG", "$.request.instructions", "TRIAGE: route.", "TRIAGE v2: route."):
        assert word in text
    assert "SAME" in to_html(diff(refund("x").run(), refund("y").run()))


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
