"""What `init_bucket` does, and the three roles, as templates for those who keep their setup in code."""

from __future__ import annotations

from typing import Any, Final

from ..settings import Settings
from . import policies
from .keyroles import role_policy

__all__ = ["cloudformation", "haproxy", "terraform"]

_ROLES: Final = {
    "Writer": "recording processes: put, nothing else",
    "Reader": "people reading runs: get and list",
    "Custodian": "erasing and checking",
}

Document = dict[str, Any]


def cloudformation(bucket: str, prefix: str, settings: Settings) -> Document:
    """A CloudFormation template, as the JSON it may be written in.

    Args:
        bucket: The bucket's name.
        prefix: The vault's prefix in it.
        settings: Retention and the KMS keys.
    """
    resources: Document = {
        "Vault": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                "BucketName": bucket,
                "PublicAccessBlockConfiguration": policies.public_access_block(),
                "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                "BucketEncryption": {"ServerSideEncryptionConfiguration": [_encryption(settings)]},
                "LifecycleConfiguration": {"Rules": [_cloudformation_rule(rule) for rule in _rules(prefix, settings)]},
            },
        },
        "VaultPolicy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {
                "Bucket": {"Ref": "Vault"},
                "PolicyDocument": policies.bucket_policy(bucket, prefix, kms_key_id=settings.kms_key_id),
            },
        },
    }
    for name in _ROLES:
        resources[f"{name}Role"] = {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": policies.trust({"Ref": f"{name}Principal"}),
                "Policies": [
                    {
                        "PolicyName": f"sealtrace-{name.lower()}",
                        "PolicyDocument": role_policy(name.lower(), bucket, prefix, settings),
                    }
                ],
            },
        }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "A sealtrace vault: redacted payloads that few may read and that forget quickly",
        "Parameters": {
            f"{name}Principal": {"Type": "String", "Description": f"ARN of who may take the role for {what}"}
            for name, what in _ROLES.items()
        },
        "Resources": resources,
        "Outputs": {f"{name}RoleArn": {"Value": {"Fn::GetAtt": [f"{name}Role", "Arn"]}} for name in _ROLES},
    }


def terraform(bucket: str, prefix: str, settings: Settings) -> Document:
    """A Terraform configuration in JSON syntax; save it as `sealtrace.tf.json`.

    Args:
        bucket: The bucket's name.
        prefix: The vault's prefix in it.
        settings: Retention and the KMS key.
    """
    here = "${aws_s3_bucket.vault.id}"
    default = _encryption(settings)["ServerSideEncryptionByDefault"]
    encryption = {"sse_algorithm": default["SSEAlgorithm"]}
    if "KMSMasterKeyID" in default:
        encryption["kms_master_key_id"] = default["KMSMasterKeyID"]
    block = policies.public_access_block()
    resources: Document = {
        "aws_s3_bucket": {"vault": {"bucket": bucket}},
        "aws_s3_bucket_public_access_block": {
            "vault": {
                "bucket": here,
                "block_public_acls": block["BlockPublicAcls"],
                "ignore_public_acls": block["IgnorePublicAcls"],
                "block_public_policy": block["BlockPublicPolicy"],
                "restrict_public_buckets": block["RestrictPublicBuckets"],
            }
        },
        "aws_s3_bucket_ownership_controls": {
            "vault": {"bucket": here, "rule": {"object_ownership": "BucketOwnerEnforced"}}
        },
        "aws_s3_bucket_server_side_encryption_configuration": {
            "vault": {
                "bucket": here,
                "rule": {
                    "apply_server_side_encryption_by_default": encryption,
                    "bucket_key_enabled": settings.kms_key_id is not None,
                },
            }
        },
        "aws_s3_bucket_lifecycle_configuration": {
            "vault": {"bucket": here, "rule": [_terraform_rule(rule) for rule in _rules(prefix, settings)]}
        },
        "aws_s3_bucket_policy": {
            "vault": {
                "bucket": here,
                "policy": _encoded(policies.bucket_policy(bucket, prefix, kms_key_id=settings.kms_key_id)),
            }
        },
        "aws_iam_role": {},
        "aws_iam_role_policy": {},
    }
    for name in _ROLES:
        role = name.lower()
        resources["aws_iam_role"][role] = {
            "name": f"sealtrace-{role}",
            "assume_role_policy": _encoded(policies.trust(f"${{var.{role}_principal}}")),
        }
        resources["aws_iam_role_policy"][role] = {
            "name": f"sealtrace-{role}",
            "role": f"${{aws_iam_role.{role}.id}}",
            "policy": _encoded(role_policy(role, bucket, prefix, settings)),
        }
    return {
        "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 5.0"}}},
        "variable": {
            f"{name.lower()}_principal": {"type": "string", "description": f"ARN of who may take the role for {what}"}
            for name, what in _ROLES.items()
        },
        "resource": resources,
        "output": {f"{name.lower()}_role": {"value": f"${{aws_iam_role.{name.lower()}.arn}}"} for name in _ROLES},
    }


