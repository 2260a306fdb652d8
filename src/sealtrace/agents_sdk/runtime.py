"""Puts the parts together for one `instrument()` call."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from agents.version import __version__ as sdk_version
from opentelemetry.trace import TracerProvider

from .._guard import failures, safely
from ..keys import Keys
from ..pipeline import Pipeline
from ..record import Record
from ..recorder import Recorder
from ..redaction import IdentifierGate, Policy, Redactor
from ..settings import Settings
from ..telemetry import MeteredStore, Metrics, SpanWriter
from ..vault import S3Store, Seal, TroubleFile, VaultWriter, WriterState, open_store
from . import compat, seams
from .capture import Capture
from .processor import SealtraceProcessor
from .registration import Registration
from .spanbook import SpanBook

__all__ = ["Runtime"]

_log: Final = logging.getLogger("sealtrace")


class Runtime:
    """Everything one instrumented process needs.

    Args:
        settings: The settings in force.
        tracer_provider: Where spans go; None for the application's global one.

    Raises:
        SettingsError: A setting, the key or the redaction policy cannot be used.
        VaultError: The vault's address cannot be used, or KMS does not give the key.
    """

    def __init__(self, settings: Settings, tracer_provider: TracerProvider | None = None) -> None:
        self.settings = settings
        self.keys = Keys.from_settings(settings)
        self.redactor = Redactor(
            Policy.load(settings),
            self.keys,
            timeout=settings.redaction_timeout,
            max_string_bytes=settings.max_string_bytes,
        )
        self.gate = IdentifierGate(self.keys, self.redactor)
        self.metrics = Metrics(genai=settings.genai_metrics)
        self.spans = SpanWriter(tracer_provider, self.gate, settings, self.metrics)
        self.writer = self._writer()
        pipeline = Pipeline(
            self.redactor,
            self.writer,
            self.keys,
            sdk_version=sdk_version,
            on_sealed=self._sealed,
            on_redacted=self.metrics.redacted,
        )
        self.recorder = Recorder(
            pipeline,
            max_events=settings.queue_events,
            max_bytes=settings.queue_bytes,
            exit_timeout=settings.exit_timeout,
        )
        self.book = SpanBook(self.spans)
        self.recorder.on_closing = self.book.close_roots
        self.capture = Capture(self.recorder, self.book, settings, self.gate.clean)
        self.processor = SealtraceProcessor(self.recorder, self.book, settings, self.capture, self.gate)
        self.registration = Registration(self.processor, self.book, keep_vendor_exporter=settings.keep_openai_exporter)
        self.report = compat.check()

    def _writer(self) -> VaultWriter | None:
        if self.settings.vault is None:
            return None
        trouble = TroubleFile(self.settings.spool)
        store = open_store(self.settings.vault, self.settings)
        if isinstance(store, S3Store):
            # Before a server forks its workers, if it does: then the import is theirs too.
            threading.Thread(target=safely, args=(store.prepare,), name="sealtrace-prepare", daemon=True).start()
        store = MeteredStore(store, self.metrics, trouble)
        return VaultWriter(store, self.settings, ruleset_hash=self.redactor.ruleset_hash)

    def start(self) -> None:
        """Begin to watch."""
        self.capture.tracing_off = self.registration.tracing_off
        self.capture.on_run_start = self._run_starts
        self.capture.fidelity = self.report.fidelity
        seams.install()
        self.registration.register()
        seams.observe(self.capture)
        self._watch()
        if not self.report.complete:
            missing = ", ".join(name for name, found in self.report.seams.items() if not found)
            _log.warning(
                "openai-agents %s lacks what sealtrace needs to record runs in full (%s): recording goes on with what"
                " traces show, and such runs cannot be rerun; see `sealtrace doctor`",
                sdk_version,
                missing,
            )
        self._warn_if_off()

    def stop(self) -> None:
        """Give everything back, then store what waits."""
        seams.observe(None)
        self.registration.unregister()
        seams.uninstall()
        self.recorder.shutdown(self.settings.exit_timeout)
        self.metrics.unwatch()

    def _watch(self) -> None:
        recorder, writer = self.recorder, self.writer

        def of_writer(read: Callable[[WriterState], int]) -> Callable[[], int]:
            return lambda: read(writer.state) if writer is not None else 0

        dropped = of_writer(lambda state: state.dropped)
        self.metrics.watch(
            {
                "sealtrace.queue.events": lambda: recorder.waiting[0],
                "sealtrace.queue.bytes": lambda: recorder.waiting[1],
                "sealtrace.spool.bytes": of_writer(lambda state: max(state.held_bytes, state.spool_bytes)),
                "sealtrace.vault.records.waiting": of_writer(lambda state: state.open_records + state.parked_records),
                "sealtrace.vault.failing": of_writer(lambda state: int(state.last_error is not None)),
                "sealtrace.vault.records.recovered": of_writer(lambda state: state.recovered),
                "sealtrace.payloads.dropped": lambda: recorder.dropped + dropped(),
                "sealtrace.events.lost": lambda: recorder.lost,
                "sealtrace.attributes.refused": lambda: self.spans.refused,
                "sealtrace.failures": lambda: sum(failures().values()),
            }
        )

    def _run_starts(self) -> None:
        self.registration.ensure()
        self._warn_if_off()

    _warned_off = False

    def _warn_if_off(self) -> None:
        if self._warned_off or not self.registration.tracing_off():
            return
        self._warned_off = True
        if self.settings.record_when_tracing_disabled:
            _log.warning("the SDK's tracing is switched off; payloads are recorded all the same, as set, without spans")
        else:
            _log.warning(
                "the SDK's tracing is switched off, so nothing is recorded; set record_when_tracing_disabled "
                "(SEALTRACE_RECORD_WHEN_TRACING_DISABLED=1) to record all the same"
            )

    def _sealed(self, record: Record, seal: Seal) -> None:
        if record.root is None:
            return
        attributes: dict[str, Any] = {
            "sealtrace.run.id": record.run_id,
            "sealtrace.record.id": record.record_id,
            "sealtrace.run.events": seal.events,
            "sealtrace.run.bytes": seal.bytes,
            "sealtrace.run.objects": seal.objects,
            "sealtrace.run.dropped": seal.dropped,
            "sealtrace.run.redaction_failed": record.redaction_failed,
            "sealtrace.run.status": seal.status,
            "sealtrace.run.merkle_root": seal.merkle_root,
        }
        safely(self.spans.seal, record.root, attributes)
