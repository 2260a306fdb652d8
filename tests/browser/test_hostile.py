"""Hostile content on every page is text: nothing runs, nothing is asked for, nothing pops up, all of it can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sealtrace
from run.halves import write_otlp
from sealtrace.cli import app
from sealtrace.event import Kind, RunEvent
from sealtrace.replay.cause import Cause
from sealtrace.replay.kept import Shelf as Reports
from sealtrace.replay.report import Divergence, Fate, Mode, Outcome, Receipt, Report, Step, Surface
from sealtrace.run import Run
from sealtrace.telemetry import OTLPFileSpanExporter
from sealtrace.vault.stores import LocalStore

from .chromium import Browser
from .hostile import PAYLOADS
from .runs import Forged, hostile_desk, record
from .serving import Viewer, serving
from .visible import missing

SMALL = [payload.text for payload in PAYLOADS if payload.kind != "huge"]


class Den:
    """Hostile runs and a viewer on them.

    Attributes:
        vault: The vault's address.
        telemetry: The source's address.
        forged: A run with hostile names everywhere, as only who may write could make it.
        recorded: A run that the SDK took part in.
        viewer: The viewer.
    """

    def __init__(self, folder: Path) -> None:
        self.vault = (folder / "hostile").as_uri()
        self.telemetry = f"otlp+{(folder / 'hostile.jsonl').as_uri()}"
        self.forged = f"trace_{'f0' * 16}"
        self.recorded = record(hostile_desk, self.vault, OTLPFileSpanExporter(folder / "hostile.jsonl"))
        forged = Forged(SMALL, self.forged)
        forged.store(LocalStore(folder / "hostile"))
        spans = list(forged.spans())
        for number, text in enumerate(SMALL):
            other = Forged([text] * 8, f"trace_{number:032x}")
            spans += list(other.spans())[:3]
            if number % 6 == 0:
                other.store(LocalStore(folder / "hostile"))
        write_otlp(folder / "more.jsonl", spans)
        with (folder / "hostile.jsonl").open("a", encoding="utf-8") as out:
            out.write((folder / "more.jsonl").read_text(encoding="utf-8"))

    def load(self, run_id: str) -> Run:
        """A run, as anybody else would read it."""
        return sealtrace.load(run_id, vault=self.vault, telemetry=self.telemetry)


@pytest.fixture(scope="module")
def den(folder: Path) -> Den:
    """The runs."""
    return Den(folder)


@pytest.fixture(scope="module")
def den_viewer(den: Den, folder: Path) -> Iterator[Viewer]:
    """A viewer with both halves."""
    with serving(folder, den.vault, den.telemetry) as running:
        yield running


def test_there_are_enough() -> None:
    """At least two hundred different payloads, of every sort that is asked for."""
    assert len({payload.text for payload in PAYLOADS}) == len(PAYLOADS) >= 200
    assert len({payload.kind for payload in PAYLOADS}) >= 10


@pytest.mark.parametrize("which", ["forged", "recorded"])
def test_every_event_by_keyboard(browser: Browser, den: Den, den_viewer: Viewer, which: str) -> None:
    """Walking through a hostile run with j, each event's payload is there to be read, and nothing else happens."""
    run = den.load(getattr(den, which))
    browser.open(den_viewer.run(run.id))
    shown: set[int] = set()
    unseen: dict[int, list[str]] = {}
    while len(shown) < len(run.events):
        seq, text = browser.until(lambda: _moved_on(browser, shown), f"j does not lead on from {len(shown)}")
        shown.add(seq)
        if lost := missing(_shown_of(run.event(seq)), text):
            unseen[seq] = lost
        strange = browser.trouble() if len(shown) % 25 == 1 else browser.strange("#open")
        assert strange == [], f"at event {seq}"
        browser.press("j")
    assert unseen == {}


def _shown_of(event: RunEvent) -> Any:
    """An event's payload, of a conversation what was new in it: a page folds away the rest."""
    new = event.digests.get("input_new")
    if not isinstance(event.payload, dict) or not new:
        return event.payload
    request = event.payload["request"]
    return {**event.payload, "request": {**request, "input": request["input"][-len(new) :]}}


def _moved_on(browser: Browser, shown: set[int]) -> tuple[int, str] | None:
    seq, text = browser.script(_OPENED)
    return (int(seq), text) if seq is not None and int(seq) not in shown else None


_OPENED = """
const panel = document.querySelector("#panel[data-seq]");
return panel ? [panel.dataset.seq, panel.textContent] : [null, ""];
"""


