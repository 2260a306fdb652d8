"""A reader's way through a run, from the link in Jaeger to the last event, with the keyboard."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from selenium.webdriver.common.keys import Keys
from typer.testing import CliRunner

import sealtrace
from sealtrace.cli import app
from sealtrace.cli._demo_agent import run_support_desk
from sealtrace.event import Kind
from sealtrace.run import Run
from services.servers import CONFIG, Jaeger, binary

from .bucket import Bucket
from .chromium import Browser, browsing
from .runs import Shelf, record
from .serving import Viewer, serving
from .visible import missing


@pytest.fixture(scope="module")
def run(shelved: Shelf) -> Run:
    """The whole run, as the library reads it."""
    return sealtrace.load(shelved.whole, vault=shelved.vault, telemetry=shelved.telemetry)


def opened(browser: Browser) -> int:
    """The number of the event that is open."""
    return int(browser.until(lambda: browser.script(_OPENED), "no event is open"))


_OPENED = "return document.querySelector('#panel[data-seq]')?.dataset.seq"


def goes_to(browser: Browser, seq: int) -> None:
    """An event opens."""
    browser.until(lambda: opened(browser) == seq, f"event {seq} did not open")


def event_of(run: Run, kind: Kind, number: int = 0) -> int:
    """Number of the run's how-manieth event of a kind."""
    return [event.seq for event in run.events if event.kind is kind][number]


# from Jaeger


@pytest.fixture(scope="module")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """A Jaeger of this module's own."""
    binary("jaeger")
    with Jaeger(tmp_path_factory.mktemp("jaeger")).run() as running:
        yield running


