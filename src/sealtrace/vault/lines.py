"""JSON lines in gzip members, written so that nothing raises and read so that nothing explodes.

What cannot be written as strict JSON is replaced, never refused: a lone surrogate becomes U+FFFD,
NaN and the infinities become their names, an integer of more than 1,024 bits its hexadecimal text,
anything nested more than `MAX_DEPTH` deep a short note.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from typing import Any, Final

from ..errors import RecordDamaged

__all__ = [
    "MAX_DEPTH",
    "MAX_INFLATED",
    "TOO_DEEP",
    "decode_line",
    "deflate",
    "encode_line",
    "inflate",
    "leaf_value",
    "storable",
]

MAX_INFLATED: Final = 24 * 1024 * 1024
"""Most bytes one object may inflate to; objects of ours stay far below."""

MAX_DEPTH: Final = 64
"""Deepest nesting of a line, the line itself being the first level."""

TOO_DEEP: Final = f"<nested more than {MAX_DEPTH} deep>"

_MAX_BITS: Final = 1024
_MAX_DIGITS: Final = 400
_MAX_MEMBERS: Final = 65_536
_CHUNK: Final = 65_536


def encode_line(value: Any) -> bytes:
    """One JSON line of a value that is `storable`; lone surrogates in it are replaced."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(_without_surrogates(value), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def storable(value: Any, depth: int = 1) -> Any:
    """The same value with everything that strict JSON cannot hold replaced."""
    if isinstance(value, dict):
        if depth > MAX_DEPTH:
            return TOO_DEEP
        fields: dict[str, Any] = value
        return {str(name): storable(item, depth + 1) for name, item in fields.items()}
    if isinstance(value, list | tuple):
        if depth > MAX_DEPTH:
            return TOO_DEEP
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return [storable(item, depth + 1) for item in items]
    return leaf_value(value)


def leaf_value(value: Any) -> Any:
    """`storable` for what is neither an object nor an array."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return f"<{type(value).__name__}>"


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        out: dict[str, Any] = {}
        for name, item in fields.items():
            clean: str = _without_surrogates(name)
            while clean in out or (clean != name and clean in fields):
                clean += "~"  # two names must not become one: nothing may vanish
            out[clean] = _without_surrogates(item)
        return out
    if isinstance(value, list):
        items: list[Any] = value
        return [_without_surrogates(item) for item in items]
    return value


def deflate(data: bytes) -> bytes:
    """One gzip member, the same bytes for the same input."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def inflate(data: bytes, key: str) -> bytes:
    """All gzip members of an object, up to `MAX_INFLATED` bytes.

    Raises:
        RecordDamaged: It is not gzip, is cut off or inflates to more than the cap.
    """
    out: list[bytes] = []
    size = members = position = 0
    while position < len(data):
        members += 1
        if members > _MAX_MEMBERS:
            raise RecordDamaged(f"{key}: more than {_MAX_MEMBERS} gzip members", key=key)
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if position >= len(data):
                raise RecordDamaged(f"{key}: the gzip data is cut off", key=key)
            chunk = data[position : position + _CHUNK]
            try:
                piece = member.decompress(chunk, MAX_INFLATED - size + 1)
            except zlib.error:
                raise RecordDamaged(f"{key}: not valid gzip", key=key) from None
            size += len(piece)
            if size > MAX_INFLATED:
                raise RecordDamaged(f"{key}: inflates to more than {MAX_INFLATED} bytes", key=key)
            out.append(piece)
            position += len(chunk) - len(member.unused_data)
    return b"".join(out)


def decode_line(line: bytes, key: str) -> dict[str, Any]:
    """One JSON object, strictly.

    Raises:
        RecordDamaged: Not a JSON object, a key twice, NaN, or nested too deeply.
    """
    try:
        value = json.loads(
            line, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=_integer, parse_float=_finite
        )
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


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("number too large")
    return number


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = [item for item in below if isinstance(item, dict | list)]
        if not level:
            return False
    return True
