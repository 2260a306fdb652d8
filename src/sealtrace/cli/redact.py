"""`sealtrace redact`: what redaction makes of a text."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from ..errors import RedactionFailed, SealtraceError
from ._exits import OK

if TYPE_CHECKING:
    from ..redaction import Redactor

__all__ = ["redact"]

_MARK: Final = "\ufeff"
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


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
    if sys.stdin is None or sys.stdout is None:
        raise SealtraceError("standard input or output is closed: there is nothing to read from or to write to")
    try:
        found = (_lines if jsonl else _whole)(redactor, sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        # Whoever read our output has gone. What is still in the buffer must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(OK) from None
    except OSError as error:
        raise SealtraceError(f"cannot read standard input or write standard output: {error.strerror}") from None
    if counts:
        sys.stderr.write(json.dumps(dict(sorted(found.items()))) + "\n")


def _whole(redactor: Redactor, given: IO[bytes], out: IO[bytes]) -> Counter[str]:
    mark, text = _begun(_text(given.read()))
    done = redactor.redact(text)
    _write(out, mark + done.value)
    return Counter(done.counts)


def _lines(redactor: Redactor, given: IO[bytes], out: IO[bytes]) -> Counter[str]:
    found: Counter[str] = Counter()
    for number, raw in enumerate(given, start=1):
        text = _text(raw) if number == 1 else _decoded(raw)
        mark, text = _begun(text) if number == 1 else ("", text)
        line = text.strip(" \t\r\n")
        if line:
            safe, counts = _line(redactor, line, number)
            text = text.replace(line, safe, 1)
            found.update(counts)
        _write(out, mark + text)
    return found


def _line(redactor: Redactor, line: str, number: int) -> tuple[str, dict[str, int]]:
    from ..redaction.embedded import value_of, written

    rest = "nothing of it was written, nor of what follows"
    try:
        value: Any = value_of(line)
    except RecursionError:
        raise SealtraceError(f"line {number} is nested too deeply to read; {rest}") from None
    except ValueError:
        raise SealtraceError(f"line {number} is not JSON; {rest}") from None
    try:
        done = redactor.redact(value)
    except RedactionFailed as error:
        raise RedactionFailed(f"line {number}: {error}; {rest}") from None
    # A line in which nothing was found keeps its spelling.
    return (written(done.value, line) if done.counts else line), done.counts


def _text(raw: bytes) -> str:
    if raw.startswith(_WIDE):
        # Between every two letters stands a NUL: no detector would find anything, and all would look well.
        raise SealtraceError("standard input is UTF-16 or UTF-32: convert it to UTF-8 first; nothing was written")
    return _decoded(raw)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _begun(text: str) -> tuple[str, str]:
    """The byte order mark, if there is one, and the text: a mark before it would hide that it is JSON."""
    return (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)


def _write(out: IO[bytes], text: str) -> None:
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair, from an escape: JSON may say it so
        raw = text.encode("utf-8", "backslashreplace")
    out.write(raw)
    out.flush()
