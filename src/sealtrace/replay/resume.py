"""`sealtrace.resume`: rerun up to an event, then go on for real.

What comes before the event is a rerun, compared and served as ever. From the event on the model is
asked, tools run and servers answer, within the effects that the caller allows. What was served is
redacted, so the live part goes on with pseudonyms in its history; the report says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from agents import Model

from ..agents_sdk.calls import GuardrailCall, HandoffCall, NativeCall, RunCall, ToolCall
from ..errors import NotComparable
from ..event import Kind, RunEvent
from ..redaction import IdentifierGate
from ..settings import load_settings
from .desk import Options
from .effects import EFFECTS, Effect, effect_of
from .ledger import Ledger
from .replayer import Replayer, ServedModel
from .report import Mode
from .rerun import find, make_ledger
from .scene import SCENE, Scene
from .session import ReplaySession
from .tape import Recorded, TapeFrame, open_tape

__all__ = ["resume"]


def resume(
    run: Recorded | str,
    at: int,
    *,
    record_id: str | None = None,
    allow: Iterable[Effect] = ("read", "write", "external"),
    ignore: Iterable[str] = (),
    pin: Iterable[str] = (),
    agents: Sequence[Any] = (),
    exceptions: Iterable[type[BaseException]] = (),
    **settings: Any,
) -> ReplaySession:
    """Rerun up to an event and go live there.

    ```python
    with sealtrace.resume(run, at=14) as session:
        Runner.run_sync(agent, "refund order 7")
    ```

    Args:
        run: A loaded run, or its id or a link to it.
        at: The first event that is live.
        record_id: Its record, where several have that number; the oldest by default.
        allow: Effects that live tools may have; a tool that declares none is a `write`.
        ignore: As for `rerun`.
        pin: As for `rerun`.
        agents: As for `rerun`.
        exceptions: As for `rerun`.
        settings: As for `rerun`.

    Raises:
        NotComparable: The run has no such event, or lacks what a rerun needs.
    """
    in_force = load_settings(settings)
    found = find(run, in_force)
    tape = open_tape(found)
    events = [event for frame in tape.frames.values() for event in frame.events]
    point = next((e for e in events if e.seq == at and record_id in (None, e.record_id)), None)
    if point is None:
        raise NotComparable(f"{tape.run_id} has no event {at} to go live at")
    ledger, gate = make_ledger(tape, in_force, Mode.RESUME, ignore=ignore, pin=pin)
    ledger.live_from = at
    options = Options(agents=agents, exceptions={cls.__name__: cls for cls in exceptions})
    return ReplaySession(Resumer(ledger, gate, options, point, frozenset(allow)), found)


class Resumer(Replayer):
    """Serves what comes before a point, and lets through what comes after."""

    def __init__(
        self, ledger: Ledger, gate: IdentifierGate, options: Options, point: RunEvent, allow: frozenset[str]
    ) -> None:
        super().__init__(ledger, gate, options)
        self._allow = allow
        self._records = list(dict.fromkeys(frame.record_id for frame in ledger.tape.roots))
        self._point = self._place(point)

    def _place(self, event: RunEvent) -> tuple[int, int]:
        return self._records.index(event.record_id), event.seq

    def _served(self, event: RunEvent | None) -> bool:
        """Whether this is answered from the record; if not, we are live from here on."""
        if event is not None and self._place(event) < self._point:
            return True
        if not self.ledger.touched:
            self.ledger.touched = True
            self.ledger.guarded = False
            self.ledger.note("live: the part before was served redacted, so its pseudonyms are in the live history")
            # What is left of the record is what happened then; it is not held against what happens now.
            for frame in self.ledger.tape.frames.values():
                frame.used.update(event.seq for event in frame.events if self._place(event) >= self._point)
        return False

    def _peek(self, kind: Kind) -> RunEvent | None:
        return self.here().tape.next(kind)

    def model(self, agent: Any, name: str, proceed: Callable[[], Model]) -> Model:
        """Served up to the point, then the real one, made only when it is needed."""
        self.ledger.check()
        return _ResumingModel(self, name, agent.name, proceed)

    def served_next(self) -> bool:
        """Whether the next request is still answered from the record."""
        served = self._served(self._peek(Kind.GENERATION))
        if not served:
            self.ledger.count("model", "live")
        return served

    async def tool(self, call: ToolCall, proceed: Callable[[], Any]) -> Any:
        """Served or run."""
        if self._served(self._call_of(call.call_id)):
            return await super().tool(call, proceed)
        self._permit(call.tool, call.name)
        self.ledger.count("tools", "live")
        return await proceed()

    async def native(self, call: NativeCall, proceed: Callable[[], Any]) -> Any:
        """Served or run."""
        if self._served(self._call_of(call.call_id)):
            return await super().native(call, proceed)
        self._permit(None, call.name)
        self.ledger.count("native tools", "live")
        return await proceed()

    def _call_of(self, call_id: str) -> RunEvent | None:
        clean, frame = self.clean(call_id), self.here().tape
        return next((e for e in frame.of(Kind.TOOL_CALL) if e.call_id == clean and e.seq not in frame.used), None)

    def _permit(self, tool: Any, name: str) -> None:
        effect = effect_of(tool) if tool is not None else "write"
        if effect not in self._allow:
            allowed = ", ".join(kind for kind in EFFECTS if kind in self._allow) or "nothing"
            self.ledger.refuse(f"the live part called {name!r}, which is a {effect}; allowed is {allowed} (allow=...)")

    async def guardrail(self, call: GuardrailCall, proceed: Callable[[], Any]) -> Any:
        """Compared, or simply run."""
        frame = self.here().tape
        free = [event for event in frame.of(Kind.GUARDRAIL) if event.seq not in frame.used]
        if self._served(next(iter(free), None)):
            return await super().guardrail(call, proceed)
        return await proceed()

    async def handoff(self, call: HandoffCall, proceed: Callable[[], Any]) -> Any:
        """Served, or made."""
        if self._served(self._peek(Kind.HANDOFF)):
            return await super().handoff(call, proceed)
        return await proceed()

    async def mcp_tools(self, server: str, proceed: Callable[[], Any]) -> Any:
        """Served, or asked for."""
        if self._served(self._peek(Kind.MCP_TOOLS)):
            return await super().mcp_tools(server, proceed)
        return await proceed()

    async def computer(self, tool: Any, proceed: Callable[[], Any]) -> Any:
        """The real one once we are live."""
        return await proceed() if self.ledger.touched else await super().computer(tool, proceed)

    def hosted_approval(self, request_id: str) -> dict[str, Any] | None:
        """Served, or asked for."""
        return None if self.ledger.touched else super().hosted_approval(request_id)

    def _open(self, call: RunCall) -> Scene:
        if not self.ledger.touched:
            return super()._open(call)
        parent = SCENE.get()
        return Scene(
            TapeFrame("", f"{parent.tape.path}/live" if parent is not None else "live", ()), parent, call.agent
        )

    def _ended(self, scene: Scene, result: Any) -> None:
        if not self.ledger.touched:
            super()._ended(scene, result)

    def _failed(self, scene: Scene, error: BaseException) -> None:
        if not self.ledger.touched:
            super()._failed(scene, error)


class _ResumingModel(ServedModel):
    """Answers from the record, and hands over to the real model once."""

    def __init__(self, resumer: Resumer, name: str, agent: str, make: Callable[[], Model]) -> None:
        super().__init__(resumer, name, agent)
        self._resumer = resumer
        self._make = make
        self._real: Model | None = None

    def _live(self) -> Model:
        if self._real is None:
            self._real = self._make()
        return self._real

    def get_retry_advice(self, request: Any) -> Any:
        """The real model's own, once it is asked."""
        return super().get_retry_advice(request) if self._real is None else self._real.get_retry_advice(request)

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """The recorded answer, or a live one."""
        if self._resumer.served_next():
            return await super().get_response(*args, **kwargs)
        return await self._live().get_response(*args, **kwargs)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The recorded stream, or a live one."""
        if self._resumer.served_next():
            async for event in super().stream_response(*args, **kwargs):
                yield event
            return
        stream: Any = self._live().stream_response(*args, **kwargs)
        async with aclosing(stream):
            async for event in stream:
                yield event
