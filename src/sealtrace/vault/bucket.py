"""Sets up a bucket as a vault, and finds what is wrong with one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..errors import VaultDenied, VaultUnavailable
from ..settings import Settings
from . import layout, policies
from .stores.s3 import S3Store

__all__ = ["BucketReport", "Problem", "check_bucket", "init_bucket"]

_ABSENT: Final = frozenset(
    {
        "NoSuchBucketPolicy", "NoSuchPublicAccessBlockConfiguration", "ServerSideEncryptionConfigurationNotFoundError",
        "NoSuchLifecycleConfiguration", "OwnershipControlsNotFoundError", "ObjectLockConfigurationNotFoundError",
    }
)  # fmt: skip
_UNSUPPORTED: Final = frozenset({"NotImplemented", "MethodNotAllowed", "XNotImplemented", "405", "501"})
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


class _Skip(Exception):
    """A part of the bucket's settings cannot be looked at."""


class _Bucket:
    """A bucket's settings, each asked for once."""

    def __init__(self, store: S3Store, settings: Settings) -> None:
        self.name = store.bucket
        self.prefix = store.prefix
        self.settings = settings
        self.aws = settings.endpoint_url is None
        self._client = store.client()
        self._owner = settings.expected_bucket_owner
        self._known: dict[str, Any] = {}

    def ask(self, operation: str) -> Any:
        """The answer of a `get_bucket_…` call; None where nothing is set."""
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - takes a second to import

        if operation not in self._known:
            arguments = {"Bucket": self.name} | ({"ExpectedBucketOwner": self._owner} if self._owner else {})
            try:
                self._known[operation] = getattr(self._client, operation)(**arguments)
            except ClientError as error:
                self._known[operation] = self._refusal(error.response)
            except BotoCoreError as error:
                raise VaultUnavailable(f"s3://{self.name} does not answer ({type(error).__name__})") from None
        found = self._known[operation]
        if isinstance(found, _Skip):
            raise found
        return found

    def _refusal(self, response: Any) -> _Skip | None:
        code = str(response["Error"]["Code"])
        if code in _ABSENT:
            return None
        if code in ("NoSuchBucket", "404"):
            raise VaultDenied(f"there is no bucket {self.name}; `sealtrace vault init` makes it")
        if code in _UNSUPPORTED:
            return _Skip("the server does not know this setting")
        return _Skip(f"these credentials may not look ({code})")

    def statements(self) -> list[dict[str, Any]]:
        """The bucket policy's statements."""
        found = self.ask("get_bucket_policy")
        return list(json.loads(found["Policy"]).get("Statement", [])) if found else []

    def rules(self) -> list[dict[str, Any]]:
        """The lifecycle rules that are enabled."""
        found = self.ask("get_bucket_lifecycle_configuration")
        return [rule for rule in (found or {}).get("Rules", []) if rule.get("Status") == "Enabled"]


def check_bucket(store: S3Store, settings: Settings) -> BucketReport:
    """Audit a bucket against everything `init_bucket` sets up.

    Raises:
        VaultDenied: There is no such bucket.
        VaultUnavailable: The store does not answer.
    """
    bucket = _Bucket(store, settings)
    problems: list[Problem] = []
    passed: list[str] = []
    skipped: list[tuple[str, str]] = []
    for name, check in _CHECKS.items():
        try:
            found = [Problem(name, message, remedy) for message, remedy in check(bucket)]
        except _Skip as reason:
            skipped.append((name, str(reason)))
            continue
        problems += found
        if not found:
            passed.append(name)
    return BucketReport(tuple(problems), tuple(passed), tuple(skipped))


Found = Iterator[tuple[str, str]]


def _public_access(bucket: _Bucket) -> Found:
    found = bucket.ask("get_public_access_block")
    wanted = policies.public_access_block()
    actual: dict[str, Any] = (found or {}).get("PublicAccessBlockConfiguration", {})
    missing = [name for name in wanted if not actual.get(name)]
    if missing:
        yield f"public access is not blocked: {', '.join(missing)}", "switch all four settings of the block on"


def _acl(bucket: _Bucket) -> Found:
    for grant in (bucket.ask("get_bucket_acl") or {}).get("Grants", []):
        if str(grant.get("Grantee", {}).get("URI", "")).endswith(_PUBLIC):
            yield f"an ACL grants {grant.get('Permission')} to everyone", "remove the grant, or switch ACLs off"


