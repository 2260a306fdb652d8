"""Texts that the walk of a payload leaves to be searched, and where each of them stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from .where import Where

__all__ = ["Place", "Texts", "by_text"]

Place: TypeAlias = tuple[str, Any, Any, Where]
"""A text, the container it stands in, its key there, and where that is. A name of a mapping stands nowhere."""


class Texts:
    """Texts that are searched under the same rules.

    Attributes:
        places: In the order in which they were met.
        brief: Too short for a detector; searched once there is something remembered, which may come later.
        met: Texts that are no media, not too long and not JSON, so that nobody looks twice.
    """

    __slots__ = ("brief", "met", "places")

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.brief: list[Place] = []
        self.met: set[str] = set()

    def take(self, *, brief: bool) -> list[Place]:
        """What has been collected; none of it is left."""
        if brief:
            self.places += self.brief
            self.brief.clear()
        taken = self.places.copy()
        self.places.clear()
        self.met.clear()
        return taken


def by_text(places: Iterable[Place], wanted: Iterable[str]) -> Iterator[tuple[str, list[Place]]]:
    """Where each of the wanted texts stands, in their order."""
    standing: dict[str, list[Place]] = {text: [] for text in wanted}
    for place in [place for place in places if place[0] in standing]:
        standing[place[0]].append(place)
    yield from standing.items()
