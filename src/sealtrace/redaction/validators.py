"""Checks that tell a value from something that only looks like one."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter

__all__ = ["entropy", "iban", "ip_address", "luhn", "phone", "ssn"]


def luhn(text: str) -> bool:
    """Whether the digits are a payment card number: 12 to 19 digits and the Luhn check (ISO/IEC 7812-1)."""
    digits = [int(character) for character in text if character.isdigit()]
    if not 12 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = digit * 2 if index % 2 else digit
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def iban(text: str) -> bool:
    """Whether the text is an IBAN: length and the mod-97 check (ISO 13616)."""
    compact = "".join(character for character in text if character.isalnum()).upper()
    if not 15 <= len(compact) <= 34 or not compact.isascii():
        return False
    turned = compact[4:] + compact[:4]
    return int("".join(str(int(character, 36)) for character in turned)) % 97 == 1


def ssn(text: str) -> bool:
    """Whether the nine digits can be a US social security number (SSA's rules on areas never issued)."""
    digits = "".join(character for character in text if character.isdigit())
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return len(digits) == 9 and area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def ip_address(text: str) -> bool:
    """Whether the text is an IP address that says something: not loopback, not unspecified."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def phone(text: str) -> bool:
    """Whether the digits can be a telephone number: 7 to 15 of them (ITU-T E.164), not all the same."""
    digits = [character for character in text if character.isdigit()]
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2


def entropy(text: str) -> float:
    """Shannon entropy of the characters, bits per character."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values()) if text else 0.0
