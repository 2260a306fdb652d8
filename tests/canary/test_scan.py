"""The scan is only worth something if it finds what is there."""

from __future__ import annotations

import base64
import codecs
import gzip
import hashlib
import html
import json
import urllib.parse
import zlib

import pytest

from canary.scan import found

CANARY = "quokka toolresult quokka"

ENCODINGS = {
    "raw": CANARY.encode(),
    "upper": CANARY.upper().encode(),
    "title": CANARY.title().encode(),
    "swapped": CANARY.swapcase().encode(),
    "reversed": CANARY[::-1].encode(),
    "reversed and swapped": CANARY[::-1].swapcase().encode(),
    "json": json.dumps({"a": CANARY}).encode(),
    "json in json": json.dumps(json.dumps({"a": CANARY})).encode(),
    "json escapes": "".join(f"\\u{ord(char):04X}" for char in CANARY).encode(),
    "url": urllib.parse.quote(CANARY).encode(),
    "form": urllib.parse.quote_plus(CANARY).encode(),
    "percent": "".join(f"%{ord(char):02X}" for char in CANARY).encode(),
    "html": html.escape(CANARY).encode(),
    "repr": repr(CANARY).encode(),
    "hex": CANARY.encode().hex().encode(),
    "HEX": CANARY.encode().hex().upper().encode(),
    "base32": base64.b32encode(CANARY.encode()),
    "utf-16": CANARY.encode("utf-16"),
    "sha256": hashlib.sha256(CANARY.encode()).digest(),
    "sha256 hex": hashlib.sha256(CANARY.encode()).hexdigest().encode(),
    "sha256 hex, cut": hashlib.sha256(CANARY.encode()).hexdigest()[:16].encode(),
    "sha256 base64": base64.b64encode(hashlib.sha256(CANARY.encode()).digest()),
    "md5 hex": hashlib.md5(CANARY.encode(), usedforsecurity=False).hexdigest().encode(),
    "gzip": gzip.compress(CANARY.encode()),
    "zlib": zlib.compress(CANARY.encode()),
    "gzip in base64": base64.b64encode(gzip.compress(CANARY.encode())),
    "second gzip member": gzip.compress(b"first") + gzip.compress(CANARY.encode()),
    **{f"base64 at {n}": base64.b64encode(b"x" * n + CANARY.encode() + b"yz") for n in range(4)},
    **{f"base64url at {n}": base64.urlsafe_b64encode(b"?" * n + CANARY.encode() + b"~~") for n in range(4)},
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_planted_canary_is_found(encoding: str) -> None:
    """A canary is found in each encoding, in the middle of other bytes."""
    assert found([CANARY], b"\x0a\x05noise" + ENCODINGS[encoding] + b"\x12noise") == {CANARY}


def test_absent_canary_is_not_found() -> None:
    """What is not there is not found, however alike it looks."""
    alike = [codecs.encode(CANARY, "rot13"), CANARY[:-1], CANARY.replace("t", "d"), "quokka"]
    noise = [json.dumps(alike).encode(), gzip.compress(b"quokka toolargument quokka"), b"", b"\x1f\x8b\x08", bytes(64)]
    assert found([CANARY], *noise) == set()


def test_only_the_planted_canaries_are_named() -> None:
    """Of many canaries those are named that are there."""
    assert found(["alpha one", "beta two", "gamma three"], b"x alpha one y", b"Z2FtbWEgdGhyZWU=") == {
        "alpha one",
        "gamma three",
    }
