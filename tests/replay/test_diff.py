"""Two recorded runs held against each other."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.handmade import Conversation, refund, run_of
from sealtrace.errors import NotComparable
from sealtrace.event import EventStatus, Kind
from sealtrace.replay.cause import Cause
from sealtrace.replay.diff import Change, diff
from sealtrace.run import Finding


def _changed(found):
    return [row for row in found.rows if row.change is not Change.SAME]


def _replace(run, seq, **fields):
    events = list(run.events)
    events[seq] = dataclasses.replace(events[seq], **fields)
    return run_of(events)


def test_same_conversation_recorded_twice_is_the_same():
    """Random ids, times and token counts are no difference."""
    found = diff(refund("x").run(), refund("y").run())
    assert found.same
    assert found.exit_code == 0
    assert found.counts["same"] == len(refund().events) == found.matched
    assert found.outcome is True


@given(st.permutations([0, 1, 2]), st.permutations([0, 1, 2]))
def test_completion_order_is_no_difference(one, other):
    """Parallel tools may finish in any order without a difference."""
    assert diff(refund("x", finish=one).run(), refund("y", finish=other).run()).same


def test_changed_instructions_are_config():
    """A changed prompt is named by path, with both texts, before anything else of that request."""
    found = diff(refund("x").run(), refund("y", instructions="TRIAGE v2: route.").run())
    assert found.exit_code == 2
    assert found.first.event.kind is Kind.GENERATION
    assert found.first.cause is Cause.CONFIG
    assert found.first.shown.path == "$.request.instructions"
    assert (found.first.shown.recorded, found.first.shown.got) == ("TRIAGE: route.", "TRIAGE v2: route.")
    assert found.matched == 2


def test_changed_result_is_tool_and_its_quotes_are_carried():
    """A tool result that differs is the cause; requests that only quote it are consequences, not news."""
    found = diff(refund("x").run(), refund("y", results=(["a"], ["other"], "policy")).run())
    assert found.first.cause is Cause.TOOL
    assert found.first.shown.path == "$.result[0]"
    assert [row.change for row in _changed(found)] == [Change.CHANGED, Change.CARRIED, Change.CARRIED]
    assert found.later == 2


def test_changed_field_inside_a_json_text_is_named():
    """Two texts that are JSON are compared inside."""
    one = refund("x", refunded='{"status": "ok", "id": 1}').run()
    found = diff(one, refund("y", refunded='{"status": "ok", "id": 2}').run())
    assert found.first.shown.path == "$.result.id"
    assert diff(one, refund("y", refunded='{"status":"ok","id":1}').run()).first.shown.path == "$.result"


def test_changed_input_is_input():
    """Other words of the user are the first difference, whatever follows from them."""
    one = Conversation().user("Where is my order?").says("There.").run()
    other = Conversation(salt="y", instructions="other").user("Where is my parcel?").says("Here.").run()
    found = diff(one, other)
    assert (found.first.cause, found.first.shown.path) == (Cause.INPUT, "$.input")
    assert found.outcome is False


def test_same_request_other_answer_is_model():
    """The same request, answered otherwise, is the model."""
    found = diff(Conversation().user("Hi").says("A").run(), Conversation(salt="y").user("Hi").says("B").run())
    assert found.first.cause is Cause.MODEL
    assert found.first.shown.path == "$.response.output[0].content[0].text"


def test_other_arguments_are_named_inside():
    """Arguments are compared as JSON: the argument is named, spaces and key order are not a difference."""
    one = Conversation().user("Hi").asks(("lookup", {"id": 1, "deep": True})).runs("r").says("ok").run()
    other = Conversation(salt="y").user("Hi").asks(("lookup", {"deep": True, "id": 2})).runs("r").says("ok").run()
    found = diff(one, other)
    assert (found.first.cause, found.first.shown.path) == (Cause.MODEL, "$.response.output[0].arguments.id")
    reordered = Conversation(salt="y").user("Hi").asks(("lookup", {"deep": True, "id": 1})).runs("r").says("ok").run()
    assert diff(one, reordered).same


def test_added_call_is_added():
    """A call more is one added call and its result; what follows is still paired."""
    one = Conversation().user("Hi").asks(("lookup", {"id": 1})).runs("r").says("ok").run()
    other = Conversation(salt="y").user("Hi").asks(("lookup", {"id": 0}), ("lookup", {"id": 1})).runs("q", "r")
    found = diff(one, other.says("ok").run())
    assert found.first.cause is Cause.MODEL
    added = [row for row in found.rows if row.change is Change.ADDED]
    assert [(row.event.kind, row.event.payload.get("arguments")) for row in added] == [
        (Kind.TOOL_CALL, '{"id": 0}'),
        (Kind.TOOL_RESULT, None),
    ]
    assert not [row for row in found.rows if row.change is Change.REMOVED]
    back = diff(other.run(), one)
    assert [row.change for row in back.rows if row.change is Change.REMOVED] == [Change.REMOVED] * 2


def test_moved_call_is_moved():
    """The same call in another place of the order is moved, not removed and added."""
    calls = [("lookup", {"id": number}) for number in range(3)]
    one, other = Conversation().user("Hi"), Conversation(salt="y").user("Hi")
    for name, arguments in calls:
        one.asks((name, arguments)).runs(arguments["id"])
    for name, arguments in [calls[2], calls[0], calls[1]]:
        other.asks((name, arguments)).runs(arguments["id"])
    found = diff(one.says("ok").run(), other.says("ok").run())
    moved = [row for row in found.rows if row.change is Change.MOVED]
    assert [row.event.payload["arguments"] for row in moved] == ['{"id": 2}']
    kinds = {row.event.kind for row in found.rows if row.change in (Change.ADDED, Change.REMOVED)}
    assert Kind.TOOL_CALL not in kinds


def test_guardrail_verdict_is_policy():
    """Another verdict is policy, with the verdict's path."""
    one = Conversation().user("Hi").guardrail("polite").says("ok").run()
    other = Conversation(salt="y").user("Hi").guardrail("polite", tripped=True).says("ok").run()
    found = diff(one, other)
    assert (found.first.cause, found.first.shown.path) == (Cause.POLICY, "$.tripped")


