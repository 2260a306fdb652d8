"""Verification: every kind of damage has its own name, and no mutation passes for the truth."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import random
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sealtrace.errors import SealtraceError, SettingsError
from sealtrace.settings import Settings
from sealtrace.vault import Keyring, Preparation, VaultReader, VaultWriter, layout
from sealtrace.vault.recovery import recover
from sealtrace.vault.signing import Signer, Verifier, split_signed
from sealtrace.vault.spool import SpoolKey
from sealtrace.vault.stores import LocalStore
from sealtrace.vault.verify import Damage, Verification, verify_run
from vault.records import RUN, Conversation, local
from vault.test_reader import in_days


def _pem(path: Path, key: Any) -> Path:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def _public(path: Path, *keys: Ed25519PrivateKey) -> Path:
    pems = [key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in keys]
    path.write_bytes(b"\n".join(pems))
    return path


class Signed:
    """A vault with one signed run, and how to damage it."""

    def __init__(self, home: Path, run: Conversation, **settings: Any) -> None:
        self.home = home
        self.root = home / "vault"
        self.store = LocalStore(self.root)
        self.run = run
        self.key = Ed25519PrivateKey.generate()
        self.settings = Settings(signing_key=_pem(home / "key.pem", self.key), **settings)
        self.verifier = Verifier.from_settings(self.settings)
        self.seal = run.store(self.store, self.settings)

    def path(self, part: str) -> Path:
        """The one object whose key has this in it."""
        (found,) = [item.key for item in self.store.list("") if part in item.key]
        return self.root / found

    def verify(self, **more: Any) -> Verification:
        """Verify the run."""
        return verify_run(VaultReader(self.store), RUN, verifier=self.verifier, **more)

    def replace_manifest(self, change: Callable[[dict[str, Any]], None], *, sign: bool = False) -> None:
        """Change the manifest as somebody with write access could, name and all."""
        path = self.path("manifest-")
        document = json.loads(path.read_bytes())
        change(document)
        if sign:
            document.pop("signature", None)
        data = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        if sign:
            data = Signer(self.key).sign(data)
        path.unlink()
        digest = hashlib.sha256(data).digest()
        self.store.put(layout.manifest_key(RUN, self.run.record_id, digest), data, sha256=digest)


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    """A vault with one signed run."""
    return Signed(tmp_path, Conversation(6))


def test_an_untouched_run_is_sound(signed: Signed) -> None:
    """Nothing is wrong with what nobody touched; signature and witness are counted."""
    found = signed.verify(witness={signed.run.record_id: signed.seal.merkle_root})
    assert (found.ok, found.exit_code, found.findings) == (True, 0, ())
    assert (found.records, found.objects, found.signed, found.witnessed, found.expired) == (1, 3, 1, 1, 0)


def _flip(signed: Signed, part: str) -> None:
    path = signed.path(part)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


def _stray(signed: Signed) -> None:
    data = b"x"
    digest = hashlib.sha256(data).digest()
    signed.store.put(layout.segment_key("content", RUN, signed.run.record_id, 5, digest), data, sha256=digest)


_DAMAGES: list[tuple[Damage, Callable[[Signed], object]]] = [
    (Damage.SEGMENT_CHANGED, lambda s: _flip(s, "content/")),
    (Damage.SEGMENT_MISSING, lambda s: s.path("io/").unlink()),
    (Damage.MANIFEST_DAMAGED, lambda s: _flip(s, "manifest-")),
    (Damage.MANIFEST_DOUBLE, lambda s: s.run.store(s.store, s.settings, status="error")),
    (Damage.NO_MANIFEST, lambda s: s.path("manifest-").unlink()),
    (Damage.NO_RECORD, lambda s: shutil.rmtree(s.root)),
    (Damage.STRAY_OBJECT, _stray),
    (Damage.UNSIGNED, lambda s: s.replace_manifest(lambda d: d.pop("signature"))),
    (Damage.SIGNATURE_WRONG, lambda s: s.replace_manifest(lambda d: d.update(status="error"))),
    (Damage.SIGNER_UNKNOWN, lambda s: s.replace_manifest(lambda d: d["signature"].update(key="00" * 8))),
    (Damage.GAP, lambda s: s.replace_manifest(lambda d: d.update(event_count=99), sign=True)),
    (Damage.INCOMPLETE, lambda s: s.replace_manifest(lambda d: d.update(complete=False), sign=True)),
    (
        Damage.CONTENT_DAMAGED,
        lambda s: s.replace_manifest(lambda d: d["segments"][1]["groups"][0].append("0" * 32), sign=True),
    ),
]


@pytest.mark.parametrize(("damage", "harm"), _DAMAGES, ids=[damage.name for damage, _ in _DAMAGES])
def test_each_damage_has_its_own_name(signed: Signed, damage: Damage, harm: Callable[[Signed], object]) -> None:
    """One kind of harm gives just that finding, its exit status and words of its own."""
    harm(signed)
    found = signed.verify()
    assert [item.damage for item in found.findings] == [damage]
    assert found.exit_code == int(damage)
    assert found.findings[0].message


def test_every_damage_has_its_own_number() -> None:
    """No two kinds share an exit status, and none is one a shell gives a meaning of its own."""
    numbers = [int(damage) for damage in Damage]
    assert len(set(numbers)) == len(numbers)
    assert all(2 < number < 126 for number in numbers)


def test_the_collector_is_a_second_witness(signed: Signed) -> None:
    """Another root there, none, and a record only the collector knows are three findings."""
    record_id = signed.run.record_id
    assert signed.verify(witness={record_id: "00" * 32}).exit_code == Damage.WITNESS_DIFFERS
    assert signed.verify(witness={}).exit_code == Damage.WITNESS_MISSING
    both = {record_id: signed.seal.merkle_root, "07" * 16: "00" * 32}
    assert signed.verify(witness=both).findings[0].record_id == "07" * 16


def test_a_record_replaced_whole_is_seen_by_the_witness(signed: Signed) -> None:
    """Somebody with the bucket and the key can replace a record; the collector still knows better."""
    shutil.rmtree(signed.root)
    other = Conversation(6, seed=99)
    other.record_id = signed.run.record_id
    other.events = [dataclasses.replace(e, record_id=other.record_id) for e in other.events]
    other.store(signed.store, signed.settings)
    assert signed.verify().ok
    assert signed.verify(witness={other.record_id: signed.seal.merkle_root}).exit_code == Damage.WITNESS_DIFFERS


def test_what_has_expired_is_not_missing(signed: Signed) -> None:
    """After its time a segment may be gone, and that is no damage."""
    signed.path("content/").unlink()
    found = verify_run(VaultReader(signed.store, clock=in_days(8)), RUN, verifier=signed.verifier)
    assert (found.ok, found.expired) == (True, 1)


def test_a_recovered_record_says_so_and_is_signed(tmp_path: Path) -> None:
    """What another process recovered is signed by it and reported as incomplete."""
    key = Ed25519PrivateKey.generate()
    settings = Settings(spool=tmp_path / "spool", key="0123456789abcdef", signing_key=_pem(tmp_path / "k.pem", key))
    writer = VaultWriter(local(tmp_path), settings, ruleset_hash="r")
    for event in Conversation(3).events:
        writer.append(event)
    assert writer._spool is not None
    writer._spool.release()
    preparation = Preparation(None, Signer(key))
    list(recover(tmp_path / "spool", SpoolKey.from_settings(settings), local(tmp_path), preparation=preparation))
    found = verify_run(VaultReader(local(tmp_path)), RUN, verifier=Verifier.from_settings(settings))
    assert [item.damage for item in found.findings] == [Damage.INCOMPLETE]
    assert found.signed == 1


def test_keys_are_rotated_by_listing_both(signed: Signed, tmp_path: Path) -> None:
    """A file of several public keys accepts signatures of each; one without the signer's accepts none."""
    other = Ed25519PrivateKey.generate()
    both = Settings(verify_keys=_public(tmp_path / "both.pem", other, signed.key))
    assert verify_run(VaultReader(signed.store), RUN, verifier=Verifier.from_settings(both)).ok
    one = Settings(verify_keys=_public(tmp_path / "one.pem", other))
    found = verify_run(VaultReader(signed.store), RUN, verifier=Verifier.from_settings(one))
    assert found.exit_code == Damage.SIGNER_UNKNOWN


