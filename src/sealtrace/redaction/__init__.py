"""Redaction in process, before a byte leaves it."""

from __future__ import annotations

from .identifiers import IdentifierGate
from .memory import RunMemory
from .policy import FieldRule, Policy
from .redactor import Redaction, Redactor

__all__ = ["FieldRule", "IdentifierGate", "Policy", "Redaction", "Redactor", "RunMemory"]
