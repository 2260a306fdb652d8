"""JSON inside strings: read so that nothing is lost, written back in the manner it was read."""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["parsed", "written"]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate keys: searched as text instead")
    return out


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON: searched as text instead")


def _finite(text: str) -> float:
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise ValueError("a number too large to keep: searched as text instead")
    return value


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_not_json, parse_float=_finite)


def parsed(text: str) -> Any:
    """The object, array or text that a string holds as JSON, or None."""
    stripped = text.strip()
    if not stripped or stripped[0] + stripped[-1] not in {"{}", "[]", '""'} or len(stripped) < 2:
        return None
    try:
        return _DECODER.decode(stripped)
    except (ValueError, RecursionError):
        return None


def written(value: Any, like: str) -> str:
    """JSON again, in the manner of the text it was read from."""
    indent = re.match(r"\s*[\[{]\n([ \t]+)", like)
    if indent:
        separators = (",", ": ")
    else:
        separators = (", " if re.search(r"[\"\d\]}el], ", like) else ",", ": " if '": ' in like else ":")
    return json.dumps(
        value,
        ensure_ascii=like.isascii() and "\\u" in like,
        indent=indent[1] if indent else None,
        separators=separators,
    )
