"""Whether a run in the vault is still what was recorded.

Four things vouch for each other: the names hold digests of the bytes, the manifest lists every
segment's digest and Merkle root, its signature says who wrote it, and the `sealtrace.seal` span in
the collector says the same root to somebody the bucket's owner does not control.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from enum import IntEnum

from ..errors import ObjectNotFound, RecordDamaged, RunErased, VaultDenied
from . import layout, merkle
from .envelope import frames
from .lines import inflate
from .manifest import Manifest, SegmentInfo
from .reader import VaultReader
from .signing import Verifier, split_signed
from .stored import StoredRecord
from .wrapping import KeyObject

__all__ = ["Damage", "Finding", "Verification", "verify_run"]


class Damage(IntEnum):
    """What can be wrong; the value is the exit status of `sealtrace verify`, worst first."""

    MANIFEST_DAMAGED = 10
    MANIFEST_DOUBLE = 11
    SIGNATURE_WRONG = 12
    SIGNER_UNKNOWN = 13
    WITNESS_DIFFERS = 14
    SEGMENT_CHANGED = 15
    SEGMENT_MISSING = 16
    CONTENT_DAMAGED = 17
    GAP = 18
    STRAY_OBJECT = 19
    NO_MANIFEST = 20
    UNSIGNED = 21
    WITNESS_MISSING = 22
    DENIED = 23
    INCOMPLETE = 24
    NO_RECORD = 25
    ERASED = 26
    KEY_MISSING = 27
    KEY_DAMAGED = 28


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a record."""

    damage: Damage
    record_id: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Verification:
    """What verifying a run found.

    Attributes:
        run_id: The run.
        findings: What is wrong, worst first.
        records: Records looked at.
        objects: Objects whose bytes were read and are the ones that were stored.
        expired: Segments that were not read because their time is over.
        signed: Records with a valid signature.
        witnessed: Records whose root the collector confirms.
    """

    run_id: str
    findings: tuple[Finding, ...]
    records: int
    objects: int
    expired: int
    signed: int
    witnessed: int

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def exit_code(self) -> int:
        """0, or the worst finding's own number."""
        return int(self.findings[0].damage) if self.findings else 0


def verify_run(
    reader: VaultReader,
    run_id: str,
    *,
    verifier: Verifier | None = None,
    witness: Mapping[str, str] | None = None,
) -> Verification:
    """Check every object of a run against everything that vouches for it.

    Args:
        reader: The vault.
        run_id: The run.
        verifier: Keys whose signatures count; without, signatures are not looked at.
        witness: Merkle root by record id as the collector's seal spans say; without, none is asked.

    Raises:
        VaultError: The vault cannot be read at all.
    """
    try:
        records = reader.records(run_id)
    except RunErased as error:
        return Verification(run_id, (Finding(Damage.ERASED, "", str(error)),), 0, 0, 0, 0, 0)
    checks = [_RecordCheck(reader, record, verifier, witness) for record in records]
    findings = [finding for check in checks for finding in check.run()]
    if not checks:
        findings.append(Finding(Damage.NO_RECORD, "", f"the vault holds no record of {run_id}"))
    for record_id in (witness or {}).keys() - {check.record.record_id for check in checks}:
        message = "the collector saw this record sealed, and the vault holds nothing of it"
        findings.append(Finding(Damage.SEGMENT_MISSING, record_id, message))
    return Verification(
        run_id=run_id,
        findings=tuple(sorted(findings, key=lambda item: (item.damage, item.record_id, item.message))),
        records=len(checks),
        objects=sum(check.objects for check in checks),
        expired=sum(check.expired for check in checks),
        signed=sum(check.signed for check in checks),
        witnessed=sum(check.witnessed for check in checks),
    )


