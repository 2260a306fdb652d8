"""Finds what is wrong with a bucket that is to be a vault."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..settings import Settings
from . import layout, policies
from .bucketview import BucketView, CannotLook
from .stores.s3 import S3Store

__all__ = ["BucketReport", "Problem", "check_bucket"]

_PUBLIC: Final = ("/AllUsers", "/AuthenticatedUsers")


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a bucket.

    Attributes:
        name: Which check found it.
        message: What is wrong.
        remedy: What to do.
    """

    name: str
    message: str
    remedy: str


@dataclasses.dataclass(frozen=True, slots=True)
class BucketReport:
    """What checking a bucket found.

    Attributes:
        problems: What is wrong.
        passed: Checks that found nothing.
        skipped: Checks this server or these credentials do not allow, with the reason.
    """

    problems: tuple[Problem, ...]
    passed: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; skipped checks do not count."""
        return not self.problems


def check_bucket(store: S3Store, settings: Settings) -> BucketReport:
    """Audit a bucket against everything `init_bucket` sets up.

    Raises:
        VaultDenied: There is no such bucket.
        VaultUnavailable: The store does not answer.
    """
    bucket = BucketView(store, settings)
    problems: list[Problem] = []
    passed: list[str] = []
    skipped: list[tuple[str, str]] = []
    for name, check in _CHECKS.items():
        try:
            found = [Problem(name, message, remedy) for message, remedy in check(bucket)]
        except CannotLook as reason:
            skipped.append((name, str(reason)))
            continue
        problems += found
        if not found:
            passed.append(name)
    return BucketReport(tuple(problems), tuple(passed), tuple(skipped))


Found = Iterator[tuple[str, str]]


def _public_access(bucket: BucketView) -> Found:
    found = bucket.ask("get_public_access_block")
    wanted = policies.public_access_block()
    actual: dict[str, Any] = (found or {}).get("PublicAccessBlockConfiguration", {})
    needless = set() if bucket.aws else {"BlockPublicAcls"}  # where ACLs are ignored; Ceph 16 then refuses every put
    missing = [name for name in wanted if not actual.get(name) and name not in needless]
    secure = str(bucket.settings.endpoint_url).startswith("https:")  # plain HTTP is refused anyway
    if not bucket.aws and secure and actual.get("BlockPublicAcls") and bucket.refuses_puts():
        yield (
            "puts are refused, perhaps because BlockPublicAcls is on",
            "switch BlockPublicAcls off where the server takes every put for a public one, as Ceph 16 does",
        )
    if missing:
        yield f"public access is not blocked: {', '.join(missing)}", "switch all four settings of the block on"


def _acl(bucket: BucketView) -> Found:
    for grant in (bucket.ask("get_bucket_acl") or {}).get("Grants", []):
        if str(grant.get("Grantee", {}).get("URI", "")).endswith(_PUBLIC):
            yield f"an ACL grants {grant.get('Permission')} to everyone", "remove the grant, or switch ACLs off"


def _ownership(bucket: BucketView) -> Found:
    found = bucket.ask("get_bucket_ownership_controls")
    rules = (found or {}).get("OwnershipControls", {}).get("Rules", [])
    if [rule.get("ObjectOwnership") for rule in rules] != ["BucketOwnerEnforced"]:
        yield "objects may belong to whoever uploads them", "set object ownership to BucketOwnerEnforced"


def _public_policy(bucket: BucketView) -> Found:
    for statement in bucket.statements():
        principal = statement.get("Principal")
        everyone = principal == "*" or (isinstance(principal, dict) and "*" in _list(principal.get("AWS")))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        if statement.get("Effect") == "Allow" and everyone and not statement.get("Condition"):
            yield f"the policy allows everyone {statement.get('Action')}", "name the roles that may, or remove it"


def _plain_http(bucket: BucketView) -> Found:
    found = [item for item in bucket.statements() if "aws:SecureTransport" in json.dumps(item.get("Condition", {}))]
    denying = [item for item in found if item.get("Effect") == "Deny" and item.get("Principal") in ("*", {"AWS": "*"})]
    if not denying:
        yield "plain HTTP is not refused", "deny everything where aws:SecureTransport is false"
    elif not any("BoolIfExists" in item["Condition"] for item in denying):
        yield "plain HTTP is refused only where the server sets the condition", "spell it BoolIfExists, not Bool"
    elif not any(_covers(item, bucket) for item in denying):
        yield "plain HTTP is refused for a part of the vault only", "let the statement name the bucket and all objects"


def _covers(statement: Mapping[str, Any], bucket: BucketView) -> bool:
    inner = f"{bucket.prefix}/" if bucket.prefix else ""
    wide = {"*", f"arn:aws:s3:::{bucket.name}/*", f"arn:aws:s3:::{bucket.name}/{inner}*"}
    return bool(wide & set(_list(statement.get("Resource")))) and bool({"s3:*", "*"} & set(_list(statement["Action"])))


def _encrypted_puts(bucket: BucketView) -> Found:
    key = bucket.settings.kms_key_id
    if key is None:
        return
    conditions = [json.dumps(item.get("Condition", {})) for item in bucket.statements() if item.get("Effect") == "Deny"]
    if not any('"Null"' in text and '"s3:x-amz-server-side-encryption"' in text for text in conditions):
        yield "an object without an encryption header is not refused", "deny puts where the header is Null"
    if not any("aws-kms-key-id" in text and key in text for text in conditions):
        yield "an object under another KMS key is not refused", f"deny puts whose key is not {key}"


def _default_encryption(bucket: BucketView) -> Found:
    found = bucket.ask("get_bucket_encryption")
    rules = (found or {}).get("ServerSideEncryptionConfiguration", {}).get("Rules", [])
    default: dict[str, Any] = rules[0].get("ApplyServerSideEncryptionByDefault", {}) if rules else {}
    key = bucket.settings.kms_key_id
    if not default:
        yield "there is no default encryption", "set it, to the KMS key where there is one"
    elif key is not None and default.get("SSEAlgorithm") != "aws:kms":
        yield f"the default encryption is {default.get('SSEAlgorithm')}", f"set it to aws:kms with {key}"
    elif key is not None and default.get("KMSMasterKeyID") != key:
        yield "the default encryption uses another KMS key", f"set it to {key}"


def _overwriting(bucket: BucketView) -> Found:
    if not bucket.aws:
        if not _versioned(bucket) and not bucket.refuses_overwriting():
            yield (
                "this server takes a put that overwrites and keeps no versions: what a stolen writer replaces is gone",
                "switch versioning on, or let nobody reach the server but through `vault init --print haproxy`",
            )
        return
    if not any("s3:if-none-match" in json.dumps(item) for item in bucket.statements()):
        yield "a put that overwrites is not refused", "deny puts where s3:if-none-match is Null"


def _versioned(bucket: BucketView) -> bool:
    return bool((bucket.ask("get_bucket_versioning") or {}).get("Status") == "Enabled")


def _versioning(bucket: BucketView) -> Found:
    if not _versioned(bucket):
        return
    if not all("NoncurrentVersionExpiration" in rule for rule in _ours(bucket).values()):
        yield (
            "versioning is on and old versions are kept: what expires is only hidden, its bytes stay",
            "expire noncurrent versions soon; on AWS, suspend versioning",
        )


def _object_lock(bucket: BucketView) -> Found:
    found = bucket.ask("get_object_lock_configuration")
    if (found or {}).get("ObjectLockConfiguration", {}).get("Rule"):
        yield "object lock has a default: payloads could not be erased in time", "use a bucket without a default lock"


def _lifecycle(bucket: BucketView) -> Found:
    rules = _ours(bucket)
    for klass in layout.CLASSES:
        days = layout.days_of(klass, bucket.settings.retention)
        rule = rules.get(klass)
        if rule is None:
            yield f"nothing ever deletes class {klass}", f"add a rule for {_prefix(bucket, klass)}: {days} days"
        elif rule.get("Expiration", {}).get("Days") != days:
            found = rule.get("Expiration", {}).get("Days")
            yield f"class {klass} is deleted after {found} days instead of {days}", f"set the rule to {days} days"


def _early_expiry(bucket: BucketView) -> Found:
    for klass in layout.CLASSES:
        days = layout.days_of(klass, bucket.settings.retention)
        for rule in bucket.rules():
            start = _rule_prefix(rule)
            found = rule.get("Expiration", {}).get("Days")
            wider = start is not None and start != _prefix(bucket, klass) and _prefix(bucket, klass).startswith(start)
            if wider and isinstance(found, int) and found < days:
                yield (
                    f"rule {rule.get('ID')!r} deletes class {klass} after {found} days already",
                    f"narrow its prefix, or keep at least {days} days",
                )


def _multipart(bucket: BucketView) -> Found:
    if not any("AbortIncompleteMultipartUpload" in rule for rule in bucket.rules()):
        yield "uploads that were never finished are kept for ever", "abort incomplete multipart uploads after a day"


def _access_log(bucket: BucketView) -> Found:
    if not (bucket.ask("get_bucket_logging") or {}).get("LoggingEnabled"):
        yield (
            "the bucket keeps no access log, so who read payloads without sealtrace is not known",
            "switch on server access logging, or CloudTrail data events and ignore this",
        )


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _prefix(bucket: BucketView, klass: str) -> str:
    return f"{bucket.prefix}/{klass}/" if bucket.prefix else f"{klass}/"


def _rule_prefix(rule: Mapping[str, Any]) -> str | None:
    """The rule's prefix; None where it also asks for tags or sizes."""
    inner: dict[str, Any] = rule.get("Filter", {"Prefix": rule.get("Prefix", "")})
    return str(inner.get("Prefix", "")) if set(inner) <= {"Prefix"} else None


def _ours(bucket: BucketView) -> dict[str, dict[str, Any]]:
    by_prefix = {_rule_prefix(rule): rule for rule in bucket.rules()}
    return {klass: by_prefix[_prefix(bucket, klass)] for klass in layout.CLASSES if _prefix(bucket, klass) in by_prefix}


_CHECKS: Final[dict[str, Callable[[BucketView], Found]]] = {
    "public-access-block": _public_access,
    "public-acl": _acl,
    "public-policy": _public_policy,
    "ownership": _ownership,
    "plain-http": _plain_http,
    "encrypted-puts": _encrypted_puts,
    "default-encryption": _default_encryption,
    "overwriting": _overwriting,
    "versioning": _versioning,
    "object-lock": _object_lock,
    "lifecycle": _lifecycle,
    "early-expiry": _early_expiry,
    "multipart": _multipart,
    "access-log": _access_log,
}
