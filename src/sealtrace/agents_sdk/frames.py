"""Where in the nesting something happens.

A frame is one `Runner.run` call. Its path names what opened it and how many of the kind came
before, never when it finished, so that parallel nested agents get the same paths in a rerun:
`run:0`, `run:0/tool:call_7/run:0`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from ..event import Shared
from ..lifetime import fresh_lock
from ..record import Record

__all__ = ["ACTOR", "FRAME", "VIA", "Frame", "ItemCache"]


class ItemCache:
    """Recognises values this frame has already taken a snapshot of.

    Each turn sends the whole conversation again. Comparing with the last snapshot is cheap (C-level
    equality), copying and redacting it again is not; and the same `Shared` means "the same message".
    """

    _MAX: Final = 4096

    def __init__(self) -> None:
        self.last: list[Shared] = []
        self.single: dict[str, Shared] = {}
        self._by_key: dict[Any, Shared] = {}

    def known(self, index: int, item: Any) -> Shared | None:
        """The snapshot of this very item, if the previous request had it here or elsewhere."""
        if index < len(self.last) and self.last[index].value == item:
            return self.last[index]
        key = _key(item)
        found = self._by_key.get(key) if key is not None else None
        return found if found is not None and found.value == item else None

    def remember(self, items: list[Shared]) -> None:
        """Keep this request's items for the next comparison."""
        fresh = items[len(self.last) :] if items[: len(self.last)] == self.last else items
        self.last = items
        if len(self._by_key) > self._MAX:
            self._by_key.clear()
        for shared in fresh:
            key = _key(shared.value)
            if key is not None:
                self._by_key[key] = shared


def _key(item: Any) -> Any:
    if type(item) is not dict:
        return None
    get = item.get
    content: Any = get("content")
    key: tuple[Any, ...] = (get("type"), get("role"), get("id"), get("call_id"))
    return (*key, content) if type(content) is str else key


class Frame:
    """One `Runner.run` call, from its start to its end.

    Attributes:
        path: See the module's docstring.
        record: The record it writes to, once the trace is known.
        muted: This run asked not to be traced, so nothing of it is recorded.
        pending: What has to be recorded as soon as `record` is known.
    """

    def __init__(self, path: str, *, agent: str, muted: bool, parent: Frame | None) -> None:
        self.path = path
        self.agent = agent
        self.muted = muted
        self.parent = parent
        self.record: Record | None = None
        self.pending: list[Any] = []
        self.decisions: list[Any] = []
        self.items = ItemCache()
        self.generation_of: dict[str, int] = {}
        self.call_ids: dict[tuple[str, Any], str] = {}
        self.last_generation: int | None = None
        self._counts: dict[str, int] = {}
        self._lock = fresh_lock()

    def child_path(self, via: str) -> str:
        """The path of a run opened from here by `via`, for example `tool:call_7`."""
        return f"{self.path}/{via}/run:{self.count(via)}"

    def count(self, what: str) -> int:
        """How many of `what` came before in this frame; counts this one."""
        with self._lock:
            number = self._counts.get(what, 0)
            self._counts[what] = number + 1
            return number


FRAME: Final[ContextVar[Frame | None]] = ContextVar("sealtrace_frame", default=None)
VIA: Final[ContextVar[str | None]] = ContextVar("sealtrace_via", default=None)
"""What a run that starts now was opened by: `tool:{call_id}` or `guardrail:{name}`."""

ACTOR: Final[ContextVar[dict[str, Any] | None]] = ContextVar("sealtrace_actor", default=None)
"""The authority in force in this context; see `annotations.authority`."""
