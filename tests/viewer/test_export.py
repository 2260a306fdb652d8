"""A run as one file."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys

import pytest
from starlette.testclient import TestClient

from browser.hostile import PAYLOADS
from replay.handmade import Conversation, loaded, refund, run_of
from replay.world import KEY, RUN_ID, record, support
from sealtrace.cli import run as sealtrace
from sealtrace.errors import SettingsError
from sealtrace.event import Kind
from sealtrace.run import Run, load
from sealtrace.run.findings import NO_PAYLOAD, Finding
from sealtrace.settings import Settings
from sealtrace.vault import audit_lines, open_store
from sealtrace.viewer.app import create_app
from sealtrace.viewer.exported import run_file
from viewer.inert import EVIL, Page, assert_stands_alone

ELEMENTS = {"a", "footer", "article", "small", "svg", "rect", "kbd", "dialog"}
ATTRIBUTES = {"href", "data-seq", "data-record", "data-line", "data-count", "data-view", "start", "viewbox", "x", "y"}
ATTRIBUTES |= {"width", "height", "preserveaspectratio"}


def _parsed(run, **options):
    return assert_stands_alone(run_file(run, **options), elements=ELEMENTS, attributes=ATTRIBUTES)


def _evil():
    talk = Conversation(agent=EVIL, instructions=EVIL).user(EVIL)
    talk.asks((EVIL, {EVIL: EVIL})).runs(EVIL).guardrail(EVIL, tripped=True, info={EVIL: EVIL})
    talk.event(Kind.CUSTOM, {"name": EVIL, "data": {EVIL: [EVIL]}}, call_id=EVIL, model=EVIL, error_type=EVIL)
    talk.event(Kind.ERROR, {"type": EVIL, "message": EVIL})
    talk.event(Kind.APPROVAL, {"tool": EVIL, "approved": EVIL})
    talk.event(Kind.RETRIEVAL, {"query": EVIL, "documents": [{"id": EVIL, "text": EVIL}]})
    talk.event(Kind.MCP_TOOLS, {"server": EVIL, "tools": [{"name": EVIL}]})
    talk.event(Kind.CHECKPOINT, {EVIL: EVIL}, actor={EVIL: EVIL}, config={EVIL: EVIL}, redactions={EVIL: 1})
    talk.hands_off(EVIL).says(EVIL)
    return loaded(talk, [Finding("gap", EVIL, EVIL, 3)])


# the page


def test_recorded_text_is_nothing_but_text():
    """No element and no attribute comes of what was recorded, in any field of any kind of event."""
    page = _parsed(_evil())
    assert "<script>alert(1)</script>" in page.text
    assert {link["href"][0] for link in page.of("a")} == {"#"}


def test_no_attack_that_is_known_gets_through():
    """Each text of the browser tests' collection, as message, argument, result, key and name, is text."""
    talk = Conversation().user("Go")
    for payload in PAYLOADS:
        text = payload.text[:2000]
        talk.agent = text[:200]
        talk.user(text).asks((text[:100], {text[:100]: text})).runs(text)
        talk.history.clear()
    page = _parsed(loaded(talk.says("ok")), largest=10**9)
    assert len(page.of("article")) == 4 * len(PAYLOADS) + 3


def test_every_event_is_in_the_file_with_its_payload():
    """Each event has one panel and is on one line, and what was said, called and returned can be read."""
    run = loaded(refund("x"))
    page = _parsed(run)
    panels = [panel["id"] for panel in page.of("article")]
    assert sorted(panels) == sorted(f"event-{event.seq}" for event in run.events)
    lines = [link["href"][1:] for link in page.of("a") if link.get("class", "").startswith("go")]
    assert sorted(lines) == sorted(panels)
    for words in ("TRIAGE: route.", "Refund order 7", "issue_refund", "Refunded.", "policy"):
        assert words in page.text


def test_every_link_leads_to_a_place_in_the_file():
    """Lines and ties lead to panels of the same file; no two things have one name."""
    page = _parsed(loaded(refund("x")))
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    targets = {link["href"].removeprefix("#") for link in page.of("a")}
    assert targets <= set(names)
    assert "came from" in page.text


def test_two_records_do_not_share_names():
    """A run that was resumed has two events of each number, and each has its own panel."""
    one, other = loaded(refund("x")), loaded(refund("y"))
    page = _parsed(Run(one.id, (*one.records, *other.records), (), ()))
    names = [panel["id"] for panel in page.of("article")]
    assert len(set(names)) == len(names) == 2 * len(one.events)
    assert {"record-1-event-0", "record-2-event-0"} <= set(names)


