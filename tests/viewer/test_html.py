"""Markup is made in one place, and text cannot become any."""

from __future__ import annotations

import pytest

from sealtrace.viewer.html import Html, document, join, page, tag
from viewer.inert import EVIL, Page


def test_text_stays_text() -> None:
    """Text in an element and in an attribute comes out of a parser as it went in, but for what is invisible."""
    found = Page(document("t", tag("p", EVIL, title=EVIL)))
    (paragraph,) = found.of("p")
    assert "<script>alert(1)</script>" in found.text
    assert "<script>alert(1)</script>" in paragraph["title"]
    for invisible in ("\x1b", "\u202e", "\ud800", "\x00", "\x07"):
        assert invisible not in found.text
        assert invisible not in paragraph["title"]
    assert "⟨U+202E⟩" in found.text


def test_only_markup_of_ours_goes_in_as_it_is() -> None:
    """`Html` is not escaped, a plain string with the same letters is, and what is None or False leaves nothing."""
    inner = tag("b", "x")
    assert tag("p", inner) == "<p><b>x</b></p>"
    assert tag("p", "<b>x</b>") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert join([None, False, 0, 1.5, ["a", [Html("<i>")]]]) == "01.5a<i>"


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "https://evil.test/",
        "//evil.test/",
        "/\\evil.test/",
        "/\t/evil.test/",
        "/\n/evil.test",
        " /runs",
        "data:text/html,x",
        "runs",
        "",
    ],
)
@pytest.mark.parametrize("name", ["href", "src", "action", "formaction"])
def test_no_address_leads_elsewhere(name: str, address: str) -> None:
    """An address that is not this origin's own cannot be written."""
    with pytest.raises(ValueError, match="own origin"):
        tag("a", "x", **{name: address})


@pytest.mark.parametrize("name", ["onclick", "onload", "style", "srcdoc", "a b", 'x"', "x>", ""])
def test_no_attribute_acts(name: str) -> None:
    """An attribute with script or style in it, or a name that is none, cannot be written."""
    with pytest.raises(ValueError, match="attribute"):
        tag("a", "x", **{name: "1"})


@pytest.mark.parametrize("name", ["a b", "a>", "", "!--", "a/"])
def test_no_element_of_another_name(name: str) -> None:
    """The name of an element is a name."""
    with pytest.raises(ValueError, match="no element"):
        tag(name, "x")


def test_attributes_as_they_are_written() -> None:
    """`class_` and `aria_label` become their HTML names; True has no value; None and False are left out."""
    found = tag("input", class_="x", aria_label="y", hidden=True, checked=False, value=None, maxlength=3)
    assert found == '<input class="x" aria-label="y" hidden maxlength="3">'


def test_a_page_has_its_landmarks() -> None:
    """A page has a way past the head, one main part, a language, and marks where one is."""
    found = Page(page("Runs", tag("h1", "Runs"), current="/runs"))
    assert next(element["href"] for element in found.of("a")) == "#main"
    assert [element["id"] for element in found.of("main")] == ["main"]
    assert found.of("html")[0]["lang"] == "en"
    assert [link["href"] for link in found.of("a") if link.get("aria-current")] == ["/runs"]
