"""What can be rerun, and what is refused with a reason."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import sealtrace
from replay.world import KEY, record, support
from sealtrace.errors import NotComparable, SettingsError
from sealtrace.event import EventStatus
from sealtrace.replay.tape import open_tape


def with_header(run: Any, **fields: Any) -> Any:
    """The run with another manifest."""
    record_ = run.records[0]
    return dataclasses.replace(
        run, records=(dataclasses.replace(record_, header=dataclasses.replace(record_.header, **fields)),)
    )


def with_record(run: Any, **fields: Any) -> Any:
    """The run with another record."""
    return dataclasses.replace(run, records=(dataclasses.replace(run.records[0], **fields),))


@pytest.fixture
def run(vault_url: str) -> Any:
    """A whole run."""
    return record(support, vault_url)


def test_records_that_are_not_whole_are_refused_by_name(run: Any) -> None:
    """Each refusal says what is missing, before any code runs."""
    lost = tuple(
        dataclasses.replace(event, payload=None, status=EventStatus.PAYLOAD_EXPIRED) if event.seq == 3 else event
        for event in run.events
    )
    for changed, words in (
        (with_header(run, fidelity="trace"), "fidelity trace"),
        (with_record(run, partial=True, header=None), "no manifest"),
        (with_record(run, gaps=(4,)), "lacks events"),
        (with_record(run, events=lost), "event 3 .* has expired"),
        (with_record(run, events=()), "no events"),
    ):
        with pytest.raises(NotComparable, match=words):
            sealtrace.rerun(changed, key=KEY)


def test_frames_are_found_by_their_path(run: Any) -> None:
    """One root, and the agent used as a tool below the call that opened it."""
    tape = open_tape(run)
    (root,) = tape.roots
    assert root.path == "run:0"
    assert [frame.path for frame in tape.below(root)] == ["run:0/tool:call_5/run:0"]
    assert [frame.path for frame in tape.below(root, "tool:call_5")] == ["run:0/tool:call_5/run:0"]
    assert tape.below(root, "tool:call_4") == []
    assert tape.total == len(run.events)


def test_a_path_or_a_pattern_that_cannot_be_read_is_refused(run: Any) -> None:
    """Before anything runs, with the word that is wrong."""
    with pytest.raises(SettingsError, match="path"):
        sealtrace.rerun(run, key=KEY, ignore=["request.input"])
    with pytest.raises(SettingsError, match="ignore"):
        sealtrace.rerun(run, key=KEY, pin=["("])
    with pytest.raises(SettingsError, match="sandbox"):
        sealtrace.rerun(run, key=KEY, redirect={"refund": "not callable"})  # type: ignore[dict-item]
    with pytest.raises(SettingsError, match="effect"):
        sealtrace.effect("wirte")  # type: ignore[arg-type]


def test_resume_needs_an_event_that_is_there(run: Any) -> None:
    """An unknown number is not the end of the run."""
    with pytest.raises(NotComparable, match="no event 999"):
        sealtrace.resume(run, at=999, key=KEY)
