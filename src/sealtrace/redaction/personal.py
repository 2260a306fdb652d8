"""Personal data known by its shape: mail addresses, IP addresses, dates of birth, embedded media."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from .detector import Detector, Span, context_before
from .fields import kind_of_field
from .validators import ip_address, placeholder

__all__ = ["FARTHEST_QUOTE", "RESERVED_DOMAIN", "kind_named", "named_value", "personal_detectors"]

RESERVED_DOMAIN: Final = "redacted.invalid"
"""Domain of surrogate mail addresses; `.invalid` never resolves (RFC 2606)."""

_LOCAL_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_{|}~-"
_LOCAL: Final = r"[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}"
_DOMAIN: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}"
_AT: Final = r"(?:\[at\]|\(at\)|\{at\}|<at>|\[@\]|\(@\))"
_DOT: Final = r"(?:\[dot\]|\(dot\)|\{dot\}|\[\.\]|\(\.\)|\.| dot )"
_BIRTH: Final = r"(?i)(?:dob\b|birth(?: ?da(?:y|te))?\b|born(?: on)?\b)"
_DAY: Final = (
    r"(?:[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}|[0-9]{1,2}(?:st|nd|rd|th|\.)? ?(?:of )?[A-Z][a-z]{2,9}\.?,? [0-9]{4}"
    r"|[A-Z][a-z]{2,9}\.? [0-9]{1,2}(?:st|nd|rd|th)?,? [0-9]{4})"
)


def personal_detectors(*, strict: bool) -> tuple[Detector, ...]:
    """The detectors of this module for a profile."""
    always = (
        Detector("email", "EMAIL", f"{_LOCAL}@{_DOMAIN}", ("@",), reach=64, lead=_LOCAL_CHARACTERS, resolve=_email),
        Detector(
            "email_spelled",
            "EMAIL",
            rf"(?i)[A-Za-z0-9._%+-]{{1,64}} ?{_AT} ?[A-Za-z0-9-]{{1,63}}(?: ?{_DOT} ?[A-Za-z0-9-]{{2,63}}){{1,4}}",
            ("[at]", "(at)", "{at}", "<at>", "[@]", "(@)"),
            reach=65,
            lead=_LOCAL_CHARACTERS + " ",
        ),
        Detector(
            "email_words",
            "EMAIL",
            r"(?i)[A-Za-z0-9._%+-]{1,64} at [A-Za-z0-9-]{1,63} dot [A-Za-z]{2,24}(?: dot [A-Za-z]{2,24})?",
            (" dot ",),
            reach=132,
        ),
        Detector(
            "ipv4",
            "IP",
            r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}",
            (),
            resolve=_ipv4_strict if strict else _ipv4,
        ),
        Detector(
            "ipv6",
            "IP",
            r"(?:[0-9A-Fa-f]{0,4}:){2,7}(?:[0-9A-Fa-f]{1,4}|[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})",
            (),
            resolve=_ipv6,
        ),
        Detector(
            "media",
            "MEDIA",
            r"data:[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,80}(?:;[A-Za-z0-9.=+-]{1,80}){0,4};base64,[A-Za-z0-9+/=_-]{16,}",
            ("data:",),
        ),
        Detector(
            "field_in_text",
            "FIELD",
            r"[\"'] ?: ?\\{0,3}[\"'](?P<value>[^\"'\\\x00]{1,200})",
            ('":', "':", '" :', "' :"),
            resolve=_field_in_text,
        ),
    )  # fmt: skip
    if not strict:
        return always
    return (
        *always,
        Detector(
            "birth",
            "DATE_OF_BIRTH",
            rf"{_BIRTH}[ :=*]{{1,4}}(?P<value>{_DAY})",
            ("dob", "birth", "born"),
        ),
    )


def _email(text: str, start: int, end: int) -> Iterable[Span]:
    value = text[start:end]
    cut = len(value) - len(value.lstrip("!#$%&'*/=?^{|}~.-"))
    at = value.index("@")
    # Assignments and lists glue things to an address: to=a@b.c, 'a@b.c', a=1&m=a@b.c
    for character in "=&?'/|{#$!*^%":
        position = value.rfind(character, 0, at)
        if position + 1 < at:
            cut = max(cut, position + 1)
    domain = value[at + 1 :].lower()
    if start + cut >= start + at or domain.endswith(RESERVED_DOMAIN) or _FILE_END.search(domain):
        return ()
    if end < len(text) and (text[end].isdigit() or text[end] == "_"):
        return ()
    return ((start + cut, end, "EMAIL"),)


_FILE_END: Final = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|js|css|py|json|whl|gz|service|target|socket|mount|timer)\Z")


def _ipv4(text: str, start: int, end: int) -> Iterable[Span]:
    before = context_before(text, start, 12).lower()
    if before.endswith(
        ("v", "version ", "version: ", "version=", "==", "~=", ">=", "<=", "chrome/", "safari/", "section ", "§ ")
    ):
        return ()
    return _ipv4_strict(text, start, end)


def _ipv4_strict(text: str, start: int, end: int) -> Iterable[Span]:
    before, after = text[start - 1 : start], text[end : end + 2]
    if before.isalnum() or before in {".", "_"} or after[:1].isalnum() or after[:1] == "_":
        return ()
    if after[:1] in {".", "-"} and after[1:].isdigit():
        return ()
    return ((start, end, "IP"),) if ip_address(text[start:end]) else ()


def _ipv6(text: str, start: int, end: int) -> Iterable[Span]:
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() or before in {":", "_", "."} or after.isalnum() or after in {":", "_"}:
        return ()
    value = text[start:end]
    if value.count(":") < 3 and not any(character.isdigit() for character in value):
        return ()
    return ((start, end, "IP"),) if ip_address(value) and len(value) >= 6 else ()


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_ .-]{1,48}")


FARTHEST_QUOTE: Final = 64
"""Characters from the quote that ends a name to the one that begins it."""


def _field_in_text(text: str, start: int, end: int) -> Iterable[Span]:
    # The name stands between quotes before the colon and the quote at `start - 1`; either quote may be escaped.
    colon = text.rfind(":", 0, start - 1)
    close = colon - 2 if text[colon - 1] == " " else colon - 1
    before = text[max(0, close - FARTHEST_QUOTE) : close]
    opening = max(before.rfind('"'), before.rfind("'"))
    kind = named_value(before[opening + 1 :], text[start:end]) if opening >= 0 else None
    return ((start, end, kind),) if kind is not None else ()


@lru_cache(maxsize=8192)
def kind_named(name: str) -> str | None:
    """What a quoted name says of its value, or None."""
    if name.endswith("\\"):
        name = name.removesuffix("\\").removesuffix("\\").removesuffix("\\")
    return kind_of_field(name) if _NAME.fullmatch(name) else None


def named_value(name: str, value: str) -> str | None:
    """What a quoted value is by its quoted name, or None: the name does not say, or there is no value."""
    kind = kind_named(name)
    if kind is None or not value.strip() or value in _SCHEMA_WORDS or placeholder(value):
        return None
    return kind


_SCHEMA_WORDS: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
