"""What reaches a terminal."""

from __future__ import annotations

import io
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from run.halves import RUN, TRACE, span
from sealtrace.event import EventStatus, Kind, RunEvent
from sealtrace.run import Finding, JoinedRecord, Run
from sealtrace.run.findings import HELD_BY_SERVER
from sealtrace.run.safe import neutralise, one_line
from sealtrace.run.text import console, duration, render_event, render_payloads, render_run

RECORD = "aa" * 16
ATTACKS = [
    "\x1b]52;c;cm0gLXJmIC8=\x07",  # OSC 52: write the clipboard
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",  # OSC 8: a link
    "\x1b[2J\x1b[H\x1b[31mred",  # CSI: clear, home, colour
    "\x9b31m\x9d0;title\x9c",  # the same with C1 controls
    "safe\r\x1b[Kroot# ",  # overwrite the line
    "abc\b\b\bxyz",
    "user\u202etxt.exe",  # right-to-left override
    "\u2066hidden\u2069",
    "a\u2028b\u2029c",
    "tag\U000e0041\U000e0042",
    "\x00\x07\x0e\x7f",
    "zero\u200bwidth\ufeff",
    "lone \ud800 surrogate",
]


def event(seq: int = 0, kind: Kind = Kind.TOOL_RESULT, **more: Any) -> RunEvent:
    """An event of one run."""
    return RunEvent(run_id=RUN, record_id=RECORD, seq=seq, ts="2026-12-01T09:30:00.000000Z", kind=kind, **more)


def run_of(*events: RunEvent, spans: tuple[Any, ...] = (), findings: tuple[Finding, ...] = ()) -> Run:
    """A run of these events."""
    return Run(RUN, (JoinedRecord(RECORD, None, events, (), in_vault=True),), spans, findings)


def printed(*what: Any, colour: bool | None = None) -> str:
    """What a console writes for it."""
    file = io.StringIO()
    out = console(file, colour=colour)
    for item in what:
        out.print(item)
    return file.getvalue()


def visible(character: str) -> bool:
    """Whether a terminal shows the character and does nothing."""
    return character in "\n\t\u200c\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(st.text(alphabet=st.characters(), max_size=60))
def test_neutralised_text_holds_nothing_a_terminal_obeys(text: str) -> None:
    """No control but newline and tab, no format character but the joiners, whatever goes in; twice is once."""
    safe = neutralise(text)
    assert all(map(visible, safe))
    assert neutralise(safe) == safe


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=60))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    """Letters of every script, signs and emoji pass unchanged, but for the letters that are blank."""
    blanks = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
    if not any(character in blanks for character in text):
        assert neutralise(text) == text


