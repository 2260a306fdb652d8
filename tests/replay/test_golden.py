"""A recorded run as a file in the user's repository."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.handmade import NOW, Conversation, loaded, refund
from sealtrace.errors import GoldenError, NotComparable
from sealtrace.event import EventStatus, Kind
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor
from sealtrace.replay import golden
from sealtrace.replay.compact import compact, expand
from sealtrace.replay.diff import diff
from sealtrace.run import Finding, RunStatus


def _add(tmp_path, run, **options):
    given = {"name": "refund", "entry": "shop.agents:triage", "reason": "the good path", "when": NOW, "redactor": None}
    return golden.add(run, directory=tmp_path, **(given | options))


@pytest.fixture
def no_ci(monkeypatch):
    """A developer's machine, not a CI job."""
    monkeypatch.delenv("CI", raising=False)


def test_a_golden_is_the_run(tmp_path):
    """What is loaded from the file is, event by event, the run that was added."""
    run = loaded(refund())
    written = _add(tmp_path, run)
    read = golden.load(tmp_path / "refund.json")
    assert read == written
    assert diff(run, read.run).same
    assert [event.payload for event in read.run.events] == [event.payload for event in run.events]
    assert read.run.status is RunStatus.COMPLETE
    assert (read.entry, read.history[0].reason) == ("shop.agents:triage", "the good path")


def test_key_order_of_a_tool_result_is_kept(tmp_path):
    """The order of keys is what the model saw, so it is kept."""
    run = loaded(refund(refunded={"b": 1, "a": 2}))
    _add(tmp_path, run)
    result = [event for event in golden.load(tmp_path / "refund.json").run.events if event.kind is Kind.TOOL_RESULT][-1]
    assert list(result.payload["result"]) == ["b", "a"]


def test_file_is_stable_and_short(tmp_path):
    """The same run gives the same bytes, without span ids, times it took or digests."""
    run = loaded(refund())
    one = _add(tmp_path / "a", run).path.read_text()
    assert one == _add(tmp_path / "b", run).path.read_text()
    for noise in ("f" * 32, "e" * 16, "d" * 32, "duration_ms"):
        assert noise not in one
    assert one.count("TRIAGE: route.") == 1
    assert one.endswith("}\n")


def test_unseen_characters_are_written_out(tmp_path):
    """A reviewer sees characters that would turn text around or that nothing shows, as escapes."""
    talk = Conversation().user("pay \u202e evil \u200b \ud800 é").says("ok")
    text = _add(tmp_path, loaded(talk)).path.read_text()
    assert "\\u202e evil \\u200b \\ud800 é" in text
    assert golden.load(tmp_path / "refund.json").run.events[0].payload == {"input": "pay \u202e evil \u200b \ud800 é"}


def test_it_is_redacted_once_more(tmp_path):
    """What today's rules find in a run that yesterday's let through does not reach the repository."""
    redactor = Redactor(Policy(), Keys(b"0123456789abcdef"))
    talk = Conversation().user("mail me at mia.long@example.org").says("ok")
    text = _add(tmp_path, loaded(talk), redactor=redactor).path.read_text()
    assert "mia.long" not in text
    assert "<EMAIL:" in text


def test_redacting_again_changes_nothing_that_was_redacted(tmp_path):
    """A run that was redacted with these rules is kept as it is, pseudonyms and all."""
    redactor = Redactor(Policy(), Keys(b"another key of 16"))
    run = loaded(refund())
    read = _add(tmp_path, run, redactor=redactor)
    assert [event.payload for event in read.run.events] == [event.payload for event in run.events]


def test_edit_by_hand_is_refused(tmp_path):
    """A golden changes by accepting, with a reason; any other edit of its events is noticed."""
    path = _add(tmp_path, loaded(refund())).path
    path.write_text(path.read_text().replace("Refunded.", "Refused."))
    with pytest.raises(GoldenError, match="edited by hand"):
        golden.load(path)


def test_reformatting_is_not_an_edit(tmp_path):
    """Line ends and indentation may change on the way through a repository."""
    path = _add(tmp_path, loaded(refund())).path
    path.write_bytes(json.dumps(json.loads(path.read_text()), indent=4).replace("\n", "\r\n").encode())
    assert golden.load(path).name == "refund"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 101, "dot."])
def test_bad_names_are_refused(tmp_path, name):
    """A name cannot lead out of the directory."""
    with pytest.raises(GoldenError, match="is no name"):
        _add(tmp_path, loaded(refund()), name=name)
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("entry", ["", "shop", "shop.agents:", "shop:agent()", "shop agents:x", "os:system; x"])
def test_bad_entries_are_refused(tmp_path, entry):
    """An entry is a module and a name, nothing to evaluate."""
    with pytest.raises(GoldenError, match="is no entry"):
        _add(tmp_path, loaded(refund()), entry=entry)


def test_a_reason_is_needed(tmp_path):
    """Neither adding nor accepting goes without a reason."""
    with pytest.raises(GoldenError, match="say why"):
        _add(tmp_path, loaded(refund()), reason=" ")


def test_a_golden_is_not_overwritten(tmp_path):
    """Adding under a name that is taken is refused."""
    _add(tmp_path, loaded(refund()))
    with pytest.raises(GoldenError, match="exists"):
        _add(tmp_path, loaded(refund()))


