"""One record as it lies in the vault: its manifest, its envelopes, its payloads and what became of them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from ..errors import ObjectNotFound, PayloadErased, PayloadExpired, RecordDamaged, VaultDenied
from ..event import EventStatus, Kind, RunEvent
from ..settings import Retention
from . import layout
from .audit import Audit
from .excerpt import Excerpt, shortened
from .lines import decode_line, inflate
from .manifest import Manifest, RecordHeader, SegmentInfo, unpack_envelope
from .opener import Opener
from .segment import quoted, restore
from .stores.base import ObjectInfo, Store
from .tombstones import ErasedSessions
from .wrapping import Keyring

__all__ = ["StoredRecord"]

_GROUPS_KEPT: Final = 32
"""Gzip members kept unpacked for the next event that is asked for; a few megabytes."""

_LOST: Final = (
    (PayloadErased, EventStatus.PAYLOAD_ERASED),
    (VaultDenied, EventStatus.PAYLOAD_DENIED),
    (ObjectNotFound, EventStatus.PAYLOAD_MISSING),
)
"""What becomes of payloads that cannot be read; the first that fits."""


class StoredRecord:
    """One record as it lies in the vault.

    Attributes:
        run_id: Canonical run id.
        record_id: The record's id.
        objects: Its objects as the listing showed them.
        problems: What is wrong with it, in words; filled as it is read.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        record_id: str,
        objects: list[ObjectInfo],
        *,
        retention: Retention,
        clock: Callable[[], dt.datetime],
        audit: Audit | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._store = store
        self._retention = retention
        self._clock = clock
        self._audit = audit
        self._safe = Opener(store, run_id, record_id, keyring)
        self.run_id = run_id
        self.record_id = record_id
        self.objects = tuple(sorted(objects, key=lambda item: item.key))
        self.problems: list[str] = []
        self._groups: dict[str, list[dict[str, Any]]] = {}

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest; None if the record has none, that is, if it is partial.

        Raises:
            RecordDamaged: There is one and it is not sound, or there are two.
            VaultError: It cannot be read.
        """
        keys = [item.key for item in self.objects if "/manifest-" in item.key]
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

    def covered(self, sessions: ErasedSessions) -> bool:
        """Whether it is of a session that was erased since it began; not, where no sound manifest says so.

        Raises:
            VaultError: The manifest cannot be read.
        """
        try:
            return sessions.cover(self.header)
        except RecordDamaged:
            return False

    @cached_property
    def _segments(self) -> dict[str, SegmentInfo | None]:
        if self.manifest is not None:
            return {segment.key: segment for segment in self.manifest.segments}
        return {item.key: None for item in self.objects}

    def envelopes(self) -> list[RunEvent]:
        """Every event without its payload, by seq.

        A partial record may hold payloads whose envelopes were never stored; those events are made
        up from what their payload lines say: seq and kind.

        Raises:
            RecordDamaged: A stored envelope is not sound.
            VaultError: The store cannot be read.
        """
        return list(self._envelopes.values())

    @cached_property
    def _envelopes(self) -> dict[int, RunEvent]:
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
            if event.seq in events:
                raise RecordDamaged(f"{key}: event {event.seq} is there twice", key=key)
            events[event.seq] = event
        if self.manifest is None:
            for seq, kind in self._payloads.kinds.items():
                events.setdefault(seq, self._bare(seq, kind))
        return {seq: events[seq] for seq in sorted(events)}

    def _bare(self, seq: int, kind: Kind) -> RunEvent:
        written = max(item.modified for item in self.objects).astimezone(dt.UTC)
        ts = written.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return RunEvent(run_id=self.run_id, record_id=self.record_id, seq=seq, kind=kind, ts=ts)

    def events(self) -> list[RunEvent]:
        """Every event, with its payload or the reason why it has none.

        Raises:
            RecordDamaged: What is stored is not what the manifest says.
            VaultError: The store cannot be read.
        """
        read = self._payloads
        out: list[RunEvent] = []
        for event in self.envelopes():
            status = event.status
            if event.seq in read.values:
                if read.kinds[event.seq] is not event.kind:
                    raise RecordDamaged(f"record {self.record_id}: event {event.seq} is of two kinds")
                status = EventStatus.RECORDED if self.manifest is not None else EventStatus.PARTIAL_RECORD
            elif status is EventStatus.RECORDED:
                status = read.reasons.get(self.class_of(event.kind), EventStatus.PAYLOAD_MISSING)
            out.append(dataclasses.replace(event, payload=read.values.get(event.seq), status=status))
        return out

    @cached_property
    def _classes(self) -> frozenset[str]:
        return frozenset(key.split("/", 1)[0] for key in self._segments)

    def class_of(self, kind: Kind) -> str:
        """The retention class in which this record keeps payloads of a kind."""
        apart = "io" in self._classes or "content" not in self._classes
        return "io" if kind in (Kind.INPUT, Kind.OUTPUT) and apart else "content"

    @cached_property
    def _payloads(self) -> _Payloads:
        self._note()
        out = _Payloads()
        for klass in ("io", "content"):
            lines: list[dict[str, Any]] = []
            for key in self._segments:
                if key.startswith(f"{klass}/"):
                    reason, found = self._readable(key)
                    if reason is not None:
                        out.reasons[klass] = reason
                    lines += found
            try:
                self._take(lines, out)
            except (KeyError, TypeError, ValueError) as error:
                raise RecordDamaged(f"record {self.record_id}: a payload line is not sound ({error})") from None
        return out

    def _readable(self, key: str) -> tuple[EventStatus | None, list[dict[str, Any]]]:
        if self.expired(key):
            return EventStatus.PAYLOAD_EXPIRED, []
        try:
            return None, self._lines(key)
        except (PayloadErased, VaultDenied, ObjectNotFound) as error:
            return self.lost(error), []

    def lost(self, error: PayloadErased | VaultDenied | ObjectNotFound) -> EventStatus:
        """What a refusal makes of the payloads it hides; it is kept among the problems."""
        self.problems.append(str(error))
        return next(status for kind, status in _LOST if isinstance(error, kind))

    def _take(self, lines: list[dict[str, Any]], out: _Payloads) -> None:
        messages: dict[int, Any] = {}
        for line in lines:
            if line["kind"] == "msg":
                if type(line["id"]) is not int or line["id"] in messages:
                    raise ValueError("a message's id is none, or is there twice")
                messages[line["id"]] = restore(line["value"], {})
        for line in lines:
            if line["kind"] == "msg":
                continue
            seq, kind = line["seq"], Kind(line["kind"])
            if type(seq) is not int or seq < 0 or seq in out.kinds:
                raise ValueError("an event's seq is none, or is there twice")
            out.kinds[seq] = kind
            payload = line["payload"]
            try:
                out.values[seq] = restore(payload, messages)
            except KeyError:
                # A message it quotes is in a segment that is gone: the payload is not whole.
                self.problems.append(f"event {seq} quotes a message that is not there")

    def expired(self, key: str) -> bool:
        """Whether a segment is past its time and must not be read, even where the bytes are there."""
        segment = self._segments.get(key)
        if segment is not None:
            return dt.datetime.fromisoformat(segment.expires_at) <= self._clock()
        days = layout.days_of(key.split("/", 1)[0], self._retention)
        written = next((item.modified for item in self.objects if item.key == key), None)
        return written is not None and written + dt.timedelta(days=days) <= self._clock()

    def _lines(self, key: str) -> list[dict[str, Any]]:
        data = self._store.get(key)
        segment = self._segments[key]
        digest = hashlib.sha256(data).hexdigest()
        parts = layout.parse_key(key)
        named = parts["sha"] if parts is not None else None
        if (segment is not None and digest != segment.sha256) or digest[:16] != named:
            raise RecordDamaged(f"{key}: the bytes are not the ones that were stored", key=key)
        data = self._safe.members(key, data) if layout.is_sealed(key) else data
        return [decode_line(line, key) for line in inflate(data, key).split(b"\n") if line]

    def payload_state(self) -> EventStatus:
        """`recorded` where the record's payloads can be decrypted or need not be; else why they cannot.

        Raises:
            VaultUnavailable: Whoever keeps the key does not answer.
        """
        if not any(layout.is_sealed(key) for key in self._segments):
            return EventStatus.RECORDED
        try:
            self._safe.key()
        except (PayloadErased, VaultDenied) as error:
            return self.lost(error)
        return EventStatus.RECORDED

    def payload(self, seq: int) -> Any:
        """One event's payload: one ranged read, and more only for messages it quotes from elsewhere.

        Raises:
            ObjectNotFound: The record has no payload of that number.
            PayloadExpired: It is past its retention.
            PayloadErased: The key it was encrypted under is gone.
            RecordDamaged: What is stored is not what the manifest says.
            VaultError: It cannot be read.
        """
        return self.excerpt(seq, None).payload

    def excerpt(self, seq: int, newest: int | None) -> Excerpt:
        """One event's payload without the beginning of the conversation it quotes.

        Args:
            seq: The event's number.
            newest: So many of the conversation's last messages in any case, and before them what lies in
                the same range of bytes; None for all of it, wherever it lies.

        Raises:
            VaultError: As `payload` does.
        """
        self._note()
        if self.manifest is None:
            if seq in self._payloads.values:
                return Excerpt(self._payloads.values[seq])
        else:
            for segment, index in self._holding(seq):
                lines = self._group(segment, index)
                for line in lines:
                    if line.get("seq") == seq:
                        return self._excerpt(segment.klass, line, lines, newest)
        raise ObjectNotFound(f"event {seq} of record {self.record_id} has no stored payload")

    def _excerpt(self, klass: str, line: dict[str, Any], lines: list[dict[str, Any]], newest: int | None) -> Excerpt:
        if newest is None:
            return Excerpt(self._whole(klass, line))
        short = shortened(line["payload"], {other["id"] for other in lines if other["kind"] == "msg"}, newest)
        return Excerpt(self._whole(klass, {**line, "payload": short.payload}), short.left_out)

    def _note(self) -> None:
        if self._audit is not None:
            self._audit.read(self.run_id, self.record_id)

    def _holding(self, seq: int) -> list[tuple[SegmentInfo, int]]:
        # Where the envelopes have been read the class is known, and the other one may be denied; else the narrowest
        # range first: a class with few events spans many that are not its own.
        known = self._envelopes.get(seq) if "_envelopes" in self.__dict__ else None
        klass = self.class_of(known.kind) if known is not None else None
        found = [
            ((segment.klass != klass, group.last_seq - group.first_seq), segment, index)
            for segment in self._segments.values()
            if segment is not None and segment.klass != layout.META
            for index, group in enumerate(segment.groups)
            if group.first_seq <= seq <= group.last_seq
        ]
        found.sort(key=lambda item: item[0])
        return [(segment, index) for _, segment, index in found]

    def _whole(self, klass: str, line: dict[str, Any]) -> Any:
        try:
            return restore(line["payload"], self._quoted(klass, line["payload"]))
        except KeyError:
            raise ObjectNotFound(f"event {line['seq']} quotes a message that is not there") from None
        except (TypeError, ValueError) as error:
            raise RecordDamaged(f"record {self.record_id}: a payload line is not sound ({error})") from None

    def _group(self, segment: SegmentInfo, index: int) -> list[dict[str, Any]]:
        name = f"{segment.key}#{index}"
        if name not in self._groups:
            if self.expired(segment.key):
                raise PayloadExpired(f"{segment.key} is past its retention", key=segment.key)
            group = segment.groups[index]
            data = self._store.get(segment.key, start=group.offset, length=group.length)
            if hashlib.sha256(data).hexdigest()[:32] != group.digest:
                raise RecordDamaged(f"{segment.key}: the bytes are not the ones that were stored", key=segment.key)
            if layout.is_sealed(segment.key):
                data = self._safe.member(segment.key, data, index)
            lines = inflate(data, segment.key).split(b"\n")
            if len(self._groups) >= _GROUPS_KEPT:
                del self._groups[next(iter(self._groups))]
            self._groups[name] = [decode_line(line, segment.key) for line in lines if line]
        else:
            self._groups[name] = self._groups.pop(name)  # the one that was not asked for longest goes first
        return self._groups[name]

    def _quoted(self, klass: str, payload: Any) -> dict[int, Any]:
        wanted = quoted(payload)
        found: dict[int, Any] = {}
        for segment in self._segments.values():
            if segment is None or segment.klass != klass or not wanted:
                continue
            for index, group in enumerate(segment.groups):
                if any(first <= group.last_id and group.first_id <= last for first, last in wanted):
                    for line in self._group(segment, index):
                        if line["kind"] == "msg":
                            found[line["id"]] = restore(line["value"], {})
        return found

    def gaps(self) -> list[int]:
        """Numbers of events that were given and are not stored."""
        present = self._envelopes
        expected = self.header.event_count if self.header is not None else max(present, default=-1) + 1
        return [seq for seq in range(expected) if seq not in present]


@dataclasses.dataclass(slots=True)
class _Payloads:
    """Payloads by seq, the kinds their lines say, and why a class could not be read."""

    values: dict[int, Any] = dataclasses.field(default_factory=dict[int, Any])
    kinds: dict[int, Kind] = dataclasses.field(default_factory=dict[int, Kind])
    reasons: dict[str, EventStatus] = dataclasses.field(default_factory=dict[str, EventStatus])
