"""Two runs side by side, as a page and as a file."""

from __future__ import annotations

import dataclasses
import os

import pytest
from starlette.testclient import TestClient

from browser.hostile import PAYLOADS
from replay.handmade import Conversation, loaded, refund, run_of
from replay.world import RUN_ID, World, record, support
from sealtrace.cli import run as sealtrace
from sealtrace.event import EventStatus, Kind
from sealtrace.replay import golden
from sealtrace.replay.diff import Change, diff
from sealtrace.settings import Settings
from sealtrace.vault import audit_lines, open_store
from sealtrace.viewer import compared
from sealtrace.viewer.app import create_app
from sealtrace.viewer.exported import diff_file
from viewer.inert import EVIL, Page, assert_inert, assert_stands_alone


@pytest.fixture
def evil():
    """Two runs whose every free text is an attack, and differs."""
    one = Conversation(agent=EVIL).user(EVIL).asks((EVIL, {EVIL: EVIL})).runs(EVIL).guardrail(EVIL, info={EVIL: EVIL})
    other = Conversation(salt="y", agent=EVIL).user(EVIL + "2").asks((EVIL, {EVIL: "2"})).runs("2" + EVIL).says("2")
    return diff(one.says("1").run(), other.run(), ignore=[f"$..{name}" for name in ("no", "none")])


def _served(found):
    return "<html>" + "".join(compared.body(found, links=True)) + "</html>"


def test_recorded_text_is_nothing_but_text(evil):
    """In the file no element and no attribute comes of what was recorded, and the text is there to be read."""
    page = assert_stands_alone(diff_file(evil))
    assert "<script>alert(1)</script>" in page.text
    assert "onerror=alert(1)" in page.text


def test_no_attack_that_is_known_gets_through():
    """Each text of the browser tests' collection is text where it differs, and where it does not."""
    one, other = Conversation().user("Go"), Conversation(salt="y").user("Go")
    for talk, more in ((one, ""), (other, "2")):
        for payload in PAYLOADS:
            text = payload.text[:2000]
            talk.event(Kind.CUSTOM, {"name": text[:100], "data": {text[:100]: text, "changed": more + text + more}})
        talk.says("ok")
    found = diff(one.run(), other.run())
    assert found.counts["changed"] == len(PAYLOADS)
    assert_stands_alone(diff_file(found))


def test_the_served_page_is_as_harmless(evil):
    """On the served page the only addition is links, and each leads to a run's own page."""
    page = assert_inert(_served(evil), elements={"a"}, attributes={"href"})
    assert page.of("a")
    assert all(link["href"].startswith("/runs/trace_") for link in page.of("a"))


def test_a_file_leads_nowhere():
    """A file has no address in it at all."""
    assert Page(diff_file(diff(refund("x").run(), refund("y", refunded="no").run()))).of("a") == []


def test_the_first_difference_is_named():
    """Verdict, class, path, both values, the changed words marked, and what follows counted."""
    found = diff(refund("x").run(), refund("y", instructions="TRIAGE v2: route.").run())
    source = diff_file(found)
    text = Page(source).text
    for words in (
        "DIFFERENT",
        "CONFIG",
        "$.request.instructions",
        "2 later differences",
        "The final outputs are the same",
    ):
        assert words in text
    verdict = source[source.index("<section") : source.index("</section>")]
    assert "TRIAGE<ins> v2</ins>: route." in verdict
    assert "TRIAGE: route." in verdict
    assert "<del>" not in verdict


def test_the_same_runs_are_the_same():
    """Two recordings of one conversation."""
    assert "SAME" in Page(diff_file(diff(refund("x").run(), refund("y").run()))).text


def test_each_event_is_on_the_page_with_what_became_of_it():
    """A row for every event, marked as what it is; what one run alone has shows what it holds."""
    more = refund("y").guardrail("extra", info="only-here")
    found = diff(refund("x").run(), more.run())
    page = Page(diff_file(found))
    rows = [row["class"] for row in page.of("tr") if "class" in row]
    assert rows.count("added") == found.counts["added"] == 1
    assert rows.count("same") == found.counts["same"]
    assert "only in B" in page.text
    assert "only-here" in page.text
    assert "only in A" in Page(diff_file(diff(more.run(), refund("x").run()))).text


