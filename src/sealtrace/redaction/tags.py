"""What stands in place of a value: `<EMAIL:abcdefghijkl>`, or a surrogate of the same shape.

The tag is keyed and depends on the canonical value alone, not on its kind, so the same value found
by a rule here and by a field name there is still seen to be the same. It is letters only, so no
rule ever matches a tag again: redacting twice changes nothing. Surrogates come from ranges that were
set aside and belong to nobody, and are recognised by that.
"""

from __future__ import annotations

import re
from typing import Final

from ..keys import Keys
from .personal import RESERVED_DOMAIN
from .remembered import remembered
from .validators import RESERVED_CARD, luhn

__all__ = ["PSEUDONYM", "Pseudonyms", "canonical", "is_surrogate_number", "surrogate_number"]

PSEUDONYM: Final = re.compile(r"<[A-Z][A-Z0-9_]{1,31}:[a-z]{12}>")

_FIRST: Final = 9_090_000_000_000
_SPAN: Final = 1_000_000_000
_COMPACT: Final = frozenset({"CARD", "IBAN", "SSN", "PHONE", "NATIONAL_ID", "ACCOUNT"})
_SURROGATE: Final = {
    "EMAIL": re.compile(r"[a-z]{12}@" + re.escape(RESERVED_DOMAIN)),
    "CARD": re.compile(RESERVED_CARD + r"[0-9]{10}"),
    "PHONE": re.compile(r"\+1-[2-9][0-9]{2}-555-01[0-9]{2}"),
    "SSN": re.compile(r"000-[0-9]{2}-[0-9]{4}"),
    "IP": re.compile(r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.[0-9]{1,3}|2001:db8(?::[0-9a-f]{4}){6}"),
    "DATE_OF_BIRTH": re.compile(r"1900-01-0[1-9]"),
}  # fmt: skip

_ANY_SURROGATE: Final = re.compile("|".join(pattern.pattern for pattern in _SURROGATE.values()))


def canonical(kind: str, value: str) -> str:
    """The form under which two spellings of one value are one: case, spaces and dashes aside."""
    if kind == "EMAIL":
        return value.casefold()
    if kind in _COMPACT:
        return "".join(character for character in value.casefold() if character.isalnum())
    return value


def is_surrogate_number(value: float) -> bool:
    """Whether the number was put there by `surrogate_number`."""
    return type(value) in {int, float} and _FIRST <= value < _FIRST + _SPAN and value == int(value)


def surrogate_number(keys: Keys, value: float) -> float:
    """A number for a number: thirteen digits beginning 9090, keyed, of the same type."""
    # One number written as 5 and as 5.0 is one value.
    whole = str(int(value)) if abs(value) < 1e300 and value == int(value) else repr(value)
    return type(value)(_FIRST + _draw(keys, whole, _SPAN))


def _draw(keys: Keys, value: str, below: int) -> int:
    drawn = 0
    for letter in reversed(keys.tag(value)):
        drawn = drawn * 26 + ord(letter) - 97
    return drawn % below


class Pseudonyms:
    """Makes them.

    Args:
        keys: The tenant's keys.
        surrogates: Whether values get a surrogate of the same shape where there is one.
    """

    def __init__(self, keys: Keys, *, surrogates: bool = False) -> None:
        self._keys = keys
        self._surrogates = surrogates

        self.text = remembered(16_384, longest=512)(self._text)
        """What stands in place of a string: told the kind and the value."""

    def _text(self, kind: str, value: str) -> str:
        if self._surrogates and _ANY_SURROGATE.fullmatch(value):
            return value
        if self._surrogates and kind in _SURROGATE:
            return self._surrogate(kind, value)
        return f"<{kind}:{self._keys.tag(canonical(kind, value))}>"

    def number(self, kind: str, value: float) -> float:
        """What stands in place of a number: thirteen digits beginning 9090, keyed, known when met again."""
        if self._is_ours(value):
            return value
        if kind == "CARD" and self._surrogates and type(value) is int:
            return int(self._surrogate("CARD", str(value)))
        return surrogate_number(self._keys, value)

    def _is_ours(self, value: float) -> bool:
        # Whatever kind it is met as: a key beside it may have changed, and with it what the key says.
        if is_surrogate_number(value):
            return True
        plain = self._surrogates and type(value) is int and 0 < value < 10**16
        return plain and _SURROGATE["CARD"].fullmatch(str(value)) is not None

    def _surrogate(self, kind: str, value: str) -> str:
        plain = canonical(kind, value)
        if kind == "EMAIL":
            return f"{self._keys.tag(plain)}@{RESERVED_DOMAIN}"
        number = _draw(self._keys, plain, 10**15)
        if kind == "CARD":
            body = f"{RESERVED_CARD}{number % 10**9:09d}"
            return str(next(body + digit for digit in "0123456789" if luhn(body + digit)))
        if kind == "PHONE":
            return f"+1-{200 + number % 800}-555-01{number // 1000 % 100:02d}"
        if kind == "SSN":
            return f"000-{number % 100:02d}-{number // 100 % 10_000:04d}"
        if kind == "DATE_OF_BIRTH":
            return f"1900-01-0{1 + number % 9}"
        if ":" in value:
            digits = f"{number:024x}"
            return "2001:db8:" + ":".join(digits[index : index + 4] for index in range(0, 24, 4))
        return f"{('192.0.2', '198.51.100', '203.0.113')[number % 3]}.{1 + number // 3 % 254}"
