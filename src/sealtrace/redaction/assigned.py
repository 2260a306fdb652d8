"""Secrets known by what they are called: `DB_PASSWORD=...`, `"client_secret": "..."`, `token is ...`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .detector import Detector, Span
from .names import NameStrength, name_strength, secret_value

__all__ = ["assigned_secrets"]

# The name's end, then what ties it to a value, then the value. NUL is in no class: strings are searched together.
_TAIL: Final = r"[A-Za-z0-9_.-]{0,24}"
_TIE: Final = (
    r"(?:\\{0,2}[\"'`\])]{1,2}|</?)?[ \t]{0,4}"
    r"(?:(?:[:?|]{0,3}=>?|:{1,2}|,|>|[ \t]is|[ \t]was|->)[ \t]{0,4}(?:\n[ \t]{0,8}(?:value:[ \t])?)?|[ \t])"
    r"(?:[A-Za-z]{2,12}\(|[\[({])?(?P<quote>\\{0,2}[\"'`])?"
)
_VALUE: Final = (
    r"(?P<value>(?:[Bb]earer[ ]|[Bb]asic[ ]|[Tt]oken[ ]|[Aa]pi-?[Tt]oken[ ]|[Aa]pi[Kk]ey[ ]|FlyV1[ ])?"
    r"[^\s\x00\"'`<>,;()\[\]{}\\]{3,256})"
)
_STEMS: Final = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie", "signature", "sig=", "login")
_STEM: Final = "(?:" + "|".join(_STEMS).replace("sig=", "sig") + ")"
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
_SCHEME: Final = re.compile(r"(?i)(?:bearer|basic|token|api-?token|apikey|flyv1) ")
_LONG: Final = 250
_REST: Final = re.compile(r"[^\s\x00\"'`<>,;()\[\]{}\\]*")
_ASSIGNED: Final = re.compile(f"(?i)(?P<name>{_STEM}{_TAIL}){_TIE}{_VALUE}", re.ASCII)


def assigned_secrets(*, strict: bool) -> tuple[Detector, ...]:
    """The detector of a name that tells, and its value."""

    def resolve(text: str, start: int, end: int) -> Iterable[Span]:
        del end
        found = _ASSIGNED.match(text, start)
        return _judged(text, found, strict=strict) if found is not None else ()

    # The pattern is only the stem: whether there is a value is for `resolve`, which would match it again.
    return (Detector("assigned", "SECRET", f"(?i){_STEM}", _STEMS, resolve=resolve),)


def _judged(text: str, found: re.Match[str], *, strict: bool) -> Iterable[Span]:
    name = _whole_name(text, found)
    strength = name_strength(name)
    if strength == NameStrength.NONE:
        return ()
    low, high = found.span("value")
    scheme = _SCHEME.match(text, low, high)
    if scheme:
        low = scheme.end()
    if text[low:high].endswith("..") and not strict:
        return ()  # cut off by whoever wrote it down
    high = low + len(text[low:high].rstrip(".:!?"))
    if text[high : high + 1] == "(":
        return ()  # a call
    tie = text[found.end("name") : found.start("value")]
    if tie.isspace() and not (name.startswith("-") or (strength > NameStrength.WEAK and strict)):
        return ()
    quoted = found["quote"] is not None
    if not quoted and "," in tie:
        return ()
    if not secret_value(text[low:high], strength, strict=strict, quoted=quoted):
        return ()
    rest = _REST.match(text, high) if high - low >= _LONG else None
    return ((low, rest.end() if rest else high, "SECRET"),)


def _whole_name(text: str, found: re.Match[str]) -> str:
    first = start = found.start()
    while first > 0 and start - first < 40 and text[first - 1] in _NAME_CHARACTERS:
        first -= 1
    return text[first : found.end("name")]
