"""The payload store: records in a bucket or a directory."""

from __future__ import annotations

from . import layout, policies
from .audit import Audit, AuditLine, audit_lines
from .bucket import BucketReport, Problem, check_bucket
from .envelope import DataKey
from .erasure import Erasure, carry_out, expire, plan_again, plan_for_runs, plan_for_session
from .keyroles import role_policy
from .manifest import Manifest, RecordHeader
from .outcome import Seal, WriterState
from .preparation import Preparation
from .provision import create_roles, init_bucket
from .reader import VaultReader
from .recovery import Recovered, recover, waiting
from .signing import Signer, Verifier
from .spool import SpoolKey
from .stored import StoredRecord
from .stores import LocalStore, ObjectInfo, S3Store, Store, open_store
from .stores.replaced import Replaced, find_replaced, put_back
from .templates import cloudformation, haproxy, terraform
from .tombstones import Tombstones
from .trouble import Trouble, TroubleFile, troubles
from .verify import Damage, Finding, Verification, verify_run
from .wrapping import Keyring
from .writer import VaultWriter

__all__ = [
    "Audit",
    "AuditLine",
    "BucketReport",
    "Damage",
    "DataKey",
    "Erasure",
    "Finding",
    "Keyring",
    "LocalStore",
    "Manifest",
    "ObjectInfo",
    "Preparation",
    "Problem",
    "RecordHeader",
    "Recovered",
    "Replaced",
    "S3Store",
    "Seal",
    "Signer",
    "SpoolKey",
    "Store",
    "StoredRecord",
    "Tombstones",
    "Trouble",
    "TroubleFile",
    "VaultReader",
    "VaultWriter",
    "Verification",
    "Verifier",
    "WriterState",
    "audit_lines",
    "carry_out",
    "check_bucket",
    "cloudformation",
    "create_roles",
    "expire",
    "find_replaced",
    "haproxy",
    "init_bucket",
    "layout",
    "open_store",
    "plan_again",
    "plan_for_runs",
    "plan_for_session",
    "policies",
    "put_back",
    "recover",
    "role_policy",
    "terraform",
    "troubles",
    "verify_run",
    "waiting",
]
