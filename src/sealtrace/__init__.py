"""Agents SDK runs as metadata-only OpenTelemetry spans and redacted payloads in your own bucket.

```python
import sealtrace

sealtrace.instrument(vault="file:///var/lib/agents/vault")
...  # Runner.run(agent, "...") as ever
run = sealtrace.load("trace_4bf92f3577b34da6a3ce929d0e0e4736")
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import SealtraceError
from .event import EventStatus, Kind, RunEvent

if TYPE_CHECKING:
    from .agents_sdk import flush, instrument, uninstrument
    from .agents_sdk.annotations import Document, authority, retrieval
    from .replay.checks import check
    from .replay.compare import compare
    from .replay.divergence import ReplayDiverged
    from .replay.effects import effect
    from .replay.rerun import rerun
    from .replay.resume import resume
    from .run import Run, RunStatus, load

__all__ = [
    "Document",
    "EventStatus",
    "Kind",
    "ReplayDiverged",
    "Run",
    "RunEvent",
    "RunStatus",
    "SealtraceError",
    "__version__",
    "authority",
    "check",
    "compare",
    "effect",
    "flush",
    "instrument",
    "load",
    "rerun",
    "resume",
    "retrieval",
    "uninstrument",
]

# The write side needs the Agents SDK, which takes seconds to import; the read side does not.
_LAZY = {
    "Document": ".agents_sdk.annotations",
    "ReplayDiverged": ".replay.divergence",
    "Run": ".run",
    "RunStatus": ".run",
    "authority": ".agents_sdk.annotations",
    "check": ".replay.checks",
    "compare": ".replay.compare",
    "effect": ".replay.effects",
    "flush": ".agents_sdk",
    "instrument": ".agents_sdk",
    "load": ".run",
    "rerun": ".replay.rerun",
    "resume": ".replay.resume",
    "retrieval": ".agents_sdk.annotations",
    "uninstrument": ".agents_sdk",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_LAZY[name], __name__), name)