@pytest.fixture(scope="module")
def traced(jaeger: Jaeger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Viewer, list[dict[str, Any]]]]:
    """A viewer with Jaeger behind it, and the attributes of each of a run's spans as Jaeger gives them."""
    folder = tmp_path_factory.mktemp("traced")
    vault = (folder / "vault").as_uri()
    with serving(folder, vault, jaeger.url) as viewer:
        exporter = OTLPSpanExporter(f"http://{jaeger.otlp_http}/v1/traces")
        run_id = record(run_support_desk, vault, exporter, replay_url=viewer.url)
        trace = sealtrace.load(run_id, vault=vault).trace_id
        with urllib.request.urlopen(f"http://{jaeger.http}/api/v3/traces/{trace}", timeout=20) as answer:
            found = json.load(answer)
        spans = [
            {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]} | {"trace": trace}
            for resource in found["result"]["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
        yield viewer, [span for span in spans if span.get("sealtrace.span.kind") != "seal"]


def test_the_link_in_jaeger_opens_the_run(browser: Browser, traced: tuple[Viewer, list[dict[str, Any]]]) -> None:
    """A run's root span in Jaeger bears the run's address, and there the run opens, joined from both halves."""
    viewer, spans = traced
    (link,) = [span["sealtrace.replay.url"] for span in spans if "sealtrace.replay.url" in span]
    assert link.startswith(f"{viewer.url}/runs/")
    browser.open(link)
    assert "complete" in browser.one(".run-head").text
    assert "joined" in browser.one("#panel").text
    assert browser.trouble() == []


def test_the_shipped_link_patterns_lead_there(browser: Browser, traced: tuple[Viewer, list[dict[str, Any]]]) -> None:
    """What `collector-config/jaeger/config-ui.json` makes of a span's tags opens the run, the event, the trace."""
    viewer, spans = traced
    patterns = json.loads((CONFIG / "jaeger/config-ui.json").read_text(encoding="utf-8"))["linkPatterns"]
    assert len(patterns) == 3
    assert len(spans) >= 15
    for pattern in patterns:
        for span in (span for span in spans if pattern.get("key", "trace") in span):
            values = {**span, "traceID": span["trace"]}
            link = re.sub(r"#\{([^}]+)\}", lambda match, of=values: str(of[match[1]]), pattern["url"])
            browser.open(link.replace("http://127.0.0.1:8765", viewer.url))
            seq = opened(browser)
            assert browser.path.startswith(f"/runs/{span['sealtrace.run.id']}")
            if "event=" in link:
                assert seq == int(span["sealtrace.seq"])
    assert browser.trouble() == []


# through the run


def test_every_event_by_keyboard(browser: Browser, viewer: Viewer, run: Run) -> None:
    """From the list, Enter opens the run; j goes to each event once, k all the way back, and the address follows."""
    browser.open(f"{viewer.url}/runs")
    for _ in range(20):
        browser.press("j")
        if run.id in browser.driver.switch_to.active_element.text:
            break
    browser.enter()
    order = [opened(browser)]
    while len(order) < len(run.events):
        browser.press("j")
        browser.until(lambda: opened(browser) != order[-1], f"j does not lead on from {order[-1]}")
        order.append(opened(browser))
        browser.until(lambda: f"event={order[-1]}" in browser.path, "the address does not follow")
        text = browser.script("return document.querySelector('#panel').textContent")
        assert missing(_told(run.event(order[-1]).payload), text) == []
    assert sorted(order) == [event.seq for event in run.events]
    browser.press("j")
    for seq in reversed(order[:-1]):
        browser.press("k")
        goes_to(browser, seq)
    browser.press("k")
    assert opened(browser) == order[0]


def _told(payload: Any) -> Any:
    """What of a payload is content: not the settings and schemas, which are folded into figures."""
    found = payload if isinstance(payload, dict) else {}
    request, response = found.get("request"), found.get("response")
    if isinstance(request, dict) and isinstance(response, dict):
        return [_said(item) for item in [*request["input"], *response["output"]]]
    return [found.get(name) for name in ("arguments", "result", "final_output", "from", "to")]


def _said(item: dict[str, Any]) -> Any:
    content = item.get("content")
    if isinstance(content, list):
        return [part.get("text") for part in content]
    return content or item.get("arguments") or item.get("output")


def test_keys_pressed_fast_are_not_lost(browser: Browser, viewer: Viewer, run: Run) -> None:
    """Two presses while the first event is still on its way go two events on, and back again."""
    browser.open(viewer.run(run.id, 0))
    browser.press("jj")
    goes_to(browser, 2)
    browser.press("kk")
    goes_to(browser, 0)


def test_a_deep_link_opens_its_event(browser: Browser, viewer: Viewer, run: Run) -> None:
    """An address with `?event=` opens that event, in the list as in the panel, and after a reload still does."""
    for event in run.events:
        browser.open(viewer.run(run.id, event.seq))
        assert opened(browser) == event.seq
        (here,) = browser.all(".line.here")
        assert here.find_elements("css selector", f'a[data-seq="{event.seq}"]')
    browser.press("k")
    before = browser.until(lambda: seq if (seq := opened(browser)) != run.events[-1].seq else None, "k does nothing")
    browser.driver.refresh()
    assert opened(browser) == before


def test_where_a_result_came_from_and_back(browser: Browser, viewer: Viewer, run: Run) -> None:
    """A tool result quoted in a request leads to the event that made it, and that leads back; so does the browser."""
    generation = next(
        event.seq
        for event in run.events
        if event.kind is Kind.GENERATION
        and any(str(item.get("type", "")).endswith("_output") for item in event.payload["request"]["input"])
    )
    browser.open(viewer.run(run.id, generation))
    ties = [tie for tie in browser.all("#panel .tie") if tie.text.startswith("came from")]
    assert ties
    source = int(ties[0].get_attribute("data-seq") or "")
    browser.script("arguments[0].focus()", ties[0])
    browser.enter()
    goes_to(browser, source)
    assert run.event(source).kind in (Kind.TOOL_RESULT, Kind.HANDOFF)
    back = next(tie for tie in browser.all("#panel .tie") if tie.text.startswith("told to the model"))
    assert back.get_attribute("data-seq") == str(generation)
    back.click()
    goes_to(browser, generation)
    browser.back()
    goes_to(browser, source)
    browser.back()
    goes_to(browser, generation)


def test_every_quoted_result_says_where_it_came_from(browser: Browser, viewer: Viewer, run: Run) -> None:
    """However late a request quotes a result, the link beside it leads to the event that made it."""
    made = {event.call_id: event.seq for event in run.events if event.kind in (Kind.TOOL_RESULT, Kind.HANDOFF)}
    quoted = 0
    for event in run.events:
        if event.kind is Kind.GENERATION:
            given = event.payload["request"]["input"]
            wanted = [made[item["call_id"]] for item in given if str(item.get("type", "")).endswith("_output")]
            browser.open(f"{viewer.run(run.id, event.seq)}&view=whole")
            browser.script("for (const fold of document.querySelectorAll('details')) fold.open = true")
            ties = [tie for tie in browser.all("#panel .tie") if tie.text.startswith("came from")]
            assert [int(str(tie.get_attribute("data-seq"))) for tie in ties] == wanted
            quoted += len(wanted)
    assert quoted >= 8


def test_call_and_result_side_by_side(browser: Browser, viewer: Viewer, run: Run) -> None:
    """A tool's arguments and its result stand beside each other, whichever of the two events is open."""
    for kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT):
        seq = next(event.seq for event in run.events if event.kind is kind and event.call_id == "call_order")
        browser.open(viewer.run(run.id, seq))
        text = browser.one("#panel").text
        assert "R-2048" in text
        assert "Aurora 3" in text
        assert "<EMAIL" in text


