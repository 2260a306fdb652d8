"""Segments: payload lines of one class of one record, in gzip members of about 128 KB.

Each message is stored once per class and record, as a line of its own before its first use:

```
{"kind":"msg","id":3,"value":{...}}
{"kind":"generation","seq":7,"payload":{"request":{"instructions":{"$ref":1},"input":{"$list":[[3,9]]}},...}}
```

A message is `{"$ref": id}`, a conversation is `{"$list": [[first, last], ...]}`, ranges of ids, so
a generation costs as much in the hundredth turn as in the first. A key of the user's own that begins
with `$` is written with one `$` more. A message never quotes another, and nothing quotes across
classes, because classes expire apart. A member can be read by itself: one event is one ranged read.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..event import Kind, Shared, resolve_shared
from .lines import MAX_DEPTH, TOO_DEEP, deflate, encode_line, leaf_value
from .merkle import leaf, root

__all__ = ["MAX_LINE", "Group", "Line", "Messages", "PayloadTooLarge", "Segment", "SegmentBuilder", "quoted", "restore"]

MAX_LINE: Final = 4 * 1024 * 1024
"""Longest line that is stored, bytes; a payload beyond is dropped and its event says so."""

MAX_QUOTED: Final = 1_000_000
"""Most messages one payload may quote: a few bytes must not unfold into gigabytes."""

_GROUP: Final = 131_072


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
        digest: First 32 hex digits of the SHA-256 of its bytes, so a ranged read can be checked.
    """

    offset: int
    length: int
    first_seq: int
    last_seq: int
    first_id: int
    last_id: int
    digest: str


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A finished segment and what the manifest says of it."""

    data: bytes
    sha256: bytes
    first_seq: int
    lines: int
    root: bytes
    groups: tuple[Group, ...]


class Line(NamedTuple):
    """A stored line: an event's, or that of a message (`message` is its id) the event is the first to use."""

    data: bytes
    seq: int
    message: int = -1


class PayloadTooLarge(Exception):
    """A line would be longer than `MAX_LINE`.

    Attributes:
        lines: Messages that were numbered before this was found; they must still be stored.
    """

    def __init__(self, lines: list[Line]) -> None:
        super().__init__()
        self.lines = lines


class Messages:
    """Ids of the messages stored so far in one class of one record.

    The `Shared` itself is the first thing asked, since its identity means "the same message"; equal
    values from elsewhere (another frame) are found by their bytes.
    """

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[Shared, int]] = {}
        self._by_bytes: dict[bytes, int] = {}

    def encode(self, kind: Kind, seq: int, payload: Any) -> list[Line]:
        """The lines of an event: messages it is the first to use, then its payload.

        Raises:
            PayloadTooLarge: A line is too long to be stored.
        """
        lines: list[Line] = []
        encoded = self._encode(payload, 2, lines, seq)
        data = encode_line({"kind": str(kind), "seq": seq, "payload": encoded})
        if len(data) > MAX_LINE:
            raise PayloadTooLarge(lines)
        lines.append(Line(data, seq))
        return lines

    def _encode(self, value: Any, depth: int, lines: list[Line] | None, seq: int) -> Any:
        if isinstance(value, str) or value is None:
            return value
        if isinstance(value, Shared):
            if lines is None:  # inside a message: messages do not quote messages
                return self._encode(resolve_shared(value), depth, None, seq)
            return {"$ref": self._id(value, lines, seq)} if depth <= MAX_DEPTH else TOO_DEEP
        if isinstance(value, dict):
            if depth > MAX_DEPTH:
                return TOO_DEEP
            fields: dict[Any, Any] = value
            return {_escaped(name): self._encode(item, depth + 1, lines, seq) for name, item in fields.items()}
        if isinstance(value, list | tuple):
            if depth > MAX_DEPTH - 2:
                return TOO_DEEP
            items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
            if lines is not None and items and all(type(item) is Shared for item in items):
                return {"$list": _ranges([self._id(item, lines, seq) for item in items])}
            return [self._encode(item, depth + 1, lines, seq) for item in items]
        return leaf_value(value)

    def _id(self, shared: Shared, lines: list[Line], seq: int) -> int:
        known = self._by_object.get(id(shared))
        if known is not None:
            return known[1]
        body = encode_line(self._encode(resolve_shared(shared), 2, None, seq))[:-1]
        digest = hashlib.blake2b(body, digest_size=16).digest()
        number = self._by_bytes.get(digest)
        if number is None:
            if len(body) > MAX_LINE:
                raise PayloadTooLarge(lines)
            number = self._by_bytes[digest] = len(self._by_bytes) + 1
            lines.append(Line(b'{"kind":"msg","id":%d,"value":%s}\n' % (number, body), seq, number))
        self._by_object[id(shared)] = (shared, number)
        return number


