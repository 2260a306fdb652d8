"""The other process: reads texts, one JSON line each, and answers with what Kingfisher or Presidio finds in them.

    python -m sealtrace.redaction.opinion_worker kingfisher "" 5
    python -m sealtrace.redaction.opinion_worker presidio en_core_web_sm 5

It is bounded by itself too, should nobody be left to kill it, and may not go anywhere: connections and
further processes are refused. Kingfisher only scans here; its modules that validate or revoke a
credential go to the network and are never imported. Comments that tell a scanner to look away are
ignored, because prompt text could write them.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from .detector import SEPARATOR, Span

__all__ = ["main"]

_MEMORY: Final = 4 << 30
_REFUSED: Final = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.sendto",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
)

# What ours has no shape for. Presidio's recogniser of mail addresses would fetch a list of domains.
_PRESIDIO_KINDS: Final = {
    "PERSON": "NAME", "LOCATION": "ADDRESS", "US_PASSPORT": "NATIONAL_ID", "US_DRIVER_LICENSE": "NATIONAL_ID",
    "MEDICAL_LICENSE": "NATIONAL_ID", "CRYPTO": "ACCOUNT", "US_BANK_NUMBER": "ACCOUNT",
}  # fmt: skip

_Search = Callable[[str], list[Span]]


def main(arguments: list[str]) -> None:
    """Answer until standard input ends."""
    name, model, seconds = arguments
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    _confine()
    search = _kingfisher(float(seconds)) if name == "kingfisher" else _presidio(model)
    _answer(answers, "ready")
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_REAL, float(seconds) + 1)
        found = search(json.loads(line))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _answer(answers, found)


def _answer(answers: Any, value: Any) -> None:
    answers.write(json.dumps(value).encode("ascii") + b"\n")
    answers.flush()


def _confine() -> None:
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > _MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, most))
    sys.addaudithook(_refuse)


def _refuse(event: str, _arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED:
        raise PermissionError(f"{event} is refused here")


def _kingfisher(seconds: float) -> _Search:
    sdk = importlib.import_module("kingfisher_sdk")
    scanner = sdk.Scanner(policy=sdk.DetectionPolicy(inline_ignores=False))

    def search(text: str) -> list[Span]:
        # One byte a character, so that its offsets are ours.
        raw = text.encode("ascii", "replace").replace(b"\x00", b"\n")
        spans = [item.location for item in scanner.scan(raw, timeout=seconds)]
        found = [(span["start_offset"], span["end_offset"]) for span in spans]
        return [piece for start, end in found for piece in _pieces(text, start, end, "SECRET")]

    return search


def _pieces(text: str, start: int, end: int, kind: str) -> list[Span]:
    """A find as finds within single strings."""
    out: list[Span] = []
    for part in text[start:end].split(SEPARATOR):
        if part:
            out.append((start, start + len(part), kind))
        start += len(part) + 1
    return out


def _presidio(model: str) -> _Search:
    analyzer_module: Any = importlib.import_module("presidio_analyzer")
    provider = importlib.import_module("presidio_analyzer.nlp_engine").NlpEngineProvider(
        nlp_configuration={"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": model}]}
    )
    analyzer = analyzer_module.AnalyzerEngine(nlp_engine=provider.create_engine(), supported_languages=["en"])

    def search(text: str) -> list[Span]:
        out: list[Span] = []
        position = 0
        for piece in text.split(SEPARATOR):
            if any(character.isupper() or character.isdigit() for character in piece):
                results = analyzer.analyze(piece, language="en", entities=list(_PRESIDIO_KINDS))
                out += [
                    (position + item.start, position + item.end, _PRESIDIO_KINDS[item.entity_type])
                    for item in results
                    if item.start < item.end
                ]
            position += len(piece) + 1
        return out

    return search


if __name__ == "__main__":
    main(sys.argv[1:])
