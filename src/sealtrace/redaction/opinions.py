"""Second opinions: other people's detectors beside ours, each an extra.

Both run where redaction runs, on the background thread, and are bounded in time; one that fails or
takes too long drops the payload. Kingfisher only scans here: its modules that validate or revoke a
credential go to the network and are never imported. Comments that tell a scanner to look away are
ignored, because prompt text could write them.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Final

from ..errors import RedactionFailed, SettingsError
from .engine import Found

__all__ = ["Kingfisher", "Presidio"]

_MODEL: Final = "en_core_web_sm"
_SECONDS: Final = 5.0
_RANK: Final = 10_000
"""Theirs is the say where ours finds nothing."""

# What ours has no shape for. Its recogniser of mail addresses would fetch a list of domains.
_PRESIDIO_KINDS: Final = {
    "PERSON": "NAME", "LOCATION": "ADDRESS", "US_PASSPORT": "NATIONAL_ID", "US_DRIVER_LICENSE": "NATIONAL_ID",
    "MEDICAL_LICENSE": "NATIONAL_ID", "CRYPTO": "ACCOUNT", "US_BANK_NUMBER": "ACCOUNT",
}  # fmt: skip


class Kingfisher:
    """Secrets, by Kingfisher's rules; scanning is offline."""

    name = "kingfisher"

    def __init__(self) -> None:
        sdk = importlib.import_module("kingfisher_sdk")
        self._scanner = sdk.Scanner(policy=sdk.DetectionPolicy(inline_ignores=False))

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`.

        Raises:
            RedactionFailed: It took too long.
        """
        if depth:
            return []  # it decodes by itself
        # One byte a character, so that its offsets are ours.
        raw = text.encode("ascii", "replace").replace(b"\x00", b"\n")
        try:
            found = self._scanner.scan(raw, timeout=_SECONDS)
        except TimeoutError:
            raise RedactionFailed("Kingfisher took too long; the payload was dropped") from None
        spans = [(item.location["start_offset"], item.location["end_offset"]) for item in found]
        return [(start, end, "SECRET", _RANK) for start, end in spans if start < end]


class Presidio:
    """Names and places, by Presidio and its language model: 10 KB a second, and no promise.

    Raises:
        SettingsError: The language model is not installed.
    """

    name = "presidio"

    def __init__(self) -> None:
        analyzer: Any = importlib.import_module("presidio_analyzer")
        # Presidio would fetch a model that is missing; this process asks the network for nothing.
        if importlib.util.find_spec(_MODEL) is None:
            raise SettingsError(
                f"Presidio needs spaCy's model {_MODEL}: install it beside sealtrace[presidio]",
                setting="redaction_policy",
            )
        provider = importlib.import_module("presidio_analyzer.nlp_engine").NlpEngineProvider(
            nlp_configuration={"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": _MODEL}]}
        )
        engine = provider.create_engine()
        self._analyzer = analyzer.AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        if depth:
            return []
        out: list[Found] = []
        position = 0
        for piece in text.split("\x00"):
            if any(character.isupper() or character.isdigit() for character in piece):
                results = self._analyzer.analyze(piece, language="en", entities=list(_PRESIDIO_KINDS))
                out += [
                    (position + item.start, position + item.end, _PRESIDIO_KINDS[item.entity_type], _RANK)
                    for item in results
                ]
            position += len(piece) + 1
        return out
