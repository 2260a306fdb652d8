"""A payload without the beginning of the conversation it quotes.

The thousandth request of a run quotes the thousand messages before it, from all over the record. Who
looks at the request wants to see what is new in it; the rest can be asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

__all__ = ["Excerpt", "shortened"]


@dataclasses.dataclass(frozen=True, slots=True)
class Excerpt:
    """A payload, or the end of it.

    Attributes:
        payload: Plain JSON.
        left_out: How many items are missing at the beginning of `request.input`.
    """

    payload: Any
    left_out: int = 0


def shortened(stored: Any, nearby: Collection[int], newest: int) -> Excerpt:
    """The stored form of a payload with only the end of its conversation.

    Args:
        stored: A payload as it is stored, with ranges of message ids for a conversation.
        nearby: Messages that are at hand; as far as they reach back without a gap they are kept.
        newest: Kept in any case: so many messages from the end.
    """
    ranges, request = _conversation(stored)
    if ranges is None:
        return Excerpt(stored)
    kept: list[list[int]] = []
    left_out = wanted = 0
    cut = False
    for pair in reversed(ranges):
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)):
            return Excerpt(stored)  # whoever restores it says what is wrong with it
        first, last = pair
        start = last + 1
        while not cut and start > first:
            if wanted >= newest and start - 1 not in nearby:
                cut = True
            else:
                start -= 1
                wanted += 1
        if start <= last:
            kept.insert(0, [start, last])
        left_out += start - first
    return Excerpt({**stored, "request": {**request, "input": {"$list": kept}}}, left_out)


def _conversation(stored: Any) -> tuple[list[Any] | None, dict[str, Any]]:
    """The ranges of a request's conversation, and the request; None where it quotes none."""
    request = stored.get("request") if isinstance(stored, dict) else None
    given = request.get("input") if isinstance(request, dict) else None
    ranges = given.get("$list") if isinstance(given, dict) else None
    return (ranges if isinstance(ranges, list) else None), (request if isinstance(request, dict) else {})