def test_narrowing_down(browser: Browser, viewer: Viewer, run: Run) -> None:
    """/ goes to the field; a tool's name leaves its lines, no such word leaves none, `all` brings back the rest."""
    browser.open(viewer.run(run.id))
    every = len(browser.all(".line"))
    browser.press("/")
    assert browser.driver.switch_to.active_element.get_attribute("id") == "find"
    browser.type("find_order")
    browser.enter()
    browser.until(lambda: len(browser.all(".line")) < every, "nothing was narrowed down")
    lines = browser.all(".line")
    assert lines
    assert all("find_order" in line.text for line in lines)
    assert "q=find_order" in browser.path
    browser.open(f"{viewer.run(run.id)}?q=no+such+word")
    assert browser.all(".line") == []
    assert "No line" in browser.text
    browser.open(f"{viewer.run(run.id)}?q=find_order")
    next(link for link in browser.all("a") if link.text == "all").click()
    browser.until(lambda: len(browser.all(".line")) == every, "the rest did not come back")


def test_keys_are_explained(browser: Browser, viewer: Viewer, run: Run) -> None:
    """? shows the keys, Escape closes them; while they are shown and while one types, the keys do nothing else."""
    browser.open(viewer.run(run.id, 3))
    browser.press("?")
    browser.until(lambda: browser.one("#keys").is_displayed(), "? shows nothing")
    assert "narrow down" in browser.one("#keys").text
    browser.press("j")
    assert opened(browser) == 3
    browser.escape()
    browser.until(lambda: not browser.one("#keys").is_displayed(), "Escape does not close it")
    browser.press("/")
    browser.type("jjk?")
    assert browser.one("#find").get_attribute("value") == "jjk?"
    assert opened(browser) == 3
    assert not browser.one("#keys").is_displayed()


def test_enter_goes_into_the_event(browser: Browser, viewer: Viewer, run: Run) -> None:
    """Enter moves the focus into the panel, where Tab goes on."""
    browser.open(viewer.run(run.id, 3))
    browser.press("j")
    browser.until(lambda: opened(browser) != 3, "j does nothing")
    browser.enter()
    browser.until(
        lambda: browser.script("return document.querySelector('#panel').contains(document.activeElement)"),
        "Enter does not go into the event",
    )


def test_copy_as_json(browser: Browser, viewer: Viewer, run: Run) -> None:
    """The event on the clipboard is the event that the library reads."""
    permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": permissions, "origin": viewer.url})
    seq = event_of(run, Kind.TOOL_RESULT)
    browser.open(viewer.run(run.id, seq))
    browser.one("button.copy").click()
    read = "const done = arguments[0]; navigator.clipboard.readText().then(done, () => done(''));"
    copied = browser.until(lambda: browser.driver.execute_async_script(read), "nothing is on the clipboard")
    assert json.loads(copied)["payload"] == run.event(seq).payload


# runs that are not whole


def test_an_expired_run_opens(browser: Browser, viewer: Viewer, shelved: Shelf) -> None:
    """Payloads past their time are said to be; times, names and ties are still there, and every event opens."""
    browser.open(viewer.run(shelved.expired))
    assert "metadata only" in browser.one(".run-head").text
    _walk(browser, 11, lambda text: "payload expired" in text and "past its retention" in text)


def test_a_partial_run_opens(browser: Browser, viewer: Viewer, shelved: Shelf) -> None:
    """A record without its end says so, shows what it has, and says of each event what is missing."""
    browser.open(viewer.run(shelved.partial))
    assert "partial" in browser.one(".run-head").text
    assert "no manifest" in browser.one(".findings").text
    texts = _walk(browser, 14, lambda text: "partial record" in text or "payload missing" in text)
    assert any("partial record" in text for text in texts)


def test_a_run_of_spans_alone_opens(browser: Browser, viewer: Viewer, shelved: Shelf) -> None:
    """A run whose payloads were never stored opens from its spans."""
    browser.open(viewer.run(shelved.spans_only))
    assert "spans only" in browser.one(".run-head").text
    _walk(browser, 8, lambda text: "payload missing" in text)


def test_a_denied_run_opens(browser: Browser, shelved: Shelf, folder: Path) -> None:
    """To who may read the metadata alone, each payload is said to be denied, and nothing of one is shown."""
    with Bucket().running() as bucket:
        bucket.fill(folder / "vault")
        env = bucket.reader("meta")
        with serving(folder, bucket.vault, shelved.telemetry, env=env) as viewer:
            browser.open(viewer.run(shelved.whole))
            texts = _walk(browser, 15, lambda text: "denied" in text and "credentials may not read" in text)
            assert not any("Aurora 3" in text for text in texts)
            assert browser.trouble() == []


def _walk(browser: Browser, events: int, fits: Any) -> list[str]:
    texts: dict[int, str] = {}
    while True:
        seq = opened(browser)
        texts[seq] = browser.one("#panel").text
        assert fits(texts[seq]), f"event {seq}: {texts[seq]}"
        if len(texts) == events:
            return list(texts.values())
        browser.press("j")
        browser.until(lambda before=seq: opened(browser) != before, f"no event after {seq}")