def test_as_json_and_narrowed_down(browser: Browser, den: Den, den_viewer: Viewer) -> None:
    """The JSON view of an event, and the run's lines narrowed down to a hostile word, are text as well."""
    run = den.load(den.forged)
    for event in run.events[:: max(1, len(run.events) // 40)]:
        browser.open(f"{den_viewer.run(run.id, event.seq)}&view=json")
        text = browser.script("return document.querySelector('#panel').textContent")
        assert missing(event.payload, text) == []
        assert browser.trouble() == []
    browser.open(den_viewer.run(run.id))
    for word in SMALL[:: max(1, len(SMALL) // 20)]:
        field = browser.one("#find")
        browser.script("arguments[0].value = arguments[1]; arguments[0].form.submit()", field, word)
        browser.until(lambda: browser.script("return document.readyState === 'complete'"), "it does not load")
        assert browser.trouble() == []


@pytest.mark.parametrize("half", ["telemetry", "vault"])
def test_the_list_of_runs(browser: Browser, den: Den, folder: Path, half: str) -> None:
    """Names of runs, agents and tools in the list are text, whichever half they come from."""
    places = (None, den.telemetry) if half == "telemetry" else (den.vault, None)
    with serving(folder, *places) as viewer:
        browser.open(f"{viewer.url}/runs?limit=1000")
        rows = browser.all("tbody tr")
        assert len(rows) >= len(SMALL) // 6
        text = browser.script("return document.body.textContent")
        found = [word for word in SMALL if not missing(word[:60], text)]
        assert len(found) >= len(rows) // 2
        assert browser.trouble() == []


@pytest.mark.parametrize("half", ["telemetry", "vault"])
def test_either_half_alone(browser: Browser, den: Den, folder: Path, half: str) -> None:
    """A hostile run opens from its spans alone and from its payloads alone."""
    places = (None, den.telemetry) if half == "telemetry" else (den.vault, None)
    with serving(folder, *places) as viewer:
        for run_id in (den.forged, den.recorded):
            browser.open(viewer.run(run_id))
            browser.one("#panel")
            assert browser.trouble() == []


def test_compared(browser: Browser, den: Den, den_viewer: Viewer, folder: Path) -> None:
    """Two hostile runs compared are text, in the viewer and in the file."""
    browser.open(f"{den_viewer.url}/compare?a={den.forged}&b={den.recorded}")
    assert "DIFFERENT" in browser.text
    assert browser.trouble() == []
    out = folder / "diff.html"
    _sealtrace("diff", den.forged, den.recorded, den, "--html", str(out))
    browser.open(out.as_uri())
    assert "DIFFERENT" in browser.text
    assert browser.trouble() == []


def test_a_report_of_a_rerun(browser: Browser, den: Den, folder: Path) -> None:
    """A kept report with something hostile in each of its fields is text, on the page and in the list."""
    steps = tuple(
        Step(text, seq, Kind.TOOL_CALL, Fate.UNUSED if seq else Fate.DIVERGED, text, text, text)
        for seq, text in enumerate(SMALL)
    )
    same, other = {text: text for text in SMALL}, dict.fromkeys(SMALL, "x")
    for number, text in enumerate(SMALL[:: len(SMALL) // 12]):
        report = Report(
            run_id=den.forged, mode=Mode.RERUN, outcome=Outcome.DIVERGED, later=3, matched=2, total=len(SMALL),
            by_kind=2,
            receipt=Receipt({text: Surface(4, 3, 2, 1, 1)}, {text: 2}, {text: 3}), ignored={text: 1}, reason=text,
            notes=tuple(SMALL), steps=steps[number:], divergence=Divergence(
                Cause.CONFIG, Kind.TOOL_CALL, text, text, 1, text, 0, text, text, f"$.{text}", same, other
            ),
        )  # fmt: skip
        name = Reports(folder / "hostile-reports", days=7).keep(report)
    with serving(folder, den.vault, env={"SEALTRACE_REPORTS": str(folder / "hostile-reports")}) as viewer:
        browser.open(f"{viewer.url}/reruns")
        links = [str(link.get_attribute("href")) for link in browser.all("td a")]
        assert len(links) >= 12
        assert any(link.endswith(name) for link in links)
        for link in links:
            browser.open(link)
            text = browser.script("return document.body.textContent")
            assert missing([same, SMALL], text) == []
            assert browser.trouble() == []


@pytest.mark.parametrize("which", ["forged", "recorded"])
def test_exported(browser: Browser, den: Den, folder: Path, which: str) -> None:
    """The exported file of a hostile run is text, is one file, and asks for nothing."""
    run = den.load(getattr(den, which))
    out = folder / f"{which}.html"
    _sealtrace("export", run.id, den, "--html", str(out))
    browser.open(out.as_uri())
    text = browser.script("return document.body.textContent")
    payloads = [event.payload for event in run.events]
    assert missing(payloads, text) == []
    assert browser.trouble() == []


def _sealtrace(command: str, *arguments: Any) -> None:
    words = [command]
    for argument in arguments:
        words += (
            ["--vault", argument.vault, "--telemetry", argument.telemetry] if isinstance(argument, Den) else [argument]
        )
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.dumps(done.output).isascii()
