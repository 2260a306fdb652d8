"""Name the cause of a difference between two recorded runs.

Meant for the first event that differs, where everything before it is equal: only then does "the same
request, answered otherwise" mean what it says. For the events after it the answer is a first guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..event import Kind
from .align import Pair
from .cause import Cause
from .jsondiff import Difference, parse_path
from .shape import JSON, at, items, objects

__all__ = ["Attributor"]

_EVENT_CAUSES: Final = {
    Kind.INPUT: Cause.INPUT,
    Kind.TOOL_CALL: Cause.LOGIC,
    Kind.TOOL_RESULT: Cause.TOOL,
    Kind.HANDOFF: Cause.LOGIC,
    Kind.GUARDRAIL: Cause.POLICY,
    Kind.OUTPUT: Cause.LOGIC,
    Kind.APPROVAL: Cause.POLICY,
    Kind.RETRIEVAL: Cause.EVIDENCE,
    Kind.CHECKPOINT: Cause.LOGIC,
    Kind.MCP_TOOLS: Cause.CONFIG,
    Kind.CUSTOM: Cause.LOGIC,
    Kind.ERROR: Cause.LOGIC,
    Kind.GENERATION: Cause.LOGIC,  # a turn too many or too few; what differs inside one is looked at below
}
_ENVELOPE_CAUSES: Final = {"actor": Cause.POLICY, "config": Cause.CONFIG, "agent": Cause.LOGIC}
_HOSTED_EVIDENCE: Final = frozenset({"results", "outputs", "sources"})


class Attributor:
    """Knows what the two runs have done so far, which tells old evidence from changed code."""

    def __init__(self) -> None:
        self._results: dict[str | None, bool] = {}
        self._answers: dict[str, bool] = {}

    def passed(self, pair: Pair, *, differed: bool) -> None:
        """This pair lies behind, and it did or did not differ."""
        for item in (pair.a, pair.b):
            if item is None:
                continue
            if item.kind is Kind.TOOL_RESULT:
                self._results[item.event.call_id] = differed
            elif item.kind is Kind.GENERATION:
                for answer in objects(at(item.event.payload, "response", "output")):
                    self._answers.setdefault(_identity(answer), differed)

    def quotes_a_difference(self, pair: Pair, difference: Difference) -> bool:
        """Whether it lies in a message that only quotes an answer or a result that differed before."""
        steps = _steps(difference)
        if steps[:2] != ["request", "input"]:
            return False
        return any(
            self._results.get(item.get("call_id")) if _is_result(item) else self._answers.get(_identity(item))
            for item in _history_items(pair, steps[2] if len(steps) > 2 else None)
        )

    def cause(self, pair: Pair, differences: Iterable[Difference]) -> tuple[Cause, Difference | None]:
        """The cause of a pair's difference, and the difference that shows it.

        Args:
            pair: Two events that differ, one that has no counterpart, or a pair that moved.
            differences: Where they differ; none where the event has no counterpart or moved as it is.
        """
        found = [(self._one(pair, difference), difference) for difference in differences]
        if not found or pair.a is None or pair.b is None:
            item = pair.a or pair.b
            return (_EVENT_CAUSES[item.kind] if item is not None else Cause.LOGIC), None
        if pair.a.kind is Kind.GENERATION:
            # The model cannot be blamed while its request differs, whatever else the rank says.
            asked = [one for one in found if one[0] is not Cause.MODEL]
            found = asked or found
        return min(found, key=lambda one: one[0].rank)

    def _one(self, pair: Pair, difference: Difference) -> Cause:
        item = pair.a or pair.b
        assert item is not None
        steps = _steps(difference)
        top = steps[0] if steps else ""
        if top in _ENVELOPE_CAUSES:
            return _ENVELOPE_CAUSES[str(top)]
        if item.kind is Kind.GENERATION:
            return self._in_generation(pair, steps)
        return _EVENT_CAUSES[item.kind]

    def _in_generation(self, pair: Pair, steps: list[str | int]) -> Cause:
        if steps[:1] == ["digests"]:
            return Cause.CONFIG
        if steps[:1] != ["request"]:
            hosted = steps[:2] == ["response", "output"] and len(steps) > 3 and steps[3] in _HOSTED_EVIDENCE
            return Cause.EVIDENCE if hosted else Cause.MODEL
        if steps[1:2] != ["input"]:
            return Cause.CONFIG
        return self._in_history(pair, steps[2] if len(steps) > 2 else None)

    def _in_history(self, pair: Pair, index: str | int | None) -> Cause:
        """A message in the model's input: from outside, or something this run produced itself?"""
        for item in _history_items(pair, index):
            if _is_result(item):
                # The tool ran in these runs with an equal result, so the code in between changed it.
                return Cause.LOGIC if item.get("call_id") in self._results else Cause.EVIDENCE
            if _identity(item) in self._answers:
                return Cause.LOGIC
        return Cause.INPUT


def _steps(difference: Difference) -> list[str | int]:
    return [step for step in parse_path(difference.path) if isinstance(step, str | int)]


def _history_items(pair: Pair, index: str | int | None) -> list[dict[str, JSON]]:
    if not isinstance(index, int):
        return []
    histories = [items(at(item.event.payload, "request", "input")) for item in (pair.a, pair.b) if item is not None]
    return objects([history[index] for history in histories if index < len(history)])


def _is_result(item: dict[str, JSON]) -> bool:
    return str(item.get("type", "")).endswith("_output")


def _identity(item: dict[str, JSON]) -> str:
    return repr([item.get(name) for name in ("type", "role", "call_id", "name", "arguments", "content")])