@pytest.mark.parametrize("status", sorted(NO_PAYLOAD), ids=str)
def test_what_could_not_be_read_is_marked(status):
    """An event without payload is there, with its status and why."""
    events = [
        dataclasses.replace(event, payload=None, status=status) if event.kind is Kind.GENERATION else event
        for event in loaded(refund("x")).events
    ]
    page = _parsed(run_of(events))
    panels = re.split(r"<article", run_file(run_of(events)))[1:]
    gone = [panel for panel in panels if "k-generation" in panel.partition(">")[0]]
    assert len(gone) == 3
    assert all(status.value in panel and 'role="note"' in panel for panel in gone)
    assert "TRIAGE: route." not in page.text


def test_what_the_page_shortens_is_there_in_full():
    """A text longer than the page shows is in the file whole, once more as JSON."""
    long = "".join(f"{number:06d} " for number in range(10_000))
    run = loaded(Conversation().user(long).says("ok"))
    source = run_file(run)
    assert "009999" in source
    assert "all of it" in Page(source).text
    assert "all of it" not in Page(run_file(loaded(refund("x")))).text


def test_what_a_request_repeats_stands_in_the_file_once():
    """A long history is there once and led to, so a file grows with the run and not with its square."""
    talk = Conversation(instructions="Said once: be kind.").user("first words")
    for turn in range(60):
        talk.asks(("lookup", {"turn": turn})).runs(f"result {turn}")
    source = run_file(loaded(talk.says("ok")))
    assert source.count("first words") == 2  # the input, and the first request
    assert source.count("Said once") == 1
    assert source.count("result 7<") == 3  # with the call, with the result, and where the model is told
    assert "the first 119 " in Page(source).text


def test_a_history_that_was_changed_is_shown_again():
    """What the request before did not hold in the same words is not said to be there."""
    talk = Conversation().user("first words").asks(("lookup", {})).runs("a")
    talk.history[0] = {"role": "user", "content": "other words"}
    talk.request["instructions"] = "Other instructions."
    source = run_file(loaded(talk.says("ok")))
    assert "other words" in source
    assert "Other instructions." in source
    assert "the first" not in Page(source).text


def test_a_file_has_a_largest_size():
    """A run that would make a larger file is refused, with what to do, before all of it is made."""
    run = loaded(Conversation().user("x" * 15_000).says("ok"))
    with pytest.raises(SettingsError, match="--max-mb"):
        run_file(run, largest=20_000)
    assert len(run_file(run, largest=200_000)) < 200_000


def test_a_run_without_events_has_a_file():
    """Nothing but the head, and no complaint."""
    assert run_of([]).id in _parsed(run_of([])).text


# the command


