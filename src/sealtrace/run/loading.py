"""Finds a run in the vault and in the telemetry source, and joins what they have."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import RunErased, RunNotFound, SealtraceError, SettingsError, TelemetryError, VaultDenied, VaultError
from ..event import RunEvent
from ..settings import Settings, load_settings
from ..telemetry.sources import Source, SpanRecord, open_source
from ..vault import Audit, Keyring, StoredRecord, VaultReader, open_store
from .findings import Finding
from .join import join
from .links import Reference, parse_reference
from .opened import OpenedRun, outlined
from .run import Run

__all__ = ["load", "open_run"]


def load(
    run_or_link: str,
    *,
    vault: str | None = None,
    telemetry: str | None = None,
    settings: Settings | None = None,
    reason: str | None = None,
    who: str | None = None,
) -> Run:
    """Open a run from its payload records, its spans, or both.

    Nothing is executed, called or sent: this reads. Bucket, endpoint and credentials come from the
    arguments and settings, never from the link.

    Args:
        run_or_link: A run id, an OpenTelemetry trace id, or a link to either.
        vault: `file:///path` or `s3://bucket/prefix`; `SEALTRACE_VAULT` by default.
        telemetry: `otlp+file:///path`, `jaeger://host:port` or `tempo://host:port`;
            `SEALTRACE_TELEMETRY` by default.
        settings: In place of those from the environment and the settings file.
        reason: Why the payloads are read, for the read audit; the setting `read_reason` by default.
        who: Who reads them; user and host of this process by default.

    Raises:
        RunNotFound: Nothing that was searched knows it; the message says what was.
        RunErased: It was erased from the vault, and no telemetry source has it.
        SettingsError: Neither a vault nor a telemetry source is named, or one cannot be used, or the
            settings require a reason and none is given.
        VaultError: The vault cannot be read, and no telemetry source has the run.
        TelemetryError: The telemetry source cannot be read, and no vault has the run.
    """
    reference = parse_reference(run_or_link)
    resolved = _settings(vault, telemetry, settings)
    reader = _reader(resolved.vault, resolved, reason, who) if resolved.vault else None
    source = open_source(resolved.telemetry, resolved) if resolved.telemetry else None
    if reader is None and source is None:
        raise SettingsError(
            "nothing to search: set SEALTRACE_VAULT or SEALTRACE_TELEMETRY, or pass vault= or telemetry=",
            setting="vault",
        )
    return _Search(reference, reader, source).opened(whole=True).run


def open_run(run_or_link: str, reader: VaultReader | None, source: Source | None, *, whole: bool = False) -> OpenedRun:
    """Open a run for reading its payloads one by one; see `load`.

    Args:
        run_or_link: A run id, an OpenTelemetry trace id, or a link to either.
        reader: Reads the vault; None where there is none.
        source: Where the spans are; None where there is none.
        whole: Read all payloads at once, as `load` does.

    Raises:
        RunNotFound: Nothing that was searched knows it.
        VaultError: The vault cannot be read, and no telemetry source has the run.
        TelemetryError: The telemetry source cannot be read, and no vault has the run.
    """
    return _Search(parse_reference(run_or_link), reader, source).opened(whole=whole)


def _reader(url: str, settings: Settings, reason: str | None, who: str | None) -> VaultReader:
    store = open_store(url, settings)
    audit = Audit.of_reads(store, settings, reason=reason or settings.read_reason, who=who)
    return VaultReader(store, settings.retention, audit=audit, keyring=Keyring.from_settings(settings))


def _settings(vault: str | None, telemetry: str | None, settings: Settings | None) -> Settings:
    given = {"vault": vault, "telemetry": telemetry}
    if settings is None:
        return load_settings(given)
    return settings.model_copy(update={name: value for name, value in given.items() if value is not None})


class _Search:
    """Looks for one reference in both places; a place that fails is passed over if the other answers."""

    def __init__(self, reference: Reference, reader: VaultReader | None, source: Source | None) -> None:
        self.reference = reference
        self.reader = reader
        self.source = source
        self.failures: list[SealtraceError] = []

    def opened(self, *, whole: bool) -> OpenedRun:
        for run_id, stored, spans in self._candidates():
            if stored or spans:
                run = self._joined(run_id, stored, spans, whole=whole)
                return OpenedRun(run, {record.record_id: record for record in stored})
        if self.failures:
            raise self.failures[0]
        searched = [self.reader.store.url] if self.reader is not None else []
        searched += [self.source.name] if self.source is not None else []
        raise RunNotFound(f"no run {self.reference.text!r} in {' or '.join(searched)}", run=self.reference.text)

    def _candidates(self) -> Iterator[tuple[str, list[StoredRecord], list[SpanRecord]]]:
        reference = self.reference
        if reference.run_id is not None:
            yield self._by_run(reference.run_id)
        if reference.trace_id is not None:
            yield from self._by_trace(reference.trace_id)

    def _by_run(self, run_id: str) -> tuple[str, list[StoredRecord], list[SpanRecord]]:
        stored = self._records(run_id)
        spans = self._spans("run", run_id)
        # A source that cannot search, or not so far back, may still know the traces the manifests name.
        found = {span.trace_id for span in spans}
        spans += [span for trace in _traces(stored) if trace not in found for span in self._spans("trace", trace)]
        return run_id, stored, sorted(spans, key=lambda span: span.start_ns)

    def _by_trace(self, trace_id: str) -> Iterator[tuple[str, list[StoredRecord], list[SpanRecord]]]:
        spans = self._spans("trace", trace_id)
        named = dict.fromkeys(
            value for span in spans if isinstance(value := span.attributes.get("sealtrace.run.id"), str)
        )
        for run_id in named:
            yield self._by_run(run_id)
        if not named:
            found = self._find_trace(trace_id)
            if found is not None:
                yield self._by_run(found)

    def _records(self, run_id: str) -> list[StoredRecord]:
        try:
            return self.reader.records(run_id) if self.reader is not None else []
        except VaultError as error:
            self.failures.append(error)
            return []

    def _find_trace(self, trace_id: str) -> str | None:
        try:
            return self.reader.find_trace(trace_id) if self.reader is not None else None
        except VaultError as error:
            self.failures.append(error)
            return None

    def _spans(self, how: str, identifier: str) -> list[SpanRecord]:
        if self.source is None:
            return []
        try:
            return self.source.run(identifier) if how == "run" else self.source.trace(identifier)
        except TelemetryError as error:
            if all(str(error) != str(known) for known in self.failures):
                self.failures.append(error)
            return []

    def _joined(self, run_id: str, stored: list[StoredRecord], spans: list[SpanRecord], *, whole: bool) -> Run:
        telemetry_failed = any(isinstance(error, TelemetryError) for error in self.failures)
        joined = join(
            run_id,
            stored,
            spans,
            asked_vault=self.reader is not None,
            asked_telemetry=self.source is not None and (bool(spans) or not telemetry_failed),
            read=StoredRecord.events if whole else self._outlined,
        )
        failed = tuple(Finding(_code(error), str(error)) for error in self.failures)
        return Run(run_id, joined.records, joined.spans, (*failed, *joined.findings), self.reference.event)

    def _outlined(self, record: StoredRecord) -> list[RunEvent]:
        assert self.reader is not None  # the record came from it
        return outlined(record, self.reader.store)


def _code(error: SealtraceError) -> str:
    if isinstance(error, RunErased):
        return "erased"
    return "denied" if isinstance(error, VaultDenied) else "unreachable"


def _traces(stored: list[StoredRecord]) -> list[str]:
    traces: dict[str, None] = {}
    for record in stored:
        try:
            header = record.header
        except VaultError:
            continue  # the join says so
        if header is not None:
            traces.update(dict.fromkeys(header.trace_ids))
    return list(traces)
