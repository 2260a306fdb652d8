"""Stands in for the user's session store, so that a rerun neither reads nor writes it."""

from __future__ import annotations

import copy
from typing import Any

__all__ = ["MemorySession"]


class MemorySession:
    """A session in memory, filled with what the recorded run found in the user's.

    Args:
        session_id: The user's session id.
        items: The recorded history.
    """

    session_settings: Any = None

    def __init__(self, session_id: str, items: list[Any]) -> None:
        self.session_id = session_id
        self._items = copy.deepcopy(items)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The history, or its last `limit` items."""
        kept = self._items if limit is None else self._items[max(0, len(self._items) - limit) :]
        return copy.deepcopy(kept)

    async def add_items(self, items: list[Any]) -> None:
        """Append."""
        self._items += copy.deepcopy(items)

    async def pop_item(self) -> Any:
        """Take the last item away; None where there is none."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Forget everything."""
        self._items.clear()
