"""Finds a string in bytes, also where an encoder, a compressor or a hash has been over it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import urllib.parse
import zlib
from collections.abc import Iterable, Iterator
from functools import cache

_BASE64 = re.compile(rb"(?:H4sI|eJ|eN|eA)[A-Za-z0-9+/_-]{12,}={0,2}")  # how gzip and zlib begin in base64
_GZIP = re.compile(rb"\x1f\x8b\x08")
_ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
_MAX_DEPTH = 3


def found(needles: Iterable[str], *haystacks: bytes) -> set[str]:
    """Which of the needles occur, in any of the forms of `forms`, in any haystack.

    A needle should hold a run of ASCII letters that nothing else holds; JSON, URL and HTML escapes
    leave those as they are.
    """
    needles = set(needles)
    hits: set[str] = set()
    for haystack in haystacks:
        for layer in _layers(haystack):
            lower = layer.lower()
            for needle in needles - hits:
                if any(form in lower for form in forms(needle)):
                    hits.add(needle)
    return hits


@cache
def forms(needle: str) -> frozenset[bytes]:
    """The lower-cased byte strings by which a needle is recognised."""
    raw = needle.encode()
    texts = {needle, needle[::-1], needle.swapcase()}
    out = {text.encode() for text in texts} | {text.encode("utf-16-le") for text in texts}
    out |= {urllib.parse.quote_plus(needle).encode(), urllib.parse.quote(needle).encode()}
    out.add("".join(f"%{byte:02x}" for byte in raw).encode())
    out.add("".join(f"\\u{ord(char):04x}" for char in needle).encode())
    out |= {raw.hex().encode(), base64.b32encode(raw).rstrip(b"=")}
    out |= {piece for text in texts for piece in _base64_pieces(text.encode())}
    for algorithm in ("sha256", "sha1", "md5", "sha512"):
        digest = hashlib.new(algorithm, raw, usedforsecurity=False).digest()
        # The first 16 hex digits or the first 15 base64 characters are enough to know a digest again.
        out |= {digest[:12], digest.hex()[:16].encode(), base64.b64encode(digest)[:15]}
    return frozenset(form.lower() for form in out if form)


def _base64_pieces(raw: bytes) -> Iterator[bytes]:
    """The part of the base64 form that does not depend on what stands beside it, at each alignment."""
    for shift in range(3):
        padded = b"\x00" * shift + raw
        whole = len(padded) - len(padded) % 3
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded[:whole])[4 * (shift > 0) :]


def _layers(data: bytes, depth: int = 0) -> Iterator[bytes]:
    """The bytes, and what can be unpacked from them."""
    yield data
    if depth == _MAX_DEPTH:
        return
    for pattern, unpack in ((_GZIP, _gunzip), (_ZLIB, _inflate)):
        for match in pattern.finditer(data):
            inner = unpack(data[match.start() :])
            if inner:
                yield from _layers(inner, depth + 1)
    for match in _BASE64.finditer(data):
        inner = _unbase64(match[0])
        unpacked = _gunzip(inner) if _GZIP.match(inner) else _inflate(inner)
        if unpacked:
            yield from _layers(unpacked, depth + 1)


def _gunzip(data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return _inflate(data, 31)


def _inflate(data: bytes, window: int = 15) -> bytes:
    try:
        return zlib.decompressobj(window).decompress(data)
    except zlib.error:
        return b""


def _unbase64(data: bytes) -> bytes:
    body = data.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    return base64.b64decode(body[: len(body) - (len(body) % 4 == 1)] + b"==")
