"""Reports of reruns as files, and the directory where the viewer finds them.

A rerun runs the user's code, so it is a command and never a page. What came of it can be kept, and a
kept report is only read. It holds the values that differ, redacted: the files are for their owner
alone, and are refused, as payloads are, when they are older than payloads may get.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from .._private_file import write_private
from ..errors import ReportError, SettingsError
from ..event import canonical_run_id, run_hex
from .report import Report
from .shape import JSON, at, is_object

__all__ = ["KeptReport", "Shelf", "from_text", "to_text"]

_LARGEST: Final = 64 * 1024 * 1024
_NAME: Final = re.compile(r"(?P<run>[0-9a-f]{32})-(?P<at>\d{8}T\d{6}Z)-[0-9a-f]{6}\Z")
_TIME: Final = "%Y%m%dT%H%M%SZ"
_FORM: Final = 1
_DAY: Final = 86_400


def to_text(report: Report) -> str:
    """The report as `sealtrace rerun --json` prints it: one JSON document, in ASCII."""
    return json.dumps(report.to_json(), ensure_ascii=True, indent=2) + "\n"


def from_text(text: str) -> Report:
    """The report that `to_text` wrote.

    Raises:
        ReportError: It is none, or one of another version; the message quotes nothing of it.
    """
    try:
        found: JSON = json.loads(text)
    except (ValueError, RecursionError):
        raise ReportError("that is no report of a rerun: it is not JSON; write one with `--report FILE`") from None
    if at(found, "rerun") != _FORM:
        raise ReportError("that is no report of a rerun, or one of another version; write one with `--report FILE`")
    run = found.get("run")
    if not isinstance(run, str) or canonical_run_id(run) != run:
        raise ReportError("the report names no run: run `sealtrace rerun` again")
    try:
        return _READER.validate_python(_as_fields(found))
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors(include_input=False, include_url=False)[0]["loc"][:3])
        raise ReportError(f"the report is not whole or was changed, at {where}: run `sealtrace rerun` again") from None


_READER: Final[TypeAdapter[Report]] = TypeAdapter(Report)


def _as_fields(found: dict[str, JSON]) -> dict[str, JSON]:
    """What `to_json` writes, under the names of the fields."""
    names = {field.name for field in dataclasses.fields(Report)}
    fields = {name: value for name, value in found.items() if name in names}
    divergence = found.get("divergence")
    if is_object(divergence):
        fields["divergence"] = {"cause" if name == "class" else name: value for name, value in divergence.items()}
    return {**fields, "run_id": found.get("run")}


@dataclasses.dataclass(frozen=True, slots=True)
class KeptReport:
    """A report on the shelf.

    Attributes:
        name: What it is called there: the run's digits, when it was made, something random.
        run_id: The run.
        at: When it was made, RFC 3339 to the second.
    """

    name: str
    run_id: str
    at: str


class Shelf:
    """A directory of kept reports.

    Args:
        directory: Where they are; made when the first is kept.
        days: How long a report may be read.
        now: Seconds since the epoch.
    """

    def __init__(self, directory: Path, *, days: int, now: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._days = days
        self._now = now

    def keep(self, report: Report) -> str:
        """Put a report there, and throw away those that are past their time.

        Returns:
            Its name.

        Raises:
            SettingsError: The directory cannot be written to.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = f"cannot make the directory {self._directory}: {error.strerror}"
            raise SettingsError(why, setting="reports") from None
        for old in list(self._all()):
            if self._is_past(old):
                (self._directory / f"{old.name}.json").unlink(missing_ok=True)
        when = datetime.fromtimestamp(self._now(), UTC).strftime(_TIME)
        name = f"{run_hex(report.run_id)}-{when}-{secrets.token_hex(3)}"
        write_private(self._directory / f"{name}.json", to_text(report))
        return name

    def reports(self) -> list[KeptReport]:
        """What is there and may be read, newest first; no file is opened."""
        return sorted((kept for kept in self._all() if not self._is_past(kept)), key=lambda kept: kept.at, reverse=True)

    def open(self, name: str) -> Report:
        """One report.

        Raises:
            ReportError: There is none of that name, it is past its time, or it cannot be read.
        """
        kept = _kept(name)
        if kept is None:
            raise ReportError("that is not the name of a kept report; `sealtrace rerun RUN --keep` says its name")
        if self._is_past(kept):
            raise ReportError(f"the report is more than {self._days} days old, and payloads are read no longer")
        try:
            # What a link in the directory points to was not kept here.
            handle = os.open(self._directory / f"{name}.json", os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(handle, encoding="utf-8") as file:
                text = file.read(_LARGEST + 1)
        except FileNotFoundError:
            raise ReportError("there is no kept report of that name") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ReportError(f"the report cannot be read ({type(error).__name__})") from None
        if len(text) > _LARGEST:
            raise ReportError(f"the report is larger than {_LARGEST // 1024 // 1024} MB and is not shown")
        return from_text(text)

    def _all(self) -> Iterator[KeptReport]:
        try:
            names = sorted(entry.name for entry in os.scandir(self._directory))
        except FileNotFoundError:
            return
        except OSError as error:
            raise ReportError(f"the directory of kept reports cannot be read ({type(error).__name__})") from None
        for name in names:
            kept = _kept(name.removesuffix(".json")) if name.endswith(".json") else None
            if kept is not None:
                yield kept

    def _is_past(self, kept: KeptReport) -> bool:
        made = datetime.fromisoformat(kept.at).timestamp()
        return self._now() - made > self._days * _DAY


def _kept(name: str) -> KeptReport | None:
    match = _NAME.match(name)
    if match is None:
        return None
    try:
        when: Any = datetime.strptime(match["at"], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
    return KeptReport(name, canonical_run_id(match["run"]), when.strftime("%Y-%m-%dT%H:%M:%SZ"))