def test_guardrail_that_races_is_the_same():
    """A guardrail that begins before or after the model does is the same guardrail."""
    one = Conversation().user("Hi").guardrail("polite").says("ok").run()
    late = Conversation(salt="y").user("Hi").says("ok", final=False).guardrail("polite")
    late.event(Kind.OUTPUT, {"final_output": "ok", "last_agent": "triage"})
    assert diff(one, late.run()).same


def test_other_authority_is_policy():
    """Another acting identity or scope is policy."""
    one = Conversation().user("Hi").says("ok").run()
    actor = {"id": "user:1", "scopes": ["read"]}
    other = _replace(one, 0, actor={**actor, "scopes": ["read", "refund"]})
    found = diff(_replace(one, 0, actor=actor), other)
    assert (found.first.cause, found.first.shown.path) == (Cause.POLICY, "$.actor.scopes[1]")


def test_same_answers_then_something_else_is_logic():
    """Equal answers followed by another event are the code's doing."""
    one = refund("x").run()
    other = Conversation(salt="y").user("Refund order 7, I am <EMAIL:abcdefghijkl>").guardrail("polite")
    other.asks(("lookup", {"id": 1}), ("lookup", {"id": 2}), ("policy", {})).runs(["a"], ["b"], "policy")
    other.hands_off("sales_agent").asks(("issue_refund", {"order": 7, "amount": 10})).runs("done").says("Refunded.")
    found = diff(one, other.run())
    assert (found.first.event.kind, found.first.cause) == (Kind.HANDOFF, Cause.LOGIC)
    assert found.first.shown.path == "$.to"


def test_retrieved_documents_are_evidence():
    """Another version of a retrieved document is evidence."""

    def talk(salt, version):
        made = Conversation(salt=salt).user("Hi").asks(("search", {"q": "x"}))
        made.event(Kind.RETRIEVAL, {"query": "x", "documents": [{"id": "d1", "version": version}]})
        return made.runs("text " + version).says("ok").run()

    found = diff(talk("x", "v1"), talk("y", "v2"))
    assert (found.first.cause, found.first.shown.path) == (Cause.EVIDENCE, "$.documents[0].version")


def test_rewritten_result_is_logic_but_foreign_history_is_evidence():
    """A tool output changed on its way to the model is logic if the tool ran here, evidence if before."""

    def talk(salt, output, *, ran_here):
        made = Conversation(salt=salt).user("Hi")
        if ran_here:
            made.asks(("lookup", {})).runs("r")
            made.history[-1]["output"] = output
        else:
            made.history.insert(0, {"type": "function_call_output", "call_id": "old", "output": output})
        return made.says("ok").run()

    here = diff(talk("x", "r", ran_here=True), talk("y", "trimmed", ran_here=True))
    assert (here.first.cause, here.first.shown.path) == (Cause.LOGIC, "$.request.input[2].output")
    before = diff(talk("x", "r", ran_here=False), talk("y", "s", ran_here=False))
    assert (before.first.cause, before.first.shown.path) == (Cause.EVIDENCE, "$.request.input[0].output")


def test_nested_runs_follow_their_calls():
    """What happens inside an agent used as a tool is compared with what the same call opened there."""

    def talk(salt, inner):
        made = Conversation(salt=salt).user("Hi").asks(("expert", {"q": 1}), ("expert", {"q": 2}))
        calls = [item["call_id"] for item in made.answered.payload["response"]["output"]]
        for call, text in zip(calls, inner, strict=True):
            made.frame = f"run:0/tool:{call}/run:0"
            made.event(Kind.INPUT, {"input": "sub"})
            made.event(Kind.OUTPUT, {"final_output": text, "last_agent": "expert"})
        made.frame = "run:0"
        return made.runs("a", "b").says("ok").run()

    assert diff(talk("x", ["1", "2"]), talk("y", ["1", "2"])).same
    found = diff(talk("x", ["1", "2"]), talk("y", ["1", "3"]))
    assert [(row.change, row.a.frame[-5:], row.b.payload["final_output"]) for row in _changed(found)] == [
        (Change.CHANGED, "run:0", "3")
    ]


