"""boto3 clients: one for all stores of a process that would make the same one.

Making one takes the better part of a second, most of it reading the description of S3; a client may be used by
many threads at once. It is made anew in a forked child, after the credentials were refused as expired, and when
anything changed that it was made from: settings, the `AWS_*` environment, the two files of boto3's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from ...aws import bounded, import_boto3
from ...lifetime import fresh_lock, whole_at_fork
from ...settings import Settings

__all__ = ["forget", "new_client", "shared_client"]

_MOST: Final = 16
_FILES: Final = (("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), ("AWS_CONFIG_FILE", "~/.aws/config"))

_lock: Final = fresh_lock()
_clients: Final[OrderedDict[tuple[Any, ...], Any]] = OrderedDict()
with contextlib.suppress(AttributeError):  # not on Windows
    os.register_at_fork(after_in_child=_clients.clear)


def shared_client(settings: Settings) -> Any:
    """The S3 client for these settings and for boto3's default chain as it is now.

    Raises:
        OSError: It cannot be made: no such bundle of certificates.
        ValueError: It cannot be made: no such endpoint.
    """
    name = _name(settings)
    with _lock:
        if name not in _clients:
            while len(_clients) >= _MOST:
                _clients.popitem(last=False)
            _clients[name] = new_client(settings)
        _clients.move_to_end(name)
        return _clients[name]


def forget(client: Any) -> None:
    """Have a new one made in its place, which asks for credentials anew."""
    with _lock:
        for name in [name for name, found in _clients.items() if found is client]:
            del _clients[name]


def new_client(settings: Settings, session: Any = None, *, service: str = "s3") -> Any:
    """A client of its own.

    Args:
        settings: Endpoint, region, timeouts.
        session: A boto3 session with credentials of its own; boto3's default chain without.
        service: Of which service.
    """
    import_boto3()
    with whole_at_fork():
        import boto3  # noqa: PLC0415 - takes a second

        made: Any = session or boto3.session.Session()
        return made.client(
            service,
            endpoint_url=settings.endpoint_url,
            region_name=settings.region,
            verify=str(settings.ca_bundle) if settings.ca_bundle is not None else None,
            config=bounded(settings, s3={"addressing_style": settings.addressing_style}),
        )


def _name(settings: Settings) -> tuple[Any, ...]:
    # A digest of the environment, so that no credential is kept here.
    environ = "\0".join(sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("AWS_")))
    return (
        settings.endpoint_url,
        settings.region,
        settings.ca_bundle,
        settings.connect_timeout,
        settings.read_timeout,
        settings.max_attempts,
        settings.addressing_style,
        hashlib.sha256(environ.encode("utf-8", "surrogateescape")).digest(),
        *(_state(Path(os.environ.get(variable) or default)) for variable, default in _FILES),
    )


def _state(file: Path) -> tuple[int, int] | None:
    try:
        about = file.expanduser().stat()
    except (OSError, RuntimeError):
        return None
    return about.st_mtime_ns, about.st_size
