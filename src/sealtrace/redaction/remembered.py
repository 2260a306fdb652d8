"""Remembering what a function said of a text, without remembering the text for ever.

A recorder lives long, and a text without spaces may be of any length: a cache that counts entries alone
could grow to gigabytes, so what is long is worked out anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar, cast

__all__ = ["remembered"]

P = ParamSpec("P")
T = TypeVar("T")
_size: Final = cast("Callable[[object], int]", len)


def remembered(entries: int, *, longest: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember the answers of a function whose last positional argument is a text.

    Args:
        entries: How many answers are kept.
        longest: Characters of a text that is remembered.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        known = cast("Callable[P, T]", lru_cache(maxsize=entries)(function))

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            return known(*args, **kwargs) if _size(args[-1]) <= longest else function(*args, **kwargs)

        return answer

    return decorated
