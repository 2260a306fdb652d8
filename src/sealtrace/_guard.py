"""The rule that recording never changes the run, in one place.

Everything of ours that runs on the user's thread is called through `safely`. What it raises is
counted and reported once per kind, by class name only (a message could quote content), and goes no
further. `KeyboardInterrupt` and `SystemExit` are the user's, not ours, and pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from .lifetime import fresh_lock

__all__ = ["failures", "report", "safely"]

P = ParamSpec("P")
T = TypeVar("T")

_log: Final = logging.getLogger("sealtrace")
_lock: Final = fresh_lock()
_counts: Final[dict[str, int]] = {}


def safely(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call `function`; None if it raised anything, cancellation included."""
    try:
        return function(*args, **kwargs)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - this is the guard
        report(getattr(function, "__qualname__", "?"), error)
        return None


def report(where: str, error: BaseException) -> None:
    """Count a failure of ours and log it the first time; never raises, never logs a message."""
    try:
        name = f"{where}: {type(error).__name__}"
        with _lock:
            _counts[name] = _counts.get(name, 0) + 1
            first = _counts[name] == 1
        if first:
            _log.warning("sealtrace could not record something (%s); the run goes on unrecorded there", name)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001, S110 - a broken log handler must not reach the run either
        pass


def failures() -> dict[str, int]:
    """How often what failed in this process, for `doctor` and self-metrics."""
    with _lock:
        return dict(_counts)
