"""The redactor that the commands use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..redaction import Redactor
    from ..redaction.policy import Policy

__all__ = ["redactor_of", "with_policy"]

_SECONDS: Final = 3600.0
_BYTES: Final = 1 << 40
"""A file on the command line has no agent waiting for it, and is not to be cut."""


def redactor_of(profile: str | None, policy: Path | None) -> Redactor:
    """A redactor for the settings in force.

    Raises:
        SettingsError: A setting or the policy cannot be used.
    """
    from ..redaction.policy import Policy
    from ..settings import load_settings

    return with_policy(
        Policy.load(load_settings({"redaction_profile": profile, "redaction_policy": policy})),
    )


def with_policy(policy: Policy) -> Redactor:
    """A redactor for a policy, with the key of the settings.

    Raises:
        SettingsError: As for `redactor_of`.
    """
    from ..keys import Keys
    from ..redaction import Redactor
    from ..settings import load_settings

    return Redactor(policy, Keys.from_settings(load_settings()), timeout=_SECONDS, max_string_bytes=_BYTES)
