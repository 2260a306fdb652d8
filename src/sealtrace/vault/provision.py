"""Sets up a bucket as a vault."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

from ..aws import client_errors
from ..errors import VaultDenied, VaultUnavailable
from ..settings import Settings
from . import policies
from .bucketview import UNSUPPORTED, BucketView, CannotLook
from .keyroles import role_policy
from .stores.clients import new_client
from .stores.s3 import S3Store

__all__ = ["create_roles", "init_bucket"]

_ONLY_ON_AWS: Final = frozenset({"s3:GetBucketOwnershipControls", "s3:GetEncryptionConfiguration"})
"""Actions that another server may not know, and then refuses the whole policy."""


def init_bucket(store: S3Store, settings: Settings) -> list[tuple[str, str]]:
    """Make the bucket if it is not there and set it up; safe to do again.

    Rules and statements of others stay. What the server does not know is passed over and said.

    Returns:
        Each step and how it went: `made`, `set` or why not.

    Raises:
        VaultDenied: The credentials may not do this.
        VaultUnavailable: The store does not answer.
    """
    bucket = BucketView(store, settings)
    client: Any = store.client()
    steps = [("bucket", _create(client, bucket, settings))]
    kept_rules = [rule for rule in _known(bucket.rules) if not str(rule.get("ID", "")).startswith("sealtrace-")]
    wanted = policies.bucket_policy(
        bucket.name, bucket.prefix, kms_key_id=settings.kms_key_id, conditional_writes=bucket.aws
    )
    sids = {statement["Sid"] for statement in wanted["Statement"]}
    wanted["Statement"] += [item for item in _known(bucket.statements) if item.get("Sid") not in sids]
    lifecycle = policies.lifecycle(bucket.prefix, settings.retention, version_days=settings.version_days)
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
        # Only AWS refuses overwriting; elsewhere the version that was written first must stay.
        *([] if bucket.aws else [
            ("versioning", "put_bucket_versioning", {"VersioningConfiguration": {"Status": "Enabled"}})
        ]),
    ]  # fmt: skip
    steps += [(name, _step(client, operation, bucket, arguments)) for name, operation, arguments in calls]
    steps.append(("public-access-block", _block(client, bucket)))
    return steps


def _block(client: Any, bucket: BucketView) -> str:
    """Comes last: on some servers the block refuses every later change of the policy."""
    wanted = policies.public_access_block()
    refused_before = bucket.aws or bucket.refuses_puts()
    outcome = _step(client, "put_public_access_block", bucket, {"PublicAccessBlockConfiguration": wanted})
    if refused_before or not bucket.refuses_puts():
        return outcome
    # Ceph 16 takes any put for one with a public ACL.
    wanted["BlockPublicAcls"] = False
    _step(client, "put_public_access_block", bucket, {"PublicAccessBlockConfiguration": wanted})
    return "set, but for BlockPublicAcls, with which this server refuses every put; public ACLs are ignored"


def create_roles(store: S3Store, settings: Settings, principal: str) -> list[tuple[str, str]]:
    """Make the writer's, the reader's and the custodian's role for this vault; safe to do again.

    Who may take a role that is there already stays as it is.

    Args:
        store: The vault's store.
        settings: The endpoint and the KMS keys.
        principal: ARN of who may take the roles.

    Returns:
        Each role's name and how it went.

    Raises:
        VaultDenied: The credentials may not do this, or the server makes no roles.
        VaultUnavailable: It does not answer.
    """
    says_no, no_answer = client_errors()
    iam = new_client(settings, service="iam")
    trust = _compact(policies.trust([principal]))
    steps: list[tuple[str, str]] = []
    try:
        for role in policies.ROLES:
            document = role_policy(role, store.bucket, store.prefix, settings)
            name = _role_name(role, store.bucket)
            outcome = "made"
            try:
                iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
            except says_no as error:
                if _code(error) != "EntityAlreadyExists":
                    raise
                outcome = "there already; its policy is set"
            text = _compact(document if settings.endpoint_url is None else _known_elsewhere(document))
            iam.put_role_policy(RoleName=name, PolicyName="sealtrace", PolicyDocument=text)
            steps.append((name, outcome))
    except says_no as error:
        raise VaultDenied(
            f"making roles was refused ({_code(error)}); use credentials that may, or a template"
        ) from None
    except no_answer as error:
        raise VaultUnavailable(f"IAM does not answer ({type(error).__name__})") from None
    finally:
        iam.close()
    return steps


def _role_name(role: str, bucket: str) -> str:
    name = f"sealtrace-{role}-{bucket}"
    return name if len(name) <= 64 else f"{name[:55]}-{hashlib.sha256(bucket.encode()).hexdigest()[:8]}"


def _compact(document: dict[str, Any]) -> str:
    """JSON without a space: Ceph's IAM reads one in a form as a plus sign."""
    return json.dumps(document, separators=(",", ":"))


def _code(error: Exception) -> str:
    answer = getattr(error, "response", {})
    return str(answer.get("Error", answer).get("Code"))  # Ceph's IAM leaves the envelope out


def _known_elsewhere(document: dict[str, Any]) -> dict[str, Any]:
    statements = [
        item | {"Action": [name for name in item["Action"] if name not in _ONLY_ON_AWS]}
        if isinstance(item["Action"], list)
        else item
        for item in document["Statement"]
    ]
    return document | {"Statement": statements}


def _known(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    try:
        return ask()
    except CannotLook:
        return []


def _create(client: Any, bucket: BucketView, settings: Settings) -> str:
    says_no, no_answer = client_errors()
    where: dict[str, Any] = {}
    if settings.region not in (None, "us-east-1") and bucket.aws:
        where = {"CreateBucketConfiguration": {"LocationConstraint": settings.region}}
    try:
        client.head_bucket(Bucket=bucket.name)
    except says_no as error:
        if getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode") != 404:
            raise VaultDenied(f"the bucket {bucket.name} belongs to somebody else; choose another name") from None
    except no_answer as error:
        raise VaultUnavailable(f"the store does not answer ({type(error).__name__})") from None
    else:
        return "there already"
    _step(client, "create_bucket", bucket, where)
    return "made"


def _step(client: Any, operation: str, bucket: BucketView, arguments: dict[str, Any]) -> str:
    says_no, no_answer = client_errors()
    try:
        getattr(client, operation)(Bucket=bucket.name, **arguments)
    except says_no as error:
        code = _code(error)
        if code in UNSUPPORTED or (not bucket.aws and code in ("InvalidRequest", "InvalidArgument", "MalformedXML")):
            return f"not supported here ({code})"
        raise VaultDenied(f"{operation} on {bucket.name} was refused ({code}); use credentials that own it") from None
    except no_answer as error:
        raise VaultUnavailable(f"the store does not answer ({type(error).__name__})") from None
    return "set"
