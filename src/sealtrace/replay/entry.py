"""Rerun by name: `package.module:agent` or `package.module:function`.

An agent is run on each recorded input, in the way it was run: streamed or not, with a session where
there was one. Code that does more than that (several agents, a context, approvals) is named as a
function, which is called with the first input, or with nothing if it takes nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from functools import reduce
from pathlib import Path
from typing import Any

from agents import Agent, Runner

from ..errors import NotComparable, SettingsError
from ..event import Kind
from .divergence import ReplayDiverged
from .memory_session import MemorySession
from .report import Report
from .rerun import rerun
from .shape import JSON, at, is_array
from .tape import Recorded, TapeFrame, open_tape

__all__ = ["Rerun", "find_entry", "rerun_entry"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rerun:
    """What came of rerunning code that was named.

    Attributes:
        report: The report.
        error: What the code itself raised, if anything: often recorded, sometimes the reason for a
            divergence.
    """

    report: Report
    error: Exception | None = None


def rerun_entry(run: Recorded, entry: Any, **options: Any) -> Rerun:
    """Rerun an agent or a function on a record; a divergence is in the report, not raised.

    Args:
        run: The recorded run.
        entry: What `find_entry` gives.
        options: As for `sealtrace.rerun`.

    Raises:
        NotComparable: The record or the entry cannot be rerun; the message says why.
    """
    play = _agent_play(run, entry) if isinstance(entry, Agent) else _function_play(run, entry)
    session = rerun(run, **options)
    error: Exception | None = None
    try:
        with session:
            try:
                play()
            except Exception as raised:  # noqa: BLE001 - whether it was to be raised is what the rerun finds out
                error = raised
    except ReplayDiverged:
        pass  # it is in the report
    return Rerun(session.report, error)


def find_entry(reference: str, *, beside: Path | None = None) -> Any:
    """Import what `package.module:name` names.

    Args:
        reference: The name.
        beside: A directory modules are also looked for in, as `python -m` does with the current one.

    Raises:
        SettingsError: There is no such module or name; the message says which.
    """
    module_name, colon, name = reference.partition(":")
    if not (module_name and colon and name):
        raise SettingsError(f"{reference!r} names no code: write package.module:agent, as in shop.agents:triage")
    if beside is not None and str(beside) not in sys.path:
        sys.path.insert(0, str(beside))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise SettingsError(f"cannot import {module_name} for {reference}: {error}") from error
    try:
        found: Any = reduce(getattr, name.split("."), module)
    except AttributeError:
        raise SettingsError(f"{module_name} has no {name}") from None
    if not (isinstance(found, Agent) or callable(found)):
        raise SettingsError(f"{reference} is a {type(found).__name__}; an agent or a function is needed")
    return found


def _function_play(run: Recorded, function: Callable[..., Any]) -> Callable[[], None]:
    inputs = [at(event.payload, "input") for frame in open_tape(run).roots for event in frame.of(Kind.INPUT)]
    wanted = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]
    if len(wanted) > 1:
        names = ", ".join(parameter.name for parameter in wanted)
        raise NotComparable(f"the function wants {names}: it is called with the run's input, or with nothing")

    def play() -> None:
        result = function(*inputs[: len(wanted)])
        if inspect.isawaitable(result):
            asyncio.run(_awaited(result))

    return play


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result


def _agent_play(run: Recorded, agent: Agent[Any]) -> Callable[[], None]:
    frames = open_tape(run).roots
    for frame in frames:
        if any(at(event.payload, "resumed") for event in frame.of(Kind.INPUT)):
            raise NotComparable("the run was resumed from a saved state: name a function that does so, not an agent")

    async def play_all() -> None:
        failure: Exception | None = None
        for frame in frames:
            try:
                await _play_frame(frame, agent)
            except Exception as error:  # noqa: BLE001 - the next run may have been started all the same
                failure = error
        if failure is not None:
            raise failure

    return lambda: asyncio.run(play_all())


async def _play_frame(frame: TapeFrame, agent: Agent[Any]) -> None:
    start = next(iter(frame.of(Kind.INPUT)), None)
    if start is None:
        return
    given: JSON = at(start.payload, "input")
    first = next(iter(frame.of(Kind.GENERATION)), None)
    request = at(first.payload, "request") if first is not None else None
    options: dict[str, Any] = {"max_turns": _turns(frame), "session": _session(given, request)}
    for name in ("previous_response_id", "conversation_id"):
        options[name] = at(request, name)
    started_with = _named(agent, start.agent, set()) or agent
    if at(request, "stream") is True:
        streamed = Runner.run_streamed(started_with, given, **options)
        async for _ in streamed.stream_events():
            pass
    else:
        await Runner.run(started_with, given, **options)


def _turns(frame: TapeFrame) -> int:
    answered = sum(at(event.payload, "response") is not None for event in frame.of(Kind.GENERATION))
    return answered if frame.error == "MaxTurnsExceeded" else answered + 1


def _session(given: JSON, request: JSON) -> MemorySession | None:
    """A run that sent more than its input had a session; the rerun fills it from the record."""
    sent = at(request, "input")
    count = len(given) if is_array(given) else 1
    return MemorySession("recorded", []) if is_array(sent) and len(sent) > count else None


def _named(agent: Agent[Any], name: str | None, seen: set[int]) -> Agent[Any] | None:
    """The agent of this name among those that handoffs lead to."""
    if agent.name == name:
        return agent
    seen.add(id(agent))
    for other in agent.handoffs:
        if isinstance(other, Agent) and id(other) not in seen:
            found = _named(other, name, seen)
            if found is not None:
                return found
    return None