class _RecordCheck:
    """Checks one record."""

    def __init__(
        self,
        reader: VaultReader,
        record: StoredRecord,
        verifier: Verifier | None,
        witness: Mapping[str, str] | None,
    ) -> None:
        self._store = reader.store
        self.record = record
        self._verifier = verifier
        self._witness = witness
        self._findings: list[Finding] = []
        self.objects = 0
        self.expired = 0
        self.signed = 0
        self.witnessed = 0

    def run(self) -> list[Finding]:
        """All that is wrong with the record."""
        manifest = self._manifest()
        if manifest is not None:
            for segment in manifest.segments:
                self._segment(segment)
            self._strays(manifest)
            self._key(manifest)
            self._signature(manifest)
            self._root(manifest)
            self._contents()
            if not manifest.complete:
                self._add(Damage.INCOMPLETE, "the recording process died; this is what it left in its spool")
        return self._findings

    def _add(self, damage: Damage, message: str) -> None:
        self._findings.append(Finding(damage, self.record.record_id, message))

    def _manifest(self) -> Manifest | None:
        names = [item.key for item in self.record.objects if "/manifest-" in item.key]
        if not names:
            self._add(Damage.NO_MANIFEST, "there is no manifest: the record was never finished, or it was removed")
            return None
        if len(names) > 1:
            self._add(Damage.MANIFEST_DOUBLE, f"there are {len(names)} manifests; one of them is false")
            return None
        try:
            manifest = self.record.manifest
        except RecordDamaged as error:
            self._add(Damage.MANIFEST_DAMAGED, str(error))
            return None
        except VaultDenied as error:
            self._add(Damage.DENIED, str(error))
            return None
        self.objects += 1
        return manifest

    def _segment(self, segment: SegmentInfo) -> None:
        if self.record.expired(segment.key):
            self.expired += 1
            return
        try:
            data = self._store.get(segment.key)
        except ObjectNotFound:
            self._add(Damage.SEGMENT_MISSING, f"{segment.key} is gone before its time ({segment.expires_at})")
            return
        except VaultDenied as error:
            self._add(Damage.DENIED, str(error))
            return
        except RecordDamaged as error:
            self._add(Damage.SEGMENT_CHANGED, str(error))
            return
        if hashlib.sha256(data).hexdigest() != segment.sha256 or len(data) != segment.bytes:
            self._add(Damage.SEGMENT_CHANGED, f"{segment.key}: the bytes are not the ones that were stored")
            return
        self._lines(segment, data)

    def _lines(self, segment: SegmentInfo, data: bytes) -> None:
        sealed = layout.is_sealed(segment.key)
        try:
            # Of an encrypted segment the tree is over the ciphertext: checking takes no key.
            leaves = frames(data, segment.key) if sealed else _split(inflate(data, segment.key))
        except RecordDamaged as error:
            self._add(Damage.CONTENT_DAMAGED, str(error))
            return
        expected = len(segment.groups) if sealed else segment.lines
        if len(leaves) != expected or merkle.root([merkle.leaf(item) for item in leaves]).hex() != segment.root:
            self._add(Damage.CONTENT_DAMAGED, f"{segment.key}: the lines are not the ones the manifest vouches for")
            return
        ends = [group.offset for group in segment.groups[1:]] + [len(data)]
        for group, end in zip(segment.groups, ends, strict=True):
            piece = data[group.offset : group.offset + group.length]
            if group.offset + group.length != end or hashlib.sha256(piece).hexdigest()[:32] != group.digest:
                self._add(Damage.CONTENT_DAMAGED, f"{segment.key}: the manifest's ranges do not fit it")
                return
        self.objects += 1

    def _strays(self, manifest: Manifest) -> None:
        listed = {segment.key for segment in manifest.segments}
        for item in self.record.objects:
            parts = layout.parse_key(item.key)
            if parts is not None and parts["seq"] is not None and item.key not in listed:
                self._add(Damage.STRAY_OBJECT, f"{item.key} is not in the manifest: somebody else put it there")

    def _key(self, manifest: Manifest) -> None:
        """The wrapped data key is there and is the one the manifest names; whether it opens, only its keeper knows."""
        names = [item.key for item in self.record.objects if "/key-" in item.key]
        if manifest.sealed_by is None:
            for name in names:
                self._add(Damage.STRAY_OBJECT, f"{name}: nothing of the record is encrypted, so it has no key")
            return
        found = [self._key_object(name, manifest.sealed_by) for name in names]
        needed = any(layout.is_sealed(item.key) and not self.record.expired(item.key) for item in manifest.segments)
        if needed and not found:
            self._add(Damage.KEY_MISSING, "the key of its payloads is gone: nobody can read them any more")
        self.objects += sum(found)

    def _key_object(self, name: str, ident: str) -> bool:
        try:
            found = KeyObject(self._store.get(name), name)
        except (RecordDamaged, ObjectNotFound) as error:
            self._add(Damage.KEY_DAMAGED, str(error))
            return False
        except VaultDenied as error:
            self._add(Damage.DENIED, str(error))
            return False
        if found.ident != ident:
            self._add(Damage.KEY_DAMAGED, f"{name}: it is not the key the manifest names")
        return found.ident == ident

    def _signature(self, manifest: Manifest) -> None:
        if self._verifier is None:
            return
        if manifest.signature is None:
            self._add(Damage.UNSIGNED, "the manifest is not signed")
            return
        if not self._verifier.knows(manifest.signature["key"]):
            self._add(
                Damage.SIGNER_UNKNOWN,
                f"the manifest is signed by a key nobody vouches for ({manifest.signature['key']})",
            )
            return
        (name,) = [item.key for item in self.record.objects if "/manifest-" in item.key]
        if self._verifier.valid(split_signed(self._store.get(name)), manifest.signature):
            self.signed = 1
        else:
            self._add(Damage.SIGNATURE_WRONG, "the manifest's signature is not of this manifest")

    def _root(self, manifest: Manifest) -> None:
        if self._witness is None:
            return
        root = self._witness.get(self.record.record_id)
        if root is None:
            self._add(Damage.WITNESS_MISSING, "the collector has no seal span of this record")
        elif root != manifest.merkle_root:
            self._add(Damage.WITNESS_DIFFERS, f"the collector saw another root ({root}) than the manifest's")
        else:
            self.witnessed = 1

    def _contents(self) -> None:
        """What the bytes say, once they are known to be the stored ones: all seq there, every line sound."""
        if any(finding.damage is not Damage.STRAY_OBJECT for finding in self._findings):
            return
        try:
            self.record.events()
            gaps = self.record.gaps()
        except (RecordDamaged, ObjectNotFound) as error:
            self._add(Damage.CONTENT_DAMAGED, str(error))
            return
        if gaps:
            shown = ", ".join(str(seq) for seq in gaps[:10])
            self._add(Damage.GAP, f"{len(gaps)} events were recorded and are not there: {shown}")


def _split(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n") if line]
