"""One run, whole or as whole as it can be had."""

from __future__ import annotations

import dataclasses
import math
from enum import StrEnum
from functools import cached_property
from typing import Any

from ..errors import EventNotFound
from ..event import EventStatus, RunEvent
from ..telemetry.sources import SpanRecord
from .findings import NO_PAYLOAD, Finding, facts, items
from .join import JoinedRecord
from .tree import Node, tree

__all__ = ["Run", "RunStatus"]


class RunStatus(StrEnum):
    """How much of a run is there. The first that applies, from the top."""

    DAMAGED = "damaged"
    """What is stored is not what was stored, by the manifest or by the collector's witness."""

    SPANS_ONLY = "spans only"
    """The vault has nothing of it."""

    METADATA_ONLY = "metadata only"
    """No payload can be read any more: expired, denied, dropped or gone."""

    PARTIAL = "partial"
    """Something is missing: a manifest, events, payloads or some of the spans."""

    PAYLOADS_ONLY = "payloads only"
    """The vault's half is whole; the telemetry source has no span of it (sampled out, or tracing was off)."""

    COMPLETE = "complete"
    """Every event is there with its payload, and with its span if a telemetry source was asked."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A run as the join gives it.

    Attributes:
        id: `trace_` and 32 hex digits.
        records: What each process wrote of it, oldest first.
        spans: Its spans and those of others in its traces (HTTP, databases), by start time.
        findings: What is missing, damaged or to be known; see `Finding.code`.
        linked_event: The event the link pointed at, if it was a link that did.
    """

    id: str
    records: tuple[JoinedRecord, ...]
    spans: tuple[SpanRecord, ...]
    findings: tuple[Finding, ...]
    linked_event: int | None = None

    @property
    def events(self) -> tuple[RunEvent, ...]:
        """All events in order: by record, oldest first, then by seq."""
        return self._events

    @cached_property
    def _events(self) -> tuple[RunEvent, ...]:
        # Apart from `events`, which so fits a protocol that asks for a property.
        return tuple(event for record in self.records for event in record.events)

    def event(self, seq: int, record_id: str | None = None) -> RunEvent:
        """One event.

        Args:
            seq: Its number.
            record_id: Its record; where several have that number and none is named, the oldest.

        Raises:
            EventNotFound: There is none.
        """
        for event in self.events:
            if event.seq == seq and record_id in (None, event.record_id):
                return event
        raise EventNotFound(f"{self.id} has no event {seq}; it has {self._numbers()}", run=self.id)

    def _numbers(self) -> str:
        if not self.events:
            return "no events"
        return f"{len(self.events)} events, 0 to {max(event.seq for event in self.events)}"

    @property
    def trace_ids(self) -> tuple[str, ...]:
        """Every OpenTelemetry trace id it is in."""
        named = [trace for record in self.records if record.header for trace in record.header.trace_ids]
        seen = [event.trace_id for event in self.events if event.trace_id]
        return tuple(dict.fromkeys([*named, *seen, *(span.trace_id for span in self.spans)]))

    @property
    def trace_id(self) -> str | None:
        """The first OpenTelemetry trace id; None where the run left no spans."""
        return next(iter(self.trace_ids), None)

    @cached_property
    def status(self) -> RunStatus:
        """How much of the run is there."""
        codes = {finding.code for finding in self.findings if finding.serious}
        if codes & {"damaged", "witness_mismatch"}:
            return RunStatus.DAMAGED
        if not any(record.in_vault for record in self.records):
            return RunStatus.SPANS_ONLY
        if self.events and all(event.status in NO_PAYLOAD for event in self.events):
            return RunStatus.METADATA_ONLY
        statuses = {event.status for event in self.events}
        if codes or statuses & _NOT_WHOLE:
            return RunStatus.PARTIAL
        if EventStatus.SPAN_MISSING in statuses:
            return RunStatus.PARTIAL if EventStatus.JOINED in statuses else RunStatus.PAYLOADS_ONLY
        return RunStatus.COMPLETE

    @property
    def outcome(self) -> str:
        """How the run itself ended, the worst of its records: ok, cancelled, error or incomplete."""
        found = [record.header.status for record in self.records if record.header]
        found += [
            str(span.attributes["sealtrace.run.status"])
            for span in self.spans
            if span.attributes.get("sealtrace.span.kind") == "trace" and "sealtrace.run.status" in span.attributes
        ]
        if any(record.partial for record in self.records):
            found.append("incomplete")
        return next((word for word in ("incomplete", "error", "cancelled") if word in found), "ok")

    @property
    def workflow(self) -> str | None:
        """The workflow's name."""
        names: list[str | None] = [record.header.workflow_name for record in self.records if record.header]
        names += [_text(span.attributes.get("sealtrace.workflow.name")) for span in self.spans]
        return next((name for name in names if name), None)

    @property
    def started_at(self) -> str | None:
        """When it began, RFC 3339."""
        return next((record.header.started_at for record in self.records if record.header), None) or next(
            (event.ts for event in self.events), None
        )

    @property
    def duration_ms(self) -> float | None:
        """From the first span's start to the last one's end; None without spans of ours."""
        ours = [
            span
            for span in self.spans
            if span.attributes.get("sealtrace.span.kind", "seal") != "seal"  # the seal comes when all is stored
        ]
        if not ours:
            return None
        return (max(span.end_ns for span in ours) - min(span.start_ns for span in ours)) / 1e6

    @cached_property
    def usage(self) -> dict[str, int]:
        """Input, output and total tokens, and model calls, over all records."""
        headers = [record.header for record in self.records if record.header]
        unsealed = {record.record_id for record in self.records if record.header is None}
        inputs, outputs = sum(header.input_tokens for header in headers), sum(h.output_tokens for h in headers)
        for span in self.spans:
            attributes = span.attributes
            if attributes.get("sealtrace.span.kind") == "model" and attributes.get("sealtrace.record.id") in unsealed:
                inputs += _count(attributes.get("gen_ai.usage.input_tokens"))
                outputs += _count(attributes.get("gen_ai.usage.output_tokens"))
        calls = sum(1 for event in self.events if event.kind == "generation")
        return {
            "requests": calls,
            "input_tokens": inputs,
            "output_tokens": outputs,
            "total_tokens": inputs + outputs,
        }

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents that took part, in order of appearance."""
        named = [name for record in self.records if record.header for name in record.header.agents]
        return tuple(dict.fromkeys([*named, *_names(self.spans, "agent", "gen_ai.agent.name")]))

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that were called, in order of appearance."""
        named = [name for record in self.records if record.header for name in record.header.tools]
        return tuple(dict.fromkeys([*named, *_names(self.spans, "tool", "gen_ai.tool.name")]))

    def tree(self) -> list[Node]:
        """The run as a tree of lines; every event is on one of them."""
        return tree(self.events, self.spans)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON; payloads are as the vault gave them, redacted."""
        return {
            "id": self.id,
            "trace_id": self.trace_id,
            "trace_ids": list(self.trace_ids),
            "status": self.status.value,
            "outcome": self.outcome,
            "workflow": self.workflow,
            "started_at": self.started_at,
            "duration_ms": self.duration_ms,
            "agents": list(self.agents),
            "tools": list(self.tools),
            "usage": self.usage,
            "findings": [finding.to_json() for finding in self.findings],
            "records": [_record_json(record) for record in self.records],
            "events": [event.to_json() for event in self.events],
            "spans": [_finite(dataclasses.asdict(span)) for span in self.spans],
        }


_NOT_WHOLE = NO_PAYLOAD | {EventStatus.PARTIAL_RECORD}


def _names(spans: tuple[SpanRecord, ...], kind: str, key: str) -> list[str]:
    of_kind = [span.attributes for span in spans if span.attributes.get("sealtrace.span.kind") == kind]
    return [name for attributes in of_kind if (name := _text(attributes.get(key)))]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _finite(value: Any) -> Any:
    """The value with what JSON has no number for as text: a foreign span may have any float."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in facts(value).items()}
    return [_finite(item) for item in items(value)] if isinstance(value, list) else value


def _record_json(record: JoinedRecord) -> dict[str, Any]:
    return {
        "record_id": record.record_id,
        "in_vault": record.in_vault,
        "partial": record.partial,
        "gaps": list(record.gaps),
        "merkle_root": record.merkle_root,
        "header": dataclasses.asdict(record.header) if record.header else None,
    }
