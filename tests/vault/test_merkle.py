"""Merkle roots."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from sealtrace.vault.merkle import leaf, root


def test_the_root_of_three_is_the_hand_made_one() -> None:
    """Leaves and nodes are hashed apart, and an odd leaf moves up as it is."""
    a, b, c = (hashlib.sha256(b"\x00" + item).digest() for item in (b"a", b"b", b"c"))
    ab = hashlib.sha256(b"\x01" + a + b).digest()
    assert root([leaf(b"a"), leaf(b"b"), leaf(b"c")]) == hashlib.sha256(b"\x01" + ab + c).digest()


@given(st.lists(st.binary(max_size=4), max_size=9), st.lists(st.binary(max_size=4), max_size=9))
def test_different_lines_have_different_roots(one: list[bytes], other: list[bytes]) -> None:
    """Any change of any line, of the order or of the number changes the root."""
    assert (root([leaf(x) for x in one]) == root([leaf(x) for x in other])) == (one == other)
