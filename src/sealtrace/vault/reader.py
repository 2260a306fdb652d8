"""Reads records back, and says of each event what became of its payload."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from ..errors import ObjectNotFound, PayloadExpired, RecordDamaged, VaultDenied
from ..event import EventStatus, Kind, RunEvent, canonical_run_id
from . import layout
from .lines import decode_line, inflate
from .manifest import Manifest, RecordHeader, SegmentInfo, unpack_envelope
from .segment import restore
from .stores.base import ObjectInfo, Store

__all__ = ["StoredRecord", "VaultReader"]

_MAX_SCANNED: Final = 20_000
"""Manifests looked at where there is no index to ask."""


class VaultReader:
    """Finds records in a store.

    Args:
        store: The vault's store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def records(self, run_id: str) -> list[StoredRecord]:
        """The run's records, oldest first; empty if the vault knows none.

        Raises:
            VaultError: The store cannot be read.
        """
        run_id = canonical_run_id(run_id)
        by_record: dict[str, list[ObjectInfo]] = {}
        for klass in layout.CLASSES:
            for item in self.store.list(layout.run_prefix(klass, run_id)):
                parts = layout.parse_key(item.key)
                if parts is not None and parts["record"] is not None:
                    by_record.setdefault(parts["record"], []).append(item)
        return [StoredRecord(self.store, run_id, name, by_record[name]) for name in sorted(by_record)]

    def recent(self, limit: int) -> Iterator[StoredRecord]:
        """Records with a manifest, newest first.

        Raises:
            VaultError: The store cannot be read.
        """
        found: list[ObjectInfo] = []
        for item in self.store.list("meta/v1/"):
            parts = layout.parse_key(item.key)
            if parts is not None and parts["manifest"] is not None:
                found.append(item)
        found.sort(key=lambda item: item.modified, reverse=True)
        for item in found[:limit]:
            parts = layout.parse_key(item.key)
            assert parts is not None
            yield StoredRecord(self.store, f"trace_{parts['run']}", str(parts["record"]), [item])

    def find_trace(self, trace_id: str) -> str | None:
        """The run that has this OpenTelemetry trace id, by looking through the manifests.

        Raises:
            VaultError: The store cannot be read.
        """
        for record in self.recent(_MAX_SCANNED):
            try:
                header = record.header
            except RecordDamaged:
                continue
            if header is not None and trace_id in header.trace_ids:
                return record.run_id
        return None


