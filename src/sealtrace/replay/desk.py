"""What every seam of a rerun needs: where it is, what it may compare with, how to wait or refuse."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

from ..agents_sdk.codec import Snapshot
from ..event import Kind, RunEvent
from ..redaction import IdentifierGate
from .cause import Cause
from .comparable import PSEUDONYM
from .effects import Redirects
from .jsondiff import Difference
from .ledger import CANCELLED, Ledger
from .scene import SCENE, Scene
from .serve import recorded_error
from .shape import JSON, at
from .space import Live
from .tape import TapeFrame

__all__ = ["Desk", "Options"]

_PATIENCE: Final = 60.0
"""Seconds to wait for a cancellation that the record has; then it is a divergence that none came."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How to rerun.

    Attributes:
        guardrails: `run` them for real and compare verdicts, or `served` from the record.
        redirects: Sandboxes by tool name.
        agents: Agents by name that a handoff may lead to and that cannot be found otherwise.
        exceptions: Exception classes of the user's own, by name.
        patience: Seconds to wait for a recorded cancellation.
    """

    guardrails: Literal["run", "served"] = "run"
    redirects: Redirects = dataclasses.field(default_factory=lambda: Redirects(None))
    agents: Sequence[Any] = ()
    exceptions: Mapping[str, type[BaseException]] = dataclasses.field(default_factory=dict[str, type[BaseException]])
    patience: float = _PATIENCE


class Desk:
    """Shared by the parts of the takeover.

    Args:
        ledger: What has been come to.
        gate: The recorder's gate for names and call ids.
        options: How to rerun.
    """

    def __init__(self, ledger: Ledger, gate: IdentifierGate, options: Options) -> None:
        self.ledger = ledger
        self.gate = gate
        self.options = options

    def here(self) -> Scene:
        """The scene of this context; whatever was latched is raised first."""
        self.ledger.check()
        scene = SCENE.get()
        if scene is None:
            self.ledger.refuse(
                "the Agents SDK asked for something outside of any run: start runs inside the rerun's `with` block"
            )
        return scene

    def live(self, payload: JSON, kind: Kind, event: RunEvent | None = None, *, tool: str | None = None) -> Live:
        """A live payload, redacted as the recorder would have."""
        try:
            scene = SCENE.get()
            agent = event.agent if event is not None else scene.agent if scene is not None else None
            recorded = event.payload if event is not None else None
            return self.ledger.space.live(
                payload, kind=kind, agent=agent, tool=self.clean(tool) if tool else None, recorded=recorded
            )
        except Exception as error:  # noqa: BLE001 - whatever it was, the value can be neither shown nor compared
            self.ledger.refuse(f"a live {kind} could not be redacted and so not compared: {error}")

    def clean(self, name: str) -> str:
        """A name or call id as envelopes have it."""
        return self.gate.clean(name) if name else ""

    def redacted(self, name: str) -> str:
        """A name as payloads have it."""
        return str(self.live(name, Kind.CUSTOM).redacted)

    async def wait_for_cancellation(self, frame: TapeFrame, kind: Kind, message: str, **fields: Any) -> NoReturn:
        """This was cut short, or never begun, when it was recorded: it ends here as it did there."""
        try:
            async with asyncio.timeout(self.options.patience):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            pass
        self.ledger.unrecorded(kind, frame, message, **fields)

    async def fail_as_recorded(self, scene: Scene, event: RunEvent) -> NoReturn:
        """Raise what a recorded event failed with."""
        facts = at(event.payload, "error")
        if at(facts, "type") in CANCELLED:
            message = "it was cancelled when it was recorded, and is not now"
            await self.wait_for_cancellation(scene.tape, event.kind, message, agent=event.agent, seq=event.seq)
        raise recorded_error(facts, self.options.exceptions)

    async def absent(
        self, scene: Scene, kind: Kind, message: str, *, cause: Cause | None = None, **fields: Any
    ) -> NoReturn:
        """Nothing like this was recorded here. In a race it may only not have been reached in time."""
        if any(around.raced for around in _around(scene)):
            await self.wait_for_cancellation(scene.tape, kind, message, cause=cause, **fields)
        self.ledger.unrecorded(kind, scene.tape, message, cause=cause, **fields)

    def same_agent(self, event: RunEvent, name: str) -> None:
        """Whose turn it is."""
        got = self.clean(name)
        if event.agent is None or event.agent == got:
            return
        if event.agent.startswith("tag:") and got.startswith("tag:") and not self.ledger.space.same_key:
            self.ledger.space.by_kind += 1
            return
        self.ledger.differs(event, Difference("$.agent", event.agent, got), "another agent's turn", cause=Cause.LOGIC)

    def snapshot(self, take: Callable[[Snapshot], Any]) -> Any:
        """A copy of a live value as the recorder takes it."""
        return take(Snapshot())


def _around(scene: Scene) -> list[TapeFrame]:
    found: list[TapeFrame] = []
    at_scene: Scene | None = scene
    while at_scene is not None:
        found.append(at_scene.tape)
        at_scene = at_scene.parent
    return found


def holds_pseudonyms(value: JSON) -> bool:
    """Whether anything in a recorded value was redacted."""
    if isinstance(value, str):
        return PSEUDONYM.search(value) is not None
    if isinstance(value, dict):
        return any(holds_pseudonyms(name) or holds_pseudonyms(item) for name, item in value.items())
    return isinstance(value, list) and any(holds_pseudonyms(item) for item in value)
