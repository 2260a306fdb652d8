"""JSON inside strings: read so that nothing is lost, written back in the manner it was read."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

__all__ = ["own_name", "parsed", "value_of", "written"]

_LARGEST: Final = sys.float_info.max
_AGAIN: Final = re.compile(r"\x00[\x00\x01]+\Z")
"""Ends the name of a member whose object has another of that name: two of one name are two values, not one."""

_HALF: Final = re.compile(r"[\ud800-\udfff]")
"""Half of a pair: can only be written as an escape."""

_INDENT: Final = re.compile(r"\s*[\[{]\n([ \t]+)")
_APART: Final = re.compile(r"[\"\d\]}el], ")
_COUNT: Final = str.maketrans("01", "\x00\x01")


class _UnusualError(ValueError):
    """Is JSON, but not as anybody writes it."""


def _usual(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _UnusualError
    return out


def _all_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    met: dict[str, int] = {}
    for name, value in pairs:
        count = met.get(name, 0)
        met[name] = count + 1
        out[f"{name}\x00{f'{count:b}'.translate(_COUNT)}" if count else name] = value
    if len(out) != len(pairs):
        raise ValueError("a name that looks like a second one of another name: searched as text instead")
    return out


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON: searched as text instead")


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) > _LARGEST:
        raise _UnusualError
    return value


def _largest(text: str) -> float:
    """As much of the number as there is room for."""
    return max(-_LARGEST, min(_LARGEST, float(text)))


def _whole(text: str) -> float:
    return int(text) if len(text) < 4000 else _largest(text)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_usual, parse_constant=_not_json, parse_float=_finite)
_PATIENT: Final = json.JSONDecoder(
    object_pairs_hook=_all_of, parse_constant=_not_json, parse_float=_largest, parse_int=_whole
)


def parsed(text: str) -> Any:
    """The object, array or text that a string holds as JSON, or None."""
    stripped = text.strip()
    if not stripped or stripped[0] + stripped[-1] not in {"{}", "[]", '""'} or len(stripped) < 2:
        return None
    try:
        try:
            value, end = _DECODER.raw_decode(stripped)
        except json.JSONDecodeError:
            return None
        except ValueError:  # see value_of
            value, end = _PATIENT.raw_decode(stripped)
    except (ValueError, RecursionError):
        return None
    return value if end == len(stripped) else None


def value_of(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is no JSON text.
        RecursionError: It is nested too deeply to read.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # ours, or a number of more digits than the interpreter reads
        return _PATIENT.decode(text)


def own_name(name: str) -> str:
    """The name as it was read: without what tells it from the first of that name."""
    return _AGAIN.sub("", name) if "\x00" in name else name


class _Doubled(dict[str, Any]):
    """Written with a name as often as it was read."""

    def items(self) -> Any:
        return [(own_name(name), value) for name, value in super().items()]


def _doubled(value: Any) -> Any:
    if type(value) is dict:
        return _Doubled({name: _doubled(item) for name, item in value.items()})
    return [_doubled(item) for item in value] if type(value) is list else value


def written(value: Any, like: str) -> str:
    """JSON again, in the manner of the text it was read from."""
    indent = _INDENT.match(like)
    comma = ", " if indent is None and _APART.search(like) is not None else ","
    separators = (comma, ": " if indent is not None or '": ' in like else ":")

    def text(value: Any, *, escaped: bool) -> str:
        return json.dumps(value, ensure_ascii=escaped, indent=indent[1] if indent else None, separators=separators)

    escaped = like.isascii() and "\\u" in like
    out = text(value, escaped=escaped)
    doubled = "\\u0000" in out
    halved = not out.isascii() and _HALF.search(out) is not None and _HALF.search(like) is None
    if doubled or halved:
        out = text(_doubled(value) if doubled else value, escaped=escaped or halved)
    stripped = like.strip()
    return out if len(stripped) == len(like) else like.replace(stripped, out, 1)
