"""An event as far as it could be read, and small parts that the panels of all kinds share."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..event import RunEvent
from .content import value
from .html import Child, Html, tag
from .links import Links

__all__ = ["Read", "fold", "rest_of", "tie"]


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    """An event as far as it could be read.

    Attributes:
        event: The event.
        payload: Its payload; None where there is none.
        trouble: Why there is none, where trying it has shown that.
        asks: What stands in the payload's place, such as a form that asks for a reason.
        before: The payload of the model call before, where that is on the same page: what both hold is not repeated.
        left_out: How many items are missing at the beginning of its conversation, because nobody asked for them.
        whole: Show a conversation from its beginning.
    """

    event: RunEvent
    payload: Any = None
    trouble: str | None = None
    asks: Html | None = None
    before: Any = None
    left_out: int = 0
    whole: bool = False


def tie(words: str, event: RunEvent, links: Links) -> Html:
    """A link to an event that another hangs together with."""
    return tag("a", f"{words} event {event.seq}", href=links.event(event), class_="tie", data_seq=event.seq,
               data_record=event.record_id)  # fmt: skip


def fold(summary: str, inner: Child) -> Html:
    """Something that is there for who wants it."""
    return tag("details", tag("summary", summary), inner, class_="fold")


def rest_of(found: dict[str, Any], *shown: str, called: str = "More") -> Html | None:
    """What has not been shown yet, folded away; None where that is all."""
    rest = {name: item for name, item in found.items() if name not in shown}
    return fold(called, value(rest)) if rest else None