def test_unusable_keys_are_refused_with_the_setting_named(tmp_path: Path) -> None:
    """A missing file, noise, another kind of key and a private key in place of a public one are errors."""
    noise, elliptic = tmp_path / "noise", _pem(tmp_path / "ec", generate_private_key(SECP256R1()))
    noise.write_bytes(b"noise")
    for path in (tmp_path / "none", noise, elliptic):
        with pytest.raises(SettingsError) as caught:
            Signer.from_settings(Settings(signing_key=path))
        assert caught.value.setting == "signing_key"
        with pytest.raises(SettingsError) as caught:
            Verifier.from_settings(Settings(verify_keys=path))
        assert caught.value.setting == "verify_keys"
    assert Verifier.from_settings(Settings()) is None


def test_the_signature_covers_every_byte_before_it(signed: Signed) -> None:
    """The signed bytes are the manifest without its last field, whatever the manifest holds."""
    data = signed.path("manifest-").read_bytes()
    document = json.loads(data)
    del document["signature"]
    assert json.loads(split_signed(data)) == document
    assert split_signed(b'{"a":1}\n') == b'{"a":1}\n'


def _mutate(rng: random.Random, signed: Signed) -> str:
    paths = sorted(path for path in signed.root.rglob("*") if path.is_file())
    path = rng.choice(paths)
    data = path.read_bytes()
    place = rng.randrange(len(data))
    what = rng.choice(["flip", "flip", "set", "insert", "delete", "cut", "append", "swap", "remove", "rename", "forge"])
    if what == "flip":
        data = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    elif what == "set":
        data = data[:place] + bytes([rng.choice([0, 0x22, 0x7B, 0x39, 0xFF])]) + data[place + 1 :]
    elif what == "insert":
        data = data[:place] + rng.randbytes(rng.randrange(1, 9)) + data[place:]
    elif what == "delete":
        data = data[:place] + data[place + rng.randrange(1, 9) :]
    elif what == "cut":
        data = data[:place]
    elif what == "append":
        data += rng.choice([data, b"\0", b"\n", rng.randbytes(20)])
    elif what == "swap":
        data = rng.choice(paths).read_bytes()
    if what == "remove":
        path.unlink()
    elif what == "rename":
        digits = re.sub(r"[0-9a-f]{16}(?=\.json)", rng.randbytes(8).hex(), path.name)
        path.rename(path.with_name(digits))
    elif what == "forge":
        _forge(rng, signed)
    else:
        path.write_bytes(data)
    return f"{what} {path.name} @{place}"


