"""A run of ten thousand events opens, and an event of it costs one ranged read of the bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from run.halves import write_otlp
from sealtrace.vault.stores import LocalStore

from .bucket import Bucket
from .chromium import Browser
from .runs import Long
from .serving import Viewer, serving

COUNT = 10_000
_OPENED = "return Number(document.querySelector('#panel[data-seq]')?.dataset.seq ?? -1)"
_HERE = """
const line = document.querySelector(".line.here"), rail = document.querySelector(".rail");
if (!line) return false;
const [a, b] = [line.getBoundingClientRect(), rail.getBoundingClientRect()];
return a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
"""


@pytest.fixture(scope="module")
def run() -> Long:
    """The run."""
    return Long(COUNT)


@pytest.fixture(scope="module")
def bucket(run: Long, folder: Path) -> Iterator[Bucket]:
    """A bucket with the run in it."""
    run.store(LocalStore(folder / "long"))
    with Bucket().running() as running:
        running.fill(folder / "long")
        running.asked.clear()
        yield running


@pytest.fixture(scope="module", params=["with spans", "without"])
def long_viewer(request: pytest.FixtureRequest, run: Long, bucket: Bucket, folder: Path) -> Iterator[Viewer]:
    """A viewer of the bucket, with and without a telemetry source beside it."""
    telemetry = write_otlp(folder / "long.jsonl", list(run.spans())) if request.param == "with spans" else None
    with serving(folder, bucket.vault, telemetry, env=bucket.environment("owner", "owner")) as viewer:
        yield viewer


def opened(browser: Browser, seq: int) -> None:
    """An event is open, and its line is in sight."""
    browser.until(lambda: browser.script(_OPENED) == seq and browser.script(_HERE), f"event {seq} is not in sight")


def ranged(bucket: Bucket) -> int:
    """Ranged reads of payloads since this was asked last; none may be read whole. To try a class takes one byte."""
    asked, bucket.asked[:] = list(bucket.asked), []
    payloads = [item for item in asked if "/content/" in item[1] or "/io/" in item[1]]
    assert [item for item in payloads if item[0] != "GET" or not item[2]] == []
    return sum(item[2] != "bytes=0-0" for item in payloads)


def test_it_opens_at_any_event(browser: Browser, run: Long, bucket: Bucket, long_viewer: Viewer) -> None:
    """The first page and a deep link each show their event and its line, and read the one payload and no other."""
    ranged(bucket)
    browser.open(long_viewer.run(run.run_id))
    opened(browser, 0)
    assert ranged(bucket) <= 1
    for seq in (COUNT - 2, COUNT // 2, 3_333):
        browser.open(long_viewer.run(run.run_id, seq))
        opened(browser, seq)
        assert ranged(bucket) == 1
    assert len(browser.all(".line")) < 1_500
    assert browser.trouble() == []


def test_keys_go_on_where_the_lines_sent_end(browser: Browser, run: Long, bucket: Bucket, long_viewer: Viewer) -> None:
    """Past the edge of the lines that came with the page j and k fetch the others, and the line is in sight."""
    browser.open(long_viewer.run(run.run_id, 5_000))
    opened(browser, 5_000)
    sent = [int(str(link.get_attribute("data-seq"))) for link in browser.all(".lines a.go")]
    for key, edge, step in (("j", max(sent), 1), ("k", min(sent), -1)):
        browser.open(long_viewer.run(run.run_id, edge))
        opened(browser, edge)
        for away in (1, 2, 3):
            browser.press(key)
            opened(browser, edge + away * step)
    assert browser.trouble() == []


def test_scrolling_brings_the_lines(browser: Browser, run: Long, long_viewer: Viewer) -> None:
    """Lines that did not come with the page come when they are scrolled to."""
    browser.open(long_viewer.run(run.run_id))
    opened(browser, 0)
    far = "document.querySelector('.lines a.go[data-seq=\"9000\"]')"
    assert browser.script(f"return {far} === null")
    browser.script("const rail = document.querySelector('.rail'); rail.scrollTop = rail.scrollHeight * 0.9")
    browser.until(lambda: len(browser.all(".lines")) > 1, "nothing was fetched")
    assert browser.trouble() == []


def test_a_word_is_found_anywhere(browser: Browser, run: Long, long_viewer: Viewer) -> None:
    """Narrowing down searches all lines, also those that did not come with the page."""
    browser.open(f"{long_viewer.run(run.run_id)}?q=%239876")
    opened(browser, 9_876)
    assert len(browser.all(".line")) <= 3
    assert browser.trouble() == []
