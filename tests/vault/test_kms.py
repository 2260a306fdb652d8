"""KMS: it signs manifests, and whoever verifies needs no KMS; what it refuses is said with what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sealtrace.errors import SettingsError, VaultDenied, VaultError, VaultUnavailable
from sealtrace.kms import Kms, WrongKmsKey
from sealtrace.settings import Settings
from sealtrace.vault import VaultReader, VaultWriter, Verifier, verify_run
from sealtrace.vault.signing import Signer
from sealtrace.vault.verify import Damage, Verification
from vault.kms_server import KmsServer
from vault.records import RUN, Conversation, local


def _verified(tmp_path: Path, pem: Path) -> Verification:
    verifier = Verifier.from_settings(Settings(verify_keys=pem))
    return verify_run(VaultReader(local(tmp_path)), RUN, verifier=verifier)


@pytest.fixture
def arn(kms: KmsServer) -> str:
    """A key that signs."""
    return kms.signing()


def test_a_manifest_is_signed_by_kms_and_verified_without(
    tmp_path: Path, kms: KmsServer, arn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public key in a file is all that verifying takes; the private key never leaves KMS."""
    pem = tmp_path / "verify.pem"
    pem.write_bytes(kms.public_pem(arn))
    Conversation(3).store(local(tmp_path), Settings(signing_key=f"kms:{arn}"))
    assert kms.calls == {"GetPublicKey": 1, "Sign": 1}
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    found = _verified(tmp_path, pem)
    assert (found.findings, found.signed) == ((), 1)
    assert kms.calls == {"GetPublicKey": 1, "Sign": 1}


def test_a_process_asks_for_the_public_key_once(tmp_path: Path, kms: KmsServer, arn: str) -> None:
    """Each record costs one call to sign it."""
    writer = VaultWriter(local(tmp_path), Settings(signing_key=f"kms:{arn}"), ruleset_hash="r")
    for seed in range(3):
        run = Conversation(1, seed=seed)
        for event in run.events:
            writer.append(event)
        writer.seal(run.header())
    assert kms.calls == {"GetPublicKey": 1, "Sign": 3}


def test_another_key_and_another_manifest_are_noticed(tmp_path: Path, kms: KmsServer, arn: str) -> None:
    """A signature by another KMS key is by nobody known, and one of another document is wrong."""
    settings = Settings(signing_key=f"kms:{arn}")
    Conversation(2).store(local(tmp_path), settings)
    other = tmp_path / "other.pem"
    other.write_bytes(kms.public_pem(kms.signing()))
    assert [item.damage for item in _verified(tmp_path, other).findings] == [Damage.SIGNER_UNKNOWN]
    signer, verifier = Signer.from_settings(settings), Verifier.from_settings(settings)
    assert signer is not None
    assert verifier is not None
    import json

    document = b'{"a":1}\n'
    signature: dict[str, Any] = json.loads(signer.sign(document))["signature"]
    assert verifier.valid(document, signature)
    assert not verifier.valid(b'{"a":2}\n', signature)
    assert not verifier.valid(document, signature | {"algorithm": "ed25519"})
    assert not verifier.valid(document, signature | {"value": "AAAA"})


def test_a_key_of_another_curve_is_refused(tmp_path: Path, kms: KmsServer) -> None:
    """A KMS key that cannot sign so is refused with the kind that can; a file of such keys is refused too."""
    arn = kms.signing(ec.SECP384R1())
    run = Conversation(1)
    writer = VaultWriter(local(tmp_path), Settings(signing_key=f"kms:{arn}"), ruleset_hash="r")
    for event in run.events:
        writer.append(event)
    with pytest.raises(VaultUnavailable, match="ECC_NIST_P256"):
        writer.seal(run.header())
    (tmp_path / "p384.pem").write_bytes(kms.public_pem(arn))
    with pytest.raises(SettingsError, match="P-256"):
        Verifier.from_settings(Settings(verify_keys=tmp_path / "p384.pem"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AccessDeniedException", VaultDenied),
        ("NotFoundException", VaultDenied),
        ("DisabledException", VaultDenied),
        ("KMSInvalidStateException", VaultDenied),
        ("InvalidKeyUsageException", VaultDenied),
        ("UnrecognizedClientException", VaultDenied),
        ("IncorrectKeyException", WrongKmsKey),
        ("ThrottlingException", VaultUnavailable),
        ("KMSInternalException", VaultUnavailable),
        ("ExpiredTokenException", VaultUnavailable),
        ("LimitExceededException", VaultUnavailable),
    ],
)
def test_each_refusal_is_a_denial_or_passes(kms: KmsServer, code: str, expected: type[VaultError]) -> None:
    """What trying again does not mend is a denial, what may pass is not; the code is in the message."""
    kms.refusal = code
    with pytest.raises(VaultError, match=code) as refused:
        Kms(Settings(max_attempts=1)).decrypt("key", b"data", {})
    assert type(refused.value) is expected


def test_no_server_no_credentials_no_region_are_told_apart(
    kms: KmsServer, arn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each says what is missing; an ARN names its own region."""
    quick = Settings(max_attempts=1, connect_timeout=0.2)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(VaultDenied, match="region"):
        Kms(quick).public_key("alias/x")
    assert Kms(quick).public_key(arn)
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    with pytest.raises(VaultUnavailable, match="does not answer"):
        Kms(quick).public_key(arn)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", "/nonexistent")
    with pytest.raises(VaultDenied, match="credentials"):
        Kms(quick).public_key(arn)


def test_a_forked_child_asks_by_itself(kms: KmsServer, arn: str) -> None:
    """A client made before a fork is not used after it."""
    asking = Kms(Settings())
    expected = asking.public_key(arn)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            before = asking._clients
            code = 0 if asking.public_key(arn) == expected and asking._clients is not before else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