def _forge(rng: random.Random, signed: Signed) -> None:
    """Change one value in the manifest and make its name fit again, as an attacker would."""

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        while True:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], dict | list) and place[key]:
                place = place[key]
                continue
            place[key] = rng.choice([None, 0, -1, 10**9, "", "x", [], {}, True, [[1]], 1.5, place[key]])
            return

    signed.replace_manifest(change)


@pytest.mark.parametrize("sealed", [False, True])
def test_two_thousand_mutations_are_noticed(tmp_path: Path, sealed: bool) -> None:
    """Whatever is changed in, removed from or added to a run, verify says so; reading it never crashes.

    Of an encrypted run verify says so without the key, and reading is tried with it.
    """
    (tmp_path / "wrap").write_text("0f" * 32, encoding="ascii")
    more = {"envelope_key": f"file:{tmp_path / 'wrap'}"} if sealed else {}
    signed = Signed(tmp_path, Conversation(4), **more)
    keyring = Keyring.from_settings(signed.settings)
    pristine = _tree(signed.root)
    rng, before = random.Random(20), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    noticed = 0
    for number in range(2000):
        _restore(pristine, signed.root)
        done = _mutate(rng, signed)
        found = signed.verify()
        assert found.ok is (_tree(signed.root) == pristine), (number, done, found)
        noticed += not found.ok
        with contextlib.suppress(SealtraceError):
            for record in VaultReader(signed.store, keyring=keyring).records(RUN):
                record.events()
                record.gaps()
                record.payload(1)
    assert noticed > 1800
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, f"{grown} KB"


def _tree(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _restore(tree: dict[Path, bytes], root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file() and path not in tree:
            path.unlink()
    for path, data in tree.items():
        path.write_bytes(data)
