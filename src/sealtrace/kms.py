"""The little of AWS KMS that is used: wrap and unwrap small keys, sign digests.

Credentials come from boto3's default chain, the region from the key's ARN or the `region` setting, another
endpoint from `AWS_ENDPOINT_URL_KMS`. Each call is bounded by `connect_timeout`, `read_timeout` and
`max_attempts`. boto3 is imported on first use, the client is made anew in a forked child.
"""

from __future__ import annotations

import os
from typing import Any, Final

from .aws import NO_CREDENTIALS, bounded, client_errors
from .errors import VaultDenied, VaultError, VaultUnavailable
from .lifetime import fresh_lock, whole_at_fork
from .settings import Settings

__all__ = ["SCHEME", "Kms", "WrongKmsKey"]

SCHEME: Final = "kms:"
"""What settings put before the id, ARN or alias of a KMS key."""

_REMEDIES: Final = {
    "AccessDeniedException": "check the role's policy and the key's",
    "NotFoundException": "there is no such key in this region and account",
    "DisabledException": "the key is disabled",
    "KMSInvalidStateException": "the key is disabled or waits for its deletion",
    "InvalidKeyUsageException": "the key is not made for this use",
    "UnsupportedOperationException": "the key is not made for this use",
    "InvalidCiphertextException": "this was not encrypted by that key, or not for this use",
    "InvalidArnException": "the key's ARN is not valid",
    "ValidationException": "the key's id is not valid, or the key not made for this use",
    "UnrecognizedClientException": "the credentials are not known",
    "InvalidClientTokenId": "the credentials are not known",
    "InvalidSignatureException": "the credentials are not valid",
    "SignatureDoesNotMatch": "the credentials are not valid",
    "IncompleteSignature": "the credentials are not valid",
}
"""Refusals that trying again does not mend; everything else may pass."""


class WrongKmsKey(VaultDenied):
    """It was encrypted by another KMS key than the one named."""


class Kms:
    """Asks KMS.

    Args:
        settings: Region and timeouts.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = fresh_lock()
        self._clients: dict[str | None, Any] = {}
        self._pid = os.getpid()

    def encrypt(self, key: str, data: bytes, context: dict[str, str]) -> bytes:
        """Encrypt up to 4 KB; the context must be given again to decrypt, and is in AWS's own audit trail.

        Raises:
            VaultError: KMS refuses, or does not answer.
        """
        answer: bytes = self._call("encrypt", key, Plaintext=data, EncryptionContext=context)["CiphertextBlob"]
        return answer

    def decrypt(self, key: str | None, data: bytes, context: dict[str, str]) -> bytes:
        """Decrypt what `encrypt` returned; without a key, by whichever key the data names.

        Raises:
            WrongKmsKey: It is of another key.
            VaultError: KMS refuses, or does not answer.
        """
        answer: bytes = self._call("decrypt", key, CiphertextBlob=data, EncryptionContext=context)["Plaintext"]
        return answer

    def sign(self, key: str, digest: bytes) -> bytes:
        """An ECDSA signature (DER) of a SHA-256.

        Raises:
            VaultError: KMS refuses, or does not answer.
        """
        answer: bytes = self._call("sign", key, Message=digest, MessageType="DIGEST", SigningAlgorithm="ECDSA_SHA_256")[
            "Signature"
        ]
        return answer

    def public_key(self, key: str) -> bytes:
        """The public key of an asymmetric key, DER.

        Raises:
            VaultError: KMS refuses, or does not answer.
        """
        answer: bytes = self._call("get_public_key", key)["PublicKey"]
        return answer

    def _call(self, operation: str, key: str | None, **arguments: Any) -> Any:
        says_no, no_answer = client_errors()
        if key is not None:
            arguments["KeyId"] = key
        try:
            return getattr(self._client(key), operation)(**arguments)
        except says_no as error:
            raise _translated(operation, key, getattr(error, "response", {})) from None
        except no_answer as error:
            raise _broken(operation, key, error) from None

    def _client(self, key: str | None) -> Any:
        region = _region_of(key) or self._settings.region
        with self._lock:
            if self._pid != os.getpid():
                self._clients, self._pid = {}, os.getpid()  # a forked child: those are the parent's
            if region not in self._clients:
                self._clients[region] = self._new_client(region)
            return self._clients[region]

    def _new_client(self, region: str | None) -> Any:
        with whole_at_fork():
            import boto3  # noqa: PLC0415 - takes a second to import

            return boto3.session.Session().client("kms", region_name=region, config=bounded(self._settings))


def _region_of(key: str | None) -> str | None:
    parts = (key or "").split(":")
    return parts[3] or None if len(parts) >= 6 and parts[0] == "arn" else None


def _translated(operation: str, key: str | None, response: Any) -> VaultError:
    code = str(response.get("Error", {}).get("Code", ""))
    what = f"KMS refused to {operation.replace('_', ' ')} with {key or 'the key this was encrypted by'}"
    if code == "IncorrectKeyException":
        return WrongKmsKey(f"{what}: another key encrypted this ({code})")
    if code in _REMEDIES:
        return VaultDenied(f"{what}: {_REMEDIES[code]} ({code})")
    return VaultUnavailable(f"KMS cannot {operation.replace('_', ' ')} now ({code or 'no reason given'})")


def _broken(operation: str, key: str | None, error: Exception) -> VaultError:
    name = type(error).__name__
    if name in NO_CREDENTIALS:
        return VaultDenied(f"KMS: no AWS credentials ({name}); set up boto3's default chain")
    if name == "NoRegionError":
        return VaultDenied("KMS: no region is known; give the key as an ARN, or set `region` or AWS_DEFAULT_REGION")
    if name == "ParamValidationError":
        return VaultError(f"KMS: asking to {operation.replace('_', ' ')} with {key} is not valid; check the key's id")
    return VaultUnavailable(f"KMS does not answer ({name})")
