"""What a rerun has come to so far: the latched first difference, the counts, the report."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, Final, NoReturn

from ..errors import NotComparable
from ..event import Kind, RunEvent
from .cause import Cause
from .divergence import EVENT_CAUSES, ReplayDiverged
from .jsondiff import ABSENT, Difference
from .report import Divergence, Fate, Mode, Outcome, Receipt, Report, Step, Surface
from .shape import JSON, at
from .space import Live, Space
from .tape import Tape, TapeFrame

__all__ = ["CANCELLED", "Ledger", "Refused", "surface_of"]

CANCELLED: Final = ("CancelledError", "GeneratorExit")

_SURFACES: Final = {
    Kind.INPUT: "runs",
    Kind.GENERATION: "model",
    Kind.HANDOFF: "handoffs",
    Kind.GUARDRAIL: "guardrails",
    Kind.MCP_TOOLS: "MCP listings",
    Kind.APPROVAL: "approvals",
}
_TOOL_SURFACES: Final = {"function": "tools", "mcp": "MCP tools", "agent": "agents as tools"}


class Refused(BaseException):
    """Stops a rerun that cannot go on; `NotComparable` is raised in its place when the rerun is left."""


def surface_of(event: RunEvent) -> str | None:
    """The surface a recorded event is counted under; None for results and ends, which are not calls."""
    if event.kind is Kind.TOOL_CALL:
        return _TOOL_SURFACES.get(str(at(event.payload, "type")), "native tools")
    return _SURFACES.get(event.kind)


class Ledger:
    """Kept by one rerun; any of its threads may write.

    Args:
        tape: The recorded run.
        space: Compares.
        mode: What is being done.
    """

    def __init__(self, tape: Tape, space: Space, mode: Mode) -> None:
        self.tape = tape
        self.space = space
        self.mode = mode
        self.first: ReplayDiverged | None = None
        self.refusal: NotComparable | None = None
        self.later = 0
        self.notes: list[str] = []
        self.blocked: Counter[str] = Counter()
        self.redirected: Counter[str] = Counter()
        self.touched = False
        self.guarded = True
        self.live_from: int | None = None
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.RLock()

    def check(self) -> None:
        """Raise again what was raised before: nothing that code catches is forgotten."""
        if self.refusal is not None:
            raise Refused(str(self.refusal))
        if self.first is not None:
            raise self.first

    def count(self, surface: str | None, what: str) -> None:
        """One more `served`, `live` or `refused` on a surface."""
        if surface is not None:
            with self._lock:
                self._counts[surface, what] += 1

    def note(self, text: str) -> None:
        """Something that limits what the report can say; said once."""
        if text not in self.notes:
            self.notes.append(text)

    def diverge(self, divergence: Divergence, *, later: int = 0) -> NoReturn:
        """Latch the first difference and raise it."""
        with self._lock:
            if self.first is None and self.refusal is None:
                self.first = ReplayDiverged(divergence)
                self.later += later
            elif self.first is not None and self.first.divergence != divergence:
                self.later += 1 + later
        self.check()
        raise AssertionError("unreachable")  # pragma: no cover

    def refuse(self, reason: str) -> NoReturn:
        """Latch that this cannot be held against the record, and stop."""
        with self._lock:
            if self.refusal is None and self.first is None:
                self.refusal = NotComparable(reason)
        self.check()
        raise AssertionError("unreachable")  # pragma: no cover

    def unrecorded(
        self, kind: Kind, frame: TapeFrame, message: str, *, cause: Cause | None = None, **fields: Any
    ) -> NoReturn:
        """The rerun did something that the record does not have."""
        self.diverge(Divergence(cause or EVENT_CAUSES[kind], kind, message, frame.path, **fields))

    def differs(
        self, event: RunEvent, difference: Difference, message: str, *, cause: Cause | None = None, later: int = 0
    ) -> NoReturn:
        """The rerun came to a recorded event and found another."""
        frame = self.tape.frames.get((event.record_id, event.frame))
        if frame is not None:
            frame.used.discard(event.seq)
        self.diverge(self.divergence(event, difference, message, cause), later=later)

    @staticmethod
    def divergence(event: RunEvent, difference: Difference, message: str, cause: Cause | None = None) -> Divergence:
        """A difference in a recorded event."""
        tool = at(event.payload, "tool")
        return Divergence(
            cause or EVENT_CAUSES[event.kind],
            event.kind,
            message,
            event.frame,
            event.ordinal,
            event.record_id,
            event.seq,
            event.agent,
            tool if isinstance(tool, str) else None,
            difference.path,
            difference.recorded,
            difference.got,
        )

    def compare(self, event: RunEvent, recorded: JSON, live: Live, message: str, *, cause: Cause | None = None) -> None:
        """Diverge at the first difference between a recorded value and a live one."""
        difference = self.space.first(recorded, live)
        if difference is not None:
            self.differs(event, difference, message, cause=cause, later=self.space.count(recorded, live) - 1)

    def interrupted(self) -> None:
        """It was stopped from outside before it was over, so nothing can be said of it."""
        with self._lock:
            if self.first is None and self.refusal is None:
                self.refusal = NotComparable("the rerun was interrupted before it had ended")

    # the end

    def finish(self) -> None:
        """Look for what was recorded and never asked for; the earliest such event is a divergence."""
        if self.first is not None or self.refusal is not None:
            return
        left = self.unconsumed()
        if left:
            event = left[0]
            cause = Cause.LOGIC if event.kind is Kind.INPUT else EVENT_CAUSES[event.kind]
            message = f"recorded, and never asked for ({len(left)} such events)"
            try:
                self.differs(event, Difference("$", event.payload, ABSENT), message, cause=cause, later=len(left) - 1)
            except ReplayDiverged:
                return

    def unconsumed(self) -> list[RunEvent]:
        """Recorded events that should have been come to and were not, in order of the record."""
        records = list(dict.fromkeys(frame.record_id for frame in self.tape.roots))
        found = [
            event
            for frame in self.tape.frames.values()
            for event in frame.replayed
            if event.seq not in frame.used and not self._excused(frame, event)
        ]
        return sorted(found, key=lambda event: (records.index(event.record_id), event.seq))

    def _excused(self, frame: TapeFrame, event: RunEvent) -> bool:
        """Whether chance decided if it came that far: races that a failure or a cancellation cut short."""
        if at(event.payload, "error", "type") in CANCELLED:
            return True
        for around in self._around(frame):
            if around.raced and around.outcome is not event:
                return True
            if around.error is not None and around.outcome is not event:
                generations = around.of(Kind.GENERATION)
                if not generations or event.seq > generations[-1].seq:
                    return True
        return False

    def _around(self, frame: TapeFrame) -> list[TapeFrame]:
        """The frame and those that it is nested in."""
        found = [frame]
        for (record_id, path), other in self.tape.frames.items():
            if record_id == frame.record_id and frame.path.startswith(f"{path}/"):
                found.append(other)
        return found

    def _receipt(self, left: set[tuple[str, int]]) -> Receipt:
        """What was served and refused, by surface."""
        recorded: Counter[str] = Counter()
        unconsumed: Counter[str] = Counter()
        for frame in self.tape.frames.values():
            for event in frame.replayed:
                name = surface_of(event)
                if name is not None:
                    recorded[name] += 1
                    unconsumed[name] += (event.record_id, event.seq) in left
        names = dict.fromkeys([*recorded, *(name for name, _ in self._counts)])
        surfaces = {
            name: Surface(
                recorded[name],
                self._counts[name, "served"],
                self._counts[name, "live"],
                self._counts[name, "refused"],
                unconsumed[name],
            )
            for name in names
        }
        return Receipt(surfaces, dict(self.blocked), dict(self.redirected), self.guarded, self.touched)

    def _steps(self, left: set[tuple[str, int]]) -> tuple[Step, ...]:
        """What became of each recorded event, in the order of the record."""
        first = self.first.divergence if self.first is not None else None
        parted = (first.record_id, first.seq) if first is not None and first.seq is not None else None
        records = list(dict.fromkeys(frame.record_id for frame in self.tape.roots))
        found: list[tuple[int, Step]] = []
        for frame in self.tape.frames.values():
            for event in frame.replayed:
                place = (event.record_id, event.seq)
                fate = Fate.USED if event.seq in frame.used else Fate.UNUSED if place in left else Fate.EXCUSED
                names = (at(event.payload, name) for name in ("tool", "name", "server"))
                step = Step(
                    event.record_id,
                    event.seq,
                    event.kind,
                    Fate.DIVERGED if place == parted else fate,
                    event.frame,
                    event.agent,
                    next((name for name in names if isinstance(name, str)), None),
                )
                found.append((records.index(event.record_id), step))
        return tuple(step for _, step in sorted(found, key=lambda item: (item[0], item[1].seq)))

    def report(self) -> Report:
        """What came of it, so far or in the end."""
        outcome = Outcome.SAME
        if self.first is not None:
            outcome = Outcome.DIVERGED
        elif self.refusal is not None:
            outcome = Outcome.NOT_COMPARABLE
        left = {(event.record_id, event.seq) for event in self.unconsumed()}
        return Report(
            run_id=self.tape.run_id,
            mode=self.mode,
            outcome=outcome,
            receipt=self._receipt(left),
            divergence=self.first.divergence if self.first is not None else None,
            later=self.later,
            matched=sum(
                1 for frame in self.tape.frames.values() for event in frame.replayed if event.seq in frame.used
            ),
            total=self.tape.total,
            by_kind=self.space.by_kind,
            by_key=self.space.by_key,
            ignored=dict(self.space.ignored),
            reason=str(self.refusal) if self.refusal is not None else None,
            notes=tuple(self.notes),
            live_from=self.live_from,
            steps=self._steps(left),
        )
