"""Credentials given away by what stands around them: URLs, headers, command lines, key files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .detector import Detector, Span
from .validators import entropy, placeholder, random_enough

__all__ = ["credentials"]

_AZURE: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_~."


def credentials() -> tuple[Detector, ...]:
    """The detectors of this module, the same for every profile."""
    return (
        Detector(
            "url_password",
            "SECRET",
            r"://[^\s\x00/:@\"'<>]{0,100}:(?P<value>[^\s\x00/@\"'<>]{1,200})@",
            ("://",),
            resolve=_whole,
        ),
        Detector(
            "authorization_scheme",
            "SECRET",
            r"(?i)(?:bearer|basic)[ :]{1,3}(?P<value>[A-Za-z0-9._~+/-]{12,}={0,2})",
            ("bearer", "basic"),
            resolve=_scheme,
        ),
        Detector(
            "curl_user",
            "SECRET",
            r"(?i)curl(?:[^\n\x00]|\\\n){0,300}?\s(?:-u|--user)[ =]?\s{0,4}[\"']?"
            r"(?P<value>[^\s\x00\"':]{0,100}:[\"']?[^\s\x00\"']{4,200})",
            ("curl",),
            resolve=_curl_user,
        ),
        Detector(
            "bundler",
            "SECRET",
            r"(?i)bundle_[a-z0-9_]{3,80}[\"']? {0,3}[:=] {0,3}[\"']?"
            r"(?P<value>[A-Za-z0-9_-]{4,80}:[A-Za-z0-9_-]{4,80})",
            ("bundle_",),
        ),
        Detector(
            "private_key",
            "PRIVATE_KEY",
            r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:,.()]|-[A-Za-z0-9 ])*"
            r"(?:-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
            ("-----begin",),
            resolve=_private_key,
        ),
        Detector(
            "slack_webhook",
            "SECRET",
            r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>[A-Za-z0-9+/]{20,90})",
            ("hooks.slack.com",),
            resolve=_whole,
        ),
        Detector("telegram_bot", "SECRET", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", (":aa",), reach=10, lead="0123456789"),
        Detector(
            "facebook_app",
            "SECRET",
            r"[0-9]{15,16}(?:\||%7[Cc])[A-Za-z0-9_-]{27,40}",
            ("|", "%7c"),
            reach=16,
            lead="0123456789",
        ),
        Detector(
            "azure_client",
            "SECRET",
            r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
            ("q~",),
            reach=4,
            lead=_AZURE,
            resolve=_azure,
        ),
        Detector("mailchimp", "SECRET", r"[0-9a-f]{32}-us[0-9]{1,2}", ("-us",), reach=32, lead="0123456789abcdef"),
        Detector(
            "azure_storage",
            "SECRET",
            r"(?i)accountkey=(?P<value>[A-Za-z0-9+/]{86}==)",
            ("accountkey=",),
            resolve=_whole,
        ),
    )


def _whole(text: str, start: int, end: int) -> Iterable[Span]:
    return () if placeholder(text[start:end]) else ((start, end, "SECRET"),)


def _scheme(text: str, start: int, end: int) -> Iterable[Span]:
    value = text[start:end]
    good = random_enough(value, shortest=12) or (value.endswith("=") and len(value) >= 12)
    return ((start, end, "SECRET"),) if good and not placeholder(value) else ()


def _curl_user(text: str, start: int, end: int) -> Iterable[Span]:
    user, _, password = text[start:end].partition(":")
    password = password.strip("'\"")
    if placeholder(password) or password.lower() == user.lower() or "$" in password[:1] or "{" in password:
        return ()
    return ((end - len(password), end, "SECRET"),)


def _private_key(text: str, start: int, end: int) -> Iterable[Span]:
    del text
    # A bare header, or a sentence about one, gives nothing away; a key that was cut off does.
    return ((start, end, "PRIVATE_KEY"),) if end - start >= 80 else ()


def _azure(text: str, start: int, end: int) -> Iterable[Span]:
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() or before in {"~", "_", "-", "@"} or after.isalnum() or after in {"~", "_"}:
        return ()
    return ((start, end, "SECRET"),) if entropy(text[start:end]) >= 3.3 else ()