def test_incomplete_runs_are_refused(tmp_path):
    """A run that could never rerun is refused, and the message says what is missing."""
    run = loaded(refund(), [Finding("partial_record", "the record has no manifest")])
    with pytest.raises(NotComparable, match="the record has no manifest"):
        _add(tmp_path, run)
    talk = refund()
    talk.events[3] = dataclasses.replace(talk.events[3], payload=None, status=EventStatus.PAYLOAD_EXPIRED)
    with pytest.raises(NotComparable, match="1 of 15 events are without payload"):
        _add(tmp_path, loaded(talk))


def test_accepting_keeps_the_history(tmp_path, no_ci):
    """An accepted change replaces the run and adds a line to the history."""
    first = _add(tmp_path, loaded(refund()))
    golden.save(
        first, loaded(refund(instructions="v2")), reason="new tone", when=NOW, what=["event 2 $.request.instructions"]
    )
    read = golden.load(first.path)
    assert [(change.action, change.reason) for change in read.history] == [
        ("added", "the good path"),
        ("accepted", "new tone"),
    ]
    assert read.history[1].what == ("event 2 $.request.instructions",)
    assert read.run.events[2].payload["request"]["instructions"] == "v2"


@pytest.mark.parametrize(("value", "refused"), [("true", True), ("1", True), ("", False), ("false", False)])
def test_ci_never_accepts(tmp_path, monkeypatch, value, refused):
    """With CI set nothing is accepted, whatever the reason, and the file stays as it is."""
    first = _add(tmp_path, loaded(refund()))
    before = first.path.read_bytes()
    monkeypatch.setenv("CI", value)
    if refused:
        with pytest.raises(GoldenError, match="CI is set"):
            golden.save(first, loaded(refund("y")), reason="why not", when=NOW, what=())
        assert first.path.read_bytes() == before
    else:
        golden.save(first, loaded(refund("y")), reason="why not", when=NOW, what=())
        assert first.path.read_bytes() != before


def test_what_may_differ_is_in_the_file(tmp_path):
    """Ignored paths, pinned text and served guardrails are kept, in plain sight, and may be edited there."""
    allowed = golden.Allowed(("$.request.instructions",), (r"\d+:\d+",), "served")
    path = _add(tmp_path, loaded(refund()), allowed=allowed).path
    assert golden.load(path).allowed == allowed
    data = json.loads(path.read_text())
    assert data["allowed"] == {"ignore": ["$.request.instructions"], "pin": [r"\d+:\d+"], "guardrails": "served"}
    path.write_text(json.dumps({**data, "allowed": {}}))
    assert golden.load(path).allowed == golden.Allowed()
    path.write_text(json.dumps({**data, "allowed": {"everything": True}}))
    with pytest.raises(GoldenError, match="something else"):
        golden.load(path)


def test_only_goldens_are_found(tmp_path):
    """Other JSON files in the directory are left alone."""
    _add(tmp_path / "sub", loaded(refund()))
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    assert list(golden.find(tmp_path)) == [tmp_path / "sub" / "refund.json"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"sealtrace_golden": 2}', '{"sealtrace_golden": 1}'])
def test_what_is_no_golden_is_refused(tmp_path, text):
    """A file that is no golden gives one clear error."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(GoldenError):
        golden.load(path)


def test_missing_file_is_refused(tmp_path):
    """A file that is not there is said not to be there."""
    with pytest.raises(GoldenError, match="No such file"):
        golden.load(tmp_path / "none.json")


_VALUE = st.sampled_from(["a", "b", {"$as_in": 0, "$first": 1, "$then": []}, {"$as_in": 1}, 1, True, 1.0])
_REQUEST = st.fixed_dictionaries(
    {},
    optional={
        "instructions": st.sampled_from(["i", "j"]),
        "tools": st.lists(_VALUE, max_size=2),
        "settings": st.dictionaries(st.sampled_from(["x", "y"]), _VALUE, max_size=2),
        "input": st.lists(_VALUE, max_size=4) | st.just("text"),
    },
)


@given(st.lists(st.tuples(_REQUEST, st.sampled_from(["run:0", "run:1"]), st.booleans()), max_size=6))
def test_pointing_loses_nothing(requests):
    """Whatever calls repeat or change, pointing and following the pointers gives the same JSON."""
    events = [
        {"seq": seq, "kind": "input", "frame": frame, "payload": {"input": request.get("input")}}
        if is_input
        else {"seq": seq, "kind": "generation", "frame": frame, "payload": {"request": request}}
        for seq, (request, frame, is_input) in enumerate(requests)
    ]
    before = copy.deepcopy(events)
    short = json.loads(json.dumps(compact(events)))
    assert json.dumps(expand(short)) == json.dumps(before)
    assert json.dumps(events) == json.dumps(before)


@pytest.mark.parametrize("request_", [{"tools": {"$as_in": 5}}, {"input": {"$as_in": 0, "$first": 1, "$then": []}}])
def test_broken_pointers_are_refused(request_):
    """A pointer to nothing is an error, not an empty value."""
    with pytest.raises(ValueError, match="points at"):
        expand([{"seq": 1, "kind": "generation", "frame": "run:0", "payload": {"request": request_}}])
