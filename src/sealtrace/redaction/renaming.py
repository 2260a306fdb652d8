"""Names of a mapping that change because something was found in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .scanner import Change
from .surroundings import Surroundings

__all__ = ["rename"]


def rename(members: dict[str, Any], own: Mapping[str, str], around: Surroundings) -> None:
    """Rename members in place, in their order, without ever making two names one.

    Args:
        members: The mapping.
        own: Names that may have to change, and each of them as it was read.
        around: Knows what became of what was read.
    """
    changed = {
        name: known.text + name[len(text) :]
        for name, text in own.items()
        if isinstance(known := around.known(text), Change)
    }
    if not changed:
        return
    items = list(members.items())
    members.clear()
    for name, item in items:
        safe = changed.get(name, name)
        count = 1
        while safe in members:
            count += 1
            safe = f"{changed.get(name, name)}#{count}"
        members[safe] = item