# a reason, and a token


def test_a_reason_is_asked_for_and_kept(browser: Browser, shelved: Shelf, folder: Path) -> None:
    """Where payloads are read for a reason only, the page asks for it first, and the vault keeps what was said."""
    env = {"SEALTRACE_READ_REASON_REQUIRED": "1", "SEALTRACE_READ_AUDIT": "1"}
    with serving(folder, shelved.vault, shelved.telemetry, env=env) as viewer:
        run = sealtrace.load(shelved.again, vault=shelved.vault)
        seq = next(
            event.seq for event in run.events if event.kind is Kind.TOOL_RESULT and event.call_id == "call_order"
        )
        browser.open(viewer.run(run.id, seq))
        assert "Aurora 3" not in browser.text
        assert len(browser.all("input[name=reason]")) == 1
        browser.script("document.querySelector('input[name=reason]').focus()")
        browser.type("ticket 4711")
        browser.enter()
        browser.until(lambda: "Aurora 3" in browser.text, "the payload is not shown")
        assert opened(browser) == seq
        found = CliRunner().invoke(app, ["vault", "audit", "--vault", shelved.vault, "--json"])
        assert "ticket 4711" in found.output
        assert browser.trouble() == []


def test_a_token_is_asked_for(browser: Browser, shelved: Shelf, folder: Path) -> None:
    """With a token set, nothing is shown before it is given; then everything is, to this browser only."""
    token = "a-token-that-is-long-enough"
    with serving(folder, shelved.vault, shelved.telemetry, env={"SEALTRACE_VIEWER_TOKEN": token}) as viewer:
        browser.open(viewer.run(shelved.whole))
        assert shelved.whole not in browser.text
        assert browser.trouble(status=401) == []
        browser.script("document.querySelector('input[name=token]').focus()")
        browser.type(token)
        browser.enter()
        browser.one("#panel")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(viewer.run(shelved.whole), timeout=20)
        assert refused.value.code == 401
        refused.value.close()


# elsewhere


def test_the_export_is_the_same_run(browser: Browser, shelved: Shelf, run: Run, folder: Path) -> None:
    """The exported file holds every event's content, opens from disk, and asks for nothing."""
    out = folder / "export.html"
    places = ["--vault", shelved.vault, "--telemetry", shelved.telemetry]
    done = CliRunner().invoke(app, ["export", run.id, *places, "--html", str(out)])
    assert done.exit_code == 0, done.output
    browser.open(out.as_uri())
    text = browser.script("return document.body.textContent")
    assert run.id in text
    assert missing([_told(event.payload) for event in run.events], text) == []
    assert browser.listen() == []
    assert browser.trouble() == []


def test_the_viewer_gives_the_file(browser: Browser, viewer: Viewer, run: Run, tmp_path: Path) -> None:
    """The page's own link to the file gives the same, to keep."""
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    browser.open(viewer.run(run.id))
    next(link for link in browser.all("a") if link.text == "as one HTML file").click()
    kept = browser.until(lambda: next(tmp_path.glob("*.html"), None), "no file came")
    assert browser.path == f"/runs/{run.id}"
    browser.open(kept.as_uri())
    text = browser.script("return document.body.textContent")
    assert missing([_told(event.payload) for event in run.events], text) == []
    assert browser.trouble() == []


def test_two_runs_compared(browser: Browser, viewer: Viewer, shelved: Shelf) -> None:
    """From a run's page another is chosen to compare with; the page tells what differs and leads back to events."""
    browser.open(viewer.run(shelved.whole))
    next(link for link in browser.all("a") if link.text == "with another run").click()
    field = browser.one("input[name=b]")
    browser.script("arguments[0].focus()", field)
    browser.type(shelved.again)
    browser.enter()
    browser.until(lambda: "SAME" in browser.text or "DIFFERENT" in browser.text, "nothing was compared")
    assert "SAME" in browser.text


def test_reading_needs_no_script(shelved: Shelf, viewer: Viewer, run: Run, tmp_path: Path) -> None:
    """With JavaScript off, the list leads to the run and every line's link to its event, with the payload in it."""
    with browsing(tmp_path / "profile", javascript=False) as browser:
        browser.open(f"{viewer.url}/runs")
        next(link for link in browser.all("a.go") if run.id in link.text).click()
        for event in run.events[:6]:
            browser.one(f'.rail a[data-seq="{event.seq}"]').send_keys(Keys.ENTER)
            browser.until(lambda seq=event.seq: opened(browser) == seq, f"event {event.seq} does not open")
            assert (
                missing(_told(event.payload), browser.driver.page_source.replace("&quot;", '"')) == [] or event.payload
            )
