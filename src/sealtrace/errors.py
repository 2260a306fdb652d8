"""Every error sealtrace raises, drawn as a tree.

```
SealtraceError
├── SettingsError            a setting is missing, unknown or out of range
├── RunNotFound              no store and no telemetry source knows the id
│   └── EventNotFound        the run is known, the event is not
├── NotComparable            two runs, or a run and code, cannot be held against each other
├── GoldenError              a golden run cannot be written, read or accepted
├── ReportError              a kept report of a rerun cannot be read
├── TelemetryError           spans could not be read
│   └── TelemetryFormatError the source answered with something that is not OTLP
├── RedactionFailed          a payload could not be made safe and was dropped
└── VaultError               the payload store
    ├── VaultUnavailable     not reachable now; retrying may help
    ├── VaultDenied          the credentials may not do this
    ├── ObjectNotFound       no object under that key
    ├── ObjectExists         the key is taken by other bytes (append-only)
    ├── PayloadErased        its key was destroyed; the bytes may be there, nobody can read them
    ├── PayloadExpired       past its retention; refused even where the bytes are still there
    ├── RunErased            the run was erased; what came back of it is refused
    └── RecordDamaged        stored bytes are not what the manifest or the format says
```

`ReplayDiverged` is deliberately not in this tree: the Agents SDK turns an `Exception` raised inside
a tool into text for the model, so a divergence must be a `BaseException` to be heard.
"""

from __future__ import annotations

__all__ = [
    "EventNotFound",
    "GoldenError",
    "NotComparable",
    "ObjectExists",
    "ObjectNotFound",
    "PayloadErased",
    "PayloadExpired",
    "RecordDamaged",
    "RedactionFailed",
    "ReportError",
    "RunErased",
    "RunNotFound",
    "SealtraceError",
    "SettingsError",
    "TelemetryError",
    "TelemetryFormatError",
    "VaultDenied",
    "VaultError",
    "VaultUnavailable",
]


class SealtraceError(Exception):
    """Root of every error sealtrace raises, `ReplayDiverged` excepted."""


class SettingsError(SealtraceError):
    """A setting cannot be used as given.

    Attributes:
        setting: The setting's name as the user wrote it, or None where no single one is to blame.
    """

    def __init__(self, message: str, *, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class RunNotFound(SealtraceError):
    """Neither the vault nor the telemetry source knows this run.

    Attributes:
        run: The id or link that was looked for.
    """

    def __init__(self, message: str, *, run: str) -> None:
        super().__init__(message)
        self.run = run


class EventNotFound(RunNotFound):
    """The run has no event of that number."""


class NotComparable(SealtraceError):
    """Two runs, or a run and code, cannot be held against each other; the message says what is missing."""


class GoldenError(SealtraceError):
    """A golden run cannot be written, read or accepted; the message says why and what to do."""


class ReportError(SealtraceError):
    """A kept report of a rerun cannot be read; the message says why and never quotes it."""


class TelemetryError(SealtraceError):
    """Spans could not be read from the telemetry source."""


class TelemetryFormatError(TelemetryError):
    """The telemetry source answered with something that is not OTLP."""


class RedactionFailed(SealtraceError):
    """A payload could not be made safe, so it must be dropped.

    The message never quotes the payload.
    """


class VaultError(SealtraceError):
    """Root of the payload store's errors.

    Attributes:
        key: The object key concerned, where there is one.
        reason: What the store calls it (`AccessDenied`, `SlowDown`), or its client (`NoCredentialsError`).
    """

    def __init__(self, message: str, *, key: str | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.reason = reason


class VaultUnavailable(VaultError):
    """The store did not answer, or asked to be left alone for a while."""


class VaultDenied(VaultError):
    """The credentials in use may not do this."""


class ObjectNotFound(VaultError):
    """No object is stored under that key."""


class ObjectExists(VaultError):
    """The key is taken by other bytes; nothing in a vault is ever overwritten."""


class PayloadExpired(VaultError):
    """The object is past its retention and is refused, whether or not the bytes are still there."""


class PayloadErased(VaultError):
    """The record's data key is gone, so nobody can read its payloads any more."""


class RunErased(VaultError):
    """The run was erased from the vault, and what has been stored of it since is refused."""


class RecordDamaged(VaultError):
    """Stored bytes are not what the manifest or the format says they should be."""
