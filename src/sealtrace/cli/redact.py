"""`sealtrace redact`: what redaction makes of a text."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import RedactionFailed, SealtraceError

if TYPE_CHECKING:
    from ..redaction import Redactor

__all__ = ["redact"]


def redact(
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Each line is a JSON value, redacted by itself.")] = False,
    profile: Annotated[
        str | None, typer.Option(help="strict or balanced; SEALTRACE_REDACTION_PROFILE by default.", show_default=False)
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="A policy file; SEALTRACE_REDACTION_POLICY by default.", show_default=False),
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Say on standard error how many values of each kind were replaced.")
    ] = False,
) -> None:
    """Read standard input, write it redacted to standard output.

    Text stays text, JSON stays JSON. Pseudonyms are made with the key of the settings; without one
    they differ from one call to the next. What cannot be redacted is not written, and the exit code is 1.
    """
    from ._redaction import redactor_of

    redactor = redactor_of(profile, policy)
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape", newline="")  # type: ignore[union-attr]
    found = _lines(redactor) if jsonl else _whole(redactor)
    if counts:
        sys.stderr.write(json.dumps(dict(sorted(found.items()))) + "\n")


def _whole(redactor: Redactor) -> Counter[str]:
    done = redactor.redact(sys.stdin.read())
    sys.stdout.write(done.value)
    return Counter(done.counts)


def _lines(redactor: Redactor) -> Counter[str]:
    found: Counter[str] = Counter()
    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            sys.stdout.write(line)
            continue
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError):
            raise SealtraceError(f"line {number} is not JSON; nothing of it was written, nor of what follows") from None
        try:
            done = redactor.redact(value)
        except RedactionFailed as error:
            raise RedactionFailed(f"line {number}: {error}") from None
        sys.stdout.write(json.dumps(done.value, ensure_ascii=False) + "\n")
        found.update(done.counts)
    return found
