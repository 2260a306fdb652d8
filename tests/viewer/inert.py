"""Reads a page as a browser does and says whether anything on it could act."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><svg/onload=alert(1)> </pre></style></title> \" ' & "
    "</textarea> `{{7*7}}` ${7} javascript:alert(1) ]]> --> \x1b]52;c;aGk=\x07 \u202e \ud800 \x00"
)
"""Text that is an attack wherever it is taken for anything but text."""

ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "section", "header", "nav", "div", "span", "p"),
    *("h1", "h2", "h3", "h4", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td"),
    *("code", "pre", "strong", "em", "i", "del", "ins", "details", "summary", "mark", "small", "time"),
}
"""Elements that can do nothing."""

ATTRIBUTES = {
    *(
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "title",
        "open",
        "scope",
        "colspan",
        "rowspan",
    ),
    *("tabindex", "role", "datetime"),
}
"""Attributes that can do nothing; `aria-` ones besides."""


class Page(HTMLParser):
    """A parsed page: its elements with their attributes, and its text."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements = []
        self.words = []
        self._open = []
        self.feed(source)
        self.close()
        assert self._open == [], "elements are left open"

    @property
    def text(self):
        """All text but that of the style sheet."""
        return "".join(self.words)

    def of(self, name):
        """The attributes of all elements of a name."""
        return [attributes for tag, attributes in self.elements if tag == name]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "input", "br", "hr", "img", "col"}:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1:] != ["style"]:
            self.words.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment on the page")


def assert_inert(source, *, elements=frozenset(), attributes=frozenset()):
    """The page has no element and no attribute but those that can do nothing; returns it, parsed.

    Args:
        source: The page.
        elements: Elements that are allowed besides.
        attributes: Attributes that are allowed besides.
    """
    page = Page(source)
    assert {tag for tag, _ in page.elements} <= ELEMENTS | elements
    names = {name for _, found in page.elements for name in found if not name.startswith("aria-")}
    assert names <= ATTRIBUTES | attributes
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]", source)
    return page


def assert_stands_alone(source, *, elements=frozenset(), attributes=frozenset()):
    """The page's policy names its own style sheet by hash and allows nothing else; returns it, parsed."""
    page = assert_inert(source, elements=elements, attributes=attributes)
    styles = re.findall(r"<style>(.*?)</style>", source, re.DOTALL)
    assert len(styles) == 1
    assert "@import" not in styles[0]
    assert "url(" not in styles[0]
    digest = base64.b64encode(hashlib.sha256(styles[0].encode()).digest()).decode()
    policies = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"]
    return page
