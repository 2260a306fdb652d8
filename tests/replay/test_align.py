"""Which event answers to which."""

from __future__ import annotations

from replay.handmade import Conversation
from sealtrace.event import Kind
from sealtrace.replay.align import align
from sealtrace.replay.comparable import subject


def _pairs(one, other):
    sides = [[subject(event, index) for index, event in enumerate(talk.events)] for talk in (one, other)]
    return align(*sides)


def _calls(pairs):
    """Arguments on both sides of each tool call pair, and whether it moved."""
    found = [pair for pair in pairs if Kind.TOOL_CALL in {item.kind for item in (pair.a, pair.b) if item}]
    return [tuple(item and item.value["arguments"].get("id") for item in (pair.a, pair.b)) for pair in found]


def _talk(salt, *ids, tool="lookup", batch=False):
    made = Conversation(salt=salt).user("Hi")
    calls = [(tool, {"id": number}) for number in ids]
    if batch:
        made.asks(*calls).runs(*ids)
    else:
        for one in calls:
            made.asks(one).runs(one[1]["id"])
    return made.says("ok")


def test_equal_calls_find_each_other():
    """A call that is not there any more leaves the others paired with themselves."""
    assert _calls(_pairs(_talk("x", 1, 2, 3), _talk("y", 1, 3))) == [(1, 1), (2, None), (3, 3)]
    assert _calls(_pairs(_talk("x", 1, 3), _talk("y", 1, 2, 3))) == [(1, 1), (None, 2), (3, 3)]


def test_changed_calls_are_paired():
    """A call with other arguments in the same place is the same call, changed."""
    assert _calls(_pairs(_talk("x", 1, 2, 3), _talk("y", 1, 7, 3))) == [(1, 1), (2, 7), (3, 3)]


def test_other_tools_are_other_calls():
    """A call of another tool is never the same call, changed."""
    pairs = _pairs(_talk("x", 1), _talk("y", 1, tool="policy"))
    assert sorted(map(str, _calls(pairs))) == ["(1, None)", "(None, 1)"]


def test_results_follow_their_calls():
    """Results are paired through their calls, whatever order they came in and whatever they are."""
    one, other = Conversation().user("Hi"), Conversation(salt="y").user("Hi")
    for talk, order in ((one, [0, 1]), (other, [1, 0])):
        talk.asks(("lookup", {"id": 1}), ("lookup", {"id": 2})).runs("same", "same", finish=order).says("ok")
    for pair in _pairs(one, other):
        if pair.a is not None and pair.a.kind is Kind.TOOL_RESULT:
            call_a, call_b = (talk.events[item.event.parent_seq] for talk, item in ((one, pair.a), (other, pair.b)))
            assert call_a.payload["arguments"] == call_b.payload["arguments"]


def test_calls_of_one_answer_may_start_in_any_order():
    """Parallel calls are taken in the order the model asked for them, not in the order they started."""
    one, other = _talk("x", 1, 2, 3, batch=True), _talk("y", 1, 2, 3, batch=True)
    calls = [index for index, event in enumerate(other.events) if event.kind is Kind.TOOL_CALL]
    other.events[calls[0]], other.events[calls[2]] = other.events[calls[2]], other.events[calls[0]]
    pairs = _pairs(one, other)
    assert _calls(pairs) == [(1, 1), (2, 2), (3, 3)]
    assert not any(pair.moved for pair in pairs)


def test_moved_calls_are_marked():
    """A call found in another place is one pair that moved; what was only passed over did not."""
    pairs = _pairs(_talk("x", 1, 2, 3, 4), _talk("y", 4, 1, 2, 3))
    assert [(pair.a.value["arguments"]["id"]) for pair in pairs if pair.moved] == [4]


def test_nested_runs_with_the_same_call_id():
    """Runs opened by calls that reuse an id are told apart by their order."""

    def talk(salt):
        made = Conversation(salt=salt).user("Hi")
        for number in range(2):
            made.asks(("expert", {"id": number}))
            made.frame = f"run:0/tool:again/run:{number}"
            made.event(Kind.INPUT, {"input": f"sub {number}"})
            made.frame = "run:0"
            made.runs("r")
            for event in made.events:
                if event.kind is Kind.TOOL_CALL:
                    object.__setattr__(event, "call_id", "again")
        return made.says("ok")

    pairs = _pairs(talk("x"), talk("y"))
    inner = [(pair.a.value["input"], pair.b.value["input"]) for pair in pairs if pair.a and "/" in pair.a.event.frame]
    assert inner == [("sub 0", "sub 0"), ("sub 1", "sub 1")]


def test_resumed_runs_are_paired_by_order():
    """A run resumed in another process begins again at `run:0`; the second answers to the second."""

    def talk(salt, *texts):
        made = []
        for number, text in enumerate(texts):
            part = Conversation(salt=f"{salt}{number}").user(text).says("ok")
            made += part.events
        whole = Conversation(salt=salt)
        whole.events = made
        return whole

    pairs = _pairs(talk("x", "one", "two"), talk("y", "one", "two"))
    inputs = [(pair.a.value["input"], pair.b.value["input"]) for pair in pairs if pair.a.kind is Kind.INPUT]
    assert inputs == [("one", "one"), ("two", "two")]


def test_large_frames_are_aligned_by_equality():
    """A frame too large for a table is still aligned, by what is equal."""
    count = 1100
    one = Conversation()
    other = Conversation(salt="y")
    for talk, skipped in ((one, 10), (other, 20)):
        for number in range(count):
            if number != skipped:
                talk.event(Kind.CUSTOM, {"name": "n", "data": number})
    pairs = _pairs(one, other)
    assert [
        (pair.a and pair.a.value["data"], pair.b and pair.b.value["data"]) for pair in pairs if not (pair.a and pair.b)
    ] == [
        (None, 10),
        (20, None),
    ]