def test_numbers_lead_to_the_events():
    """On the served page each number is a link that names the event and its record."""
    page = Page(_served(diff(refund("x").run(), refund("y", refunded="no").run())))
    links = {link["href"] for link in page.of("a")}
    run = refund("x").run()
    assert {f"/runs/{run.id}?event={event.seq}&record={event.record_id}" for event in run.events} <= links


def test_text_and_number_are_told_apart():
    """A text that looks like a number is shown as text, an absent value as absent."""
    one = Conversation().user("Hi").asks(("t", {"a": 1, "b": 2})).runs("x").says("ok").run()
    other = Conversation(salt="y").user("Hi").asks(("t", {"a": "1"})).runs("x").says("ok").run()
    text = Page(diff_file(diff(one, other))).text
    assert '"1"' in text
    assert "(absent)" in text


def test_words_that_differ_are_marked_and_no_others():
    """What both sides have stays unmarked, also between two changes, and no word is torn."""
    one = Conversation().user("Pay 100 euros to Ana today").says("ok").run()
    other = Conversation(salt="y").user("Pay 150 euros to Anna, today").says("ok").run()
    source = diff_file(diff(one, other))
    assert "Pay <del>100</del> euros to<del> Ana</del> today" in source
    assert "Pay <ins>150</ins> euros to<ins> Anna,</ins> today" in source


def test_a_changed_line_break_can_be_seen():
    """A difference of white space alone is marked by a sign."""
    one = Conversation().user("a b").says("ok").run()
    assert "<ins>↵\n" in diff_file(diff(one, Conversation(salt="y").user("a\nb").says("ok").run()))


def test_of_long_texts_the_place_where_they_part_is_shown():
    """Not two equal beginnings, and not the whole."""
    shared = "word " * 20_000
    found = diff(
        Conversation().user(shared + "north" + shared).says("ok").run(),
        Conversation(salt="y").user(shared + "south" + shared).says("ok").run(),
    )
    source = diff_file(found)
    assert "<del>northword</del>" in source
    assert "<ins>southword</ins>" in source
    assert "more characters" in source
    assert len(source) < 100_000


def _long(count, salt, text):
    talk = Conversation(salt=salt).user("Hi")
    for index in range(count):
        talk.event(Kind.CUSTOM, {"name": f"step{index}", "data": {f"k{key}": text for key in range(30)}})
    return talk.says("ok").run()


def test_a_long_comparison_stays_a_page():
    """Of thousands of differences the first are opened, and the page says how many are not."""
    found = diff(_long(600, "x", "a" * 500), _long(600, "y", "b" * 500))
    assert found.counts["changed"] == 600
    source = diff_file(found)
    assert len(source) < 2_000_000
    assert "more in this event" in source
    text = Page(source).text
    assert "575 later events that differ are not opened here" in text


def test_long_stretches_of_equal_events_are_folded():
    """A thousand equal events are one line, and none of them is lost."""
    one, other = _long(300, "x", "a"), _long(300, "y", "a")
    page = Page(diff_file(diff(one, other)))
    assert f"{len(one.events)} events that are the same" in page.text
    assert "step299" in page.text


def test_moved_events_say_where_to():
    """The same events in another order."""
    one, other = Conversation().user("Hi"), Conversation(salt="y").user("Hi")
    for talk, order in ((one, "ab"), (other, "ba")):
        for name in order:
            talk.asks((name, {})).runs("x")
        talk.says("ok")
    found = diff(one.run(), other.run())
    assert {row.change for row in found.rows} - {Change.SAME}
    assert_stands_alone(diff_file(found))


def test_without_payload_the_status_is_said():
    """An event that only one run has and whose payload is gone says why."""
    talk = refund("y").guardrail("extra")
    events = list(talk.run().events)
    events[-1] = dataclasses.replace(events[-1], payload=None, status=EventStatus.PAYLOAD_EXPIRED)
    text = Page(diff_file(diff(refund("x").run(), run_of(events)))).text
    assert "no payload: payload expired" in text


def test_the_form_asks_for_both():
    """What was asked for stands in the form again, as text."""
    page = Page(str(compared.form('"><script>', "b", ["$.x", "$..y"])))
    assert [field["value"] for field in page.of("input")] == ['"><script>', "b", "$.x $..y"]
    assert [field["name"] for field in page.of("input")] == ["a", "b", "ignore"]