def _ownership(bucket: _Bucket) -> Found:
    found = bucket.ask("get_bucket_ownership_controls")
    rules = (found or {}).get("OwnershipControls", {}).get("Rules", [])
    if [rule.get("ObjectOwnership") for rule in rules] != ["BucketOwnerEnforced"]:
        yield "objects may belong to whoever uploads them", "set object ownership to BucketOwnerEnforced"


def _public_policy(bucket: _Bucket) -> Found:
    for statement in bucket.statements():
        principal = statement.get("Principal")
        everyone = principal == "*" or (isinstance(principal, dict) and "*" in _list(principal.get("AWS")))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        if statement.get("Effect") == "Allow" and everyone and not statement.get("Condition"):
            yield f"the policy allows everyone {statement.get('Action')}", "name the roles that may, or remove it"


def _plain_http(bucket: _Bucket) -> Found:
    found = [item for item in bucket.statements() if "aws:SecureTransport" in json.dumps(item.get("Condition", {}))]
    denying = [item for item in found if item.get("Effect") == "Deny" and item.get("Principal") in ("*", {"AWS": "*"})]
    if not denying:
        yield "plain HTTP is not refused", "deny everything where aws:SecureTransport is false"
    elif not any("BoolIfExists" in item["Condition"] for item in denying):
        yield "plain HTTP is refused only where the server sets the condition", "spell it BoolIfExists, not Bool"
    elif not any(_covers(item, bucket) for item in denying):
        yield "plain HTTP is refused for a part of the vault only", "let the statement name the bucket and all objects"


def _covers(statement: Mapping[str, Any], bucket: _Bucket) -> bool:
    inner = f"{bucket.prefix}/" if bucket.prefix else ""
    wide = {"*", f"arn:aws:s3:::{bucket.name}/*", f"arn:aws:s3:::{bucket.name}/{inner}*"}
    return bool(wide & set(_list(statement.get("Resource")))) and bool({"s3:*", "*"} & set(_list(statement["Action"])))


def _encrypted_puts(bucket: _Bucket) -> Found:
    key = bucket.settings.kms_key_id
    if key is None:
        return
    conditions = [json.dumps(item.get("Condition", {})) for item in bucket.statements() if item.get("Effect") == "Deny"]
    if not any('"Null"' in text and '"s3:x-amz-server-side-encryption"' in text for text in conditions):
        yield "an object without an encryption header is not refused", "deny puts where the header is Null"
    if not any("aws-kms-key-id" in text and key in text for text in conditions):
        yield "an object under another KMS key is not refused", f"deny puts whose key is not {key}"


def _default_encryption(bucket: _Bucket) -> Found:
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


def _overwriting(bucket: _Bucket) -> Found:
    if not bucket.aws:
        raise _Skip("only AWS knows the condition s3:if-none-match")
    if not any("s3:if-none-match" in json.dumps(item) for item in bucket.statements()):
        yield "a put that overwrites is not refused", "deny puts where s3:if-none-match is Null"


def _versioning(bucket: _Bucket) -> Found:
    if (bucket.ask("get_bucket_versioning") or {}).get("Status") != "Enabled":
        return
    if not all("NoncurrentVersionExpiration" in rule for rule in _ours(bucket).values()):
        yield (
            "versioning is on and old versions are kept: what expires is only hidden, its bytes stay",
            "suspend versioning, or expire noncurrent versions after a day",
        )


def _object_lock(bucket: _Bucket) -> Found:
    found = bucket.ask("get_object_lock_configuration")
    if (found or {}).get("ObjectLockConfiguration", {}).get("Rule"):
        yield "object lock has a default: payloads could not be erased in time", "use a bucket without a default lock"


def _lifecycle(bucket: _Bucket) -> Found:
    rules = _ours(bucket)
    for klass in layout.CLASSES:
        days = layout.days_of(klass, bucket.settings.retention)
        rule = rules.get(klass)
        if rule is None:
            yield f"nothing ever deletes class {klass}", f"add a rule for {_prefix(bucket, klass)}: {days} days"
        elif rule.get("Expiration", {}).get("Days") != days:
            found = rule.get("Expiration", {}).get("Days")
            yield f"class {klass} is deleted after {found} days instead of {days}", f"set the rule to {days} days"


def _early_expiry(bucket: _Bucket) -> Found:
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


def _multipart(bucket: _Bucket) -> Found:
    if not any("AbortIncompleteMultipartUpload" in rule for rule in bucket.rules()):
        yield "uploads that were never finished are kept for ever", "abort incomplete multipart uploads after a day"


