"""Second opinions: other people's detectors beside ours, each an extra.

Both run in a process of their own (`aside.py`, `opinion_worker.py`), which is killed when a search
takes longer than a payload may; one that fails or takes too long drops the payload. Neither is ever
asked on the agent's thread.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from typing import Final

from ..errors import SettingsError
from .aside import Aside
from .engine import Found

__all__ = ["Opinion", "kingfisher", "presidio"]

_WORKER: Final = "sealtrace.redaction.opinion_worker"
_RANK: Final = 10_000
"""Theirs is the say where ours finds nothing."""


class Opinion:
    """An engine that asks another process.

    Args:
        name: Of the engine.
        aside: The process.
    """

    def __init__(self, name: str, aside: Aside) -> None:
        self.name = name
        self._aside = aside
        aside.start()

    def prepare(self) -> None:
        """Wait for the process, which was started when the policy was read."""
        self._aside.prepare()

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`.

        Raises:
            RedactionFailed: It took too long, or stopped.
        """
        if depth:
            return []  # what is encoded is for ours
        return [(start, end, kind, _RANK) for start, end, kind in self._aside.search(text)]


@lru_cache(maxsize=4)
def kingfisher(seconds: float) -> Opinion:
    """Secrets, by Kingfisher's rules; one process for all policies."""
    return Opinion("kingfisher", Aside("Kingfisher", _WORKER, ["kingfisher", ""], seconds=seconds))


@lru_cache(maxsize=4)
def presidio(model: str, seconds: float) -> Opinion:
    """Names and places, by Presidio and its language model: 10 KB a second, and no promise.

    Raises:
        SettingsError: The language model is not installed.
    """
    # Presidio would fetch a model that is missing; sealtrace asks the network for nothing.
    if importlib.util.find_spec(model) is None:
        raise SettingsError(
            f"Presidio needs spaCy's model {model}: install it beside sealtrace[presidio], or name another "
            "as presidio_model in the redaction policy",
            setting="redaction_policy",
        )
    return Opinion("presidio", Aside("Presidio", _WORKER, ["presidio", model], seconds=seconds))
