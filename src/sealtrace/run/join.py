"""Puts the two halves of a run back together: payload records of the vault, spans of the collector.

Events and spans meet by OpenTelemetry span id. The collector is also a second witness: the seal
span of a record says how many events were stored and what their Merkle root was, and where the
vault says otherwise, the reader is told.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ..errors import RecordDamaged, VaultDenied, VaultError
from ..event import EventStatus, Kind, RunEvent, timestamp
from ..telemetry.sources import SpanRecord
from ..vault import Manifest, RecordHeader, StoredRecord
from .findings import NO_PAYLOAD, Finding, held_by_server

__all__ = ["Joined", "JoinedRecord", "join"]

_KIND_OF_SPAN: Final = {
    "trace": Kind.INPUT,
    "model": Kind.GENERATION,
    "tool": Kind.TOOL_CALL,
    "handoff": Kind.HANDOFF,
    "guardrail": Kind.GUARDRAIL,
    "mcp_tools": Kind.MCP_TOOLS,
    "custom": Kind.CUSTOM,
}
"""The kind of a span's first event, where the span's kind settles it."""

_ABSENT: Final = {
    EventStatus.PAYLOAD_EXPIRED: "payloads are past their retention",
    EventStatus.PAYLOAD_DENIED: "payloads may not be read with the credentials in use",
    EventStatus.PAYLOAD_MISSING: "payloads are not where they were stored",
    EventStatus.PAYLOAD_ERASED: "payloads were erased by destroying their key",
}

_RUN_ID: Final = "sealtrace.run.id"
_RECORD_ID: Final = "sealtrace.record.id"
_SEQ: Final = "sealtrace.seq"
_SPAN_KIND: Final = "sealtrace.span.kind"


@dataclasses.dataclass(frozen=True, slots=True)
class JoinedRecord:
    """One record of a run, as far as it could be read.

    Attributes:
        record_id: The record's id.
        header: What its manifest says; None for a partial record and for one only spans know.
        events: Its events by seq, each with its status.
        gaps: Numbers of events that were given and are nowhere.
        merkle_root: What the vault's manifest says, hex.
        stored: How many events the vault gave.
        in_vault: Whether the vault has anything of it.
        partial: Whether it is in the vault without a manifest.
    """

    record_id: str
    header: RecordHeader | None
    events: tuple[RunEvent, ...]
    gaps: tuple[int, ...]
    merkle_root: str | None = None
    stored: int = 0
    in_vault: bool = False
    partial: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """All records of a run, oldest first, its spans, and what is wrong with either."""

    records: tuple[JoinedRecord, ...]
    spans: tuple[SpanRecord, ...]
    findings: tuple[Finding, ...]


def join(
    run_id: str,
    stored: Iterable[StoredRecord],
    spans: Sequence[SpanRecord],
    *,
    asked_vault: bool,
    asked_telemetry: bool,
    read: Callable[[StoredRecord], list[RunEvent]] = StoredRecord.events,
) -> Joined:
    """Join what the vault and the telemetry source know of a run.

    Args:
        run_id: Canonical run id.
        stored: The vault's records.
        spans: Spans of the run's traces; those of other runs in the same trace are left out.
        asked_vault: Whether a vault was asked, for the wording of what is missing.
        asked_telemetry: Whether a telemetry source was asked; if not, no span counts as missing.
        read: Reads a record's events, with or without their payloads.
    """
    mine = tuple(span for span in spans if span.attributes.get(_RUN_ID, run_id) == run_id)
    findings = _other_runs(run_id, spans)
    records = [_read(record, findings, read) for record in stored]
    known = {(span.trace_id, span.span_id) for span in mine}
    records = [_with_spans(record, mine, known, findings, asked=asked_telemetry) for record in records]
    records += _only_in_spans(run_id, mine, {record.record_id for record in records}, findings, asked=asked_vault)
    records.sort(key=_started)
    for record in records:
        _witness(record, mine, findings)
        for event in record.events:
            note = held_by_server(event)
            if note is not None:
                findings.append(Finding("held_by_server", note, record.record_id, event.seq, serious=False))
    return Joined(tuple(records), mine, tuple(findings))


def _other_runs(run_id: str, spans: Sequence[SpanRecord]) -> list[Finding]:
    others = dict.fromkeys(span.attributes.get(_RUN_ID) for span in spans)
    named = [other for other in others if isinstance(other, str) and other != run_id]
    if not named:
        return []
    return [Finding("other_runs", f"the trace also has {', '.join(named[:10])}", serious=False)]


def _started(record: JoinedRecord) -> tuple[str, str]:
    first = record.header.started_at if record.header else record.events[0].ts if record.events else "~"
    return first, record.record_id


def _read(
    record: StoredRecord, findings: list[Finding], read: Callable[[StoredRecord], list[RunEvent]]
) -> JoinedRecord:
    header, root = None, None
    partial = False
    events: list[RunEvent] = []
    gaps: list[int] = []
    try:
        manifest = record.manifest
        partial = manifest is None
        if manifest is not None:
            header, root = manifest.header, manifest.merkle_root
            findings += _recovered(manifest)
        events = _events(record, findings, read)
        gaps = record.gaps()
    except VaultError as error:
        findings.append(_trouble(error, record.record_id))
    findings += [Finding("unreadable", problem, record.record_id) for problem in dict.fromkeys(record.problems)]
    findings += _losses(record.record_id, header, gaps, partial=partial)
    findings += _absent(record.record_id, events)
    return JoinedRecord(
        record.record_id,
        header,
        tuple(events),
        tuple(gaps),
        merkle_root=root,
        stored=len(events),
        in_vault=True,
        partial=partial,
    )


def _events(
    record: StoredRecord, findings: list[Finding], read: Callable[[StoredRecord], list[RunEvent]]
) -> list[RunEvent]:
    try:
        return read(record)
    except VaultError as error:
        # The payloads are not to be trusted or not to be had; the envelopes, checked on their own, may still be.
        findings.append(_trouble(error, record.record_id))
        status = EventStatus.PAYLOAD_DENIED if isinstance(error, VaultDenied) else EventStatus.PAYLOAD_MISSING
    envelopes = record.envelopes()
    return [
        dataclasses.replace(event, status=status) if event.status is EventStatus.RECORDED else event
        for event in envelopes
    ]


def _trouble(error: VaultError, record_id: str) -> Finding:
    code = "damaged" if isinstance(error, RecordDamaged) else "unreadable"
    return Finding(code, str(error), record_id)


def _losses(record_id: str, header: RecordHeader | None, gaps: list[int], *, partial: bool) -> list[Finding]:
    found: list[Finding] = []
    if partial:
        message = "the record has no manifest: its process was killed, or still runs, or could not reach the vault"
        found.append(Finding("partial_record", message, record_id))
    if gaps:
        found.append(Finding("gap", f"{len(gaps)} events were recorded and are not stored: {_ranges(gaps)}", record_id))
    if header is None:
        return found
    if header.dropped:
        found.append(Finding("dropped", f"{header.dropped} payloads were dropped: the queue was full", record_id))
    if header.redaction_failed:
        message = f"{header.redaction_failed} payloads were dropped: they could not be redacted"
        found.append(Finding("redaction_failed", message, record_id))
    if header.open_events:
        message = f"{header.open_events} operations had not ended when the record was closed"
        found.append(Finding("open_events", message, record_id, serious=False))
    if header.fidelity != "full":
        message = "recorded from traces alone (fidelity trace): payloads are incomplete and it cannot be rerun"
        found.append(Finding("fidelity", message, record_id))
    return found


def _recovered(manifest: Manifest) -> list[Finding]:
    if manifest.complete:
        return []
    message = "the recording process died; this is what it left in its spool, and there may have been more"
    return [Finding("recovered", message, manifest.header.record_id)]


def _absent(record_id: str, events: list[RunEvent]) -> list[Finding]:
    counts = Counter(event.status for event in events if event.status in _ABSENT)
    return [
        Finding(status.value.replace(" ", "_"), f"{count} {_ABSENT[status]}", record_id)
        for status, count in counts.items()
    ]


def _ranges(numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans[:20])


def _with_spans(
    record: JoinedRecord,
    spans: Sequence[SpanRecord],
    known: set[tuple[str, str]],
    findings: list[Finding],
    *,
    asked: bool,
) -> JoinedRecord:
    events = [_status(event, known, asked=asked) for event in record.events]
    have = {event.seq for event in events}
    for span in spans:
        event = _from_span(span, record.record_id)
        if event is not None and event.seq not in have:
            have.add(event.seq)
            events.append(event)
            message = f"the collector knows event {event.seq}, the vault does not"
            findings.append(Finding("only_in_spans", message, record.record_id, event.seq))
    events.sort(key=lambda event: event.seq)
    gaps = tuple(seq for seq in record.gaps if seq not in have)
    return dataclasses.replace(record, events=tuple(events), gaps=gaps)


def _status(event: RunEvent, known: set[tuple[str, str]], *, asked: bool) -> RunEvent:
    if event.status in NO_PAYLOAD or event.status is EventStatus.PARTIAL_RECORD or not asked:
        return event
    found = (event.trace_id, event.span_id) in known
    return dataclasses.replace(event, status=EventStatus.JOINED if found else EventStatus.SPAN_MISSING)


def _only_in_spans(
    run_id: str, spans: Sequence[SpanRecord], in_vault: set[str], findings: list[Finding], *, asked: bool
) -> list[JoinedRecord]:
    by_record: dict[str, dict[int, RunEvent]] = {}
    for span in spans:
        record_id = span.attributes.get(_RECORD_ID)
        if span.attributes.get(_RUN_ID) != run_id or not isinstance(record_id, str) or record_id in in_vault:
            continue
        events = by_record.setdefault(record_id, {})
        event = _from_span(span, record_id)
        if event is not None:
            events.setdefault(event.seq, event)
    message = "only spans are left of this record: its payloads expired, were never stored or are in another vault"
    if not asked:
        message = "no vault was searched, so this record has no payloads here"
    findings += [Finding("no_payloads", message, record_id) for record_id in by_record]
    return [
        JoinedRecord(record_id, None, tuple(events[seq] for seq in sorted(events)), ())
        for record_id, events in by_record.items()
    ]


def _from_span(span: SpanRecord, record_id: str) -> RunEvent | None:
    """The envelope a span gives of its first event, if its kind settles what that was."""
    attributes = span.attributes
    kind = _KIND_OF_SPAN.get(str(attributes.get(_SPAN_KIND)))
    seq = attributes.get(_SEQ)
    if kind is None or type(seq) is not int or attributes.get(_RECORD_ID) != record_id:
        return None
    return RunEvent(
        run_id=str(attributes[_RUN_ID]),
        record_id=record_id,
        seq=seq,
        ts=timestamp(span.start_ns),
        kind=kind,
        agent=_text(attributes.get("gen_ai.agent.name") or attributes.get("sealtrace.handoff.from")),
        model=_text(attributes.get("gen_ai.request.model")),
        call_id=_text(attributes.get("gen_ai.tool.call.id")),
        trace_id=span.trace_id,
        span_id=span.span_id,
        sdk_span_id=_text(attributes.get("sealtrace.sdk.span_id")),
        duration_ms=None if kind is Kind.INPUT else span.duration_ms,
        error_type=_text(attributes.get("error.type")),
        status=EventStatus.PAYLOAD_MISSING,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _witness(record: JoinedRecord, spans: Sequence[SpanRecord], findings: list[Finding]) -> None:
    """Compare what the collector's seal span says of the record with what the vault holds."""
    if not record.in_vault:
        return
    for span in spans:
        attributes = span.attributes
        if attributes.get(_SPAN_KIND) != "seal" or attributes.get(_RECORD_ID) != record.record_id:
            continue
        claimed = attributes.get("sealtrace.run.events")
        root = attributes.get("sealtrace.run.merkle_root")
        if record.merkle_root is None:
            message = f"the collector saw the record sealed with {claimed} events; the vault lacks its manifest"
        elif root is not None and root != record.merkle_root:
            message = "the collector saw another Merkle root than the vault's: the record was replaced or altered"
        elif type(claimed) is int and claimed != record.stored:
            message = f"the collector saw {claimed} events sealed; the vault has {record.stored}"
        else:
            continue
        findings.append(Finding("witness_mismatch", message, record.record_id))
