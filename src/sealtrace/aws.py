"""What every client of AWS here has in common: how boto3 is imported, what it raises, how long it may take.

boto3 takes a second to import, so it is imported on first use, and never while a fork could cut that short.
"""

from __future__ import annotations

import codecs
from typing import Any, Final

from .lifetime import whole_at_fork
from .settings import Settings

__all__ = ["NO_CREDENTIALS", "bounded", "client_errors", "import_boto3"]

NO_CREDENTIALS: Final = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError", "UnauthorizedSSOTokenError"}
)
"""Names of what boto3 raises where its default chain has nothing to sign with."""


def import_boto3() -> None:
    """Import it before it is needed, and before a fork, so that children need not each do it."""
    with whole_at_fork():
        import boto3  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport]
        import botocore.client  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport]

        codecs.lookup("idna")  # the first connection would import it


def client_errors() -> tuple[type[Exception], type[Exception]]:
    """boto3's `ClientError`, an answer that says no, and `BotoCoreError`, no answer at all."""
    with whole_at_fork():
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - takes a second

    return ClientError, BotoCoreError


def bounded(settings: Settings, **more: Any) -> Any:
    """A client's configuration: the settings' timeouts and tries, and what a service has of its own."""
    from botocore.config import Config  # noqa: PLC0415 - takes a second

    return Config(
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        retries={"mode": "standard", "total_max_attempts": settings.max_attempts},
        user_agent_extra="sealtrace",
        **more,
    )
