"""Who did what with payloads: a line in the vault's meta class and an OpenTelemetry log record.

A line names people, runs and reasons, never content. It is a small JSON object under
`meta/v1/audit/`, as immutable as everything else in a vault.
"""

from __future__ import annotations

import dataclasses
import getpass
import hashlib
import logging
import socket
import time
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber, get_logger

from .._version import __version__
from ..errors import SettingsError, VaultError
from ..event import timestamp
from ..settings import Settings
from . import layout
from .lines import decode_line, encode_line, storable
from .stores.base import Store

__all__ = ["Audit", "AuditLine", "audit_lines", "whoami"]

_log: Final = logging.getLogger("sealtrace")
_VERSION: Final = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One thing somebody did.

    Attributes:
        what: `read`, `erase`, `erased` or `expired`.
        who: The person or role, as far as this process can know.
        reason: Why, in the person's words.
        at: When, RFC 3339.
        about: Ids and counts of what it was done to.
    """

    what: str
    who: str
    reason: str | None
    at: str
    about: dict[str, Any]


def whoami() -> str:
    """User and host of this process; the store's own access log knows the credentials."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


class Audit:
    """Writes audit lines.

    Args:
        store: The vault's store.
        who: The person or role; `whoami()` by default.
        reason: Why this process reads or erases.
        keep: Write lines to the vault, which takes a role that may put below `meta/v1/audit/`;
            without, only log records are emitted.
    """

    def __init__(self, store: Store, *, who: str | None = None, reason: str | None = None, keep: bool = True) -> None:
        self._store = store
        self._who = who or whoami()
        self._reason = reason
        self._keep = keep
        self._noted: set[tuple[str, str]] = set()

    @classmethod
    def of_reads(cls, store: Store, settings: Settings, *, reason: str | None, who: str | None = None) -> Audit:
        """The audit that `read_audit` and `read_reason_required` ask for.

        Raises:
            SettingsError: A reason is required and none is given.
        """
        if settings.read_reason_required and not (reason or "").strip():
            raise SettingsError("payloads may only be read for a reason; give one (--reason)", setting="reason")
        return cls(store, who=who, reason=reason, keep=settings.read_audit)

    def read(self, run_id: str, record_id: str) -> None:
        """A record's payloads are about to be read; noted once per process and record.

        Raises:
            VaultError: The line is to be kept and cannot be stored: then nothing is read either.
        """
        if (run_id, record_id) not in self._noted:
            self.write("read", {"run_id": run_id, "record_id": record_id})
            self._noted.add((run_id, record_id))

    def write(self, what: str, about: dict[str, Any]) -> AuditLine:
        """Emit the log record, and keep the line where it is to be kept.

        Raises:
            VaultError: The line cannot be stored.
        """
        line = AuditLine(what=what, who=self._who, reason=self._reason, at=timestamp(time.time_ns()), about=about)
        _emit(line)
        if self._keep:
            fields = {"audit": _VERSION, "sealtrace_version": __version__, **dataclasses.asdict(line)}
            data = encode_line(storable(fields))
            digest = hashlib.sha256(data).digest()
            self._store.put(layout.audit_key(line.at, what, digest), data, sha256=digest)
        return line


def audit_lines(store: Store) -> list[AuditLine]:
    """All audit lines, oldest first; one that cannot be read is passed over with a warning.

    Raises:
        VaultError: The store cannot be read.
    """
    out: list[AuditLine] = []
    for item in store.list(layout.AUDIT):
        if item.key.startswith(layout.ERASED):
            continue
        try:
            found = decode_line(store.get(item.key), item.key)
            out.append(AuditLine(**{field.name: found[field.name] for field in dataclasses.fields(AuditLine)}))
        except (VaultError, KeyError) as error:
            _log.warning("sealtrace cannot read an audit line (%s): %s", item.key, error)
    return out


def _emit(line: AuditLine) -> None:
    attributes: dict[str, Any] = {"sealtrace.audit.what": line.what, "sealtrace.audit.who": line.who}
    if line.reason is not None:
        attributes["sealtrace.audit.reason"] = line.reason
    for name in ("run_id", "record_id"):
        if name in line.about:
            attributes[f"sealtrace.{name.replace('_id', '')}.id"] = line.about[name]
    get_logger("sealtrace.audit", __version__).emit(
        LogRecord(
            timestamp=time.time_ns(),
            severity_number=SeverityNumber.INFO,
            severity_text="INFO",
            event_name=f"sealtrace.audit.{line.what}",
            body=f"sealtrace payloads: {line.what}",
            attributes=attributes,
        )
    )