def _access_log(bucket: _Bucket) -> Found:
    if not (bucket.ask("get_bucket_logging") or {}).get("LoggingEnabled"):
        yield (
            "the bucket keeps no access log, so who read payloads without sealtrace is not known",
            "switch on server access logging, or CloudTrail data events and ignore this",
        )


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _prefix(bucket: _Bucket, klass: str) -> str:
    return f"{bucket.prefix}/{klass}/" if bucket.prefix else f"{klass}/"


def _rule_prefix(rule: Mapping[str, Any]) -> str | None:
    """The rule's prefix; None where it also asks for tags or sizes."""
    inner: dict[str, Any] = rule.get("Filter", {"Prefix": rule.get("Prefix", "")})
    return str(inner.get("Prefix", "")) if set(inner) <= {"Prefix"} else None


def _ours(bucket: _Bucket) -> dict[str, dict[str, Any]]:
    by_prefix = {_rule_prefix(rule): rule for rule in bucket.rules()}
    return {klass: by_prefix[_prefix(bucket, klass)] for klass in layout.CLASSES if _prefix(bucket, klass) in by_prefix}


_CHECKS: Final[dict[str, Callable[[_Bucket], Found]]] = {
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


def init_bucket(store: S3Store, settings: Settings) -> list[tuple[str, str]]:
    """Make the bucket if it is not there and set it up; safe to do again.

    Rules and statements of others stay. What the server does not know is passed over and said.

    Returns:
        Each step and how it went: `made`, `set` or why not.

    Raises:
        VaultDenied: The credentials may not do this.
        VaultUnavailable: The store does not answer.
    """
    bucket = _Bucket(store, settings)
    client: Any = store.client()
    steps = [("bucket", _create(client, bucket, settings))]
    kept_rules = [rule for rule in _known(bucket.rules) if not str(rule.get("ID", "")).startswith("sealtrace-")]
    wanted = policies.bucket_policy(
        bucket.name, bucket.prefix, kms_key_id=settings.kms_key_id, conditional_writes=bucket.aws
    )
    sids = {statement["Sid"] for statement in wanted["Statement"]}
    wanted["Statement"] += [item for item in _known(bucket.statements) if item.get("Sid") not in sids]
    lifecycle = policies.lifecycle(bucket.prefix, settings.retention)
    lifecycle["Rules"] += kept_rules
    encryption: dict[str, Any] = {"SSEAlgorithm": "AES256"}
    if settings.kms_key_id is not None:
        encryption = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": settings.kms_key_id}
    rule = {"ApplyServerSideEncryptionByDefault": encryption, "BucketKeyEnabled": settings.kms_key_id is not None}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("ownership", "put_bucket_ownership_controls",
         {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}}),
        ("default-encryption", "put_bucket_encryption", {"ServerSideEncryptionConfiguration": {"Rules": [rule]}}),
        ("lifecycle", "put_bucket_lifecycle_configuration", {"LifecycleConfiguration": lifecycle}),
        ("policy", "put_bucket_policy", {"Policy": json.dumps(wanted)}),
        # Last: on some servers the block refuses every later change of the policy.
        ("public-access-block", "put_public_access_block",
         {"PublicAccessBlockConfiguration": policies.public_access_block()}),
    ]  # fmt: skip
    steps += [(name, _step(client, operation, bucket, arguments)) for name, operation, arguments in calls]
    return steps


def _known(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    try:
        return ask()
    except _Skip:
        return []


def _create(client: Any, bucket: _Bucket, settings: Settings) -> str:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - takes a second to import

    where: dict[str, Any] = {}
    if settings.region not in (None, "us-east-1") and bucket.aws:
        where = {"CreateBucketConfiguration": {"LocationConstraint": settings.region}}
    try:
        client.head_bucket(Bucket=bucket.name)
    except ClientError as error:
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") != 404:
            raise VaultDenied(f"the bucket {bucket.name} belongs to somebody else; choose another name") from None
    except BotoCoreError as error:
        raise VaultUnavailable(f"the store does not answer ({type(error).__name__})") from None
    else:
        return "there already"
    _step(client, "create_bucket", bucket, where)
    return "made"


def _step(client: Any, operation: str, bucket: _Bucket, arguments: dict[str, Any]) -> str:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - takes a second to import

    try:
        getattr(client, operation)(Bucket=bucket.name, **arguments)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code"))
        if code in _UNSUPPORTED or (not bucket.aws and code in ("InvalidRequest", "InvalidArgument", "MalformedXML")):
            return f"not supported here ({code})"
        raise VaultDenied(f"{operation} on {bucket.name} was refused ({code}); use credentials that own it") from None
    except BotoCoreError as error:
        raise VaultUnavailable(f"the store does not answer ({type(error).__name__})") from None
    return "set"
