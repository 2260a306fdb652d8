"""What is looked for in text.

Each detector has anchors: short literals (or a digit run) without which it cannot match. Most
strings hold none of them, and looking for a literal is some hundred times cheaper than running a
pattern, so a string without anchors costs next to nothing. Patterns stay within what RE2 knows, so
engines can be exchanged.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Final

from . import validators

__all__ = ["DETECTORS", "Detector"]


@dataclasses.dataclass(frozen=True, slots=True)
class Detector:
    """One kind of value.

    Attributes:
        kind: What the pseudonym says, for example `EMAIL`.
        pattern: Where it has a group named `value`, that group is replaced, else the whole match.
        anchors: Lower-case literals, one of which must be in the lower-cased text.
        digits: At least this many digits must be in the text; 0 where that is no condition.
        valid: A check of the matched value.
    """

    kind: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...] = ()
    digits: int = 0
    valid: Callable[[str], bool] | None = None


def _secret(pattern: str, *anchors: str, kind: str = "SECRET") -> Detector:
    return Detector(kind, re.compile(pattern), anchors)


def _random_enough(value: str) -> bool:
    kinds = sum(any(test(character) for character in value) for test in (str.islower, str.isupper, str.isdigit))
    return validators.entropy(value) >= 3.0 and (kinds >= 2 or len(value) >= 20)


_ASSIGNED: Final = (
    r"(?i)(?:api[_-]?key|apikey|access[_-]?key|secret(?:[_-]?key)?|client[_-]?secret|auth[_-]?token|access[_-]?token"
    r"|refresh[_-]?token|private[_-]?key|passw(?:or)?d|passwd|pwd|passphrase|credentials?)"
    r"[\"']?\s{0,5}(?:=>|:=|=|:)\s{0,5}[\"']?(?P<value>[^\s\"'<>,;{}()\[\]]{8,200})"
)

DETECTORS: Final[tuple[Detector, ...]] = (
    Detector(
        "PRIVATE_KEY",
        re.compile(
            r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\:,.()-]{0,16384}"
            r"(?:-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
        ("private key",),
    ),
    Detector("JWT", re.compile(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,2048}"), ("eyj",)),
    _secret(r"\bsk-(?:proj-|svcacct-|admin-|ant-|or-)?[A-Za-z0-9_-]{20,200}", "sk-"),
    _secret(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b", "akia", "asia", "abia", "acca"),
    _secret(r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _secret(r"\bgithub_pat_[A-Za-z0-9_]{22,255}\b", "github_pat_"),
    _secret(r"\bglpat-[A-Za-z0-9_-]{20,100}", "glpat-"),
    _secret(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}", "xox"),
    _secret(r"\bxapp-[0-9]-[A-Za-z0-9-]{20,250}", "xapp-"),
    _secret(r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,90}", "hooks.slack.com"),
    _secret(r"\bAIza[A-Za-z0-9_-]{35}", "aiza"),
    _secret(r"\bya29\.[A-Za-z0-9_-]{20,400}", "ya29."),
    _secret(r"\b[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,99}\b", "k_live_", "k_test_", "k_prod_"),
    _secret(r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", "sg."),
    _secret(r"\bnpm_[A-Za-z0-9]{36}\b", "npm_"),
    _secret(r"\bpypi-[A-Za-z0-9_-]{50,1000}", "pypi-"),
    _secret(r"\bhf_[A-Za-z]{30,60}\b", "hf_"),
    _secret(r"\b(?:dop|doo|dor)_v1_[a-f0-9]{64}\b", "_v1_"),
    _secret(r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b", "shpat_", "shpca_", "shppa_", "shpss_"),
    _secret(r"\bSK[0-9a-fA-F]{32}\b", "sk"),
    _secret(r"(?i)\bbearer\s{1,5}(?P<value>[A-Za-z0-9._~+/-]{16,2048}={0,2})", "bearer"),
    _secret(r"(?i)\bbasic\s{1,5}(?P<value>[A-Za-z0-9+/]{16,1024}={0,2})", "basic "),
    _secret(r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s/:@\"'<>]{1,100}:(?P<value>[^\s/@\"'<>]{1,200})@", "://"),
    Detector(
        "SECRET",
        re.compile(_ASSIGNED),
        ("key", "secret", "token", "passw", "pwd", "passphrase", "credential"),
        valid=_random_enough,
    ),
    Detector(
        "EMAIL",
        re.compile(r"[A-Za-z0-9._%+'-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}\b"),
        ("@",),
    ),
    Detector("IBAN", re.compile(r"\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{2,4}){3,8}\b"), digits=8, valid=validators.iban),
    Detector("CARD", re.compile(r"\b[0-9](?:[ -]?[0-9]){11,18}\b"), digits=12, valid=validators.luhn),
    Detector("SSN", re.compile(r"\b[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}\b"), digits=9, valid=validators.ssn),
    Detector("IP", re.compile(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b"), ("." ,), 4, validators.ip_address),
    Detector(
        "IP", re.compile(r"(?:[0-9A-Fa-f]{1,4}:){2,7}(?::?[0-9A-Fa-f]{1,4}){1,7}"), (":",), 1, validators.ip_address
    ),
    Detector("PHONE", re.compile(r"\+[0-9]{1,3}(?:[ ./-]?\(?[0-9]{1,5}\)?){2,6}\b"), ("+",), 7, validators.phone),
    Detector(
        "PHONE", re.compile(r"(?:\([0-9]{3}\) ?|\b[0-9]{3}[-.])[0-9]{3}[-.][0-9]{4}\b"), (), 10, validators.phone
    ),
)  # fmt: skip
