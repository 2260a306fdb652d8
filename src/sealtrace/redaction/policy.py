"""What is redacted, and how: a policy, typed and frozen.

A policy that cannot be read is an error at `instrument()`, never a weaker policy.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..errors import SettingsError
from ..settings import Settings
from .detectors import names_and_kinds

__all__ = ["CustomDetector", "FieldRule", "Override", "Policy"]

_KIND: Final = r"^[A-Z][A-Z0-9_]{1,31}$"


class FieldRule(BaseModel):
    """What to do with a field, by its path: `tool:issue_refund.args.card`, `*.ssn`, `agent:Triage.*.note`.

    Attributes:
        path: Dotted names; `*` stands for any number of them. `tool:NAME`, `agent:NAME` or
            `kind:NAME` first narrows it to those events. `args` also means `arguments`, `result` also
            means `output`.
        action: `tag` replaces the value, `drop` leaves only that there was one, `keep` lets it through.
        kind: What the pseudonym says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(min_length=1, pattern=r"^[^.].*[^.]$|^[^.]$")
    action: Literal["tag", "drop", "keep"]
    kind: str = Field("FIELD", pattern=_KIND)


class CustomDetector(BaseModel):
    """A detector of your own.

    Attributes:
        name: Names it in reports.
        kind: What the pseudonym says.
        pattern: In RE2 syntax: no look-around, no back references. A group named `value`, where there
            is one, is what is replaced; otherwise the whole match is.
        ignore_case: Whether capitals and small letters are one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=64)
    kind: str = Field(pattern=_KIND)
    pattern: str = Field(min_length=1, max_length=2000)
    ignore_case: bool = False

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if re.search(r"\(\?(?:[=!]|<[=!]|P=|\()|\\[1-9]", pattern):
            raise ValueError("look-around and back references are not RE2 syntax")
        if compiled.search("") is not None:
            raise ValueError("it matches the empty string")
        return pattern


class Override(BaseModel):
    """What is different for one agent, tool or kind of event.

    Attributes:
        scope: `agent:NAME`, `tool:NAME` or `kind:NAME`.
        profile: Instead of the policy's.
        off: Kinds or detectors that are not looked for there, besides the policy's own.
        field_names: Instead of the policy's.
        media: Instead of the policy's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: str = Field(pattern=r"^(?:agent|tool|kind):.+$")
    profile: Literal["strict", "balanced"] | None = None
    off: frozenset[str] = frozenset()
    field_names: bool | None = None
    media: Literal["marker", "keep"] | None = None


class Policy(BaseModel):
    """The redaction policy of a process.

    Attributes:
        profile: `strict` also takes what is only likely to be secret; `balanced` wants to be surer.
        style: `tag` writes `<EMAIL:…>`; `surrogate` writes a value of the same shape from a range
            set aside for it, where there is one, so that structured outputs still parse.
        off: Kinds or detectors that are not looked for.
        fields: Rules by path, first match wins, before the built-in field names.
        field_names: Whether the built-in sensitive field names apply.
        media: Whether images, audio and files are kept; otherwise a keyed marker stands for them.
        detectors: Detectors of your own.
        overrides: What is different for some agents and tools.
        engine: What searches: `auto` is the fastest installed, `anchors` needs nothing.
        also: Second opinions, each an extra: `kingfisher` (`[secrets]`), `presidio` (`[presidio]`).
        presidio_model: The spaCy model that Presidio uses, by the name of its package.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: Literal["strict", "balanced"] = "strict"
    style: Literal["tag", "surrogate"] = "tag"
    off: frozenset[str] = frozenset()
    fields: tuple[FieldRule, ...] = ()
    field_names: bool = True
    media: Literal["marker", "keep"] = "marker"
    detectors: tuple[CustomDetector, ...] = ()
    overrides: tuple[Override, ...] = ()
    engine: Literal["auto", "anchors", "hyperscan", "plain"] = "auto"
    also: frozenset[Literal["kingfisher", "presidio"]] = frozenset()
    presidio_model: str = Field(default="en_core_web_sm", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")

    @field_validator("off")
    @classmethod
    def _known(cls, off: frozenset[str]) -> frozenset[str]:
        unknown = off - names_and_kinds()
        if unknown:
            raise ValueError(f"no detector or kind is called {', '.join(sorted(unknown))}")
        return off

    @classmethod
    def load(cls, settings: Settings) -> Policy:
        """The policy that the settings name.

        Raises:
            SettingsError: The file cannot be read, or holds something that is no policy; the message
                names the line.
        """
        if settings.redaction_policy is None:
            return cls(profile=settings.redaction_profile)
        return cls.from_file(settings.redaction_policy, profile=settings.redaction_profile)

    @classmethod
    def from_file(cls, path: Path, *, profile: Literal["strict", "balanced"] = "strict") -> Policy:
        """Read a policy file (TOML); `profile` counts where the file has none.

        Raises:
            SettingsError: As for `load`.
        """
        try:
            text = path.read_text(encoding="utf-8")
            given = tomllib.loads(text)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"cannot read the redaction policy {path}: {error}", setting="redaction_policy"
            ) from error
        try:
            return cls.model_validate({"profile": profile, **given})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            line = _line_of(text, first["loc"])
            raise SettingsError(
                f"redaction policy {path}{f', line {line}' if line else ''}: {where}: {first['msg']}",
                setting="redaction_policy",
            ) from None

    def base(self) -> Policy:
        """What holds where no override does."""
        return self.model_copy(update={"fields": (), "overrides": ()})

    def for_scope(self, *scopes: str) -> Policy:
        """What holds in these scopes; later overrides win."""
        changes: dict[str, Any] = {"fields": (), "overrides": ()}
        off = set(self.off)
        for override in self.overrides:
            if override.scope in scopes:
                off |= override.off
                given = override.model_dump(exclude={"scope", "off"}, exclude_none=True)
                changes.update(given)
        return self.model_copy(update={**changes, "off": frozenset(off)})

    def digest(self) -> str:
        """16 hex digits that change when the policy does; engines give equal answers and do not count."""
        stable = self.model_dump(mode="json", exclude={"engine"})
        stable["off"] = sorted(self.off)
        stable["also"] = sorted(self.also)
        for dumped, override in zip(stable["overrides"], self.overrides, strict=True):
            dumped["off"] = sorted(override.off)
        return hashlib.sha256(json.dumps(stable, sort_keys=True).encode()).hexdigest()[:16]


def _line_of(text: str, location: tuple[int | str, ...]) -> int | None:
    """The line of an entry: the n-th table of that name, then the key in it."""
    lines = text.splitlines()
    at = 0
    for index, part in enumerate(location):
        if isinstance(part, int):
            name = location[index - 1]
            tables = [number for number, line in enumerate(lines) if line.strip() == f"[[{name}]]"]
            if part < len(tables):
                at = tables[part]
        else:
            key = re.compile(rf"\s*[\"']?{re.escape(part)}[\"']?\s*=")
            found = next((number for number in range(at, len(lines)) if key.match(lines[number])), None)
            if found is not None:
                at = found
            elif index == len(location) - 1 and at:
                return at + 1
    return at + 1 if lines else None
