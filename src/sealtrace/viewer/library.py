"""What the viewer reads from: the reader's own vault and telemetry source, and a few opened runs.

The settings alone say which bucket is read, at which endpoint and with whose credentials. Nothing a
link or a form says changes that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from ..errors import ReportError, RunErased, SealtraceError, VaultDenied
from ..event import RunEvent
from ..run import OpenedRun, Run, open_run
from ..run.listing import RunRow, list_runs
from ..settings import Settings
from ..telemetry.sources import RunQuery, Source, open_source
from ..vault import Audit, Keyring, Store, Tombstones, VaultReader, open_store
from ..vault.excerpt import Excerpt
from .calls import Calls
from .prices import Prices
from .rail import Rail

if TYPE_CHECKING:
    from ..replay.kept import Shelf
    from ..replay.report import Report

__all__ = ["Library", "OpenRun", "ReasonNeeded"]

_RUNS_KEPT: Final = 8
_WEIGHT_KEPT: Final = 60_000
"""Events and spans of all runs kept open together; about 4 KB each."""

_FRESH: Final = 300.0
_FRESH_UNFINISHED: Final = 5.0
"""Seconds a run stays opened before it is read again: one that may still grow, not for long."""

_SMALL: Final = 262_144
"""Stored bytes of payloads up to which a run without spans is read whole, for the names of its tools."""


class ReasonNeeded(SealtraceError):
    """The settings let nobody read payloads without saying why."""


@dataclasses.dataclass(eq=False)
class OpenRun:
    """A run that is open in this server.

    Attributes:
        opened: The run and where its payloads lie.
        rail: Its lines.
        at: When it was opened, by the monotonic clock.
        calls: How its events hang together.
        lock: Held while a payload is read: a record's reader is for one thread at a time.
    """

    opened: OpenedRun
    rail: Rail
    at: float
    calls: Calls
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    @property
    def weight(self) -> int:
        """How much memory it is worth, in events and spans."""
        return len(self.opened.run.events) + len(self.opened.run.spans)

    def stale(self, now: float) -> bool:
        """Whether it has to be read again."""
        finished = all(record.header is not None for record in self.opened.run.records)
        return now - self.at > (_FRESH if finished else _FRESH_UNFINISHED)


class Library:
    """Opens runs and reads payloads, with the credentials of whoever started the server.

    Args:
        settings: Which vault and which telemetry source, unless given.
        store: In place of the vault of the settings.
        source: In place of the telemetry source of the settings.
        clock: The monotonic clock.

    Raises:
        SettingsError: The vault or the source cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store | None = None,
        source: Source | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.store = store if store is not None else open_store(settings.vault, settings) if settings.vault else None
        self.source = source
        if source is None and settings.telemetry:
            self.source = open_source(settings.telemetry, settings)
        self.prices = Prices.from_file(settings.prices) if settings.prices is not None else None
        self._keyring = Keyring.from_settings(settings)
        self._clock = clock
        self._open: OrderedDict[tuple[str, bool], OpenRun] = OrderedDict()
        self._lock = threading.Lock()
        self._noting = threading.local()

    @property
    def places(self) -> str:
        """Where is looked, for people."""
        named = [self.source.name] if self.source is not None else []
        named += [self.store.url] if self.store is not None else []
        return " and ".join(named) or "nowhere: neither a vault nor a telemetry source is set"

    @property
    def needs_reason(self) -> bool:
        """Whether a reader has to say why, because the settings require it and give no reason themselves."""
        return self.settings.read_reason_required and not (self.settings.read_reason or "").strip()

    def runs(self, query: RunQuery, limit: int) -> list[RunRow]:
        """Runs that fit, newest first; see `list_runs`."""
        return list_runs(query, limit, self._reader(None), self.source)

    def open(self, reference: str, reason: str | None) -> OpenRun:
        """A run, read again where it has been open for long.

        Args:
            reference: A canonical run id, or an OpenTelemetry trace id as `/traces/{id}`.
            reason: What the reader said why.

        Raises:
            RunNotFound: Nothing that was searched knows it.
            VaultError: The vault cannot be read.
            TelemetryError: The source cannot be read.
        """
        now = self._clock()
        key = (reference, self._may_read(reason))
        with self._lock:
            known = self._open.get(key)
            if known is not None and not known.stale(now):
                self._open.move_to_end(key)
                return known
        reader = self._reader(reason)
        opened = open_run(reference, reader, self.source)
        if self._worth_reading_whole(opened, reason):
            opened = open_run(reference, reader, self.source, whole=True)
        made = OpenRun(opened, Rail(opened.run), now, Calls(opened.run.events))
        with self._lock:
            self._open[key] = made
            self._open.move_to_end(key)
            while len(self._open) > 1 and self._too_much():
                self._open.popitem(last=False)
        return made

    def whole(self, reference: str, reason: str | None) -> Run:
        """A run with all its payloads, for a comparison; it is not kept open.

        Raises:
            ReasonNeeded: The settings require a reason and there is none.
            RunNotFound: Nothing that was searched knows it.
            VaultError: The vault cannot be read.
            TelemetryError: The source cannot be read.
        """
        self._demand(reason)
        return open_run(reference, self._reader(reason), self.source, whole=True).run

    def shelf(self) -> Shelf | None:
        """Where reports of reruns are kept; None where no directory is set."""
        if self.settings.reports is None:
            return None
        from ..replay.kept import Shelf  # noqa: PLC0415 - only the pages of reruns need it

        return Shelf(self.settings.reports, days=self.settings.retention.content)

    def report(self, name: str, reason: str | None) -> Report:
        """A kept report. It quotes payloads, so it is opened for a reason, and noted, as they are.

        Raises:
            ReasonNeeded: The settings require a reason and there is none.
            ReportError: There is no such report, or it cannot be read.
            RunErased: Its run was erased, and what is left of it in a report is refused with it.
            VaultError: The vault cannot be asked, or the note could not be stored.
        """
        self._demand(reason)
        shelf = self.shelf()
        if shelf is None:
            raise ReportError("no directory of kept reports is set: set SEALTRACE_REPORTS")
        report = shelf.open(name)
        if self.store is not None and Tombstones(self.store).has(report.run_id):
            raise RunErased(f"{report.run_id} was erased, so the report {name} is not shown; delete its file too")
        self._note({"run_id": report.run_id, "report": name}, reason)
        return report

    def _note(self, about: dict[str, Any], reason: str | None) -> None:
        if self.store is not None:
            Audit(self.store, reason=self._reason(reason), keep=self.settings.read_audit).write("read", about)

    def _demand(self, reason: str | None) -> None:
        if not self._may_read(reason):
            raise ReasonNeeded("payloads may only be read for a reason; say why")

    def _may_read(self, reason: str | None) -> bool:
        return bool(reason) or not self.needs_reason

    def _too_much(self) -> bool:
        return len(self._open) > _RUNS_KEPT or sum(run.weight for run in self._open.values()) > _WEIGHT_KEPT

    def _worth_reading_whole(self, opened: OpenedRun, reason: str | None) -> bool:
        """Without spans, only payloads know what a tool was called; a small run is then read at once."""
        if opened.run.spans or not self._may_read(reason):
            return False
        manifests = [record.manifest for record in opened.stored.values()]
        return sum(part.bytes for found in manifests if found is not None for part in found.segments) <= _SMALL

    def payload(self, run: OpenRun, event: RunEvent, reason: str | None, newest: int | None = None) -> Excerpt:
        """An event's payload; that it is read is noted first, by whom and why.

        Args:
            run: The run it belongs to.
            event: The event.
            reason: What the reader said why.
            newest: So many of a conversation's last items in any case; None for all of it.

        Raises:
            ReasonNeeded: The settings require a reason and there is none.
            VaultError: It is not there, may not be read, or the note could not be stored.
        """
        self._demand(reason)
        self._note({"run_id": event.run_id, "record_id": event.record_id, "seq": event.seq}, reason)
        with run.lock, self._noted():
            return run.opened.excerpt(event, newest)

    def _reader(self, reason: str | None) -> VaultReader | None:
        if self.store is None:
            return None
        audit = _Openings(
            self.store,
            reason=self._reason(reason),
            keep=self.settings.read_audit,
            noting=self._noting,
            allowed=self._may_read(reason),
        )
        return VaultReader(self.store, self.settings.retention, audit=audit, keyring=self._keyring)

    def _reason(self, given: str | None) -> str | None:
        return given or self.settings.read_reason

    @contextlib.contextmanager
    def _noted(self) -> Generator[None]:
        self._noting.done = True
        try:
            yield
        finally:
            self._noting.done = False


class _Openings(Audit):
    """Notes a record that is read whole; a single payload is noted by the library, with its number."""

    def __init__(self, store: Store, *, reason: str | None, keep: bool, noting: threading.local, allowed: bool) -> None:
        super().__init__(store, reason=reason, keep=keep)
        self._noting = noting
        self._allowed = allowed

    def read(self, run_id: str, record_id: str) -> None:
        """See `Audit.read`."""
        if getattr(self._noting, "done", False):
            return
        if not self._allowed:
            raise VaultDenied("payloads may only be read for a reason, and none has been given yet")
        super().read(run_id, record_id)
