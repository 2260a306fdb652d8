"""Secrets in disguise: a value that was base64- or hex-encoded before it was written down."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from .detector import SEPARATOR

__all__ = ["hidden"]

Found: TypeAlias = tuple[int, int, str, int]
Find: TypeAlias = Callable[[str, int], list[Found]]

_DEPTH: Final = 3
_MAX_BLOB: Final = 65_536
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){8,}\Z")
_READABLE: Final = bytes([*range(32, 127), 9, 10, 13])


def hidden(text: str, runs: Iterable[tuple[int, int]], find: Find, depth: int) -> list[Found]:
    """Encoded runs of the text in which something is found once they are decoded.

    Args:
        text: The text.
        runs: Where it has sixteen or more word characters in a row.
        find: Searches what was decoded; told how deep it is.
        depth: How many layers have been taken off.
    """
    out: list[Found] = []
    done = 0
    for run_start, run_end in runs:
        if run_start < done or depth >= _DEPTH:
            continue
        run = text[run_start:run_end]
        if "_" in run or ((run.islower() or run.isupper()) and _HEX.match(run) is None):
            continue  # a name: encoded text has both cases
        start, end = _grown(text, run_start, run_end)
        done = end
        decoded = _decoded(text[start:end])
        if decoded is None:
            continue
        inner = find(decoded, depth + 1)
        if inner:
            best = min(inner, key=lambda item: item[3])
            while end < len(text) and text[end] == "=":
                end += 1
            out.append((start, end, best[2], best[3]))
    return out


def _grown(text: str, start: int, end: int) -> tuple[int, int]:
    """A base64 run may hold `+` and `/`, where a run of word characters ends."""
    while start > 0 and text[start - 1] in _BASE64:
        start -= 1
    while end < len(text) and text[end] in _BASE64:
        end += 1
    return start, end


def _decoded(blob: str) -> str | None:
    if len(blob) > _MAX_BLOB:
        return None
    if _HEX.match(blob):
        return _readable(bytes.fromhex(blob))
    if len(blob) < 20 or (blob.isalpha() and (blob.islower() or blob.isupper())):
        return None
    probe = _raw(blob[:20])
    if probe is None or probe[:15].translate(None, _READABLE):
        return None
    raw = _raw(blob)
    return _readable(raw) if raw is not None else None


def _raw(blob: str) -> bytes | None:
    blob = blob.translate(_URL_SAFE)
    if len(blob) % 4 == 1:
        blob = blob[:-1]
    try:
        return base64.b64decode(blob + "=" * (-len(blob) % 4))
    except (ValueError, binascii.Error):
        return None


_URL_SAFE: Final = str.maketrans("-_", "+/")


def _readable(raw: bytes) -> str | None:
    if len(raw.translate(None, _READABLE)) > len(raw) // 20:
        return None
    return raw.decode("latin-1").replace(SEPARATOR, " ")
