"""Segments: payload lines of one class of one record, in gzip members of about 64 KB.

Each message is stored once per class and record, as a line of its own before its first use:

```
{"kind":"msg","id":3,"value":{...}}
{"kind":"generation","seq":7,"payload":{"request":{"instructions":{"$ref":1},"input":{"$list":[[3,9]]}},...}}
```

A message is `{"$ref": id}`, a conversation is `{"$list": [[first, last], ...]}`, ranges of ids, so
a generation costs as much in the hundredth turn as in the first. A key of the user's own that begins
with `$` is written with one `$` more. A member can be read by itself: one event is one ranged read.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, Final

from ..event import Kind, Shared, resolve_shared
from .lines import deflate, encode_line
from .merkle import leaf, root

__all__ = ["Group", "Messages", "Segment", "SegmentBuilder", "restore"]

_GROUP: Final = 65_536


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """One gzip member.

    Attributes:
        offset: Where it begins in the object.
        length: Its bytes.
        first_seq: The first event in it, -1 if it has only messages.
        last_seq: The last event in it.
        first_id: The first message in it, -1 if it has only events.
        last_id: The last message in it.
    """

    offset: int
    length: int
    first_seq: int
    last_seq: int
    first_id: int
    last_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A finished segment and what the manifest says of it."""

    data: bytes
    sha256: bytes
    first_seq: int
    lines: int
    root: bytes
    groups: tuple[Group, ...]


class Messages:
    """Ids of the messages stored so far in one class of one record.

    The `Shared` itself is the first thing asked, since its identity means "the same message"; equal
    values from elsewhere (another frame) are found by their bytes.
    """

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[Shared, int]] = {}
        self._by_bytes: dict[bytes, int] = {}

    def known(self, shared: Shared) -> int | None:
        """The id of this very message."""
        found = self._by_object.get(id(shared))
        return found[1] if found is not None else None

    def add(self, shared: Shared, line_value: bytes) -> tuple[int, bool]:
        """The id of a message not met before, and whether it is new to the class."""
        digest = hashlib.blake2b(line_value, digest_size=16).digest()
        number = self._by_bytes.get(digest)
        fresh = number is None
        if number is None:
            number = self._by_bytes[digest] = len(self._by_bytes) + 1
        self._by_object[id(shared)] = (shared, number)
        return number, fresh


class SegmentBuilder:
    """Gathers lines; `finish` makes the segment of them."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._members: list[bytes] = []
        self._groups: list[Group] = []
        self._lines: list[bytes] = []
        self._leaves: list[bytes] = []
        self._size = 0
        self._offset = 0
        self._seqs: list[int] = []
        self._ids: list[int] = []
        self.first_seq = -1
        self.raw_bytes = 0

    def add(self, kind: Kind, seq: int, payload: Any) -> None:
        """Add an event's payload, and before it the messages it is the first to use."""
        encoded = self._encode(payload)
        if self.first_seq < 0:
            self.first_seq = seq
        self._line(encode_line({"kind": str(kind), "seq": seq, "payload": encoded}))
        self._seqs.append(seq)

    def add_raw(self, seq: int, line: dict[str, Any]) -> None:
        """Add a line that is not a payload: an envelope."""
        if self.first_seq < 0:
            self.first_seq = seq
        self._line(encode_line(line))
        self._seqs.append(seq)

    def _line(self, line: bytes) -> None:
        if self._size and self._size + len(line) > _GROUP:
            self._close_group()
        self._lines.append(line)
        self._leaves.append(leaf(line))
        self._size += len(line)
        self.raw_bytes += len(line)

    def _close_group(self) -> None:
        member = deflate(b"".join(self._lines))
        seqs, ids = self._seqs or [-1], self._ids or [-1]
        self._groups.append(Group(self._offset, len(member), min(seqs), max(seqs), min(ids), max(ids)))
        self._members.append(member)
        self._offset += len(member)
        self._lines, self._seqs, self._ids, self._size = [], [], [], 0

    def finish(self) -> Segment:
        """The segment; the builder is used up."""
        if self._lines:
            self._close_group()
        data = b"".join(self._members)
        return Segment(
            data,
            hashlib.sha256(data).digest(),
            self.first_seq,
            len(self._leaves),
            root(self._leaves),
            tuple(self._groups),
        )

    def _encode(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return {(f"${name}" if name.startswith("$") else name): self._encode(item) for name, item in value.items()}
        if kind is list:
            if value and all(type(item) is Shared for item in value):
                return {"$list": _ranges([self._id(item) for item in value])}
            return [self._encode(item) for item in value]
        if kind is Shared:
            return {"$ref": self._id(value)}
        return value

    def _id(self, shared: Shared) -> int:
        known = self._messages.known(shared)
        if known is not None:
            return known
        value = self._encode(resolve_shared(shared))
        number, fresh = self._messages.add(shared, encode_line(value))
        if fresh:
            self._line(encode_line({"kind": "msg", "id": number, "value": value}))
            self._ids.append(number)
        return number


def _ranges(ids: list[int]) -> list[list[int]]:
    out: list[list[int]] = []
    for number in ids:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return out


def restore(value: Any, messages: dict[int, Any]) -> Any:
    """A payload as it was, from its stored form and the messages by id.

    Raises:
        KeyError: A message it refers to is not among `messages`.
    """
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        if len(fields) == 1:
            if "$ref" in fields:
                return messages[fields["$ref"]]
            if "$list" in fields:
                return [messages[n] for first, last in fields["$list"] for n in range(first, last + 1)]
        return {(name.removeprefix("$")): restore(item, messages) for name, item in fields.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [restore(item, messages) for item in items]
    return value