def test_what_is_replaced_can_be_told_apart() -> None:
    """Each character has a sign of its own, so that nothing is hidden by being replaced."""
    assert neutralise("\x1b[31m\x7f\u202e\x9b") == "␛[31m␡⟨U+202E⟩⟨U+009B⟩"
    assert neutralise("👩\u200d🚀 café") == "👩\u200d🚀 café"
    assert one_line("a\nb\tc") == "a␊b c"
    assert one_line("x" * 500, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_recorded_text_acts_on_the_terminal(attack: str) -> None:
    """Wherever hostile text stands in a run, a pipe gets no control character and a terminal only colours."""
    events = (
        event(0, Kind.GENERATION, agent=attack, model=attack, payload={"request": {"input": [{attack: attack}]}}),
        event(1, Kind.TOOL_CALL, call_id=attack, payload={"tool": attack, "arguments": attack}),
        event(
            2,
            Kind.GUARDRAIL,
            payload={"name": attack, "output_info": [attack]},
            error_type=attack,
            actor={attack: attack},
        ),
        event(3, Kind.HANDOFF, payload={"from": attack, "to": attack}),
    )
    handed = {"sealtrace.handoff.to": attack, "sealtrace.handoff.from": attack}
    spans = (
        span("01" * 8, "tool", attack, attributes={"error.type": attack, "gen_ai.tool.name": attack}),
        span("02" * 8, "handoff", "handoff", attributes=handed),
    )
    run = run_of(*events, spans=spans, findings=(Finding("unreadable", attack),))
    everything = [render_run(run), render_run(run_of(*events)), render_payloads(run), *map(render_event, events)]
    piped = printed(*everything)
    assert all(map(visible, piped))
    coloured = printed(*everything, colour=True)
    assert "\x1b[" in coloured
    assert all(map(visible, re.sub(r"\x1b\[[0-9;]*m", "", coloured)))


def test_content_cannot_pass_itself_off_as_a_line_of_ours() -> None:
    """Every line of a payload has the bar before it, however many lines the content makes."""
    forged = "fine\n\n#7 output  joined\n  │ final_output: all good\nstatus   complete"
    lines = printed(render_event(event(payload={"result": forged}))).splitlines()
    inside = lines[next(index for index, line in enumerate(lines) if "result:" in line) :]
    assert len(inside) == 6
    assert all(line.startswith("  │ ") for line in inside)
    assert all(line.startswith("  │   ┊ ") for line in inside[1:])


def test_markup_in_content_is_text() -> None:
    """What looks like markup, a link or an emoji code is printed as it is."""
    text = "[bold red]x[/] [link=https://evil.example]y[/link] :skull:"
    assert text in printed(render_event(event(payload={"result": text})))


def test_a_pipe_gets_whole_lines_without_colour() -> None:
    """A long line is neither wrapped nor cut where there is no terminal."""
    text = "word " * 600
    out = printed(render_event(event(payload={"result": text})))
    assert text.strip() in out
    assert "\x1b" not in out


def test_the_run_says_its_state_and_what_is_wrong() -> None:
    """Status, findings and redactions stand above the tree."""
    events = (event(payload={"result": "x"}, redactions={"EMAIL": 2}), event(1, redactions={"EMAIL": 1, "CARD": 1}))
    out = printed(render_run(run_of(*events, findings=(Finding("gap", "3 events were lost", RECORD, 4),))))
    assert "status   partial" in out
    assert "! 3 events were lost (event 4)" in out
    assert "redacted 1 CARD, 3 EMAIL" in out
    assert TRACE not in out


def test_an_event_without_a_payload_says_why() -> None:
    """The status stands where the payload would."""
    out = printed(render_event(event(status=EventStatus.PAYLOAD_EXPIRED)))
    assert "no payload: payload expired" in out


@pytest.mark.parametrize("whole", [True, False])
def test_server_held_context_is_said_in_every_text_view(whole: bool) -> None:
    """The tree, the list of payloads and the single event all say that something was not recorded."""
    asked = event(kind=Kind.GENERATION, payload={"request": {"conversation_id": "conv_1", "input": "hi"}})
    shown = render_event(asked) if whole else render_payloads(run_of(asked))
    assert HELD_BY_SERVER in printed(shown)
    assert HELD_BY_SERVER in printed(render_run(run_of(asked)))


def test_repeated_context_is_named_not_repeated() -> None:
    """Of a second request only what is new is shown, with the number of the event that has the rest."""
    first = {
        "instructions": "Be kind.",
        "input": [{"role": "user", "content": "one"}],
        "tools": [{"name": "t1"}, {"name": "t2"}],
    }
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}
    second = {
        **first,
        "input": [*first["input"], answer, {"type": "function_call_output", "call_id": "c", "output": "two"}],
    }
    events = [
        event(3, Kind.GENERATION, payload={"request": first}),
        event(5, Kind.GENERATION, payload={"request": second}),
    ]
    before, after = printed(render_payloads(run_of(*events))).split("#5")
    assert "user: one" in before
    assert "tools: t1, t2" in before
    assert "instructions: Be kind." in before
    assert "user: one" not in after
    assert "(1 item as in #3)" in after
    assert "instructions: (as in #3)" in after
    assert "assistant: hello" in after
    assert "result of c: two" in after


def test_a_long_string_is_shortened_in_the_list_and_whole_in_the_event() -> None:
    """The list says how much it left out; the single event leaves nothing out."""
    long = event(payload={"result": "x" * 5_000})
    assert "(1000 characters more; see --event)" in printed(render_payloads(run_of(long)))
    assert "x" * 5_000 in printed(render_event(long))


@pytest.mark.parametrize("payload", [[], {}, [[], {}], {"a": [[1, [2]]]}, None, True, 1.5, "", [None, "", {"b": {}}]])
def test_every_json_value_has_a_form(payload: Any) -> None:
    """Empty and nested values are shown, not stumbled over."""
    for kind in (Kind.GENERATION, Kind.INPUT, Kind.CUSTOM):
        assert printed(render_payloads(run_of(event(kind=kind, payload=payload))))


def test_durations_have_the_unit_that_fits() -> None:
    """Milliseconds, seconds, minutes."""
    assert [duration(value) for value in (0.44, 44.4, 1440, 61_500)] == ["0.4 ms", "44 ms", "1.44 s", "1 min 2 s"]
