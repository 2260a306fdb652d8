"""What came of a rerun: one difference, what was served and what was refused.

Every report says what it is: a rerun is a simulation, on recorded answers; a live comparison asks
the model again. Neither says anything about the world outside.
"""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Any, Final

from ..event import Kind
from .cause import Cause
from .jsondiff import ABSENT, Difference
from .shape import JSON

__all__ = ["NOT_COMPARABLE", "Divergence", "Fate", "Mode", "Outcome", "Receipt", "Report", "Step", "Surface"]

NOT_COMPARABLE: Final = 3
"""Exit code of a rerun that could not be held against its record."""


class Mode(StrEnum):
    """What was done with the record; never one word for two things."""

    RERUN = "SIMULATION"
    """Recorded model answers and tool results; nothing left the process."""

    COMPARE = "LIVE COMPARISON"
    """Recorded tool results, live model."""

    RESUME = "RESUMED LIVE"
    """A simulation up to an event, live from there on."""


class Outcome(StrEnum):
    """How it ended."""

    SAME = "same"
    DIVERGED = "diverged"
    NOT_COMPARABLE = "not comparable"


_EXITS: Final = {Outcome.SAME: 0, Outcome.DIVERGED: 2, Outcome.NOT_COMPARABLE: NOT_COMPARABLE}


@dataclasses.dataclass(frozen=True, slots=True)
class Divergence:
    """The first place where the rerun and the record part.

    Attributes:
        cause: What kind of thing made them part.
        kind: Kind of the recorded event, or of what was asked for where there is none.
        message: What happened, in one sentence without content.
        frame: Where in the nesting.
        ordinal: The how-manieth of its kind there.
        record_id: The record of the recorded event.
        seq: The recorded event; None where the rerun did something that was not recorded.
        agent: Whose turn it was.
        tool: The tool concerned, where there is one.
        path: JSON path inside the event's payload, `$` for the event as a whole.
        recorded: What was recorded there, or `ABSENT`.
        got: What the rerun has there, redacted, or `ABSENT`.
    """

    cause: Cause
    kind: Kind
    message: str
    frame: str
    ordinal: int = 0
    record_id: str | None = None
    seq: int | None = None
    agent: str | None = None
    tool: str | None = None
    path: str = "$"
    recorded: JSON = ABSENT
    got: JSON = ABSENT

    @property
    def difference(self) -> Difference:
        """Path and both values."""
        return Difference(self.path, self.recorded, self.got)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; a side that is absent is left out."""
        out: dict[str, Any] = {"class": str(self.cause), "kind": str(self.kind), "message": self.message}
        for name in ("frame", "ordinal", "record_id", "seq", "agent", "tool"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        return out | self.difference.to_json()


@dataclasses.dataclass(frozen=True, slots=True)
class Surface:
    """One kind of contact with the outside, counted.

    Attributes:
        recorded: Events of it in the record.
        served: Answered from the record.
        live: Done for real: guardrails, agents as tools, a sandbox, and what `compare` and `resume` do.
        refused: Asked for and refused.
        unconsumed: Recorded and never asked for.
    """

    recorded: int = 0
    served: int = 0
    live: int = 0
    refused: int = 0
    unconsumed: int = 0

    def to_json(self) -> dict[str, int]:
        """As plain JSON."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that the rerun was one: what was served, and that nothing went out.

    Attributes:
        surfaces: By name: model, tools, native tools, agents as tools, handoffs, guardrails, MCP
            listings, approvals, sessions.
        blocked: Attempts to reach the outside that were refused, by audit event name.
        redirected: Calls that a sandbox took, by tool.
        guarded: The guard against sockets and processes was in force.
        network_touched: Whether anything went out; always False in a rerun.
    """

    surfaces: dict[str, Surface]
    blocked: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    redirected: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    guarded: bool = True
    network_touched: bool = False

    def total(self, what: str) -> int:
        """The sum of one count over all surfaces, for example `served`."""
        return sum(getattr(surface, what) for surface in self.surfaces.values())

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "surfaces": {name: surface.to_json() for name, surface in self.surfaces.items()},
            "blocked": self.blocked,
            "redirected": self.redirected,
            "guarded": self.guarded,
            "network_touched": self.network_touched,
        }


class Fate(StrEnum):
    """What became of a recorded event in the rerun."""

    USED = "used"
    """Come to, and found as recorded."""

    DIVERGED = "diverged"
    """Where the rerun and the record part."""

    UNUSED = "unused"
    """Never come to."""

    EXCUSED = "left to chance"
    """Not come to, and need not be: a race or a failure decided how far it got when it was recorded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A recorded event that a rerun has to come to, and whether it did; metadata alone.

    Attributes:
        record_id: Its record.
        seq: Its number there.
        kind: Its kind.
        fate: What became of it.
        frame: Where in the nesting it is.
        agent: Whose turn it was.
        tool: The tool concerned, where there is one.
    """

    record_id: str
    seq: int
    kind: Kind
    fate: Fate
    frame: str = ""
    agent: str | None = None
    tool: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what is not known."""
        fields = {name: getattr(self, name) for name in ("record_id", "seq", "kind", "fate", "frame", "agent", "tool")}
        return {name: str(v) if isinstance(v, StrEnum) else v for name, v in fields.items() if v is not None}


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What came of it.

    Attributes:
        run_id: The recorded run.
        mode: What was done with it.
        outcome: How it ended.
        receipt: What was served and refused.
        divergence: The first difference, where there is one.
        later: Differences after the first, counted and not shown: most are its consequences.
        matched: Recorded events that the rerun came to and found as recorded.
        total: Recorded events that a rerun has to come to.
        by_kind: Pseudonyms compared by kind only, for want of the record's key.
        by_key: Pseudonyms compared with the live value by the record's key.
        ignored: Differences not looked at because the caller said so, by path or pattern.
        reason: Why it is not comparable.
        notes: What limits what the report can say.
        live_from: The event from which `resume` went live.
        steps: The recorded events in order, with what became of each.
    """

    run_id: str
    mode: Mode
    outcome: Outcome
    receipt: Receipt
    divergence: Divergence | None = None
    later: int = 0
    matched: int = 0
    total: int = 0
    by_kind: int = 0
    by_key: int = 0
    ignored: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    reason: str | None = None
    notes: tuple[str, ...] = ()
    live_from: int | None = None
    steps: tuple[Step, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 same, 2 diverged, 3 not comparable."""
        return _EXITS[self.outcome]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "rerun": 1,
            "run": self.run_id,
            "mode": str(self.mode),
            "outcome": str(self.outcome),
            "exit_code": self.exit_code,
            "divergence": self.divergence.to_json() if self.divergence is not None else None,
            "later": self.later,
            "matched": self.matched,
            "total": self.total,
            "by_kind": self.by_kind,
            "by_key": self.by_key,
            "ignored": self.ignored,
            "reason": self.reason,
            "notes": list(self.notes),
            "live_from": self.live_from,
            "receipt": self.receipt.to_json(),
            "steps": [step.to_json() for step in self.steps],
        }