@pytest.fixture
def runs(tmp_path):
    """Two goldens that differ."""
    for name, talk in {"a": refund("x"), "b": refund("z", instructions="TRIAGE v2")}.items():
        golden.add(
            loaded(talk),
            name=name,
            entry="shop:agent",
            reason="test",
            when="2026-12-01T09:00:00.000000Z",
            directory=tmp_path,
            redactor=None,
        )
    return [str(tmp_path / "a.json"), str(tmp_path / "b.json")]


def test_the_command_writes_a_file_for_its_owner(runs, tmp_path, capsys):
    """`sealtrace diff --html` writes a page that only its owner can read."""
    file = tmp_path / "d.html"
    assert sealtrace(["diff", *runs, "--html", str(file)]) == 2
    assert "DIFFERENT" in assert_stands_alone(file.read_text(encoding="utf-8")).text
    assert os.stat(file).st_mode & 0o777 == 0o600


def test_the_command_overwrites_nothing_unasked(runs, tmp_path, capsys):
    """A file that is there stays as it is, unless --force is given; it is said before anything is read."""
    file = tmp_path / "d.html"
    file.write_text("mine")
    assert sealtrace(["diff", "no-such-run", runs[1], "--html", str(file)]) == 1
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert sealtrace(["diff", *runs, "--html", str(file), "--force"]) == 2
    assert "DIFFERENT" in file.read_text(encoding="utf-8")
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert sealtrace(["diff", *runs, "--html", str(tmp_path / "none" / "d.html")]) == 1
    assert "no directory" in capsys.readouterr().err


# served


OTHER = "trace_" + "b" * 32


@pytest.fixture
def vault(vault_url, monkeypatch):
    """A vault with two real runs that differ."""
    record(support, vault_url)
    monkeypatch.setattr("replay.world.RUN_ID", OTHER)
    record(support, vault_url, world=World(change={"instructions": "Other."}))
    return vault_url


def _visit(vault, address, **settings):
    app = create_app(Settings(vault=vault, read_audit=True, **settings))
    return TestClient(app, base_url="http://127.0.0.1").get(address)


def test_two_runs_are_compared_at_an_address(vault):
    """`/compare?a=&b=` says where they part, keeps what was asked in its form, and both reads are noted."""
    answer = _visit(vault, f"/compare?a={RUN_ID}&b=http://elsewhere.example/runs/{OTHER}&ignore=$.x")
    assert answer.status_code == 200
    page = Page(answer.text)
    assert "$.request.instructions" in page.text
    assert "CONFIG" in page.text
    assert [field["value"] for field in page.of("input")] == [RUN_ID, f"http://elsewhere.example/runs/{OTHER}", "$.x"]
    assert {line.about["run_id"] for line in audit_lines(open_store(vault, Settings()))} == {RUN_ID, OTHER}


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/compare", 200),
        (f"/compare?a={RUN_ID}", 200),
        (f"/compare?a={RUN_ID}&b=trace_{'c' * 32}", 404),
        (f"/compare?a={RUN_ID}&b={'x' * 3000}", 404),
        (f"/compare?a={RUN_ID}&b={OTHER}&ignore=instructions", 400),
        (f"/compare?a={RUN_ID}&b={OTHER}&vault=s3://foreign/bucket", 400),
    ],
)
def test_what_cannot_be_compared_is_a_page_that_says_so(vault, address, status):
    """Without both runs there is a form; unknown runs, bad paths and foreign vaults are refused in words."""
    answer = _visit(vault, address)
    assert answer.status_code == status
    assert Page(answer.text).of("h1")
    assert "Traceback" not in answer.text


def test_without_the_reason_that_is_required_nothing_is_compared(vault):
    """A comparison shows payloads, so it asks why, as the run's page does."""
    answer = _visit(vault, f"/compare?a={RUN_ID}&b={OTHER}", read_reason_required=True)
    assert answer.status_code == 403
    assert "instructions" not in answer.text
    assert next(field["name"] for field in Page(answer.text).of("input")) == "reason"
    assert audit_lines(open_store(vault, Settings())) == []
