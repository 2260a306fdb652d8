"""Reports of reruns: as files, on the shelf, and as pages."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys

import pytest
from starlette.testclient import TestClient

from replay.world import KEY, RUN_ID, record, support
from sealtrace.cli import run as sealtrace
from sealtrace.errors import ReportError, SettingsError
from sealtrace.event import Kind
from sealtrace.replay import kept
from sealtrace.replay.cause import Cause
from sealtrace.replay.jsondiff import ABSENT
from sealtrace.replay.kept import Shelf
from sealtrace.replay.report import Divergence, Fate, Mode, Outcome, Receipt, Report, Step, Surface
from sealtrace.settings import Settings
from sealtrace.vault import audit_lines, open_store
from sealtrace.viewer import reran
from sealtrace.viewer.app import create_app
from sealtrace.viewer.exported import rerun_file
from viewer.inert import EVIL, Page, assert_inert, assert_stands_alone

_CODE = """
import socket

from replay.world import World, support

async def same(given):
    return await support(World(live=False, change={"input": given}))

async def other(given):
    return await support(World(live=False, change={"input": given, "instructions": "Other."}))

async def curious(given):
    socket.getaddrinfo("example.invalid", 80)
"""
NOW = 1_796_000_000.0


@pytest.fixture
def vault(vault_url, tmp_path, monkeypatch):
    """A vault with one run, its key in the environment, and code in the working directory."""
    record(support, vault_url)
    (tmp_path / "reran_code.py").write_text(_CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    monkeypatch.setenv("SEALTRACE_KEY", KEY)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield vault_url
    sys.modules.pop("reran_code", None)


def _report(**changes):
    steps = tuple(
        Step(f"r{EVIL}", seq, Kind.TOOL_CALL, Fate.USED if seq < 20 else Fate.UNUSED, EVIL, EVIL, EVIL)
        for seq in range(40)
    )
    steps = (*steps[:20], dataclasses.replace(steps[20], fate=Fate.DIVERGED), *steps[21:])
    divergence = Divergence(
        Cause.CONFIG, Kind.TOOL_CALL, EVIL, EVIL, 1, f"r{EVIL}", 20, EVIL, EVIL, f"$.{EVIL}", {EVIL: EVIL}, {EVIL: "2"}
    )
    receipt = Receipt({EVIL: Surface(4, 3, 2, 1, 1)}, {EVIL: 2}, {EVIL: 3})
    fields = {
        "run_id": RUN_ID,
        "mode": Mode.RERUN,
        "outcome": Outcome.DIVERGED,
        "receipt": receipt,
        "divergence": divergence,
        "later": 3,
        "matched": 20,
        "total": 40,
        "by_kind": 2,
        "ignored": {EVIL: 1},
        "reason": EVIL,
        "notes": (EVIL,),
        "steps": steps,
    }
    return Report(**(fields | changes))


def _served(report):
    return "<html>" + "".join(reran.body(report, links=True)) + "</html>"


# the page


def test_recorded_text_is_nothing_but_text():
    """In the file no element and no attribute comes of what was recorded, and the text is there to be read."""
    page = assert_stands_alone(rerun_file(_report()))
    assert "<script>alert(1)</script>" in page.text
    assert page.of("a") == []


def test_the_served_page_is_as_harmless():
    """On the served page the only addition is links, and each leads to the run's own page."""
    page = assert_inert(_served(_report()), elements={"a"}, attributes={"href"})
    links = [link["href"] for link in page.of("a")]
    assert links
    assert all(link.partition("?")[0] == f"/runs/{RUN_ID}" for link in links)


def test_the_divergence_stands_among_the_events():
    """What was come to stands above it, what was not below; both values under their names, with the path."""
    report = _report(
        divergence=Divergence(
            Cause.CONFIG, Kind.GENERATION, "the request differs", "run:0", 0, "rec", 20, "triage", None,
            "$.request.instructions", "Be kind.", "Be quick.",
        ),
        steps=tuple(
            Step("rec", seq, Kind.GENERATION, Fate.USED if seq < 20 else Fate.DIVERGED if seq == 20 else Fate.UNUSED)
            for seq in range(40)
        ),
    )  # fmt: skip
    source = rerun_file(report)
    text = Page(source).text
    places = [text.index(word) for word in ("#19", "First divergence: #20", "$.request.instructions", "#21", "#39")]
    assert places == sorted(places)
    assert "Be <del>kind</del>." in source
    assert "Be <ins>quick</ins>." in source
    assert text.index("Recorded") < text.index("Got")
    assert "15 earlier events: 15 used" in text
    assert "14 later events: 14 unused" in text