def test_ignored_paths_are_named():
    """What the user does not want compared is not compared, and the report says so."""
    other = refund("y", instructions="now it is 12:00").run()
    found = diff(refund("x").run(), other, ignore=["$.request.instructions"])
    assert found.same
    assert any("$.request.instructions" in note for note in found.notes)


def test_expired_payloads_are_compared_by_digest():
    """With the content gone a changed prompt is still found, by its keyed digest."""

    def talk(salt, digest):
        made = Conversation(salt=salt).user("Hi").asks(("lookup", {}), digests={"instructions": digest, "input": salt})
        run = made.runs("r").says("ok").run()
        return _replace(run, 1, payload=None, status=EventStatus.PAYLOAD_EXPIRED)

    assert diff(talk("x", "d1"), talk("y", "d1")).same
    found = diff(talk("x", "d1"), talk("y", "d2"))
    assert (found.first.cause, found.first.shown.path) == (Cause.CONFIG, "$.digests.instructions")
    assert any("1 events are compared by their digests" in note for note in found.notes)


def test_change_hidden_by_redaction_is_seen():
    """Two values that look alike after redaction differ if their digests do."""
    one, other = refund("x").run(), refund("y").run()
    at = next(event.seq for event in one.events if event.kind is Kind.TOOL_RESULT)
    found = diff(_replace(one, at, digests={"result": "1"}), _replace(other, at, digests={"result": "2"}))
    assert (found.first.cause, found.first.shown.path) == (Cause.TOOL, "$.digests.result")


def test_other_keys_compare_by_kind():
    """Pseudonyms made with different keys are compared by kind, and the report says so."""
    one = Conversation().user("I am <EMAIL:abcdefghijkl>, 9090000000001").says("ok").events
    other = Conversation(salt="y").user("I am <EMAIL:bbbbbbbbbbbb>, 9090000000001").says("ok").events
    assert not diff(run_of(one, key_id="k1"), run_of(other, key_id="k1")).same
    found = diff(run_of(one, key_id="k1"), run_of(other, key_id="k2"))
    assert found.same
    assert any("by kind only" in note for note in found.notes)


def test_partial_runs_are_noted():
    """A run that is not whole is compared, and the report says that what it lacks shows."""
    gap = Finding("gap", "2 events were recorded and are not stored")
    found = diff(refund("x").run(), run_of(refund("y").events[:-2], [gap]))
    assert [row.change for row in _changed(found)] == [Change.REMOVED, Change.REMOVED]
    assert any(note.startswith("B is partial") for note in found.notes)


def test_empty_runs_are_not_comparable():
    """A run with nothing to compare is refused, not called the same."""
    empty = run_of(())
    with pytest.raises(NotComparable, match="no events"):
        diff(refund().run(), empty)
    bare = run_of([dataclasses.replace(event, payload=None) for event in refund().events])
    with pytest.raises(NotComparable, match="neither payloads nor digests"):
        diff(bare, refund().run())


def test_json_is_plain_and_whole():
    """The JSON form survives a round trip and has every row."""
    found = diff(refund("x").run(), refund("y", instructions="v2").run())
    data = json.loads(json.dumps(found.to_json()))
    assert data["first"]["class"] == "CONFIG"
    assert data["first"]["shown"] == {"path": "$.request.instructions", "recorded": "TRIAGE: route.", "got": "v2"}
    assert len(data["rows"]) == len(found.rows)
    assert sum(data["counts"].values()) == len(found.rows)


@given(st.data())
def test_every_event_is_in_exactly_one_row(data):
    """However two runs differ, each event of both is in exactly one row, first run's in its own order."""
    call = st.tuples(st.sampled_from(["lookup", "policy"]), st.fixed_dictionaries({"id": st.integers(0, 2)}))

    def talk(salt):
        made = Conversation(salt=salt).user("Hi")
        for _ in range(data.draw(st.integers(0, 3))):
            calls = data.draw(st.lists(call, min_size=1, max_size=3))
            order = data.draw(st.permutations(range(len(calls))))
            made.asks(*calls).runs(*(data.draw(st.sampled_from("ab")) for _ in calls), finish=order)
            if data.draw(st.booleans()):
                made.guardrail("polite")
        return made.says("ok").run()

    one, other = talk("x"), talk("y")
    found = diff(one, other)
    assert [row.a.seq for row in found.rows if row.a] == [event.seq for event in one.events]
    assert sorted(row.b.seq for row in found.rows if row.b) == [event.seq for event in other.events]
    assert diff(one, one).same
