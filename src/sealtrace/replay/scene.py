"""One live `Runner.run` call of a rerun, beside the recorded frame it answers to."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any, Final

from ..agents_sdk.frames import ItemCache
from ..event import RunEvent
from .tape import TapeFrame

__all__ = ["OPENER", "SCENE", "Scene"]


class Scene:
    """Where the rerun is.

    Attributes:
        tape: The recorded frame.
        parent: The scene this one was opened from.
        start: The agent the run was started with.
        agent: Whose turn it is, by name as envelopes have it.
        items: Messages this run has sent before.
        failed: The last recorded failure that was raised here, in case it is asked for again.
        lossy: Results that were recorded as the text the model saw; a final output may be one of them.
    """

    def __init__(self, tape: TapeFrame, parent: Scene | None, start: Any) -> None:
        self.tape = tape
        self.parent = parent
        self.start = start
        self.agent: str | None = None
        self.items = ItemCache()
        self.failed: RunEvent | None = None
        self.lossy: list[Any] = []
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def child_path(self, opener: str) -> str:
        """The path of the next run that `opener` opens; counted as the recorder counts."""
        with self._lock:
            number = self._counts.get(opener, 0)
            self._counts[opener] = number + 1
        return f"{self.tape.path}/{opener}/run:{number}"


SCENE: Final[ContextVar[Scene | None]] = ContextVar("sealtrace_scene", default=None)
OPENER: Final[ContextVar[str | None]] = ContextVar("sealtrace_opener", default=None)
"""What a run that starts now is opened by: `tool:{call_id}` or `guardrail:{name}`."""
