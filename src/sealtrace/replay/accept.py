"""Accept that code has changed: the golden follows it, as far as recorded answers still fit.

The golden is rerun; where the code now asks something else, what it asks replaces what was recorded,
and the rerun begins again, until it passes. Answers of the model and results of tools stay the
recorded ones. Where the code now does something for which there is no answer, the run has to be
recorded again.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, Final

from ..errors import GoldenError
from ..event import Kind, RunEvent
from ..run import Run
from .entry import rerun_entry
from .jsondiff import ABSENT, parse_path, same
from .report import Divergence, Outcome
from .shape import JSON, at, is_array, is_object

__all__ = ["Accepted", "follow"]

_MOST: Final = 500
"""Differences followed at most; more than that is another run."""

_PLACES: Final = ("$.",)
_FOLLOWED: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.GENERATION: ("$.request", "$.agent"),
    Kind.TOOL_RESULT: (),
    # Another verdict or another kind of end is another course of the run.
    Kind.GUARDRAIL: ("$.output_info", "$.agent"),
    Kind.APPROVAL: ("$.arguments", "$.agent"),
    Kind.OUTPUT: ("$.final_output", "$.last_agent", "$.agent"),
    Kind.ERROR: ("$.message", "$.agent"),
}
"""What of an event may follow the code, by the beginning of its path; anything for kinds not named."""

_AGAIN: Final = "record the run again and accept that: `sealtrace golden accept NAME --run RUN --reason …`"


@dataclasses.dataclass(frozen=True, slots=True)
class Accepted:
    """A run that follows the code.

    Attributes:
        run: The run with what the code asks now.
        what: What changed, a line each; empty where nothing had to.
    """

    run: Run
    what: tuple[str, ...]


def follow(run: Run, entry: Any, **options: Any) -> Accepted:
    """Make a recorded run follow changed code.

    Args:
        run: The recorded run.
        entry: What `find_entry` gives.
        options: As for `sealtrace.rerun`.

    Raises:
        GoldenError: The code does something for which the record has no answer.
        NotComparable: The run cannot be rerun.
    """
    what: dict[str, None] = {}
    for _ in range(_MOST):
        done = rerun_entry(run, entry, **options)
        divergence = done.report.divergence
        if done.report.outcome is Outcome.SAME or divergence is None:
            return Accepted(run, tuple(what))
        changed = _followed(run, divergence)
        if changed is None:
            raise GoldenError(f"{divergence.message}, and the record has no answer to that; {_AGAIN}")
        run = changed
        what[f"event {divergence.seq} {divergence.kind} {divergence.path}"] = None
    raise GoldenError(f"more than {_MOST} differences: this is another run; {_AGAIN}")


def _followed(run: Run, divergence: Divergence) -> Run | None:
    """The run with the difference taken over; None where that cannot be done or changes nothing."""
    if divergence.seq is None or not divergence.path.startswith(_FOLLOWED.get(divergence.kind, _PLACES)):
        return None
    touched = False
    records: list[Any] = []
    for record in run.records:
        events: list[RunEvent] = []
        for event in record.events:
            changed = _changed(event, divergence) if _is_concerned(event, divergence) else None
            touched |= changed is not None
            events.append(changed or event)
        records.append(dataclasses.replace(record, events=tuple(events)))
    return dataclasses.replace(run, records=tuple(records)) if touched else None


def _is_concerned(event: RunEvent, divergence: Divergence) -> bool:
    """The event itself, and the later calls of its run, which will ask the same."""
    if event.record_id != divergence.record_id or event.frame != divergence.frame or event.kind != divergence.kind:
        return False
    later = event.kind is Kind.GENERATION and event.seq > (divergence.seq or 0)
    return event.seq == divergence.seq or later


def _changed(event: RunEvent, divergence: Divergence) -> RunEvent | None:
    steps = parse_path(divergence.path)
    if steps == ("agent",):
        return dataclasses.replace(event, agent=divergence.got) if event.agent == divergence.recorded else None
    if steps == ("request", "model") and at(event.payload, "request", "requested_model") is not None:
        steps = ("request", "requested_model")
    payload = copy.deepcopy(event.payload)
    if not _put(payload, list(steps), divergence.recorded, divergence.got):
        return None
    return dataclasses.replace(event, payload=payload)


def _put(value: JSON, steps: list[Any], recorded: JSON, got: JSON) -> bool:
    """Change the value at the path from `recorded` to `got`; False where it is not `recorded` there."""
    *way, last = steps
    for step in way:
        found = _step(value, step)
        if found is ABSENT:
            return False
        value = found
    put: Callable[[Any, Any, JSON, JSON], bool] = _put_in_array if is_array(value) else _put_in_object
    return put(value, last, recorded, got)


def _step(value: JSON, step: Any) -> JSON:
    if is_object(value):
        return value.get(step, ABSENT)
    return value[step] if is_array(value) and isinstance(step, int) and step < len(value) else ABSENT


def _put_in_object(value: JSON, key: Any, recorded: JSON, got: JSON) -> bool:
    if not is_object(value) or not same(value.get(key, ABSENT), recorded):
        return False
    if got is ABSENT:
        del value[key]
    else:
        value[key] = got
    return True


def _put_in_array(value: list[JSON], index: Any, recorded: JSON, got: JSON) -> bool:
    if not isinstance(index, int):
        return False
    if recorded is ABSENT:
        value.insert(index, got)
        return True
    if index >= len(value) or not same(value[index], recorded):
        return False
    value[index : index + 1] = [] if got is ABSENT else [got]
    return True
