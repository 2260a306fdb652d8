"""Where the walk of a payload is."""

from __future__ import annotations

from collections import Counter

__all__ = ["Where"]


class Where:
    """How deep, how many JSON texts deep, who counts, and, where rules ask for it, the names that lead here.

    Attributes:
        counts: How many values of each kind were replaced.
        nested: How many JSON texts this is inside of.
        depth: How many containers this is inside of.
        path: Names that lead here; only kept up by `inside`.
        below: What `deeper` gave; the same for everything that stands in one container.
    """

    __slots__ = ("below", "counts", "depth", "nested", "path")

    below: Where | None

    def __init__(self, counts: Counter[str], nested: int = 0, depth: int = 0, path: tuple[str, ...] = ()) -> None:
        self.counts = counts
        self.nested = nested
        self.depth = depth
        self.path = path
        self.below = None

    def deeper(self) -> Where:
        """One container further in."""
        below = self.below
        if below is None:
            below = self.below = Where(self.counts, self.nested, self.depth + 1)
        return below

    def inside(self, name: str) -> Where:
        """One container further in, under this name."""
        return Where(self.counts, self.nested, self.depth + 1, (*self.path, name))

    def in_json(self) -> Where:
        """The same place, in the JSON of a string that stands there."""
        return Where(self.counts, self.nested + 1, self.depth, self.path)
