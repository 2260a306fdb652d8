"""The main pages as axe-core judges them, in light and in dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sealtrace.cli import app

from .chromium import Browser, axe, browsing
from .runs import Shelf
from .serving import Viewer

_GRAVE = ("serious", "critical")

_RUN = """
const done = arguments[0];
axe.run(document, { resultTypes: ["violations"] }).then(
  (found) => done(found.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map((n) => n.html) }))),
  (error) => done(String(error)),
);
"""

_PAGES: dict[str, Callable[[Shelf], str]] = {
    "list": lambda shelf: "/runs",
    "empty list": lambda shelf: "/runs?agent=nobody",
    "model call": lambda shelf: f"/runs/{shelf.whole}?event=2",
    "tool": lambda shelf: f"/runs/{shelf.whole}?event=6",
    "json": lambda shelf: f"/runs/{shelf.whole}?event=2&view=json",
    "narrowed down": lambda shelf: f"/runs/{shelf.whole}?q=find_order",
    "expired": lambda shelf: f"/runs/{shelf.expired}",
    "partial": lambda shelf: f"/runs/{shelf.partial}",
    "spans only": lambda shelf: f"/runs/{shelf.spans_only}",
    "compare form": lambda shelf: "/compare",
    "same": lambda shelf: f"/compare?a={shelf.whole}&b={shelf.again}",
    "different": lambda shelf: f"/compare?a={shelf.whole}&b={shelf.partial}",
    "changed": lambda shelf: f"/compare?a={shelf.whole}&b={shelf.changed}",
    "not found": lambda shelf: f"/runs/trace_{'0' * 32}",
    "reruns": lambda shelf: "/reruns",
    "diverged": lambda shelf: f"/reruns/{shelf.diverged}",
    "rerun as recorded": lambda shelf: f"/reruns/{shelf.same}",
}


@pytest.fixture(scope="module", params=["light", "dark"])
def tinted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that prefers this scheme."""
    axe()
    with browsing(tmp_path_factory.mktemp("profile"), dark=request.param == "dark") as browser:
        yield browser


def grave(browser: Browser) -> list[dict[str, Any]]:
    """Serious and critical findings on the page that is open."""
    browser.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe()})  # past the page's own policy
    found = browser.driver.execute_async_script(_RUN)
    assert isinstance(found, list), found
    return [item for item in found if item["impact"] in _GRAVE]


@pytest.mark.parametrize("name", sorted(_PAGES))
def test_pages(tinted: Browser, viewer: Viewer, shelved: Shelf, name: str) -> None:
    """No serious and no critical finding on a page, with everything folded open."""
    tinted.open(viewer.url + _PAGES[name](shelved))
    assert grave(tinted) == []
    tinted.script("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert grave(tinted) == []


def test_the_list_of_keys(tinted: Browser, viewer: Viewer, shelved: Shelf) -> None:
    """Nor in the dialog that explains the keys."""
    tinted.open(viewer.run(shelved.whole))
    tinted.press("?")
    tinted.until(lambda: tinted.one("#keys").is_displayed(), "? shows nothing")
    assert grave(tinted) == []


def test_the_export(tinted: Browser, shelved: Shelf, tmp_path: Path) -> None:
    """Nor in the exported file."""
    out = tmp_path / "export.html"
    places = ["--vault", shelved.vault, "--telemetry", shelved.telemetry]
    done = CliRunner().invoke(app, ["export", shelved.whole, *places, "--html", str(out)])
    assert done.exit_code == 0, done.output
    tinted.open(out.as_uri())
    assert grave(tinted) == []


def test_axe_finds_what_is_wrong(tinted: Browser, viewer: Viewer) -> None:
    """A picture without words and text that cannot be told from its ground are found: the check could fail."""
    tinted.open(f"{viewer.url}/runs")
    tinted.script("document.querySelector('h1').appendChild(document.createElement('img'))")
    tinted.script("const p = document.querySelector('h1'); p.style.color = '#777'; p.style.background = '#888'")
    assert {"image-alt", "color-contrast"} <= {item["id"] for item in grave(tinted)}


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows(tinted: Browser, viewer: Viewer, shelved: Shelf, width: int) -> None:
    """On a small screen nothing sticks out of the page sideways."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    tinted.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for page in ("list", "model call", "tool", "different", "reruns", "diverged"):
            tinted.open(viewer.url + _PAGES[page](shelved))
            over = tinted.script(
                "const { scrollWidth, clientWidth } = document.documentElement; return scrollWidth - clientWidth"
            )
            assert over <= 0, page
    finally:
        tinted.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
