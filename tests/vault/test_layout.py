"""Keys: their form, and that nothing else passes for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.event import Kind
from sealtrace.settings import Retention
from sealtrace.vault import layout

RUN, RECORD = "trace_" + "ab" * 16, "01" * 16


def test_keys_have_the_documented_form() -> None:
    """A segment's and a manifest's key are exactly as the design says."""
    digest = bytes(range(32))
    assert layout.segment_key("io", RUN, RECORD, 7, digest) == (
        f"io/v1/ab/{'ab' * 16}/{RECORD}/000007-0001020304050607.jsonl.gz"
    )
    assert layout.manifest_key(RUN, RECORD, digest) == f"meta/v1/ab/{'ab' * 16}/{RECORD}/manifest-0001020304050607.json"


def test_a_key_parses_back() -> None:
    """What went into a key comes out of it."""
    parts = layout.parse_key(layout.segment_key("content", RUN, RECORD, 1_000_000, bytes(32)))
    assert parts is not None
    assert (parts["klass"], parts["run"], parts["record"], parts["seq"]) == ("content", "ab" * 16, RECORD, "1000000")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "../etc/passwd",
        f"io/v1/cd/{'ab' * 16}/{RECORD}/000007-0001020304050607.jsonl.gz",
        f"other/v1/ab/{'ab' * 16}/{RECORD}/000007-0001020304050607.jsonl.gz",
        f"io/v1/ab/{'ab' * 16}/{RECORD}/000007-0001020304050607.jsonl.gz\n",
        f"io/v1/ab/{'ab' * 16}/{RECORD}/../000007-0001020304050607.jsonl.gz",
    ],
)
def test_other_names_are_no_keys(key: str) -> None:
    """A wrong shard, class, suffix or path part is not taken for a key of ours."""
    assert layout.parse_key(key) is None


@given(st.text(max_size=200))
def test_parsing_never_fails(key: str) -> None:
    """Any string is a key or None."""
    layout.parse_key(key)


def test_kinds_kept_equally_long_share_a_class() -> None:
    """With the same days, input and output lie with the other payloads."""
    assert layout.class_of(Kind.INPUT, Retention(io=30, content=7, meta=400)) == "io"
    assert layout.class_of(Kind.INPUT, Retention(io=7, content=7, meta=400)) == "content"
    assert layout.class_of(Kind.GENERATION, Retention(io=30, content=7, meta=400)) == "content"


def test_expiry_counts_days() -> None:
    """The expiry is so many days after the writing."""
    assert layout.expiry("2026-12-01T09:30:00.123456Z", 7) == "2026-12-08T09:30:00Z"