def test_every_event_is_on_the_page_once():
    """Each recorded event has one line, but the one where it diverged, which has the divergence."""
    text = Page(rerun_file(_report())).text
    rows = [int(number) for number in re.findall(r"#(\d+)", text)]
    assert sorted(rows) == list(range(40))


def test_what_was_not_recorded_stands_where_it_happened():
    """A divergence that is no recorded event stands behind the last event the rerun came to."""
    steps = tuple(Step("rec", seq, Kind.GENERATION, Fate.USED if seq < 3 else Fate.UNUSED) for seq in range(6))
    found = Divergence(Cause.LOGIC, Kind.TOOL_CALL, "a call that was not recorded", "run:0", got={"tool": "pay"})
    text = Page(rerun_file(_report(divergence=found, steps=steps))).text
    assert text.index("#2") < text.index("no recorded event") < text.index("#3")
    assert "(absent)" in text


def test_the_page_says_what_a_rerun_is_and_what_was_blocked():
    """The mode, what was served and left over on each surface, what was blocked, and that nothing went out."""
    report = _report(receipt=Receipt({"model": Surface(4, 3, 0, 1, 1)}, {"socket.connect": 2}, {"pay": 1}))
    page = Page(rerun_file(report))
    for words in ("SIMULATION", "No network was touched", "socket.connect: 2", "pay: 1", "model43011", "Exit code 2"):
        assert words in page.text.replace("\n", "")


@pytest.mark.parametrize(("mode", "words"), [(Mode.COMPARE, "model was asked again"), (Mode.RESUME, "from event 7")])
def test_live_modes_are_called_by_their_names(mode, words):
    """What went live is never called a simulation."""
    text = Page(rerun_file(_report(mode=mode, live_from=7 if mode is Mode.RESUME else None))).text
    assert words in text
    assert "SIMULATION" not in text


def test_the_same_and_the_incomparable_have_a_page():
    """Without a divergence the outcome is said, with the reason where there is one."""
    same = _report(outcome=Outcome.SAME, divergence=None, reason=None, steps=_report().steps[:10])
    text = Page(rerun_file(same)).text
    assert "SAME" in text
    assert "10 events: 10 used" in text
    broken = _report(outcome=Outcome.NOT_COMPARABLE, divergence=None, reason="payload has expired", steps=())
    assert "payload has expired" in Page(rerun_file(broken)).text


# the file


def _tidy(**changes):
    """A report without what JSON cannot hold as text (a lone surrogate is no Unicode)."""
    found = Divergence(
        Cause.TOOL, Kind.TOOL_RESULT, "m", "run:0", 1, "rec", 3, "a", "t", "$.result", {"a": [1, None]}, 2.5
    )
    return _report(divergence=found, **changes)


@pytest.mark.parametrize("got", [ABSENT, None, "x", {"a": [1, True]}])
def test_a_report_is_read_as_it_was_written(got):
    """Nothing is lost or changed on the way through a file, null is not absence, and all is ASCII."""
    report = _report(divergence=dataclasses.replace(_tidy().divergence, got=got))
    text = kept.to_text(report)
    assert text.isascii()
    assert kept.from_text(text) == report


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no report"),
        ('{"rerun": 2}', "another version"),
        ('{"rerun": 1}', "names no run"),
        ('{"rerun": 1, "run": "../../etc/passwd"}', "names no run"),
        ('{"rerun": 1, "run": "trace_' + "a" * 32 + '", "mode": "SECRET"}', "not whole or was changed"),
    ],
)
def test_what_is_no_report_is_refused(text, why):
    """Anything else is one clear error that quotes nothing of it."""
    with pytest.raises(ReportError, match=why) as raised:
        kept.from_text(text)
    assert "SECRET" not in str(raised.value)


# the shelf


def test_a_kept_report_is_found_again(tmp_path):
    """It is listed by run and time, opened by its name, and only its owner can read it."""
    shelf = Shelf(tmp_path / "deep" / "reports", days=7, now=lambda: NOW)
    assert shelf.reports() == []
    report = _tidy()
    name = shelf.keep(report)
    (found,) = shelf.reports()
    assert (found.name, found.run_id, found.at) == (name, RUN_ID, "2026-11-30T00:53:20Z")
    assert shelf.open(name) == report
    assert os.stat(tmp_path / "deep" / "reports").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "deep" / "reports" / f"{name}.json").st_mode & 0o777 == 0o600


