"""A vault in an S3 bucket."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any, Final

from ...aws import NO_CREDENTIALS, client_errors, import_boto3
from ...errors import ObjectExists, ObjectNotFound, VaultDenied, VaultError, VaultUnavailable
from ...settings import Settings
from .base import ObjectInfo, ObjectVersion, refuse_large
from .clients import forget, shared_client

__all__ = ["S3Store"]

_DENIED: Final = frozenset(
    {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled", "AccountProblem",
     "KMS.DisabledException", "KMS.NotFoundException", "InvalidToken", "401", "403"}
)  # fmt: skip
_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_EXISTS: Final = frozenset({"PreconditionFailed", "412"})
_EMPTY: Final = {
    "ContentMD5": base64.b64encode(bytes(16)).decode(),  # not that of no bytes
    "ChecksumSHA256": base64.b64encode(hashlib.sha256(b"").digest()).decode(),
}
"""Of an object that no server which looks at checksums will store."""

_CHECKSUM_WRONG: Final = frozenset({"BadDigest", "InvalidDigest"})
_CONFLICTS: Final = 3
"""Tries where two writers race for one key: S3 answers 409 and asks for another try."""

_CONTENT_TYPES: Final = {"json": "application/json", "gz": "application/gzip"}
"""By how a key ends; what is sealed is neither."""

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

    def prepare(self) -> None:
        """Do now what the first request would take a second for."""
        import_boto3()

    @property
    def url(self) -> str:
        """`s3://`, the bucket and the prefix."""
        return f"s3://{self.bucket}/{self._prefix}".rstrip("/")

    def put(self, key: str, data: bytes, *, sha256: bytes) -> None:
        """See `Store.put`."""
        for attempt in range(_CONFLICTS):
            try:
                self._call(
                    "put_object",
                    key,
                    Body=data,
                    ChecksumSHA256=base64.b64encode(sha256).decode(),
                    IfNoneMatch="*",
                    ContentType=_CONTENT_TYPES.get(key.rpartition(".")[2], "application/octet-stream"),
                    **self._encryption(),
                )
            except ObjectExists:
                return
            except _Conflict:
                if attempt == _CONFLICTS - 1:
                    raise
            else:
                return

    def get(
        self, key: str, *, start: int | None = None, length: int | None = None, version: str | None = None
    ) -> bytes:
        """See `Store.get`; `version` reads that version of it."""
        extra: dict[str, Any] = {} if version is None else {"VersionId": version}
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
        """See `Store.delete`. Where the bucket keeps versions, all of them go: a marker on top erases nothing."""
        answer = self._call("delete_object", key)
        if not answer.get("DeleteMarker"):
            return
        try:
            for found in list(self.versions(key)):
                if found.key == key:
                    self.delete_version(key, found.version)
        except VaultDenied:
            raise VaultDenied(
                f"{self.url}: {key} is hidden and not erased, since the bucket keeps old versions; allow this role "
                "s3:ListBucketVersions and s3:DeleteObjectVersion, then erase again",
                key=key,
            ) from None

    def versions(self, prefix: str) -> Iterator[ObjectVersion]:
        """Every version of every object whose key begins so, by key, the newest first; markers of deletion too.

        Raises:
            VaultUnavailable: Not now.
            VaultDenied: Not with these credentials.
        """
        marks: dict[str, str] = {}
        while True:
            page = self._call("list_object_versions", None, Prefix=self._prefix + prefix, **marks)
            found = [(item, False) for item in page.get("Versions", [])]
            found += [(item, True) for item in page.get("DeleteMarkers", [])]
            found.sort(key=lambda pair: pair[0]["LastModified"], reverse=True)
            found.sort(key=lambda pair: (pair[0]["Key"], not pair[0]["IsLatest"]))
            for item, marker in found:
                key = item["Key"].removeprefix(self._prefix)
                yield ObjectVersion(key, item["VersionId"], item["LastModified"], marker=marker)
            if not page.get("IsTruncated"):
                return
            marks = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}

    def delete_version(self, key: str, version: str) -> None:
        """Remove one version of an object for good.

        Raises:
            VaultUnavailable: Not now.
            VaultDenied: Not with these credentials, or a lock keeps it.
        """
        self._call("delete_object", key, VersionId=version)

    def try_put(self, key: str, *, conditional: bool = True) -> None:
        """Ask whether a put would be taken, and store nothing: the checksum that goes with it is wrong.

        Args:
            key: Where; nothing should be there.
            conditional: As the writer puts; without, as somebody who overwrites.

        Raises:
            VaultUnavailable: Not now.
            VaultDenied: Not with these credentials.
        """
        condition = {"IfNoneMatch": "*"} if conditional else {}
        try:
            self._call("put_object", key, Body=b"", **_EMPTY, **condition, **self._encryption())
        except ObjectExists:
            return
        except VaultUnavailable as error:
            if error.reason not in _CHECKSUM_WRONG:
                raise
            return
        with contextlib.suppress(VaultDenied):  # a writer may not, and then an empty object stays
            self.delete(key)  # the server does not look at checksums

    def _encryption(self) -> dict[str, Any]:
        key = self._settings.kms_key_id
        return {} if key is None else {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}

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
        error = self._as_error(response, key)
        error.reason = str(response.get("Error", {}).get("Code", "")) or None
        return error

    def _as_error(self, response: Any, key: str | None) -> VaultError:
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
        found = self._as_outage(type(error).__name__, error, key)
        found.reason = type(error).__name__
        return found

    def _as_outage(self, name: str, error: Exception, key: str | None) -> VaultError:
        if name in NO_CREDENTIALS:
            return VaultDenied(f"{self.url}: no AWS credentials ({name}); set up boto3's default chain", key=key)
        if name == "NoRegionError":
            return VaultDenied(f"{self.url}: no region is known; set `region` or AWS_DEFAULT_REGION", key=key)
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
