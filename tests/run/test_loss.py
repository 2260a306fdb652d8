"""Nothing stored is lost or altered without the loader saying so, whatever happens to either half."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from run.halves import RUN, Conversation, seal_span, spans_of, write_otlp
from sealtrace import EventStatus, Run, RunStatus, load
from sealtrace.errors import RunNotFound
from sealtrace.run.findings import NO_PAYLOAD
from sealtrace.settings import Retention, Settings
from sealtrace.vault.stores import LocalStore
from vault.records import plain

TURNS = 3
EVENTS = 2 + 3 * TURNS


@settings(max_examples=60, deadline=None)
@given(
    gone=st.sets(st.integers(0, 3), max_size=4),
    flipped=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 10**6), st.integers(1, 255)),
    lost_spans=st.sets(st.integers(0, EVENTS - 1)),
    with_seal=st.booleans(),
    with_telemetry=st.booleans(),
)
def test_loss_and_change_are_always_said(
    gone: set[int], flipped: tuple[int, int, int] | None, lost_spans: set[int], with_seal: bool, with_telemetry: bool
) -> None:
    """Objects deleted, a byte changed, spans lost: what is shown is what was stored, and the rest is admitted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = Conversation(TURNS)
        store = LocalStore(folder / "vault")
        # Three classes of different age: an object each for io, content and meta.
        seal = run.store(store, Settings(retention=Retention(io=30, content=7, meta=36_500)))
        spans = spans_of(run, without=frozenset(lost_spans))
        telemetry = write_otlp(folder / "t.jsonl", [*spans, seal_span(run, seal)] if with_seal else spans)
        touched = _damage(folder / "vault", gone, flipped)
        try:
            found = load(RUN, vault=(folder / "vault").as_uri(), telemetry=telemetry if with_telemetry else None)
        except RunNotFound:
            assert len(gone) >= 3
            assert not with_telemetry
            return
        originals = {event.seq: plain(event.payload) for event in run.events}
        _nothing_is_false(found, originals)
        _what_is_missing_is_said(found, touched=touched, spans_whole=not lost_spans, asked=with_telemetry)


def _damage(root: Path, gone: set[int], flipped: tuple[int, int, int] | None) -> bool:
    objects = sorted(path for path in root.rglob("*") if path.is_file())
    assert len(objects) == 3
    for index in gone:
        if index < len(objects):
            objects[index].unlink()
    if flipped is not None and flipped[0] < len(objects) and flipped[0] not in gone:
        path = objects[flipped[0]]
        data = bytearray(path.read_bytes())
        data[flipped[1] % len(data)] ^= flipped[2]
        path.write_bytes(bytes(data))
        return True
    return any(index < len(objects) for index in gone)


def _nothing_is_false(found: Run, originals: dict[int, Any]) -> None:
    """Every payload that is shown is the one that was stored, under its number, once."""
    seqs = [event.seq for event in found.events]
    assert len(seqs) == len(set(seqs))
    for event in found.events:
        assert event.seq in originals
        if event.payload is not None:
            assert event.payload == originals[event.seq]
            assert event.status not in NO_PAYLOAD


def _what_is_missing_is_said(found: Run, *, touched: bool, spans_whole: bool, asked: bool) -> None:
    whole = found.status is RunStatus.COMPLETE
    assert whole == (not touched and (spans_whole or not asked))
    if touched:
        assert any(finding.serious for finding in found.findings)
    for event in found.events:
        if event.payload is None:
            assert event.status in NO_PAYLOAD
        elif event.status is EventStatus.RECORDED:
            assert not asked