def test_a_report_is_read_no_longer_than_payloads(tmp_path):
    """Past its days it is neither listed nor opened, and the next report that is kept throws it away."""
    now = [NOW]
    shelf = Shelf(tmp_path, days=7, now=lambda: now[0])
    name = shelf.keep(_tidy())
    stranger = tmp_path / "notes.json"
    stranger.write_text("{}")
    now[0] += 7 * 86_400 + 1
    assert shelf.reports() == []
    with pytest.raises(ReportError, match="7 days"):
        shelf.open(name)
    newer = shelf.keep(_tidy())
    assert [kept.name for kept in shelf.reports()] == [newer]
    assert sorted(os.listdir(tmp_path)) == sorted([f"{newer}.json", "notes.json"])


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../secret", "a/b", "a" * 32, "a" * 32 + "-20261201T000000Z-abcdef/../x", "%2e%2e", "x\0y",
     "a" * 32 + "-20261399T000000Z-abcdef"],
)  # fmt: skip
def test_only_names_of_reports_are_opened(tmp_path, name):
    """No name leads out of the directory, or to a file that is no report."""
    (tmp_path.parent / "secret.json").write_text("{}")
    with pytest.raises(ReportError, match="not the name"):
        Shelf(tmp_path, days=7).open(name)


def test_a_link_in_the_directory_is_not_followed(tmp_path):
    """A link under a report's name opens nothing, nor does a name that is free."""
    (tmp_path / "elsewhere").write_text(kept.to_text(_tidy()))
    shelf = Shelf(tmp_path / "reports", days=7, now=lambda: NOW)
    name = shelf.keep(_tidy())
    other = name[:-6] + "000000"
    with pytest.raises(ReportError, match="no kept report"):
        shelf.open(other)
    (tmp_path / "reports" / f"{other}.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReportError, match="cannot be read"):
        shelf.open(other)


def test_a_file_that_is_too_large_or_no_text_is_not_read(tmp_path, monkeypatch):
    """A directory that others can write to cannot fill the memory, nor break the page."""
    shelf = Shelf(tmp_path, days=7, now=lambda: NOW)
    name = shelf.keep(_tidy())
    monkeypatch.setattr(kept, "_LARGEST", 1000)
    with pytest.raises(ReportError, match="larger"):
        shelf.open(name)
    (tmp_path / f"{name}.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ReportError, match="cannot be read"):
        shelf.open(name)


def test_a_directory_that_is_a_file_is_said(tmp_path):
    """The directory cannot be made or read: one error that names it as the setting."""
    (tmp_path / "reports").write_text("")
    shelf = Shelf(tmp_path / "reports", days=7)
    with pytest.raises(SettingsError):
        shelf.keep(_tidy())
    with pytest.raises(ReportError):
        shelf.reports()


def test_the_list_leads_to_each_report():
    """Each kept report is a link with its run; without any, the page says how to keep one."""
    listed = [kept.KeptReport("n" * 8, RUN_ID, "2026-11-30T00:53:20Z")]
    page = Page("<html>" + "".join(reran.shelf(listed)) + "</html>")
    assert [link["href"] for link in page.of("a")] == ["/reruns/nnnnnnnn"]
    assert RUN_ID in page.text
    assert "--keep" in "".join(reran.shelf([]))


# the command


def test_the_command_writes_and_keeps_reports(vault, tmp_path, monkeypatch, capsys):
    """One rerun, four places: the screen, a file for people, a file for programs, the shelf."""
    monkeypatch.setenv("SEALTRACE_REPORTS", str(tmp_path / "reports"))
    files = ["--html", "r.html", "--report", "r.json", "--keep"]
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:other", *files]) == 2
    out = capsys.readouterr().out
    page = assert_stands_alone((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "$.request.instructions" in page.text
    assert "Other." in page.text
    report = kept.from_text((tmp_path / "r.json").read_text())
    (on_shelf,) = Shelf(tmp_path / "reports", days=7).reports()
    assert Shelf(tmp_path / "reports", days=7).open(on_shelf.name) == report
    assert f"/reruns/{on_shelf.name}" in out
    assert {os.stat(tmp_path / name).st_mode & 0o777 for name in ("r.html", "r.json")} == {0o600}


def test_the_report_says_of_each_event_what_became_of_it(vault, capsys):
    """Used, where it diverged, unused: in the order of the record, each event that a rerun has to come to."""
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:same", "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert len(same["steps"]) == same["total"] == same["matched"]
    assert {step["fate"] for step in same["steps"]} == {"used"}
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:other", "--json"]) == 2
    other = json.loads(capsys.readouterr().out)
    fates = [step["fate"] for step in other["steps"]]
    assert fates.count("diverged") == 1
    assert other["steps"][fates.index("diverged")]["seq"] == other["divergence"]["seq"]
    assert fates.count("used") == other["matched"]
    assert "unused" in fates[fates.index("diverged") :]
    assert "used" in fates[: fates.index("diverged")]
    assert [step["seq"] for step in other["steps"]] == sorted(step["seq"] for step in other["steps"])


def test_what_was_blocked_is_on_the_page(vault, tmp_path):
    """Code that tries to reach the outside: the attempt is counted, and the page says so."""
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:curious", "--html", "r.html"]) == 2
    text = Page((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "Blocked" in text
    assert "socket.getaddrinfo: 1" in text


def test_nothing_is_overwritten_and_nothing_run_for_nothing(vault, tmp_path, capsys):
    """A file that is taken, or a shelf that is nowhere, is said before the code is run."""
    (tmp_path / "r.json").write_text("mine")
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:same", "--report", "r.json"]) == 1
    assert (tmp_path / "r.json").read_text() == "mine"
    assert "reran_code" not in sys.modules
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:same", "--keep"]) == 1
    assert "SEALTRACE_REPORTS" in capsys.readouterr().err
    assert sealtrace(["rerun", RUN_ID, "--entry", "reran_code:same", "--report", "r.json", "--force"]) == 0
    assert kept.from_text((tmp_path / "r.json").read_text()).outcome is Outcome.SAME


# served


def _visit(vault, address, **settings):
    app = create_app(Settings(vault=vault, read_audit=True, **settings))
    return TestClient(app, base_url="http://127.0.0.1").get(address)


def test_kept_reports_are_shown_at_their_addresses(vault, tmp_path):
    """The list leads to the report, the report to the run and its events; that it was opened is noted."""
    name = Shelf(tmp_path / "reports", days=7).keep(_tidy())
    listed = _visit(vault, "/reruns", reports=tmp_path / "reports")
    assert f"/reruns/{name}" in {link["href"] for link in Page(listed.text).of("a")}
    shown = _visit(vault, f"/reruns/{name}", reports=tmp_path / "reports")
    assert shown.status_code == 200
    page = Page(shown.text)
    assert "First divergence" in page.text
    assert f"/runs/{RUN_ID}?event=3&record=rec" in {link["href"] for link in page.of("a")}
    (line,) = audit_lines(open_store(vault, Settings()))
    assert (line.what, line.about) == ("read", {"run_id": RUN_ID, "report": name})


@pytest.mark.parametrize(
    "name", ["nothing", "..%2Fsecret", "%2e%2e%2fsecret.json", "a" * 32 + "-20261201T000000Z-abcdef"]
)
def test_what_is_no_report_is_not_found(vault, tmp_path, name):
    """No name leads to a file that is not a kept report."""
    (tmp_path / "secret.json").write_text(kept.to_text(_tidy()))
    (tmp_path / "reports").mkdir()
    answer = _visit(vault, f"/reruns/{name}", reports=tmp_path / "reports")
    assert answer.status_code == 404
    assert "First divergence" not in answer.text


def test_without_a_directory_the_page_says_how_to_set_one(vault):
    """There is a page all the same, and no report."""
    assert "SEALTRACE_REPORTS" in _visit(vault, "/reruns").text
    assert _visit(vault, "/reruns/x").status_code == 404


def test_a_report_is_opened_for_a_reason(vault, tmp_path):
    """Where reasons are required a report asks for one, for it quotes payloads."""
    name = Shelf(tmp_path / "reports", days=7).keep(_tidy())
    answer = _visit(vault, f"/reruns/{name}", reports=tmp_path / "reports", read_reason_required=True)
    assert answer.status_code == 403
    assert "First divergence" not in answer.text
    assert audit_lines(open_store(vault, Settings())) == []


def test_the_report_of_an_erased_run_is_refused(vault, tmp_path):
    """What is left of a run in a report goes with the run."""
    name = Shelf(tmp_path / "reports", days=7).keep(_tidy())
    assert sealtrace(["vault", "erase", "--run", RUN_ID, "--reason", "asked for", "--yes"]) == 0
    answer = _visit(vault, f"/reruns/{name}", reports=tmp_path / "reports")
    assert answer.status_code == 410
    assert "erased" in answer.text
    assert "First divergence" not in answer.text


def test_nothing_is_run_by_a_visit(vault, tmp_path):
    """No address takes anything but GET and HEAD, so no page can start a rerun."""
    app = create_app(Settings(vault=vault, reports=tmp_path))
    client = TestClient(app, base_url="http://127.0.0.1", headers={"origin": "http://127.0.0.1"})
    for address in ("/reruns", "/reruns/x", f"/runs/{RUN_ID}/export", "/compare"):
        assert client.post(address).status_code == 405