def haproxy(server: str) -> str:
    """A front door for a server that cannot refuse overwriting: rules for HAProxy 2.2 or later.

    It passes on only puts that are conditional on the key being free, and no other way to write. Nobody but the
    proxy and the bucket's owner may reach the server itself, or the door is of no use.

    Args:
        server: Host and port of the S3 server.
    """
    return f"""\
frontend vault
    mode http
    bind :443 ssl crt /etc/haproxy/vault.pem
    # Overwriting is refused: a put must be conditional on the key being free, and say so once.
    http-request deny deny_status 403 if {{ method PUT }} !{{ req.fhdr(if-none-match) -m str * }}
    http-request deny deny_status 403 if {{ method PUT }} {{ req.fhdr_cnt(if-none-match) gt 1 }}
    # A copy's condition is about its source, and forms and multipart uploads take none.
    http-request deny deny_status 403 if {{ req.hdr_cnt(x-amz-copy-source) gt 0 }}
    http-request deny deny_status 403 if {{ method POST }} !{{ path / }}
    http-request deny deny_status 405 unless {{ method GET HEAD PUT POST DELETE OPTIONS }}
    default_backend s3

backend s3
    mode http
    # The signature covers the Host header, so it goes on as it came.
    server s3 {server} check
"""


def _rules(prefix: str, settings: Settings) -> list[Document]:
    found: list[Document] = policies.lifecycle(prefix, settings.retention, version_days=settings.version_days)["Rules"]
    return found


def _encryption(settings: Settings) -> Document:
    if settings.kms_key_id is None:
        return {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": settings.kms_key_id}
    return {"ServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}


def _cloudformation_rule(rule: Document) -> Document:
    return {
        "Id": rule["ID"],
        "Status": rule["Status"],
        "Prefix": rule["Filter"]["Prefix"],
        "ExpirationInDays": rule["Expiration"]["Days"],
        "NoncurrentVersionExpiration": rule["NoncurrentVersionExpiration"],
        "AbortIncompleteMultipartUpload": rule["AbortIncompleteMultipartUpload"],
    }


def _terraform_rule(rule: Document) -> Document:
    return {
        "id": rule["ID"],
        "status": rule["Status"],
        "filter": {"prefix": rule["Filter"]["Prefix"]},
        "expiration": {"days": rule["Expiration"]["Days"]},
        "noncurrent_version_expiration": {
            "noncurrent_days": rule["NoncurrentVersionExpiration"]["NoncurrentDays"],
        },
        "abort_incomplete_multipart_upload": {
            "days_after_initiation": rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"],
        },
    }


def _encoded(document: Document) -> str:
    """A policy as Terraform writes it, so that references inside are resolved."""
    return "${jsonencode(" + _expression(document) + ")}"


def _expression(value: Any) -> str:
    if isinstance(value, dict):
        fields: dict[str, Any] = value
        return "{" + ", ".join(f'"{name}" = {_expression(item)}' for name, item in fields.items()) + "}"
    if isinstance(value, list):
        items: list[Any] = value
        return "[" + ", ".join(_expression(item) for item in items) + "]"
    text = str(value)
    return text[2:-1] if text.startswith("${") else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
