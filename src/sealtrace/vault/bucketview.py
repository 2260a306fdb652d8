"""A bucket's settings as the credentials in use may see them."""

from __future__ import annotations

import json
from typing import Any, Final

from ..aws import client_errors
from ..errors import VaultDenied, VaultUnavailable
from ..settings import Settings
from . import layout
from .stores.s3 import S3Store

__all__ = ["UNSUPPORTED", "BucketView", "CannotLook"]

_ABSENT: Final = frozenset(
    {
        "NoSuchBucketPolicy", "NoSuchPublicAccessBlockConfiguration", "ServerSideEncryptionConfigurationNotFoundError",
        "NoSuchLifecycleConfiguration", "OwnershipControlsNotFoundError", "ObjectLockConfigurationNotFoundError",
    }
)  # fmt: skip
UNSUPPORTED: Final = frozenset({"NotImplemented", "MethodNotAllowed", "XNotImplemented", "405", "501"})
_TRIAL: Final = f"{layout.AUDIT}trial"
"""Where the custodian may put."""


class CannotLook(Exception):
    """A part of the bucket's settings cannot be looked at."""


class BucketView:
    """A bucket's settings, each asked for once."""

    def __init__(self, store: S3Store, settings: Settings) -> None:
        self.name = store.bucket
        self.prefix = store.prefix
        self.settings = settings
        self.aws = settings.endpoint_url is None
        self._store = store
        self._client = store.client()
        self._owner = settings.expected_bucket_owner
        self._known: dict[str, Any] = {}

    def ask(self, operation: str) -> Any:
        """The answer of a `get_bucket_…` call; None where nothing is set."""
        says_no, no_answer = client_errors()
        if operation not in self._known:
            arguments = {"Bucket": self.name} | ({"ExpectedBucketOwner": self._owner} if self._owner else {})
            try:
                self._known[operation] = getattr(self._client, operation)(**arguments)
            except says_no as error:
                self._known[operation] = self._refusal(getattr(error, "response", {}))
            except no_answer as error:
                raise VaultUnavailable(f"s3://{self.name} does not answer ({type(error).__name__})") from None
        found = self._known[operation]
        if isinstance(found, CannotLook):
            raise found
        return found

    def _refusal(self, response: Any) -> CannotLook | None:
        code = str(response["Error"]["Code"])
        if code in _ABSENT:
            return None
        if code in ("NoSuchBucket", "404"):
            raise VaultDenied(f"there is no bucket {self.name}; `sealtrace vault init` makes it")
        if code in UNSUPPORTED:
            return CannotLook("the server does not know this setting")
        return CannotLook(f"these credentials may not look ({code})")

    def statements(self) -> list[dict[str, Any]]:
        """The bucket policy's statements."""
        found = self.ask("get_bucket_policy")
        return list(json.loads(found["Policy"]).get("Statement", [])) if found else []

    def refuses_overwriting(self) -> bool:
        """Whether a put that is not conditional is refused, by a proxy in front for example.

        It is tried where the custodian may put, see `S3Store.try_put`.
        """
        if self.refuses_puts():
            raise CannotLook("these credentials may not put")
        return self._refuses(conditional=False)

    def refuses_puts(self) -> bool:
        """Whether a put as the writer makes it is refused; tried in the same way."""
        return self._refuses(conditional=True)

    def _refuses(self, *, conditional: bool) -> bool:
        try:
            self._store.try_put(_TRIAL, conditional=conditional)
        except VaultDenied:
            return True
        return False

    def rules(self) -> list[dict[str, Any]]:
        """The lifecycle rules that are enabled."""
        found = self.ask("get_bucket_lifecycle_configuration")
        return [rule for rule in (found or {}).get("Rules", []) if rule.get("Status") == "Enabled"]
