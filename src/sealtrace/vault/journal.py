"""What a writer does to a record, as frames of a spool file, and the same played again.

Frames are a letter and a body: `H` what the record is, `E` an event with its lines, `L` lines of an
event whose payload was dropped, `C` a cut, `F` the last cut, `K` the wrapped data key, `M` the manifest
(and once more, signed), `U` an object that has been stored. Playing them again makes the same objects
byte for byte, so an object that was stored just before the process died is found stored and nothing is
there twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..errors import RecordDamaged
from ..event import RunEvent
from ..settings import Retention
from . import layout
from .envelope import DataKey
from .lines import decode_line, encode_line, storable
from .manifest import Manifest, unpack_envelope
from .openrecord import OpenRecord
from .segment import Line
from .spool import Spool, SpoolFile, SpoolUnreadable

__all__ = ["About", "Journal", "Note", "RecoveryJournal", "Replayed", "replay"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What has to be known of a record to finish it in another process."""

    run_id: str
    record_id: str
    ruleset_hash: str
    retention: Retention
    key_id: str
    key_ephemeral: bool
    data_key: bytes | None = None
    """As secret as the payloads it encrypts, which are in the same file, under the same encryption."""


class Journal:
    """The spool's side of one open record.

    Args:
        file: The record's file.
        spool: Whose use it counts for; None where it is another process's.
    """

    def __init__(self, file: SpoolFile, spool: Spool | None = None) -> None:
        self.file = file
        self._spool = spool

    @classmethod
    def begin(cls, spool: Spool, about: About) -> Journal:
        """A new record.

        Raises:
            OSError: The spool cannot be used.
        """
        key = about.data_key.hex() if about.data_key is not None else None
        fields = dataclasses.asdict(about) | {"retention": about.retention.model_dump(), "data_key": key}
        file = spool.file(about.record_id, b"H" + encode_line(storable(fields)))
        spool.used += file.size
        return cls(file, spool)

    def event(self, envelope: RunEvent, klass: str | None, lines: list[Line]) -> None:
        """An event was added."""
        self._lines(b"E", {"envelope": envelope.envelope(), "class": klass}, lines)

    def lines(self, klass: str, lines: list[Line]) -> None:
        """Lines were added whose event has no payload after all."""
        self._lines(b"L", {"class": klass}, lines)

    def cut(self, now: str, *, last: bool) -> None:
        """Segments were finished."""
        self._frame(b"F" if last else b"C", now.encode())

    def wrapped(self, data: bytes) -> None:
        """The data key was wrapped: another wrapping of it would be another object."""
        self._frame(b"K", data)

    def manifest(self, data: bytes) -> None:
        """The manifest was made."""
        self._frame(b"M", data)
        self.file.sync()

    def stored(self, key: str) -> None:
        """An object was stored."""
        self._frame(b"U", key.encode())

    def discard(self) -> None:
        """Everything is stored: the file has done its duty."""
        if self._spool is not None:
            self._spool.used -= self.file.size
        self.file.remove()

    def _lines(self, kind: bytes, head: dict[str, Any], lines: list[Line]) -> None:
        head["lines"] = [[len(line.data), line.seq, line.message] for line in lines]
        self._frame(kind, encode_line(storable(head)) + b"".join(line.data for line in lines))

    def _frame(self, kind: bytes, body: bytes) -> None:
        before = self.file.size
        self.file.append(kind + body)
        if self._spool is not None:
            self._spool.used += self.file.size - before


class RecoveryJournal(Journal):
    """What a recovery does to a dead process's record, so that one that dies too is not done differently again.

    All of it is written anew each time, beside the record's file, and played after it. A full disk must
    not keep a record from being stored, so what cannot be written down is not.
    """

    def __init__(self, file: SpoolFile) -> None:
        super().__init__(file)
        self._notes = file.notes()
        self._frames = list(_noted(file))

    def _frame(self, kind: bytes, body: bytes) -> None:
        self._frames.append(kind + body)
        with contextlib.suppress(OSError):
            self._notes.create(*self._frames)


def _noted(file: SpoolFile) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError, SpoolUnreadable):
        yield from file.notes().frames()


Note = Callable[[Callable[[Journal], None]], None]
"""Tells a record's journal something, if it has one that takes it."""


class Replayed(NamedTuple):
    """A record as its writer left it.

    Attributes:
        record: The record; everything that may not be stored yet is in its `uploads`.
        about: What it said of itself.
        envelopes: All its events' envelopes.
    """

    record: OpenRecord
    about: About
    envelopes: list[RunEvent]


def replay(file: SpoolFile) -> Replayed:
    """Play a spool file again.

    Raises:
        SpoolUnreadable: The file is of another key, or holds no record.
    """
    frames = chain(file.frames(), _noted(file))
    name = str(file.path)
    try:
        about = _about(next(frames, b""), name)
        data_key = DataKey(about.data_key, about.record_id) if about.data_key is not None else None
        record = OpenRecord(about.run_id, about.record_id, about.retention, about.ruleset_hash, data_key)
        envelopes: list[RunEvent] = []
        for frame in frames:
            _play(record, frame, name, envelopes)
    except (RecordDamaged, KeyError, TypeError, ValueError) as error:
        raise SpoolUnreadable(f"{name}: a frame is not sound ({error})") from None
    return Replayed(record, about, envelopes)


def _about(frame: bytes, name: str) -> About:
    if frame[:1] != b"H":
        raise ValueError("no record begins here")
    fields = decode_line(frame[1:], name)
    return About(
        run_id=fields["run_id"],
        record_id=fields["record_id"],
        ruleset_hash=fields["ruleset_hash"],
        retention=Retention.model_validate(fields["retention"]),
        key_id=fields["key_id"],
        key_ephemeral=fields["key_ephemeral"],
        data_key=bytes.fromhex(fields["data_key"]) if fields.get("data_key") is not None else None,
    )


def _play(record: OpenRecord, frame: bytes, name: str, envelopes: list[RunEvent]) -> None:
    kind, body = frame[:1], frame[1:]
    if kind in (b"E", b"L"):
        line, _, rest = body.partition(b"\n")
        head = decode_line(line, name)
        lines: list[Line] = []
        for length, seq, message in head["lines"]:
            lines.append(Line(rest[:length], seq, message))
            rest = rest[length:]
        if kind == b"L":
            record.add_lines(head["class"], lines)
        else:
            envelope = unpack_envelope(head["envelope"], record.run_id, record.record_id, None)
            envelopes.append(envelope)
            record.add(envelope, head["class"], lines)
    elif kind == b"C":
        record.cut(body.decode())
    elif kind == b"F":
        record.cut_last(body.decode())
    elif kind == b"K":
        record.wrapped(body)
    elif kind == b"M":
        key = layout.manifest_key(record.run_id, record.record_id, hashlib.sha256(body).digest())
        manifest = Manifest.decode(body, key)
        # Another zlib may have compressed the same lines to other bytes; then this manifest lists other objects.
        if tuple(segment.key for segment in manifest.segments) == record.segment_keys:
            record.finish_as(body, manifest)
    elif kind == b"U":
        if record.uploads and record.uploads[0].key == body.decode():
            record.stored()
    else:
        raise ValueError("a frame of no known kind")