class StoredRecord:
    """One record as it lies in the vault.

    Attributes:
        run_id: Canonical run id.
        record_id: The record's id.
        problems: What is wrong with it, in words; filled as it is read.
    """

    def __init__(self, store: Store, run_id: str, record_id: str, objects: list[ObjectInfo]) -> None:
        self._store = store
        self.run_id = run_id
        self.record_id = record_id
        self._objects = sorted(objects, key=lambda item: item.key)
        self.problems: list[str] = []
        self._inflated: dict[str, bytes] = {}

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest; None if the record has none, that is, if it is partial.

        Raises:
            RecordDamaged: There is one and it is not sound, or there are two.
            VaultError: It cannot be read.
        """
        keys = [item.key for item in self._objects if "/manifest-" in item.key]
        if not keys:
            return None
        if len(keys) > 1:
            raise RecordDamaged(f"record {self.record_id} has {len(keys)} manifests; one of them is false", key=keys[0])
        manifest = Manifest.decode(self._store.get(keys[0]), keys[0])
        header = manifest.header
        if header.run_id != self.run_id or header.record_id != self.record_id:
            raise RecordDamaged(f"{keys[0]}: the manifest is of another record", key=keys[0])
        return manifest

    @property
    def partial(self) -> bool:
        """Whether the record was never finished: its process died, or the vault was not to be reached."""
        return self.manifest is None

    @property
    def header(self) -> RecordHeader | None:
        """What the manifest says of the run."""
        return self.manifest.header if self.manifest is not None else None

    @cached_property
    def _segments(self) -> dict[str, SegmentInfo | None]:
        if self.manifest is not None:
            return {segment.key: segment for segment in self.manifest.segments}
        return {item.key: None for item in self._objects}

    def envelopes(self) -> list[RunEvent]:
        """Every event without its payload, by seq.

        Raises:
            RecordDamaged: A stored envelope is not sound.
            VaultError: The store cannot be read.
        """
        first = self.header.trace_ids[0] if self.header is not None and self.header.trace_ids else None
        lines: list[tuple[str, dict[str, Any], str | None]] = []
        for key in self._segments:
            if key.startswith(f"{layout.META}/"):
                lines += [(key, line, None) for line in self._lines(key)]
        if self.manifest is not None:
            lines += [("manifest", decode_line(line, "manifest"), first) for line in self.manifest.envelopes]
        events: dict[int, RunEvent] = {}
        for key, line, trace_id in lines:
            try:
                event = unpack_envelope(line, self.run_id, self.record_id, trace_id)
            except (ValueError, TypeError) as error:
                raise RecordDamaged(f"{key}: an envelope is not valid ({error})", key=key) from None
            events[event.seq] = event
        return [events[seq] for seq in sorted(events)]

    def events(self) -> list[RunEvent]:
        """Every event, with its payload or the reason why it has none.

        Raises:
            RecordDamaged: What is stored is not what the manifest says.
            VaultError: The store cannot be read.
        """
        payloads, reasons = self._payloads()
        out: list[RunEvent] = []
        for event in self.envelopes():
            found = payloads.get(event.seq)
            status = event.status
            if found is not None:
                status = EventStatus.RECORDED if self.manifest is not None else EventStatus.PARTIAL_RECORD
            elif status is EventStatus.RECORDED:
                status = reasons.get(self._class_of(event.kind), EventStatus.PAYLOAD_MISSING)
            out.append(dataclasses.replace(event, payload=found, status=status))
        return out

    def _class_of(self, kind: Kind) -> str:
        classes = {key.split("/", 1)[0] for key in self._segments}
        return (
            "io" if kind in (Kind.INPUT, Kind.OUTPUT) and ("io" in classes or "content" not in classes) else "content"
        )

    def _payloads(self) -> tuple[dict[int, Any], dict[str, EventStatus]]:
        payloads: dict[int, Any] = {}
        reasons: dict[str, EventStatus] = {}
        for klass in ("io", "content"):
            keys = [key for key in self._segments if key.startswith(f"{klass}/")]
            messages: dict[int, Any] = {}
            lines: list[dict[str, Any]] = []
            for key in keys:
                reason, found = self._readable(key)
                if reason is not None:
                    reasons[klass] = reason
                lines += found
            self._take(lines, messages, payloads)
        return payloads, reasons

    def _readable(self, key: str) -> tuple[EventStatus | None, list[dict[str, Any]]]:
        if self.expired(key):
            return EventStatus.PAYLOAD_EXPIRED, []
        try:
            return None, self._lines(key)
        except VaultDenied as error:
            self.problems.append(str(error))
            return EventStatus.PAYLOAD_DENIED, []
        except ObjectNotFound as error:
            self.problems.append(str(error))
            return EventStatus.PAYLOAD_MISSING, []

    def _take(self, lines: list[dict[str, Any]], messages: dict[int, Any], payloads: dict[int, Any]) -> None:
        for line in lines:
            try:
                if line["kind"] == "msg":
                    messages[line["id"]] = restore(line["value"], messages)
                elif Kind(line["kind"]):
                    payloads[line["seq"]] = restore(line["payload"], messages)
            except KeyError:
                # A message it quotes is in a segment that is gone: the payload is not whole.
                self.problems.append(f"event {line.get('seq')} quotes a message that is not there")
            except (TypeError, ValueError):
                raise RecordDamaged(f"record {self.record_id}: a payload line is of no known kind") from None

    def expired(self, key: str) -> bool:
        """Whether a segment is past its time and must not be read, even where the bytes are there."""
        segment = self._segments.get(key)
        if segment is None:
            return False
        return dt.datetime.fromisoformat(segment.expires_at) <= dt.datetime.now(dt.UTC)

    def _lines(self, key: str) -> list[dict[str, Any]]:
        if key not in self._inflated:
            data = self._store.get(key)
            segment = self._segments[key]
            digest = hashlib.sha256(data).hexdigest()
            promised = segment.sha256 if segment is not None else None
            parts = layout.parse_key(key)
            named = parts["sha"] if parts is not None else None
            if (promised is not None and digest != promised) or digest[:16] != named:
                raise RecordDamaged(f"{key}: the bytes are not the ones that were stored", key=key)
            self._inflated[key] = inflate(data, key)
        return [decode_line(line, key) for line in self._inflated[key].split(b"\n") if line]

    def payload(self, seq: int) -> Any:
        """One event's payload: one ranged read, and more only for messages it quotes from elsewhere.

        Raises:
            ObjectNotFound: The record has no payload of that number.
            VaultError: It cannot be read.
        """
        for key, segment in self._segments.items():
            if key.startswith(f"{layout.META}/"):
                continue
            if segment is None:
                payloads, _ = self._payloads()
                if seq in payloads:
                    return payloads[seq]
                continue
            for index, group in enumerate(segment.groups):
                if group.first_seq <= seq <= group.last_seq:
                    for line in self._group(segment, index):
                        if line.get("seq") == seq:
                            return restore(line["payload"], self._quoted(segment.klass, line["payload"]))
        raise ObjectNotFound(f"event {seq} of record {self.record_id} has no stored payload")

    def _group(self, segment: SegmentInfo, index: int) -> list[dict[str, Any]]:
        if self.expired(segment.key):
            raise PayloadExpired(f"{segment.key} is past its retention", key=segment.key)
        group = segment.groups[index]
        name = f"{segment.key}#{index}"
        if name not in self._inflated:
            data = self._store.get(segment.key, start=group.offset, length=group.length)
            self._inflated[name] = inflate(data, segment.key)
        return [decode_line(line, segment.key) for line in self._inflated[name].split(b"\n") if line]

    def _quoted(self, klass: str, payload: Any) -> dict[int, Any]:
        wanted = _ids(payload)
        raw: dict[int, Any] = {}
        if wanted:
            for segment in (item for item in self._segments.values() if item is not None and item.klass == klass):
                for index, group in enumerate(segment.groups):
                    if group.first_id >= 0 and any(group.first_id <= number <= group.last_id for number in wanted):
                        raw |= {
                            line["id"]: line["value"] for line in self._group(segment, index) if line["kind"] == "msg"
                        }
        return {number: restore(raw[number], raw) for number in wanted if number in raw}

    def gaps(self) -> list[int]:
        """Numbers of events that were given and are not stored."""
        present = {event.seq for event in self.envelopes()}
        expected = self.header.event_count if self.header is not None else max(present, default=-1) + 1
        return [seq for seq in range(expected) if seq not in present]


def _ids(value: Any) -> set[int]:
    found: set[int] = set()
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        if len(fields) == 1 and "$ref" in fields:
            return {fields["$ref"]}
        if len(fields) == 1 and "$list" in fields:
            return {number for first, last in fields["$list"] for number in range(first, last + 1)}
        for item in fields.values():
            found |= _ids(item)
    elif isinstance(value, list):
        items: list[Any] = value
        for item in items:
            found |= _ids(item)
    return found
