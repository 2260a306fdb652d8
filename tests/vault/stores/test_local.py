"""The directory store: atomic, append-only, private, and not to be led elsewhere."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealtrace.errors import ObjectExists, ObjectNotFound, RecordDamaged, SettingsError, VaultDenied, VaultError
from sealtrace.settings import Settings
from sealtrace.vault.stores import LocalStore, S3Store, open_store
from sealtrace.vault.stores.base import MAX_OBJECT


def _put(store: LocalStore, key: str, data: bytes) -> None:
    store.put(key, data, sha256=b"")


def test_what_is_put_can_be_got(tmp_path: Path) -> None:
    """Whole objects and ranges come back."""
    store = LocalStore(tmp_path)
    _put(store, "a/b", b"0123456789")
    assert store.get("a/b") == b"0123456789"
    assert store.get("a/b", start=3, length=4) == b"3456"
    assert store.get("a/b", start=8) == b"89"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """The same bytes again are fine; other bytes are refused and the first stay."""
    store = LocalStore(tmp_path)
    _put(store, "a/b", b"one")
    _put(store, "a/b", b"one")
    with pytest.raises(ObjectExists):
        _put(store, "a/b", b"two")
    assert store.get("a/b") == b"one"


def test_modes_are_private(tmp_path: Path) -> None:
    """Every folder is 0700 and every object 0600, whatever the umask."""
    before = os.umask(0)
    try:
        _put(LocalStore(tmp_path / "v"), "a/b/c", b"x")
    finally:
        os.umask(before)
    assert {stat.S_IMODE((tmp_path / "v" / p).stat().st_mode) for p in (".", "a", "a/b")} == {0o700}
    assert stat.S_IMODE((tmp_path / "v/a/b/c").stat().st_mode) == 0o600


def test_no_temporary_file_is_left(tmp_path: Path) -> None:
    """After success and after refusal only the object is there."""
    store = LocalStore(tmp_path)
    _put(store, "a/b", b"one")
    with pytest.raises(ObjectExists):
        _put(store, "a/b", b"two")
    assert os.listdir(tmp_path / "a") == ["b"]


def test_of_many_writers_one_wins(tmp_path: Path) -> None:
    """Twenty threads that store different bytes under one key leave one whole object and 19 refusals."""
    store, refused, start = LocalStore(tmp_path), [], threading.Barrier(20)

    def write(number: int) -> None:
        start.wait()
        try:
            _put(store, "a/b", bytes([number]) * 100_000)
        except ObjectExists:
            refused.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    data = store.get("a/b")
    assert len(refused) == 19
    assert len(data) == 100_000
    assert len(set(data)) == 1


@pytest.mark.parametrize(
    "key", ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".hidden", "a/.b", "a\0b", "a/b\n", "a" * 300]
)
def test_keys_cannot_leave_the_root(tmp_path: Path, key: str) -> None:
    """A key with other parts than plain names is refused for every operation."""
    store = LocalStore(tmp_path / "v")
    for operation in (lambda: _put(store, key, b""), lambda: store.get(key), lambda: store.delete(key)):
        with pytest.raises(VaultError, match="not a key"):
            operation()


@given(st.text(max_size=60))
def test_any_key_is_refused_or_unknown(tmp_path_factory: pytest.TempPathFactory, key: str) -> None:
    """No string makes a read raise anything but the store's own errors."""
    with pytest.raises(VaultError):
        LocalStore(Path("/nonexistent-vault")).get(key)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link in place of an object, a folder or a temporary name leads nowhere, for reading, writing and listing."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    root = tmp_path / "v"
    store = LocalStore(root)
    _put(store, "a/real", b"x")
    (root / "a" / "link").symlink_to(outside / "secret")
    (root / "b").symlink_to(outside)
    for key in ("a/link", "b/secret"):
        with pytest.raises(VaultError):
            store.get(key)
    with pytest.raises(VaultError):
        _put(store, "b/new", b"x")
    with pytest.raises(VaultError):
        _put(store, "a/link", b"x")
    assert [item.key for item in store.list("")] == ["a/real"]
    assert sorted(os.listdir(outside)) == ["secret"]


