"""All built-in detectors of a profile, most telling first."""

from __future__ import annotations

from functools import lru_cache

from .assigned import assigned_secrets
from .credentials import credentials
from .detector import Detector
from .issuers import issued_tokens
from .numbers import number_detectors
from .personal import personal_detectors

__all__ = ["built_in", "names_and_kinds"]


@lru_cache(maxsize=2)
def built_in(profile: str) -> tuple[Detector, ...]:
    """The detectors of `strict` or `balanced`.

    Where two finds overlap, both are covered and the kind is that of the detector listed first.
    """
    strict = profile == "strict"
    return (
        *issued_tokens(strict=strict),
        *personal_detectors(strict=strict),
        *number_detectors(strict=strict),
        *credentials(),
        *assigned_secrets(strict=strict),
    )


@lru_cache(maxsize=1)
def names_and_kinds() -> frozenset[str]:
    """Everything a policy can switch off."""
    kinds = {"CARD", "SSN", "IBAN", "PHONE"}
    for detector in built_in("strict"):
        kinds |= {detector.name, detector.kind}
    return frozenset(kinds - {"NUMBER", "FIELD"})
