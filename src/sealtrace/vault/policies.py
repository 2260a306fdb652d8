"""Who may do what in a vault's bucket: the policies `vault init` writes and `vault check` looks for.

Three roles. The writer may only put: a stolen writer credential reads nothing, deletes nothing and
cannot even ask what is there. The reader may only get and list. The custodian erases and expires,
and sets up nothing. The bucket's own policy holds for everyone, its owner too.

Two spellings matter. `BoolIfExists` refuses plain HTTP also where the key is not set at all, and a
missing encryption header is only caught by a `Null` test of its own.
"""

from __future__ import annotations

from typing import Any, Final

from ..settings import Retention
from . import layout

__all__ = [
    "ROLES",
    "bucket_policy",
    "custodian_policy",
    "key_arn",
    "lifecycle",
    "public_access_block",
    "reader_policy",
    "trust",
    "writer_policy",
]

_VERSION: Final = "2012-10-17"

Document = dict[str, Any]


def writer_policy(bucket: str, prefix: str = "", *, kms_key_arn: str | None = None) -> Document:
    """What a recording process may do: put, and have the object encrypted; not mark a run as erased."""
    marks = f"{_objects(bucket, prefix)[:-1]}{layout.ERASED}*"
    statements = [
        _allow("Put", "s3:PutObject", _objects(bucket, prefix)),
        # A run so marked is hidden and swept: whoever may only write would delete.
        {"Sid": "MarkNothing", "Effect": "Deny", "Action": "s3:PutObject", "Resource": marks},
    ]
    if kms_key_arn is not None:
        statements.append(_allow("Encrypt", "kms:GenerateDataKey", kms_key_arn))
    return _document(statements)


def reader_policy(bucket: str, prefix: str = "", *, kms_key_arn: str | None = None) -> Document:
    """What a person reading runs may do: get and list; the read audit needs the writer's put as well."""
    statements = [
        _allow("Get", "s3:GetObject", _objects(bucket, prefix)),
        _allow("List", "s3:ListBucket", _bucket(bucket), _listing(prefix)),
    ]
    if kms_key_arn is not None:
        statements.append(_allow("Decrypt", "kms:Decrypt", kms_key_arn))
    return _document(statements)


def custodian_policy(bucket: str, prefix: str = "", *, kms_key_arn: str | None = None) -> Document:
    """What erasing and checking needs: find, delete, keep the audit line, read the bucket's settings."""
    statements = [
        _allow("Erase", ["s3:GetObject", "s3:DeleteObject"], _objects(bucket, prefix)),
        # Where the bucket keeps versions: erase all of them, and put back what was written over.
        _allow("EraseVersions", ["s3:GetObjectVersion", "s3:DeleteObjectVersion"], _objects(bucket, prefix)),
        _allow("Account", "s3:PutObject", f"{_objects(bucket, prefix)[:-1]}{layout.AUDIT}*"),
        _allow("List", ["s3:ListBucket", "s3:ListBucketVersions"], _bucket(bucket), _listing(prefix)),
        _allow(
            "Inspect",
            [
                "s3:GetBucketPolicy",
                "s3:GetBucketVersioning",
                "s3:GetBucketPublicAccessBlock",
                "s3:GetEncryptionConfiguration",
                "s3:GetLifecycleConfiguration",
                "s3:GetBucketOwnershipControls",
                "s3:GetBucketObjectLockConfiguration",
                "s3:GetBucketLogging",
            ],
            _bucket(bucket),
        ),
    ]
    if kms_key_arn is not None:
        statements.append(_allow("UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], kms_key_arn))
    return _document(statements)


ROLES: Final = {"writer": writer_policy, "reader": reader_policy, "custodian": custodian_policy}
"""What each role may do, by its name."""


def trust(principal: Any) -> Document:
    """Who may take a role."""
    # A list, since Ceph takes a single action for no action.
    return _document([{"Effect": "Allow", "Principal": {"AWS": principal}, "Action": ["sts:AssumeRole"]}])


def key_arn(key: str | None) -> str | None:
    """The KMS key as a policy names it, whatever account and region it is in where only its id is known."""
    return key if key is None or key.startswith("arn:") else f"arn:aws:kms:*:*:key/{key}"


def bucket_policy(
    bucket: str, prefix: str = "", *, kms_key_id: str | None = None, conditional_writes: bool = True
) -> Document:
    """What the bucket refuses, whoever asks.

    Args:
        bucket: The bucket's name.
        prefix: The vault's prefix in it.
        kms_key_id: Every object must be encrypted with this key, named exactly so.
        conditional_writes: Refuse a put without `If-None-Match`, that is, every overwriting. Only
            AWS knows the condition; elsewhere the statement would refuse every put.
    """
    objects = _objects(bucket, prefix)
    statements = [
        _deny(
            "RefusePlainHttp", "s3:*", [_bucket(bucket), objects], {"BoolIfExists": {"aws:SecureTransport": "false"}}
        ),
    ]
    if kms_key_id is not None:
        for sid, condition in (
            ("RefuseUnencrypted", {"Null": {"s3:x-amz-server-side-encryption": "true"}}),
            ("RefuseOtherEncryption", {"StringNotEquals": {"s3:x-amz-server-side-encryption": "aws:kms"}}),
            (
                "RefuseOtherKeys",
                {"StringNotEquals": {"s3:x-amz-server-side-encryption-aws-kms-key-id": kms_key_id}},
            ),
        ):
            statements.append(_deny(sid, "s3:PutObject", objects, condition))
    if conditional_writes:
        statements.append(_deny("RefuseOverwriting", "s3:PutObject", objects, {"Null": {"s3:if-none-match": "true"}}))
    return _document(statements)


def lifecycle(prefix: str, retention: Retention, *, version_days: int = 1) -> Document:
    """One rule per class: its objects go after its days, and uploads that never ended after one.

    Where the bucket keeps versions, what is expired or written over is there for `version_days` more;
    a wrapped key for one, since to delete it is to erase.
    Lifecycle counts whole days and runs about daily, so days are a promise of "deletable after",
    which is why the loader refuses what is past its time by itself.
    """
    base = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    return {
        "Rules": [
            {
                "ID": f"sealtrace-{klass}",
                "Status": "Enabled",
                "Filter": {"Prefix": f"{base}{klass}/"},
                "Expiration": {"Days": layout.days_of(klass, retention)},
                "NoncurrentVersionExpiration": {"NoncurrentDays": 1 if klass == layout.KEYS else version_days},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            }
            for klass in layout.CLASSES
        ]
    }


def public_access_block() -> dict[str, bool]:
    """Nothing in the bucket can be made public, by policy or by ACL."""
    names = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
    return dict.fromkeys(names, True)


def _bucket(bucket: str) -> str:
    return f"arn:aws:s3:::{bucket}"


def _objects(bucket: str, prefix: str) -> str:
    inner = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    return f"arn:aws:s3:::{bucket}/{inner}*"


def _listing(prefix: str) -> Document | None:
    return {"StringLike": {"s3:prefix": f"{prefix.strip('/')}/*"}} if prefix.strip("/") else None


def _document(statements: list[Document]) -> Document:
    return {"Version": _VERSION, "Statement": statements}


def _allow(sid: str, action: str | list[str], resource: str | list[str], condition: Document | None = None) -> Document:
    out: Document = {"Sid": sid, "Effect": "Allow", "Action": action, "Resource": resource}
    return out | {"Condition": condition} if condition else out


def _deny(sid: str, action: str, resource: str | list[str], condition: Document) -> Document:
    return {
        "Sid": sid,
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": resource,
        "Condition": condition,
    }
