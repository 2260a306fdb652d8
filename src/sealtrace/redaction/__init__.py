"""Redaction in process, before a byte leaves it."""

from __future__ import annotations

from .identifiers import IdentifierGate
from .memory import RunMemory
from .policy import CustomDetector, FieldRule, Override, Policy
from .redactor import Redaction, Redactor

__all__ = ["CustomDetector", "FieldRule", "IdentifierGate", "Override", "Policy", "Redaction", "Redactor", "RunMemory"]
