"""JSON lines in gzip members, written so that nothing raises and read so that nothing explodes."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from typing import Any, Final

from ..errors import RecordDamaged

__all__ = ["MAX_INFLATED", "decode_line", "deflate", "encode_line", "inflate"]

MAX_INFLATED: Final = 64 * 1024 * 1024
"""Most bytes one object may inflate to; objects of ours stay far below."""

_MAX_DEPTH: Final = 96
_MAX_DIGITS: Final = 400


def encode_line(value: Any) -> bytes:
    """One JSON line. Lone surrogates, NaN and huge numbers are written as text rather than refused."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except (ValueError, UnicodeEncodeError):
        return json.dumps(_writable(value), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _writable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1024:
        return hex(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        pairs: dict[str, Any] = value
        return {_writable(name): _writable(item) for name, item in pairs.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [_writable(item) for item in items]
    return value


def deflate(data: bytes) -> bytes:
    """One gzip member, the same bytes for the same input."""
    return gzip.compress(data, compresslevel=6, mtime=0)


def inflate(data: bytes, key: str) -> bytes:
    """All gzip members of an object, up to `MAX_INFLATED` bytes.

    Raises:
        RecordDamaged: It is not gzip, is cut off or inflates to more than the cap.
    """
    out: list[bytes] = []
    size = 0
    while data:
        member = zlib.decompressobj(wbits=31)
        try:
            piece = member.decompress(data, MAX_INFLATED - size + 1)
        except zlib.error:
            raise RecordDamaged(f"{key}: not valid gzip", key=key) from None
        size += len(piece)
        if size > MAX_INFLATED:
            raise RecordDamaged(f"{key}: inflates to more than {MAX_INFLATED} bytes", key=key)
        if not member.eof:
            raise RecordDamaged(f"{key}: the gzip data is cut off", key=key)
        out.append(piece)
        data = member.unused_data
    return b"".join(out)


def decode_line(line: bytes, key: str) -> dict[str, Any]:
    """One JSON object, strictly.

    Raises:
        RecordDamaged: Not a JSON object, a key twice, NaN, or nested too deeply.
    """
    try:
        value = json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise RecordDamaged(f"{key}: a line is not valid JSON ({type(error).__name__})", key=key) from None
    if not isinstance(value, dict) or _too_deep(value):
        raise RecordDamaged(f"{key}: a line is not a JSON object of sane depth", key=key)
    found: dict[str, Any] = value
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate key")
    return out


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("number too long")
    return int(text)


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = below
        if not level:
            return False
    return True
