"""Keys: tags and digests that only the holder of the secret can make."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.errors import SettingsError
from sealtrace.keys import Keys

SECRET = b"0123456789abcdef"


@given(st.text(), st.text())
def test_tags_are_equal_exactly_for_equal_values(one: str, other: str) -> None:
    """Equality survives pseudonyms, across processes that share the secret; difference does too."""
    assert Keys(SECRET).tag(one) == Keys(SECRET).tag(one)
    assert (Keys(SECRET).tag(one) == Keys(SECRET).tag(other)) == (one == other)


@given(st.text())
def test_a_tag_is_twelve_letters(value: str) -> None:
    """No digit and no punctuation, so that no detector finds anything in a tag."""
    assert re.fullmatch(r"[a-z]{12}", Keys(SECRET).tag(value))


@given(st.text(alphabet=st.characters(categories=("Cs",)), min_size=1))
def test_lone_surrogates_can_be_tagged(value: str) -> None:
    """Text that is not valid Unicode is tagged like any other."""
    assert len(Keys(SECRET).tag(value)) == 12


def test_another_secret_gives_other_tags_digests_and_id() -> None:
    """Without the secret nothing can be linked."""
    one, other = Keys(SECRET), Keys(b"fedcba9876543210")
    assert one.tag("jane") != other.tag("jane")
    assert one.digest(b"jane") != other.digest(b"jane")
    assert one.key_id != other.key_id


def test_the_derived_keys_are_independent() -> None:
    """Tags, digests and the key id come of different keys: none is a form of another."""
    keys = Keys(SECRET)
    assert keys.digest(b"jane") != hashlib.blake2b(b"jane", digest_size=16, key=SECRET).hexdigest()
    assert not keys.digest(b"").startswith(keys.key_id)


@given(st.binary())
def test_a_digest_is_keyed(data: bytes) -> None:
    """A digest is 32 hex digits and not a plain hash, which a dictionary would undo."""
    digest = Keys(SECRET).digest(data)
    assert re.fullmatch(r"[0-9a-f]{32}", digest)
    assert digest != hashlib.blake2b(data, digest_size=16).hexdigest()
    assert digest == Keys(SECRET).digest(data)


def test_no_secret_means_one_of_this_process() -> None:
    """With no secret everything works, is different each time, and says that it is ephemeral."""
    one, other = Keys(), Keys()
    assert one.ephemeral
    assert not Keys(SECRET).ephemeral
    assert one.key_id != other.key_id
    assert one.tag("jane") == one.tag("jane") != other.tag("jane")


@pytest.mark.parametrize("secret", [b"", b"short", b"x" * 15])
def test_a_guessable_secret_is_refused(secret: bytes) -> None:
    """A secret of fewer than 16 bytes is refused, and the error says how to make one, not what was given."""
    with pytest.raises(SettingsError, match="openssl rand") as caught:
        Keys(secret)
    assert caught.value.setting == "key"
    assert not secret or secret.decode() not in str(caught.value)


def test_the_key_id_is_pinned() -> None:
    """Records name their key by this id: a change of derivation would orphan every record."""
    assert Keys(SECRET).key_id == "377dd79d243fcda2"
    assert Keys(SECRET).tag("jane.roe@example.com") == "rsaccmtytsaw"