@pytest.fixture
def vault(vault_url, tmp_path, monkeypatch):
    """A vault with one real run."""
    record(support, vault_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    monkeypatch.setenv("SEALTRACE_KEY", KEY)
    return vault_url


def test_the_command_writes_the_run(vault, tmp_path, capsys):
    """All events of a real run, in a file for its owner alone."""
    assert sealtrace(["export", RUN_ID, "--html", "run.html"]) == 0
    source = (tmp_path / "run.html").read_text(encoding="utf-8")
    page = assert_stands_alone(source, elements=ELEMENTS, attributes=ATTRIBUTES)
    run = load(RUN_ID, vault=vault)
    assert len(page.of("article")) == len(run.events)
    assert "does not expire" in capsys.readouterr().out
    assert os.stat(tmp_path / "run.html").st_mode & 0o777 == 0o600


def test_json_says_what_was_written(vault, tmp_path, capsys):
    """One document: the run, the file, its size, and how many events have no payload."""
    for segment in sorted((tmp_path / "vault").glob("io/**/*.jsonl.gz")):
        segment.unlink()
    assert sealtrace(["export", RUN_ID, "--html", "run.html", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["run"] == RUN_ID
    assert said["bytes"] == (tmp_path / "run.html").stat().st_size
    assert 0 < said["unread"] < said["events"]
    assert "payload missing" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_nothing_is_read_for_a_file_that_cannot_be_written(vault, tmp_path, monkeypatch, capsys):
    """A file that is there stays, and no payload is read for it; --force overwrites."""
    monkeypatch.setenv("SEALTRACE_READ_AUDIT", "true")
    (tmp_path / "run.html").write_text("mine")
    assert sealtrace(["export", RUN_ID, "--html", "run.html"]) == 1
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "run.html").read_text() == "mine"
    assert audit_lines(open_store(vault, Settings())) == []
    assert sealtrace(["export", RUN_ID, "--html", "run.html", "--force"]) == 0
    assert RUN_ID in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_a_link_is_replaced_and_not_followed(vault, tmp_path):
    """--force never writes through a link into another file."""
    (tmp_path / "other").write_text("mine")
    (tmp_path / "run.html").symlink_to(tmp_path / "other")
    assert sealtrace(["export", RUN_ID, "--html", "run.html"]) == 1
    assert sealtrace(["export", RUN_ID, "--html", "run.html", "--force"]) == 0
    assert (tmp_path / "other").read_text() == "mine"
    assert not (tmp_path / "run.html").is_symlink()


def test_an_export_is_a_read_with_a_reason(vault, tmp_path, monkeypatch, capsys):
    """Where reasons are required there is no file without one, and the audit keeps who read and why."""
    monkeypatch.setenv("SEALTRACE_READ_AUDIT", "true")
    monkeypatch.setenv("SEALTRACE_READ_REASON_REQUIRED", "true")
    assert sealtrace(["export", RUN_ID, "--html", "run.html"]) == 1
    assert "--reason" in capsys.readouterr().err
    assert not (tmp_path / "run.html").exists()
    assert sealtrace(["export", RUN_ID, "--html", "run.html", "--reason", "ticket 7"]) == 0
    lines = audit_lines(open_store(vault, Settings()))
    assert [(line.what, line.reason, line.about["run_id"]) for line in lines] == [("read", "ticket 7", RUN_ID)]


def test_too_large_leaves_no_file(vault, tmp_path, monkeypatch, capsys):
    """A refused export leaves nothing behind."""
    monkeypatch.setattr("sealtrace.cli.export._MB", 1000)
    assert sealtrace(["export", RUN_ID, "--html", "run.html", "--max-mb", "1"]) == 1
    assert "--max-mb" in capsys.readouterr().err
    assert list(tmp_path.glob("*.html")) == list(tmp_path.glob(".run*")) == []


def test_files_need_neither_the_sdk_nor_a_web_server() -> None:
    """What writes pages works where only the package itself is installed, and starts fast."""
    code = "import sys, sealtrace.viewer.exported; print(sorted({'agents', 'openai', 'starlette'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_runs_are_not_found(vault, tmp_path):
    """Exit code 3, and no file."""
    assert sealtrace(["export", "trace_" + "b" * 32, "--html", "run.html"]) == 3
    assert not (tmp_path / "run.html").exists()


# served


def _visit(vault, address, **settings):
    app = create_app(Settings(vault=vault, read_audit=True, **settings))
    return TestClient(app, base_url="http://127.0.0.1").get(address)


def _timeless(source):
    return re.sub(r"<time>[-:0-9TZ]+</time>", "", source)


def test_a_file_says_when_it_was_written(vault):
    """What could be read depends on when, so the file says it, and by which version."""
    page = Page(run_file(load(RUN_ID, vault=vault)))
    assert re.search(r"Written by sealtrace \d\S* at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", page.text)


def test_the_run_page_leads_to_its_file(vault):
    """The file comes as one to keep, the same as the command writes, and that it was read is noted."""
    shown = Page(_visit(vault, f"/runs/{RUN_ID}").text)
    before = len(audit_lines(open_store(vault, Settings())))
    (address,) = {link["href"] for link in shown.of("a") if link["href"].endswith("/export")}
    answer = _visit(vault, address)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="{RUN_ID}.html"'
    assert _timeless(answer.text) == _timeless(run_file(load(RUN_ID, vault=vault)))
    lines = audit_lines(open_store(vault, Settings()))[before:]
    assert {(line.what, line.about["run_id"]) for line in lines} == {("read", RUN_ID)}


def test_a_file_is_given_for_a_reason(vault):
    """Where reasons are required there is none without."""
    answer = _visit(vault, f"/runs/{RUN_ID}/export", read_reason_required=True)
    assert answer.status_code == 403
    assert "content-disposition" not in answer.headers
    assert audit_lines(open_store(vault, Settings())) == []


def test_too_large_a_file_is_not_served(vault, monkeypatch):
    """The server says what to do instead, and makes no page of hundreds of megabytes."""
    monkeypatch.setattr(run_file, "__kwdefaults__", {"largest": 1000})
    answer = _visit(vault, f"/runs/{RUN_ID}/export")
    assert answer.status_code == 413
    assert "--max-mb" in answer.text