def _escaped(name: Any) -> str:
    text = str(name)
    return f"${text}" if text.startswith("$") else text


def _ranges(ids: list[int]) -> list[list[int]]:
    out: list[list[int]] = []
    for number in ids:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return out


class SegmentBuilder:
    """Gathers lines; `finish` makes the segment of them.

    Args:
        seal: Encrypts a member, given the segment's first event and the member's place; then what is
            listed and digested is the ciphertext, and the leaves of the Merkle tree are the members.
    """

    def __init__(self, seal: Callable[[bytes, int, int], bytes] | None = None) -> None:
        self._seal = seal
        self._members: list[bytes] = []
        self._groups: list[Group] = []
        self._lines: list[Line] = []
        self._leaves: list[bytes] = []
        self._count = 0
        self._size = 0
        self._offset = 0
        self.first_seq = -1
        self.raw_bytes = 0

    def add(self, lines: list[Line]) -> None:
        """Add lines in order."""
        for line in lines:
            if self.first_seq < 0:
                self.first_seq = line.seq
            if self._size and self._size + len(line.data) > _GROUP:
                self._close_group()
            self._lines.append(line)
            self._count += 1
            if self._seal is None:
                self._leaves.append(leaf(line.data))
            self._size += len(line.data)
            self.raw_bytes += len(line.data)

    def _close_group(self) -> None:
        member = deflate(b"".join(line.data for line in self._lines))
        if self._seal is not None:
            member = self._seal(member, self.first_seq, len(self._members))
            self._leaves.append(leaf(member))
        seqs = [line.seq for line in self._lines if line.message < 0] or [-1]
        ids = [line.message for line in self._lines if line.message >= 0] or [-1]
        digest = hashlib.sha256(member).hexdigest()[:32]
        self._groups.append(Group(self._offset, len(member), min(seqs), max(seqs), min(ids), max(ids), digest))
        self._members.append(member)
        self._offset += len(member)
        self._lines, self._size = [], 0

    def finish(self) -> Segment:
        """The segment; the builder is used up."""
        if self._lines:
            self._close_group()
        data = b"".join(self._members)
        return Segment(
            data=data,
            sha256=hashlib.sha256(data).digest(),
            first_seq=max(self.first_seq, 0),
            lines=self._count,
            root=root(self._leaves),
            groups=tuple(self._groups),
        )


def restore(value: Any, messages: dict[int, Any]) -> Any:
    """A payload as it was, from its stored form and the messages by id.

    Raises:
        KeyError: A message it refers to is not among `messages`.
        ValueError: It quotes in a form that is none, or absurdly often.
    """
    if sum(last - first + 1 for first, last in quoted(value)) > MAX_QUOTED:
        raise ValueError("the payload quotes too many messages")
    return _restored(value, messages)


def _restored(value: Any, messages: dict[int, Any]) -> Any:
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        ranges = _quotation(fields)
        if ranges is not None:
            found = [messages[number] for first, last in ranges for number in range(first, last + 1)]
            return found[0] if "$ref" in fields else found
        return {_unescaped(name): _restored(item, messages) for name, item in fields.items()}
    if isinstance(value, list):
        items: list[Any] = value
        return [_restored(item, messages) for item in items]
    return value


def _unescaped(name: str) -> str:
    if not name.startswith("$"):
        return name
    if not name.startswith("$$"):
        raise ValueError("a key begins with a single $ and is no reference")
    return name[1:]


def quoted(value: Any) -> list[tuple[int, int]]:
    """The ranges of message ids that a stored payload quotes.

    Raises:
        ValueError: It quotes in a form that is none.
    """
    out: list[tuple[int, int]] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            fields: dict[str, Any] = item
            ranges = _quotation(fields)
            if ranges is None:
                todo.extend(fields.values())
            else:
                out.extend(ranges)
        elif isinstance(item, list):
            todo.extend(item)  # pyright: ignore[reportUnknownArgumentType]
    return out


def _quotation(fields: dict[str, Any]) -> list[tuple[int, int]] | None:
    if "$ref" in fields:
        number = fields["$ref"]
        ranges: list[Any] = [[number, number]]
    elif "$list" in fields:
        ranges = fields["$list"]
    else:
        return None
    if len(fields) != 1 or not isinstance(ranges, list):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("a reference of no known form")
    out: list[tuple[int, int]] = []
    for pair in ranges:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(n) is int for n in pair)):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            raise ValueError("a reference of no known form")
        first, last = int(pair[0]), int(pair[1])  # pyright: ignore[reportUnknownArgumentType]
        if not 0 < first <= last:
            raise ValueError("a reference of no known form")
        out.append((first, last))
    return out
