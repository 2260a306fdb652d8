"""The browser tells of everything that hostile content could do: on a page that escapes nothing, it bites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .chromium import Browser
from .hostile import PAYLOADS
from .naive import Naive


@pytest.fixture(scope="module")
def naive() -> Iterator[Naive]:
    """A page that escapes nothing."""
    with Naive().running() as running:
        yield running


@pytest.mark.parametrize(
    ("content", "sign"),
    [
        ("<script>alert(1)</script>", "dialog: 1"),
        ("<script>window.pwned=1</script>", "script: it ran"),
        ("<script>document.title='pwned!'</script>", "script: it changed the title"),
        ("<script>console.error('x')</script>", "console: "),
        ("<script>nowhere()</script>", "console: "),
        ("<script>open('about:blank')</script>", "2 windows"),
        ("<script src=//evil.test/x.js></script>", "request: http://evil.test/x.js"),
        ("<img src=//evil.test/i.png>", "request: http://evil.test/i.png"),
        ("<img>", "element: <img>"),
        ("<a href=javascript:x>x</a>", "address: <a href=javascript:x>"),
        ("<a href=https://127.0.0.1/>x</a>", "address: <a href=https://127.0.0.1/>"),
        ("<p onclick=x>x</p>", "attribute: <p onclick=x>"),
        ("<p style=color:red>x</p>", "attribute: <p style=color:red>"),
        ("<b class=pwned>x</b>", "element: <b> of the content"),
        ("<meta http-equiv=refresh content=999>", "element: <meta http-equiv=refresh>"),
    ],
)
def test_each_sign_is_seen(window: Browser, naive: Naive, content: str, sign: str) -> None:
    """What hostile content can do is told, each by its own words; a plain page is told nothing of."""
    window.forget()
    naive.content = "plain"
    window.open(f"http://127.0.0.1:{naive.port}/")
    assert window.trouble() == []
    naive.content = content
    window.open(f"http://127.0.0.1:{naive.port}/")
    assert sign in "\n".join(window.until(window.trouble, "nothing was told"))
    for handle in window.driver.window_handles[1:]:
        window.driver.switch_to.window(handle)
        window.driver.close()
        window.driver.switch_to.window(window.driver.window_handles[0])


def test_the_corpus_bites(window: Browser, naive: Naive) -> None:
    """Nearly every payload that is markup does harm where it is not escaped: the corpus could fail a page."""
    window.forget()
    kinds = {"script", "event handler", "drawing", "markup", "style"}
    tried = [payload.text for payload in PAYLOADS if payload.kind in kinds and "<" in payload.text]
    harmless = []
    for text in tried:
        naive.content = text
        window.open(f"http://127.0.0.1:{naive.port}/")
        if not window.trouble():
            harmless.append(text)
    assert len(tried) >= 130
    assert len(harmless) <= len(tried) // 10, harmless
