"""What is redacted, and how: a policy, typed and frozen.

A policy that cannot be read is an error at `instrument()`, never a weaker policy.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import SettingsError
from ..settings import Settings

__all__ = ["FieldRule", "Policy"]


class FieldRule(BaseModel):
    """What to do with a field, by its path: `tool:issue_refund.args.card`, `*.ssn`, `agent:Triage.*.note`.

    Attributes:
        path: Dotted names; `*` stands for any number of them. `tool:NAME`, `agent:NAME` or
            `kind:NAME` first narrows it to those events.
        action: `tag` replaces the value, `drop` leaves only that there was one, `keep` lets it through.
        kind: What the pseudonym says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(min_length=1)
    action: Literal["tag", "drop", "keep"]
    kind: str = Field("FIELD", pattern=r"^[A-Z][A-Z0-9_]{1,31}$")


class Policy(BaseModel):
    """The redaction policy of a process.

    Attributes:
        profile: `strict` also takes what is only likely to be secret; `balanced` wants to be surer.
        off: Kinds that are not looked for.
        fields: Rules by path, first match wins, before the built-in field names.
        field_names: Whether the built-in sensitive field names apply.
        media: Whether images, audio and files are kept; otherwise a keyed marker stands for them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: Literal["strict", "balanced"] = "strict"
    off: frozenset[str] = frozenset()
    fields: tuple[FieldRule, ...] = ()
    field_names: bool = True
    media: Literal["marker", "keep"] = "marker"

    @classmethod
    def load(cls, settings: Settings) -> Policy:
        """The policy that the settings name.

        Raises:
            SettingsError: The file cannot be read, or holds something that is no policy; the message
                names the entry.
        """
        given: dict[str, Any] = {"profile": settings.redaction_profile}
        if settings.redaction_policy is not None:
            given |= _read(settings.redaction_policy)
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise SettingsError(
                f"redaction policy {settings.redaction_policy}: {where}: {first['msg']}", setting="redaction_policy"
            ) from None

    def digest(self) -> str:
        """16 hex digits that change when the policy does."""
        stable = self.model_dump(mode="json")
        stable["off"] = sorted(self.off)
        return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read the redaction policy {path}: {error}", setting="redaction_policy") from error
