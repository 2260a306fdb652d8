"""What the walk of a payload needs from the redactor."""

from __future__ import annotations

from typing import Literal, Protocol

from .paths import PathRules
from .scanner import Change
from .uses import Names

__all__ = ["Scopes", "Surroundings"]


class Surroundings(Protocol):
    """What a walk needs from the redactor."""

    max_string: int
    strict: bool
    keep_media: bool
    field_names: bool
    names: Names

    def search(self, strings: list[str], deadline: float) -> None:
        """Search strings not seen before; `known` knows them afterwards."""
        ...

    def known(self, text: str, /) -> Change | Literal[True] | None:
        """What is remembered of a string: its change, True for nothing found, None for not seen yet."""
        ...

    def replacement(self, kind: str, value: str) -> str:
        """What stands in place of a value."""
        ...

    def stand_in(self, kind: str, value: str, /) -> tuple[str, str | None]:
        """What stands in place of the value of a telling name, and as what that value is remembered."""
        ...

    def number(self, kind: str, value: float) -> float:
        """What stands in place of a number."""
        ...


class Scopes(Protocol):
    """How rules depend on where a value comes from."""

    @property
    def scoped(self) -> bool:
        """Whether they do at all."""
        ...

    def rules(self, agent: str | None, tool: str | None, kind: str | None) -> tuple[Surroundings, PathRules | None]:
        """The rules for what this agent and this tool say."""
        ...