def test_other_things_than_files_are_refused(tmp_path: Path) -> None:
    """A named pipe in place of an object neither blocks nor is read."""
    _put(LocalStore(tmp_path), "a/b", b"x")
    os.mkfifo(tmp_path / "a" / "pipe")
    with pytest.raises(VaultDenied, match="regular file"):
        LocalStore(tmp_path).get("a/pipe")


def test_a_giant_file_is_refused_unread(tmp_path: Path) -> None:
    """What is larger than any object of ours is not read into memory."""
    _put(LocalStore(tmp_path), "a/b", b"x")
    with open(tmp_path / "a" / "b", "r+b") as file:
        file.truncate(MAX_OBJECT * 1000)
    with pytest.raises(RecordDamaged, match="at most"):
        LocalStore(tmp_path).get("a/b")
    assert LocalStore(tmp_path).get("a/b", start=0, length=1) == b"x"


def test_listing_is_by_prefix_and_sorted(tmp_path: Path) -> None:
    """A prefix need not end at a folder; a missing one lists nothing."""
    store = LocalStore(tmp_path)
    for key in ("io/v1/b", "io/v1/a", "io/v10/x", "meta/v1/c"):
        _put(store, key, b"x")
    assert [item.key for item in store.list("io/v1")] == ["io/v1/a", "io/v1/b", "io/v10/x"]
    assert [item.key for item in store.list("io/v1/")] == ["io/v1/a", "io/v1/b"]
    assert list(store.list("content/")) == []
    assert list(LocalStore(tmp_path / "none").list("")) == []


def test_deleting_is_idempotent(tmp_path: Path) -> None:
    """What is deleted is gone; deleting it again is no error."""
    store = LocalStore(tmp_path)
    _put(store, "a/b", b"x")
    store.delete("a/b")
    store.delete("a/b")
    with pytest.raises(ObjectNotFound):
        store.get("a/b")


def test_deleting_leaves_no_empty_folder(tmp_path: Path) -> None:
    """The last object of a run takes the folders with its id along; others keep theirs."""
    store = LocalStore(tmp_path / "v")
    for key in ("io/v1/ab/run1/x", "io/v1/ab/run2/x"):
        _put(store, key, b"x")
    store.delete("io/v1/ab/run1/x")
    assert sorted(os.listdir(tmp_path / "v/io/v1/ab")) == ["run2"]
    store.delete("io/v1/ab/run2/x")
    assert os.listdir(tmp_path / "v") == []


def test_storing_and_erasing_side_by_side_loses_nothing(tmp_path: Path) -> None:
    """A folder that goes away while an object is being put into it is made again."""
    store, together = LocalStore(tmp_path), threading.Barrier(2)

    def erase() -> None:
        for _ in range(300):
            together.wait(60)
            store.delete("a/b/old")

    eraser = threading.Thread(target=erase)
    eraser.start()
    for number in range(300):
        together.wait(60)
        _put(store, f"a/b/{number}", b"x")
        store.get(f"a/b/{number}")
        store.delete(f"a/b/{number}")
    eraser.join()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///tmp/some%20where", "file:///tmp/some where"),
        ("/tmp/v", "file:///tmp/v"),
        ("s3://bucket-1/a/b/", "s3://bucket-1/a/b"),
        ("s3://bucket-1", "s3://bucket-1"),
    ],
)
def test_urls_name_stores(url: str, expected: str) -> None:
    """Each form of address opens the store it says."""
    store = open_store(url, Settings())
    assert store.url == expected
    assert isinstance(store, S3Store if url.startswith("s3") else LocalStore)


def test_a_relative_path_is_a_directory_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bare relative path is taken from where the process is when the vault is opened."""
    monkeypatch.chdir(tmp_path)
    assert open_store("runs", Settings()).url == f"file://{tmp_path}/runs"


@pytest.mark.parametrize(
    "url", ["", "s3://", "s3://Bad_Bucket", "s3://b/../c?x=1", "file://host/x", "gs://b", "file:", "s3://bucket/a?b"]
)
def test_other_urls_are_refused(url: str) -> None:
    """An address that names no store is an error that says what to write."""
    with pytest.raises(SettingsError, match="write"):
        open_store(url, Settings())
