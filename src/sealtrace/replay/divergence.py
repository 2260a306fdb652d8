"""The exception a divergence is, and its class.

`ReplayDiverged` is a `BaseException`: the Agents SDK makes text for the model of every `Exception`
raised in a tool, and a divergence that became a plausible answer would be worse than none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..event import Kind
from .cause import Cause
from .jsondiff import ABSENT, Difference, parse_path
from .shape import JSON, at, items, objects

if TYPE_CHECKING:
    from .report import Divergence, Report
    from .tape import TapeFrame

__all__ = ["EVENT_CAUSES", "ReplayDiverged", "cause_in_input", "cause_in_request", "spell"]


class ReplayDiverged(BaseException):
    """The rerun did something else than what was recorded.

    It is latched: once raised it is raised again at every later seam and when the rerun is left, so
    code that catches it cannot hide it.

    Attributes:
        divergence: The first difference.
        report: The whole report; there once the rerun has been left.
    """

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(spell(divergence))
        self.divergence = divergence
        self.report: Report | None = None


def spell(divergence: Divergence) -> str:
    """One line: where, what kind of thing, and what happened; values are in the report."""
    event = f"event {divergence.seq}" if divergence.seq is not None else "no recorded event"
    who = " ".join(name for name in (divergence.agent, divergence.tool) if name)
    where = f" at {divergence.path}" if divergence.path != "$" else ""
    return (
        f"{divergence.cause}: {divergence.message}{where}"
        f" ({event}, {divergence.kind}{f' of {who}' if who else ''}, frame {divergence.frame or '-'})"
    )


EVENT_CAUSES: Final = {
    Kind.INPUT: Cause.INPUT,
    Kind.GENERATION: Cause.LOGIC,
    Kind.TOOL_CALL: Cause.LOGIC,
    Kind.TOOL_RESULT: Cause.TOOL,
    Kind.HANDOFF: Cause.LOGIC,
    Kind.GUARDRAIL: Cause.POLICY,
    Kind.APPROVAL: Cause.POLICY,
    Kind.MCP_TOOLS: Cause.CONFIG,
    Kind.OUTPUT: Cause.LOGIC,
    Kind.ERROR: Cause.LOGIC,
}
"""What a difference in an event is, unless something inside it says better."""


def cause_in_request(difference: Difference, frame: TapeFrame, request: JSON, got: JSON) -> Cause:
    """The class of a difference inside a model request, recorded answers being served.

    Args:
        difference: Where they differ, `$.request` being the request.
        frame: The recorded frame.
        request: The recorded request.
        got: The live request, redacted.
    """
    steps = [step for step in parse_path(difference.path) if isinstance(step, str | int)]
    if steps[:2] != ["request", "input"]:
        return Cause.CONFIG
    if len(steps) < 3 or not isinstance(steps[2], int):
        return Cause.INPUT
    index = steps[2]
    history = [items(at(side, "input")) for side in (request, got)]
    for item in objects([side[index] for side in history if index < len(side)]):
        cause = _of_item(item, difference, frame)
        if cause is not None:
            return cause
    return Cause.INPUT


def cause_in_input(difference: Difference, recorded: JSON, got: JSON) -> Cause:
    """The class of a difference in what a run was given: another tool output from before is other evidence."""
    steps = [step for step in parse_path(difference.path) if isinstance(step, str | int)]
    if steps[:1] != ["input"] or len(steps) < 2 or not isinstance(steps[1], int):
        return Cause.INPUT
    given = [items(at(side, "input")) for side in (recorded, got)]
    there = objects([side[steps[1]] for side in given if steps[1] < len(side)])
    outputs = [str(item.get("type", "")).endswith("_output") for item in there]
    return Cause.EVIDENCE if outputs and all(outputs) else Cause.INPUT


def _of_item(item: dict[str, Any], difference: Difference, frame: TapeFrame) -> Cause | None:
    """What a message of the history says of its origin; None for one that came from outside."""
    if str(item.get("type", "")).endswith("_output"):
        return _of_result(item, difference, frame)
    answers = [
        answer for event in frame.of(Kind.GENERATION) for answer in items(at(event.payload, "response", "output"))
    ]
    if any(_same_origin(item, answer) for answer in objects(answers)):
        return Cause.LOGIC
    return None


def _of_result(item: dict[str, Any], difference: Difference, frame: TapeFrame) -> Cause:
    calls = [event for event in frame.of(Kind.TOOL_CALL) if _calls(event.call_id, event.payload, item)]
    if not calls:
        handoffs = any(event.call_id == item.get("call_id") for event in frame.of(Kind.HANDOFF))
        answered = any(answer.get("call_id") == item.get("call_id") for answer in _answers(frame))
        return Cause.LOGIC if handoffs or answered else Cause.EVIDENCE
    if difference.got is ABSENT or difference.recorded is ABSENT:
        return Cause.LOGIC
    result = frame.result_of(calls[0])
    told = at(result.payload, "result") if result is not None else None
    # Served as recorded and told as recorded: then it was changed on its way into the request.
    return Cause.LOGIC if isinstance(told, str) and told == difference.recorded else Cause.TOOL


def _answers(frame: TapeFrame) -> list[dict[str, Any]]:
    return [
        answer
        for event in frame.of(Kind.GENERATION)
        for answer in objects(items(at(event.payload, "response", "output")))
    ]


def _calls(call_id: str | None, payload: JSON, item: dict[str, Any]) -> bool:
    wanted = item.get("call_id")
    return call_id == wanted or at(payload, "arguments", "call_id") == wanted


def _same_origin(item: dict[str, Any], answer: dict[str, Any]) -> bool:
    for name in ("call_id", "id"):
        if item.get(name) is not None and item.get(name) == answer.get(name):
            return True
    return item.get("role") == "assistant" and item.get("content") == answer.get("content")
