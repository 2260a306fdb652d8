"""The payload store: records in a bucket or a directory."""

from __future__ import annotations

from .manifest import Manifest, RecordHeader
from .reader import StoredRecord, VaultReader
from .stores import ObjectInfo, Store, open_store
from .writer import Seal, VaultWriter

__all__ = [
    "Manifest",
    "ObjectInfo",
    "RecordHeader",
    "Seal",
    "Store",
    "StoredRecord",
    "VaultReader",
    "VaultWriter",
    "open_store",
]
