"""Does the installed Agents SDK have what we stand on?"""

from __future__ import annotations

import dataclasses
from typing import Any

from agents.version import __version__ as sdk_version

from . import seams

__all__ = ["CompatReport", "check"]


@dataclasses.dataclass(frozen=True, slots=True)
class CompatReport:
    """What the self-check found.

    Attributes:
        sdk_version: Version of the installed Agents SDK.
        seams: Whether each seam is there, by name.
        tracing_disabled: The SDK's tracing is switched off for the process.
        processors: Class names of the registered trace processors; None where they cannot be seen.
        vendor_exporter: Whether the SDK's exporter to its vendor is registered; None: cannot be seen.
    """

    sdk_version: str
    seams: dict[str, bool]
    tracing_disabled: bool
    processors: tuple[str, ...] | None
    vendor_exporter: bool | None

    @property
    def complete(self) -> bool:
        """Whether every seam is there, so that a record can be rerun."""
        return all(self.seams.values())

    @property
    def fidelity(self) -> str:
        """`full`, or `trace` where a seam is missing and a rerun must refuse."""
        return "full" if self.complete else "trace"


def check() -> CompatReport:
    """Look at the installed SDK, without making it create its exporter.

    A provider that does not exist yet is made by the SDK at the first run, exporter included, unless
    `instrument()` comes first; so without one the answer to "is the vendor's exporter on" is yes.
    """
    provider: Any = seams.existing_provider()
    if provider is None:
        disabled = seams.env_tracing_disabled()
        return CompatReport(sdk_version, seams.found_seams(), disabled, (), not disabled)
    inner = getattr(provider, "inner", provider)
    processors = seams.registered_processors(inner)
    return CompatReport(
        sdk_version,
        seams.found_seams(),
        seams.tracing_disabled(inner),
        tuple(type(processor).__name__ for processor in processors) if processors is not None else None,
        any(map(seams.is_vendor_exporter, processors)) if processors is not None else None,
    )
