"""The payload store: records in a bucket or a directory."""

from __future__ import annotations

from . import layout, policies
from .audit import Audit, AuditLine, audit_lines
from .bucket import BucketReport, Problem, check_bucket, init_bucket
from .erasure import Erasure, carry_out, expire, plan_again, plan_for_runs, plan_for_session
from .manifest import Manifest, RecordHeader
from .outcome import Seal, WriterState
from .preparation import Preparation
from .reader import VaultReader
from .recovery import Recovered, recover, waiting
from .signing import Signer, Verifier
from .spool import SpoolKey
from .stored import StoredRecord
from .stores import LocalStore, ObjectInfo, S3Store, Store, open_store
from .templates import cloudformation, terraform
from .tombstones import Tombstones
from .verify import Damage, Finding, Verification, verify_run
from .wrapping import Keyring
from .writer import VaultWriter

__all__ = [
    "Audit",
    "AuditLine",
    "BucketReport",
    "Damage",
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
    "S3Store",
    "Seal",
    "Signer",
    "SpoolKey",
    "Store",
    "StoredRecord",
    "Tombstones",
    "VaultReader",
    "VaultWriter",
    "Verification",
    "Verifier",
    "WriterState",
    "audit_lines",
    "carry_out",
    "check_bucket",
    "cloudformation",
    "expire",
    "init_bucket",
    "layout",
    "open_store",
    "plan_again",
    "plan_for_runs",
    "plan_for_session",
    "policies",
    "recover",
    "terraform",
    "verify_run",
    "waiting",
]
