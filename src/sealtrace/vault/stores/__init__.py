"""The stores there are, and how a URL names one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from ...errors import SettingsError
from ...settings import Settings
from .base import ObjectInfo, Store
from .local import LocalStore
from .s3 import S3Store

__all__ = ["LocalStore", "ObjectInfo", "S3Store", "Store", "open_store"]

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,512}\Z")


def open_store(url: str, settings: Settings) -> Store:
    """The store that `file:///path`, a plain path or `s3://bucket/prefix` names. Nothing is contacted.

    Raises:
        SettingsError: The URL names no store that there is.
    """
    parts = urlsplit(url)
    if parts.scheme == "s3":
        prefix = parts.path.strip("/")
        if not _BUCKET.match(parts.netloc) or not _PREFIX.match(prefix) or parts.query or parts.fragment:
            raise SettingsError(f"{url!r} is no bucket; write s3://bucket/prefix", setting="vault")
        return S3Store(parts.netloc, prefix, settings)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise SettingsError(f"{url!r} is no local path; write file:///path", setting="vault")
        return LocalStore(Path(unquote(parts.path)))
    if not parts.scheme and url:
        return LocalStore(Path(url).absolute())
    raise SettingsError(f"{url!r} is no vault; write file:///path or s3://bucket/prefix", setting="vault")
