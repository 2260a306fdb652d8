"""A role's whole policy: what it may do in the bucket, and with the KMS keys that the settings name.

The writer wraps data keys and signs, the reader unwraps, the custodian needs neither: to erase is to delete.
The key of `key` is not among them, since its ciphertext does not say in the clear which KMS key it takes.
"""

from __future__ import annotations

from typing import Any

from ..kms import SCHEME
from ..settings import Settings
from . import policies

__all__ = ["role_policy"]


def role_policy(role: str, bucket: str, prefix: str, settings: Settings) -> dict[str, Any]:
    """The policy of a role.

    Args:
        role: `writer`, `reader` or `custodian`.
        bucket: The bucket's name.
        prefix: The vault's prefix in it.
        settings: Which KMS keys encrypt objects, wrap data keys and sign manifests.
    """
    document = policies.ROLES[role](bucket, prefix, kms_key_arn=policies.key_arn(settings.kms_key_id))
    if role == "writer":
        document["Statement"] += _statements("Wrap", "kms:Encrypt", settings.envelope_key)
        document["Statement"] += _statements("Sign", ["kms:Sign", "kms:GetPublicKey"], settings.signing_key)
    if role == "reader":
        for number, name in enumerate([settings.envelope_key, *settings.previous_envelope_keys]):
            document["Statement"] += _statements(f"Unwrap{number or ''}", "kms:Decrypt", name)
    return document


def _statements(sid: str, action: str | list[str], setting: object) -> list[dict[str, Any]]:
    """The grant for a key that a setting names; none for a file."""
    name = str(setting)
    if not name.startswith(SCHEME):
        return []
    key = name.removeprefix(SCHEME)
    statement: dict[str, Any] = {"Sid": sid, "Effect": "Allow", "Action": action}
    before, _, alias = key.rpartition("alias/")
    if not alias or key == alias:
        return [statement | {"Resource": policies.key_arn(key)}]
    # A policy cannot name a key by its alias, only ask for it.
    any_key = f"{before}key/*" if before else "arn:aws:kms:*:*:key/*"
    condition = {"ForAnyValue:StringEquals": {"kms:ResourceAliases": f"alias/{alias}"}}
    return [statement | {"Resource": any_key, "Condition": condition}]
