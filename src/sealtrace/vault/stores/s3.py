"""A vault in an S3 bucket."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from typing import Any, Final

from ...errors import ObjectExists, ObjectNotFound, VaultDenied, VaultError, VaultUnavailable
from ...settings import Settings
from .base import ObjectInfo, refuse_large
from .clients import client_errors, forget, shared_client

__all__ = ["S3Store"]

_DENIED: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem",
     "KMS.DisabledException", "KMS.NotFoundException", "InvalidToken", "401", "403"}
)  # fmt: skip
_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_EXISTS: Final = frozenset({"PreconditionFailed", "412"})
_CONFLICTS: Final = 3
"""Tries where two writers race for one key: S3 answers 409 and asks for another try."""

_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
_LATER: Final = {
    **dict.fromkeys(_EXPIRED, "the credentials have expired; they are asked for anew at the next try"),
    "RequestTimeTooSkewed": "this machine's clock is wrong; set it",
    "SlowDown": "the store asks for fewer requests",
    "ServiceUnavailable": "the store is overloaded",
    "ConditionalRequestConflict": "another writer is storing the same object",
}


class _Conflict(VaultUnavailable):
    """HTTP 409: another write of the same key is under way."""


class S3Store:
    """Objects in a bucket, under a prefix.

    Each is one PUT, conditional on the key being free, with its SHA-256 in the signed request. Keys
    hold the digest of their bytes, so "exists already" means "stored already", which a writer that
    may only put cannot ask otherwise. Credentials come from boto3's default chain and are kept
    nowhere. boto3 is imported on first use.

    Args:
        bucket: The bucket's name.
        prefix: Before every key, without slashes at its ends; may be empty.
        settings: Endpoint, encryption, timeouts.

    Attributes:
        bucket: The bucket's name.
        prefix: Before every key, without slashes at its ends.
    """

    def __init__(self, bucket: str, prefix: str, settings: Settings) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._prefix = f"{prefix}/" if prefix else ""
        self._settings = settings

    @property
    def url(self) -> str:
        """`s3://`, the bucket and the prefix."""
        return f"s3://{self.bucket}/{self._prefix}".rstrip("/")

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        """See `Store.put`."""
        extra: dict[str, Any] = {}
        if self._settings.kms_key_id is not None:
            extra = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self._settings.kms_key_id}
        for attempt in range(_CONFLICTS):
            try:
                self._call(
                    "put_object",
                    key,
                    Body=data,
                    ChecksumSHA256=base64.b64encode(sha256).decode(),
                    IfNoneMatch="*",
                    ContentType="application/gzip" if key.endswith(".gz") else "application/json",
                    **extra,
                )
            except ObjectExists:
                return
            except _Conflict:
                if attempt == _CONFLICTS - 1:
                    raise
            else:
                return

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """See `Store.get`."""
        extra: dict[str, Any] = {}
        if start is not None or length is not None:
            first = start or 0
            extra["Range"] = f"bytes={first}-{'' if length is None else first + length - 1}"
        answer = self._call("get_object", key, **extra)
        with contextlib.closing(answer["Body"]) as body:
            refuse_large(key, answer["ContentLength"])
            try:
                data: bytes = body.read()
            except Exception as error:
                message = f"{self.url}: reading {key} broke off ({type(error).__name__})"
                raise VaultUnavailable(message, key=key) from error
        return data

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `Store.list`."""
        token: str | None = None
        while True:
            extra = {"ContinuationToken": token} if token else {}
            page = self._call("list_objects_v2", None, Prefix=self._prefix + prefix, **extra)
            for item in page.get("Contents", []):
                yield ObjectInfo(item["Key"].removeprefix(self._prefix), item["Size"], item["LastModified"])
            token = page.get("NextContinuationToken")
            if not token:
                return

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        self._call("delete_object", key)

    def _call(self, operation: str, key: str | None, **arguments: Any) -> Any:
        if key is not None:
            arguments["Key"] = self._prefix + key
        if self._settings.expected_bucket_owner is not None:
            arguments["ExpectedBucketOwner"] = self._settings.expected_bucket_owner
        says_no, no_answer = client_errors()
        try:
            return getattr(self.client(), operation)(Bucket=self.bucket, **arguments)
        except says_no as error:
            raise self._translated(getattr(error, "response", {}), key) from None
        except no_answer as error:
            raise self._broken(error, key) from None

    def _translated(self, response: Any, key: str | None) -> VaultError:
        code = str(response.get("Error", {}).get("Code", ""))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in _EXISTS or status == 412:
            return ObjectExists(f"{key} is already stored", key=key)
        if code in _MISSING:
            return ObjectNotFound(f"{key} is not in {self.url}", key=key)
        if code == "NoSuchBucket":
            return VaultDenied(f"{self.url}: there is no such bucket; make it or correct the vault's URL", key=key)
        if code == "ConditionalRequestConflict" or status == 409:
            return _Conflict(f"{self.url}: another writer is storing the same object ({code})", key=key)
        if code in _EXPIRED:
            forget(self.client())
        if code in _LATER:
            return VaultUnavailable(f"{self.url} cannot be used now: {_LATER[code]} ({code})", key=key)
        if code in _DENIED or status in (401, 403):
            return VaultDenied(f"{self.url} refused this ({code}); check the role's policy and the KMS grant", key=key)
        return VaultUnavailable(f"{self.url} cannot take this now ({code or status})", key=key)

    def _broken(self, error: Exception, key: str | None) -> VaultError:
        name = type(error).__name__
        if name in (
            "NoCredentialsError",
            "PartialCredentialsError",
            "TokenRetrievalError",
            "UnauthorizedSSOTokenError",
        ):
            return VaultDenied(f"{self.url}: no AWS credentials ({name}); set up boto3's default chain", key=key)
        if name == "NoRegionError":
            return VaultDenied(f"{self.url}: no region is known; set `region` or AWS_REGION", key=key)
        if name == "SSLError":
            return VaultUnavailable(f"{self.url}: TLS failed; check `endpoint_url` and `ca_bundle`", key=key)
        if name == "ParamValidationError":
            return VaultError(f"{self.url}: the request is not valid: {error}", key=key)
        return VaultUnavailable(f"{self.url} does not answer ({name})", key=key)

    def client(self) -> Any:
        """The boto3 client; see `clients`.

        Raises:
            VaultDenied: None can be made from these settings.
        """
        try:
            return self._client()
        except (OSError, ValueError) as error:
            message = f"{self.url}: no client can be made ({error}); check `endpoint_url` and `ca_bundle`"
            raise VaultDenied(message) from None

    def _client(self) -> Any:
        return shared_client(self._settings)
