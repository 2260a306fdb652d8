"""Ids and links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.errors import RunNotFound
from sealtrace.event import canonical_run_id
from sealtrace.run import parse_reference

HEX = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_run_id_is_a_run_id_only() -> None:
    """What begins with `trace_` is never taken for an OpenTelemetry trace id."""
    found = parse_reference(f"trace_{HEX}")
    assert (found.run_id, found.trace_id, found.event) == (f"trace_{HEX}", None, None)


@pytest.mark.parametrize("text", [HEX, HEX.upper(), f"  {HEX}\n"])
def test_bare_digits_may_be_either_id(text: str) -> None:
    """32 hex digits are tried as a run id and as a trace id, whatever their case."""
    found = parse_reference(text)
    assert (found.run_id, found.trace_id) == (f"trace_{HEX}", HEX)


@pytest.mark.parametrize("given", ["ticket/4711", "trace_short", "my run", "ftp://x/runs/1"])
def test_any_other_text_is_an_id_given_to_the_sdk(given: str) -> None:
    """An id of the user's own finds the run that the recorder made of it."""
    found = parse_reference(given)
    assert (found.run_id, found.trace_id) == (canonical_run_id(given), None)


@pytest.mark.parametrize(
    ("link", "run_id", "trace_id", "event"),
    [
        (f"http://127.0.0.1:8765/runs/trace_{HEX}", f"trace_{HEX}", None, None),
        (f"https://viewer.example/a/b/runs/{HEX}?event=12", f"trace_{HEX}", None, 12),
        (f"https://viewer.example/runs/{HEX}/?event=1&event=2", f"trace_{HEX}", None, None),
        (f"https://jaeger.example/trace/{HEX}", None, HEX, None),
        (f"https://viewer.example/traces/{HEX.upper()}?event=3", None, HEX, 3),
        (f"/runs/{HEX}?event=0", f"trace_{HEX}", None, 0),
        (f"https://viewer.example/runs/{HEX}?event=-1", f"trace_{HEX}", None, None),
        (f"https://viewer.example/runs/{HEX}?event=9e9", f"trace_{HEX}", None, None),
    ],
)
def test_links_carry_an_id_and_perhaps_an_event(
    link: str, run_id: str | None, trace_id: str | None, event: int | None
) -> None:
    """Of a link the id and the event number count, and nothing else."""
    found = parse_reference(link)
    assert (found.run_id, found.trace_id, found.event) == (run_id, trace_id, event)


@pytest.mark.parametrize(
    "link",
    [
        "",
        "   ",
        "https://viewer.example/",
        "https://viewer.example/runs/",
        f"https://viewer.example/runs/{HEX}/../../etc",
        f"https://viewer.example/runs/{HEX[:-1]}",
        f"https://viewer.example/runs/{HEX}0",
        f"https://viewer.example/other/{HEX}",
        f"https://viewer.example/?run={HEX}",
        "https://[::1/runs/x",
        "https://viewer.example/runs/" + "a" * 3000,
    ],
)
def test_a_link_without_a_valid_id_is_refused(link: str) -> None:
    """Nothing but 32 hex digits in the right place is looked for."""
    with pytest.raises(RunNotFound):
        parse_reference(link)


@given(st.text(max_size=300))
def test_any_text_gives_valid_ids_or_is_refused(text: str) -> None:
    """Whatever the text, what comes out is fit for an object key."""
    try:
        found = parse_reference(text)
    except RunNotFound:
        return
    for identifier in (found.run_id, found.trace_id):
        assert identifier is None or canonical_run_id(identifier).removeprefix("trace_").isalnum()
    assert found.run_id or found.trace_id
