"""Leaves a store alone for a while after it failed, so that an outage costs no time per event."""

from __future__ import annotations

import random
import time
from typing import Final

from ..errors import VaultUnavailable

__all__ = ["Breaker"]

_FIRST: Final = 0.5
_LONGEST: Final = 8.0


class Breaker:
    """Open after a failure, for half a second at first and up to eight; a success closes it.

    The client has made its own tries by then (`max_attempts`), so one failure is enough.
    """

    def __init__(self) -> None:
        self._pause = 0.0
        self._until = 0.0
        self.last_error: str | None = None
        """What the last failure said; None while all is well."""

    @property
    def open(self) -> bool:
        """Whether the store is being left alone now."""
        return time.monotonic() < self._until

    def check(self) -> None:
        """Pass if the store may be asked.

        Raises:
            VaultUnavailable: It failed a moment ago.
        """
        if self.open:
            raise VaultUnavailable(f"the vault is left alone for a moment after: {self.last_error}")

    def probe(self) -> None:
        """Let the next request through whatever happened before."""
        self._until = 0.0

    def worked(self) -> None:
        """The store answered."""
        self._pause = self._until = 0.0
        self.last_error = None

    def failed(self, error: Exception) -> None:
        """The store failed: leave it alone, longer each time, and not in step with other processes."""
        self._pause = min(max(self._pause * 2, _FIRST), _LONGEST)
        self._until = time.monotonic() + self._pause * random.uniform(0.8, 1.2)  # noqa: S311 - spreads load
        self.last_error = str(error)
