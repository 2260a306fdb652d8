"""Whatever breaks in the recorder, the user's run is the same to the letter."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import sealtrace
from noninterference.faults import ERRORS, Switchboard, install
from noninterference.story import MODES, Story, plain, tell

PARTS = ("agents_sdk", "redaction", "telemetry", "vault", "the rest")

BY_THE_CLOCK = (".tick", "._tick", ".stale")
"""Called once a second, which no story lasts."""

# A switch in the background thread's own loop ends that thread, loudly, which is not the run's concern.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture
def board() -> Iterator[Switchboard]:
    """A switch in each function of the recording path."""
    board = Switchboard()
    with pytest.MonkeyPatch.context() as patch:
        install(board, patch)
        yield board


@contextlib.contextmanager
def recording(vault: Path) -> Iterator[None]:
    """The recorder is on."""
    sealtrace.instrument(vault=vault.as_uri(), key="a key only used in tests", exit_timeout=0.2)
    try:
        yield
    finally:
        sealtrace.uninstrument()


@pytest.mark.parametrize("mode", MODES)
def test_a_recorder_that_works_changes_nothing(mode: str, tmp_path: Path) -> None:
    """With the recorder on, results, exceptions and the order of calls are those of the plain run."""
    expected = plain(mode)
    with recording(tmp_path / "vault"):
        assert asyncio.run(tell(mode)) == expected


def called_in_a_run(board: Switchboard, vault: Path) -> list[str]:
    """The functions of the recording path that a told story calls, in the order of their modules."""
    with recording(vault):
        board.called.clear()
        for mode in MODES:
            asyncio.run(tell(mode))
        assert sealtrace.flush(10.0)
        called = set(board.called)
    return [name for name in board.names if name in called and not name.endswith(BY_THE_CLOCK)]


def part_of(name: str) -> str:
    """The part of the house a function is in."""
    package = name.split(".")[1]
    return package if package in PARTS else "the rest"


def test_the_story_is_told_by_most_of_the_recorder(board: Switchboard, tmp_path: Path) -> None:
    """The story calls each part of the recording path, so that the next test means something."""
    called = called_in_a_run(board, tmp_path / "vault")
    assert len(called) > 200
    assert min(len([name for name in called if part_of(name) == part]) for part in PARTS) > 10


@pytest.mark.parametrize("part", PARTS)
def test_a_recorder_that_breaks_changes_nothing(part: str, board: Switchboard, tmp_path: Path) -> None:
    """Each function of the recording path raises each kind of exception, and the run is none the wiser."""
    expected = {mode: plain(mode) for mode in MODES}
    names = [name for name in called_in_a_run(board, tmp_path / "first") if part_of(name) == part]
    modes = itertools.cycle(MODES)
    changed: list[tuple[str, str]] = []
    silent: list[str] = []
    for number, name in enumerate(names):
        left = [*ERRORS[number % 4 :], *ERRORS[: number % 4]]
        for attempt in range(len(ERRORS) + 1):
            mode = next(modes)
            if broken_story(board, name, left, mode, tmp_path / f"{number}-{attempt}") != expected[mode]:
                changed.append((name, mode))
            left = [error for error in left if error not in board.fired]
            if not left:
                break
        else:
            silent.append(name)
    assert sorted(set(changed)) == [], "\n".join(map(str, sorted(set(changed))))
    # Random ids now and then look like an IBAN, say: what is not called in every run need not break in one.
    for number in range(3 if silent else 0):
        called = called_in_a_run(board, tmp_path / f"again-{number}")
        silent = [name for name in silent if name in called]
    assert silent == []


def broken_story(
    board: Switchboard, name: str, errors: list[type[BaseException]], mode: str, vault: Path
) -> Story | BaseException:
    """The story while this function raises; what came out of it instead, if it did not come to its end."""
    with recording(vault):
        board.arm(name, errors)
        try:
            story = asyncio.run(told_in_time(mode))
            sealtrace.flush(0.5)
        except BaseException as error:
            return error
        finally:
            board.disarm()
    return story


async def told_in_time(mode: str) -> Story:
    """The story, or a story that was cut short where a run does not come to its end."""
    async with asyncio.timeout(20):
        return await tell(mode)
