"""The encoder never raises; the decoder never explodes and accepts nothing loose."""

from __future__ import annotations

import contextlib
import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.errors import RecordDamaged
from sealtrace.vault.lines import (
    MAX_DEPTH,
    MAX_INFLATED,
    TOO_DEEP,
    decode_line,
    deflate,
    encode_line,
    inflate,
    storable,
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    max_leaves=20,
)


@given(_JSON)
def test_whatever_is_written_can_be_read(value: object) -> None:
    """Any JSON-like value, lone surrogates and NaN included, makes one strict line."""
    line = encode_line(storable({"v": value}))
    assert line.count(b"\n") == 1
    assert "v" in decode_line(line, "k")


@given(st.dictionaries(st.text(), st.integers(-(2**63), 2**63) | st.text() | st.booleans() | st.none()))
def test_sane_values_come_back_equal(value: dict[str, object]) -> None:
    """What strict JSON can hold is not altered."""
    assert decode_line(encode_line(storable(value)), "k") == value


def test_replacements_are_the_documented_ones() -> None:
    """A lone surrogate, NaN, an infinity, a huge integer and a foreign object each have their stand-in."""
    line = encode_line(storable({"s": "a\ud800b", "n": math.nan, "i": -math.inf, "big": 1 << 2000, "o": object()}))
    assert json.loads(line) == {"s": "a\ufffdb", "n": "nan", "i": "-inf", "big": hex(1 << 2000), "o": "<object>"}


def test_two_names_never_become_one() -> None:
    """Names that differ only in a lone surrogate stay apart."""
    assert len(decode_line(encode_line(dict.fromkeys(["\ud800", "\ud801", "\ufffd"], 1)), "k")) == 3


def test_nesting_is_cut_at_the_depth_the_reader_accepts() -> None:
    """The deepest level that is written is the deepest that is read."""
    value: object = "core"
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert decode_line(encode_line(storable({"v": value})), "k") == {"v": value}
    deeper = decode_line(encode_line(storable({"v": [value]})), "k")
    assert TOO_DEEP in json.dumps(deeper)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":' + b"9" * 500 + b"}",
        b"[1]",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b'{"a":' + b"[" * 80 + b"]" * 80 + b"}",
        b'{"a":' + b"[" * 200_000,
        b"",
    ],
)
def test_loose_json_is_damage(line: bytes) -> None:
    """Duplicate keys, NaN, huge numbers, other types, depth and broken bytes are refused as damage."""
    with pytest.raises(RecordDamaged):
        decode_line(line, "k")


def test_members_are_read_one_after_another() -> None:
    """An object of several gzip members is read whole."""
    assert inflate(deflate(b"a\n") + deflate(b"b\n"), "k") == b"a\nb\n"


def test_compression_is_reproducible() -> None:
    """The same bytes always give the same member: keys hold digests."""
    assert deflate(b"x" * 1000) == deflate(b"x" * 1000)


def test_a_bomb_is_refused() -> None:
    """An object that inflates beyond the cap is refused, also when spread over members."""
    with pytest.raises(RecordDamaged, match="inflates"):
        inflate(gzip.compress(bytes(MAX_INFLATED + 1)), "k")
    half = gzip.compress(bytes(MAX_INFLATED // 2 + 1))
    with pytest.raises(RecordDamaged, match="inflates"):
        inflate(half + half, "k")


def test_a_flood_of_members_is_refused() -> None:
    """A hundred thousand empty members are refused instead of being worked through."""
    with pytest.raises(RecordDamaged, match="members"):
        inflate(gzip.compress(b"") * 100_000, "k")


@pytest.mark.parametrize("cut", [1, 5, 10, 17])
def test_cut_data_is_damage(cut: int) -> None:
    """Gzip data that ends early is damage, wherever it ends."""
    with pytest.raises(RecordDamaged):
        inflate(deflate(b"hello")[:-cut], "k")


@given(st.binary(max_size=300))
def test_inflating_noise_never_crashes(data: bytes) -> None:
    """Any bytes either inflate or are damage."""
    with contextlib.suppress(RecordDamaged):
        inflate(data, "k")
