"""HTML in which recorded text can be nothing but text.

There is one way to make markup here: `tag`. What it is given is escaped, and what a reader could not
see or a browser would turn round (controls, direction marks, blank letters) is made visible first.
Only what `tag` itself returned goes in as it is. No attribute holds script or style, and an address
never leads off the page's own origin.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from ..run.safe import neutralise

__all__ = ["Attribute", "Child", "Html", "document", "join", "page", "tag", "text"]


class Html(str):
    """Markup: the only strings that are not escaped."""

    __slots__ = ()


Child: TypeAlias = "Html | str | int | float | Iterable[Child] | None"
"""What may stand inside an element; None and False leave nothing."""

Attribute: TypeAlias = str | float | bool | None
"""What an attribute may be."""

_VOID: Final = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*\Z")
_ATTRIBUTE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*\Z")
_ADDRESSES: Final = frozenset({"href", "src", "action", "formaction"})
_OWN: Final = re.compile(r"(?:/(?![/\\\s])|[?#])")
"""An address on this page's own origin: a path, a query or a fragment."""


def text(value: str) -> Html:
    """Recorded text, escaped, with nothing invisible in it."""
    return Html(html.escape(neutralise(value), quote=True))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """An element.

    Args:
        name: Its name.
        children: What is inside: text is escaped, `Html` goes in as it is.
        attributes: `class_` is `class`, `aria_label` is `aria-label`; True is an attribute without a
            value, None and False leave it out.

    Raises:
        ValueError: A name is none, an attribute could run script or style, or an address leads elsewhere.
    """
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is no element")
    opened = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{opened}>")
    inner = join(children)
    if name == "pre" and inner.startswith("\n"):
        inner = Html(f"\n{inner}")  # a browser drops the first line break of such an element
    return Html(f"<{name}{opened}>{inner}</{name}>")


def join(children: Child) -> Html:
    """Several pieces, one after another."""
    if children is None or children is False:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return text(children)
    if isinstance(children, int | float):
        return Html(str(children))
    return Html("".join([join(child) for child in children]))


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _ATTRIBUTE.match(name) or name.startswith("on") or name in ("style", "srcdoc"):
        raise ValueError(f"{name!r} is no attribute of ours")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    if name in _ADDRESSES and not _OWN.match(str(value)):
        raise ValueError(f"{name} may only lead to this page's own origin")
    return f' {name}="{text(str(value))}"'


def document(title: str, body: Child, *, head: Child = None, **attributes: Attribute) -> str:
    """A whole page.

    Args:
        title: What the browser calls it.
        body: What is in it.
        head: What else the head holds: a style sheet, scripts, a policy.
        attributes: Of the `body` element.
    """
    top = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        head,
    )
    return f"<!doctype html>\n{tag('html', top, tag('body', body, **attributes), lang='en')}\n"


def page(title: str, body: Child, *, nav: Child = None, current: str | None = None, head: Child = None) -> str:
    """A page of the served viewer: a way past the head, the head, and what `body` says.

    Args:
        title: The page's own heading's words, for the browser's title.
        body: Inside of `main`; begins with an `h1`.
        nav: What else stands in the head, such as a link back to the run.
        current: The address of the page, to mark it in the head.
        head: What else the document's head holds.
    """
    places = (("/runs", "Runs"), ("/compare", "Compare"), ("/reruns", "Reruns"))
    links = [
        tag("a", name, href=address, aria_current="page" if address == current else None) for address, name in places
    ]
    top = [
        tag("link", rel="stylesheet", href="/static/viewer.css"),
        tag("link", rel="stylesheet", href="/static/differences.css"),
        tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        tag("script", src="/static/viewer.js", defer=True),
        head,
    ]
    shell = [
        tag("a", "Skip to content", href="#main", class_="skip"),
        tag(
            "header", tag("a", "sealtrace", href="/runs", class_="brand"), tag("nav", links, nav, aria_label="Site"),
            class_="top",
        ),
        tag("main", body, id="main", tabindex="-1"),
    ]  # fmt: skip
    return document(f"{title} · sealtrace", shell, head=top)
