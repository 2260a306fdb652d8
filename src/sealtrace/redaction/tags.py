"""What stands in place of a value: `<EMAIL:abcdefghijkl>`.

The tag is keyed and depends on the canonical value alone, not on its kind, so the same value found
by a rule here and by a field name there is still seen to be the same. It is letters only, so no
rule ever matches a tag again: redacting twice changes nothing.
"""

from __future__ import annotations

import re
from typing import Final

from ..keys import Keys

__all__ = ["PSEUDONYM", "canonical", "is_surrogate_number", "pseudonym", "surrogate_number"]

PSEUDONYM: Final = re.compile(r"<[A-Z][A-Z0-9_]{1,31}:[a-z]{12}>")

_FIRST: Final = 9_090_000_000_000
_SPAN: Final = 1_000_000_000


def canonical(kind: str, value: str) -> str:
    """The form under which two spellings of one value are one: case, spaces and dashes aside."""
    if kind == "EMAIL":
        return value.casefold()
    if kind in _DIGITS:
        return "".join(character for character in value.casefold() if character.isalnum())
    return value


_DIGITS: Final = frozenset({"CARD", "IBAN", "SSN", "PHONE", "NATIONAL_ID", "ACCOUNT"})


def pseudonym(keys: Keys, kind: str, value: str) -> str:
    """The pseudonym of a value found to be of this kind."""
    return f"<{kind}:{keys.tag(canonical(kind, value))}>"


def surrogate_number(keys: Keys, value: float) -> int:
    """A number for a number: thirteen digits beginning 9090, keyed, recognised when met again."""
    tag = keys.tag(repr(value))
    number = 0
    for letter in tag[:8]:
        number = number * 26 + ord(letter) - 97
    return _FIRST + number % _SPAN


def is_surrogate_number(value: float) -> bool:
    """Whether the number was put there by `surrogate_number`."""
    return isinstance(value, int) and _FIRST <= value < _FIRST + _SPAN
