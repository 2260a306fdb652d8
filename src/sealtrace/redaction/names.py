"""What the name of a field or variable says about its value, and whether the value bears it out."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from .remembered import remembered
from .validators import entropy, placeholder, random_enough, words

__all__ = ["NAME_ENDS", "WEAK_NAME_ENDS", "NameStrength", "name_strength", "secret_value"]


class NameStrength(IntEnum):
    """How much a name says about its value."""

    NONE = 0
    WEAK = 1
    """`key`, `auth`: only in the strict profile, and only a value that looks generated."""
    LIKELY = 2
    """`api_key`, `access_token`: a value that looks generated."""
    SURE = 3
    """`password`, `client_secret`: any value that is not plainly none."""


_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SURE: Final = words(
    """
    password passwd passwort passphrase passcode pwd pw secret secretkey privatekey clientsecret contrasena senha
    motdepasse userpass dbpass mysqlpwd
    """
)
_LIKELY: Final = words(
    """
    secrets token tokens apikey accesskey authkey secretid credential credentials creds authorization cookie pat
    authtoken accesstoken apitoken oauth bearer jwt webhook login sas
    """
)
_WEAK: Final = words(
    """
    signature sig key auth pass session sessionid cred
    """
)
# Where a word above may be written as two, and the second alone would tell nothing.
_APART: Final = words(
    """
    pass_wd pass_word pass_wort pass_phrase pass_code contra_sena mot_depasse web_hook log_in
    """
)
NAME_ENDS: Final = _SURE | _LIKELY | _WEAK | _APART
"""How every name ends that tells anything; an underscore is where a sign or a capital may divide it."""

WEAK_NAME_ENDS: Final = _WEAK

_QUALIFIES_KEY: Final = words(
    """
    api access secret private auth client account app application encryption signing service admin master shared
    deploy license storage server user subscription consumer webhook integration project ssh aws azure gcp
    """
)
# A token of this sort gives nothing away, and a key of this sort opens nothing.
_HARMLESS: Final = words(
    """
    csrf xsrf authenticity page next prev previous continuation cursor sync max min total count usage input output
    prompt completion cached reasoning num first last foreign primary partition sort cache idempotency translation
    i18n object bucket public pub kms vault foreignkey row index group lookup dict map hot short type size name id
    length version source results hash etag algorithm frame
    """
)
_STORES: Final = frozenset({"vault", "bucket", "kms"})
_MORE: Final = re.compile(
    r"[0-9]+$|_?(?:value|str|string|text|plain|raw|old|new|current|confirm|confirmation)$", re.IGNORECASE
)


@remembered(8192, longest=200)
def name_strength(name: str) -> NameStrength:
    """How surely a field or variable of this name holds a secret: judged by how the name ends."""
    if "<" in name:
        return NameStrength.NONE  # holds a pseudonym: it was content
    stem = _MORE.sub("", name.strip("_-. "))
    parts = [part.lower() for part in _PARTS.findall(stem)]
    if not parts:
        return NameStrength.NONE
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    both = before + last if last in NAME_ENDS or f"{before}_{last}" in _APART else last
    if last in _SURE or both in _SURE:
        return NameStrength.SURE
    if before in _HARMLESS or last in _HARMLESS or not _STORES.isdisjoint(parts):
        return NameStrength.NONE
    if last in _LIKELY or both in _LIKELY or (last == "key" and before in _QUALIFIES_KEY):
        return NameStrength.LIKELY
    for end in ("token", "secret", "apikey", "password", "passwd"):
        if last.endswith(end) and len(last) > len(end):
            return NameStrength.SURE if end in {"secret", "password", "passwd"} else NameStrength.LIKELY
    if last in _WEAK:
        return NameStrength.LIKELY if last == "key" and before and len(stem) <= 24 else NameStrength.WEAK
    return NameStrength.NONE


_REFERENCE: Final = re.compile(
    r"[A-Za-z_$][A-Za-z_$]*(?:[.:/\\-]+[A-Za-z_$][A-Za-z_$]*)*\Z"  # words only: code or prose
    r"|[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+\Z"  # config.api_key2
    r"|[A-Za-z_$][\w$]{0,30}(?:::|->|\[)"
    r"|(?:https?|file|s3|gs|ftp|arn|urn|vault|env|secrets?|op|ref|\$ref)[:/]"
    r"|[~.]{0,2}/"
)
_HOST_OR_FILE: Final = re.compile(
    r"[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|local|internal|pem|crt|cer|key|json|ya?ml|txt|py|js|ts|go|java|png|jpe?g|svg|html?)(?:[:/].*)?\Z"
)
_WORD_END: Final = re.compile(r"[ _./:-]")
_ONE_WORD: Final = re.compile(r"[A-Z]?[a-z]{2,}[0-9]{0,2}|[A-Z]{2,}[0-9]{0,2}|[0-9]{1,3}|")
_VERSION: Final = re.compile(r"[vV]?[0-9]+(?:\.[0-9]+)+|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]+)?(?:ms|s|px|kb|mb|gb|%)?\Z", re.IGNORECASE)


def secret_value(value: str, strength: NameStrength, *, strict: bool, quoted: bool) -> bool:
    """Whether the value of a name this telling is a secret."""
    if strength == NameStrength.NONE or len(value) < 4 or placeholder(value):
        return False
    if strength == NameStrength.SURE and not _REFERENCE.match(value):
        return strict or quoted or len(value) >= 6
    if strength == NameStrength.SURE and quoted:
        return strict or (len(value) >= 8 and "_" not in value and "." not in value and not value.isupper())
    if _PLAIN_NUMBER.match(value) or (_REFERENCE.match(value) and entropy(value) < 3.9):
        return False
    if _HOST_OR_FILE.match(value) or _VERSION.match(value):
        return False
    if strength == NameStrength.WEAK and not strict:
        return False
    wordy = len(value) < 28 and all(_ONE_WORD.fullmatch(part) for part in _WORD_END.split(value))
    return random_enough(value, shortest=8 if strict else 10) and not (wordy and (not strict or len(value) < 14))
