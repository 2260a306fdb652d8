"""Checks that tell a value from something that only looks like one."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import math
import re
from collections import Counter
from typing import Final

from .remembered import remembered

__all__ = [
    "IBAN_COUNTRIES",
    "card",
    "entropy",
    "iban",
    "ip_address",
    "jwt",
    "luhn",
    "placeholder",
    "random_enough",
    "ssn",
    "words",
]

RESERVED_CARD: Final = "999999"
"""Surrogate card numbers begin so; no network issues them (ISO/IEC 7812-1 leaves 9 to national use)."""


def luhn(text: str) -> bool:
    """Whether the check digit is right (ISO/IEC 7812-1, annex B); all but digits is passed over."""
    digits = "".join(character for character in text if "0" <= character <= "9")
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = ord(digit) - 48
        if index % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0


def card(digits: str) -> bool:
    """Whether 12 to 19 digits are a payment card number: check digit, and an issuer that exists."""
    if not 12 <= len(digits) <= 19 or len(set(digits)) < 2 or digits.startswith(RESERVED_CARD):
        return False
    return digits[0] in "23456" and luhn(digits) if len(digits) != 15 else digits[0] in "1234569" and luhn(digits)


_IBAN_LENGTH: Final[dict[str, int]] = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SD": 18,
    "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22,
    "VG": 24, "XK": 20,
}  # fmt: skip
IBAN_COUNTRIES: Final = frozenset(_IBAN_LENGTH)


def iban(compact: str) -> int:
    """How many of the first characters are an IBAN, 0 for none: country, length, mod 97 (ISO 13616)."""
    compact = compact.upper()
    length = _IBAN_LENGTH.get(compact[:2], 0)
    if not length or len(compact) < length or not compact[2:4].isdigit() or not compact.isascii():
        return 0
    turned = compact[4:length] + compact[:4]
    return length if int("".join(str(int(character, 36)) for character in turned)) % 97 == 1 else 0


def ssn(digits: str) -> bool:
    """Whether nine digits can be a US social security number (SSA's rules on numbers never issued)."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return len(digits) == 9 and area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"


_DOCUMENTATION: Final = tuple(
    ipaddress.ip_network(block) for block in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)


def ip_address(text: str) -> bool:
    """Whether the text is an address of someone: not loopback, unspecified, a mask, nor RFC 5737 and 3849 examples."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or text.startswith("255."):
        return False
    return not any(address in block for block in _DOCUMENTATION if block.version == address.version)


def jwt(text: str) -> bool:
    """Whether the first part of a compact JWS or JWE decodes to a JSON object (RFC 7515, 7516)."""
    head = text.partition(".")[0]
    try:
        raw = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except (ValueError, binascii.Error):
        return False
    if not raw.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(raw), dict)
    except ValueError:
        return b'":' in raw or raw.count(b'"') >= 2  # damaged on the way, and still somebody's token


def entropy(text: str) -> float:
    """Shannon entropy of the characters, bits per character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0


_REPEATED: Final = re.compile(r"(.)\1{7,}")
_FILLER: Final = re.compile(r"(?i)x{4,}|\*{3,}|\.{3,}|(?:your|my)[_-]?(?:api|secret|token|key|pass|access)|redacted")


def words(text: str) -> frozenset[str]:
    """A set of words, written as words."""
    return frozenset(text.split())


_EMPTY_WORDS: Final = words(
    """
    password passwd pass secret token key apikey api_key none null nil true false undefined string str int bool
    bytes value required optional test testing example sample dummy placeholder changeme todo hidden masked yes no
    empty default xxx yyy zzz foo bar baz username user name login any object number text field input output self
    cls this
    """
)


@remembered(2048, longest=256)
def placeholder(value: str) -> bool:
    """Whether a value only says where a secret would go: `xxxx`, `${TOKEN}`, `<your key>`, `changeme`."""
    if value[:1] in "$%<{@#&*" and (
        value[:2] in {"${", "$(", "{{", "<%", "%(", "#{"} or value[1:].replace("_", "a").isalnum()
    ):
        return value[0] != "#" or value[1:2] == "{"
    if value.lower().strip("'\"") in _EMPTY_WORDS or _FILLER.search(value) is not None:
        return True
    return any(match.end() - match.start() > len(value) // 2 for match in _REPEATED.finditer(value))


def random_enough(value: str, *, shortest: int = 8, bits: float = 2.7) -> bool:
    """Whether a value was made by a generator rather than written by a person or a compiler."""
    if len(value) < shortest or placeholder(value):
        return False
    has_digit = any("0" <= character <= "9" for character in value)
    letters = [character for character in value if character.isalpha()]
    if not letters:
        return has_digit and len(value) >= 15 and entropy(value) >= 2.4
    if not has_digit and (len(value) < 20 or value.islower() or value.isupper() or entropy(value) < 3.7):
        return False
    return entropy(value) >= bits
