"""`sealtrace.compare`: the recorded tool results, a live model. A live comparison, and labelled so.

The model is asked for real; tools are not run, their recorded results are served to the same calls
(same tool, same arguments). A call that was not recorded ends the comparison: there is nothing to
tell the model. Differences are reported and never raised, for a live model may well differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, NoReturn

from agents import Model

from ..agents_sdk.calls import GuardrailCall, HandoffCall, ModelCall, NativeCall, RunCall, ToolCall
from ..agents_sdk.capture_model import response_facts
from ..agents_sdk.codec import Snapshot, verdict
from ..agents_sdk.requests import build_request, input_payload
from ..event import Kind, RunEvent
from ..settings import load_settings
from .cause import Cause
from .comparable import subject
from .desk import Options
from .divergence import ReplayDiverged, cause_in_request
from .guard import allowed
from .jsondiff import Difference, first_difference
from .replayer import Replayer, ServedModel, as_asked
from .report import Divergence, Mode
from .rerun import find, make_ledger
from .scene import SCENE, Scene
from .session import ReplaySession
from .shape import JSON, at, is_object
from .space import Live
from .surfaces import opened
from .tape import Recorded, TapeFrame, open_tape

__all__ = ["compare"]


def compare(
    run: Recorded | str,
    *,
    agents: Sequence[Any] = (),
    ignore: Iterable[str] = (),
    pin: Iterable[str] = (),
    **settings: Any,
) -> ReplaySession:
    """Ask the model again, on recorded tool results.

    ```python
    with sealtrace.compare(run) as session:
        Runner.run_sync(agent, "refund order 7")
    session.report.divergence  # the first difference, or None
    ```

    Args:
        run: A loaded run, or its id or a link to it.
        agents: As for `rerun`.
        ignore: As for `rerun`.
        pin: As for `rerun`.
        settings: As for `rerun`.

    Raises:
        NotComparable: The record lacks what is needed.
    """
    in_force = load_settings(settings)
    found = find(run, in_force)
    tape = open_tape(found)
    ledger, gate = make_ledger(tape, in_force, Mode.COMPARE, ignore=ignore, pin=pin)
    ledger.note("the model was asked live; what it was told of tools is recorded, and redacted")
    return _ComparisonSession(Comparer(ledger, gate, Options(agents=agents)), found)


class _ComparisonSession(ReplaySession):
    """Reports instead of raising; only what ends a comparison early is swallowed on the way out."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        with contextlib.suppress(ReplayDiverged):
            super().__exit__(kind, error, traceback)
        return isinstance(error, ReplayDiverged)

    def finish(self) -> None:
        """Nothing is owed: a live model may need less."""


class Comparer(Replayer):
    """Lets the model through and serves the rest."""

    def _found(self, divergence: Divergence) -> None:
        """Keep the first difference; count the others."""
        if self.ledger.first is None:
            self.ledger.first = ReplayDiverged(divergence)
        else:
            self.ledger.later += 1

    def _differs(self, event: RunEvent, difference: Difference, message: str, cause: Cause) -> None:
        self._found(self.ledger.divergence(event, difference, message, cause))

    def here(self) -> Scene:
        """The scene of this context; differences found so far stop nothing."""
        scene = SCENE.get()
        if self.ledger.refusal is not None or scene is None:
            self.ledger.refuse("the comparison had already ended")
        return scene

    # runs

    def _open(self, call: RunCall) -> Scene:
        payload, _ = input_payload(call)
        frame = self._frame(SCENE.get(), call, payload) or TapeFrame("", "unrecorded", ())
        return Scene(frame, SCENE.get(), call.agent)

    def _ended(self, scene: Scene, result: Any) -> None:
        outcome = scene.tape.outcome
        if outcome is None:
            return
        payload = {"final_output": Snapshot().take(result.final_output), "last_agent": result.last_agent.name}
        difference = self.ledger.space.first(outcome.payload, self.live(payload, Kind.OUTPUT, outcome))
        if difference is None:
            scene.tape.take(outcome)
        else:
            self._differs(outcome, difference, "the live model led to another outcome", Cause.MODEL)

    def _failed(self, scene: Scene, error: BaseException) -> None:
        outcome = scene.tape.outcome
        if outcome is not None and scene.tape.error != type(error).__name__:
            got = Difference("$.type", scene.tape.error, type(error).__name__)
            self._differs(outcome, got, "the live run failed", Cause.MODEL)

    def approval_decided(self, state: Any, item: Any, approved: bool, reason: str | None) -> None:  # noqa: FBT001
        """Decisions are the caller's."""

    # the model

    def model(self, agent: Any, name: str, proceed: Callable[[], Model]) -> Model:
        """The real model, watched."""
        return _ComparedModel(self, name, agent.name, proceed)

    def asked(self, call: ModelCall) -> tuple[RunEvent | None, Scene]:
        """Hold a request against the recorded one."""
        scene = self.here()
        event = scene.tape.next(Kind.GENERATION)
        while event is not None and at(event.payload, "response") is None:
            scene.tape.take(event)
            event = scene.tape.next(Kind.GENERATION)
        scene.tape.take(event)
        self.ledger.count("model", "live")
        self.ledger.touched = True
        if event is not None and self.ledger.first is None:
            request, _ = build_request(call, scene.items, Snapshot())
            live = self.live({"request": request}, Kind.GENERATION, event)
            recorded = _request(event, {"request": as_asked(at(event.payload, "request"))})
            got = Live(_request(event, live.raw), _request(event, live.redacted))
            difference = self.ledger.space.first(recorded, got)
            if difference is not None:
                cause = cause_in_request(difference, scene.tape, recorded["request"], got.redacted["request"])
                self._differs(event, difference, "the model was asked something else", cause)
        return event, scene

    def answered(self, event: RunEvent | None, scene: Scene, response: Any) -> None:
        """Hold an answer against the recorded one."""
        facts = response_facts(response, Snapshot())
        if event is None:
            message = "the live model took another turn"
            self._found(Divergence(Cause.MODEL, Kind.GENERATION, message, scene.tape.path))
            return
        live = self.live({"response": facts}, Kind.GENERATION, event)
        difference = first_difference(_answer(event, event.payload), _answer(event, live.redacted))
        if difference is not None:
            self._differs(event, difference, "the live model answered otherwise", Cause.MODEL)

    # tools

    async def tool(self, call: ToolCall, proceed: Callable[[], Any]) -> Any:
        """The recorded result of the same call, whatever its id."""
        scene = self.here()
        kind = "mcp" if call.mcp_server is not None else "agent" if call.is_agent else "function"
        payload: dict[str, Any] = {"tool": call.name, "type": kind, "arguments": Snapshot().take(call.arguments)}
        event = self._same_call(scene, payload)
        if call.is_agent:
            opener = f"tool:{event.call_id}" if event is not None else f"live:{call.call_id}"
            with opened(opener):
                return await proceed()
        if event is None:
            self._end(scene, payload)
        result = self._result_of(scene, event)
        return await self._serve(scene, event, result)

    async def native(self, call: NativeCall, proceed: Callable[[], Any]) -> Any:  # noqa: ARG002
        """The recorded item of the same call, under the live call's id."""
        scene = self.here()
        payload = {"tool": call.name, "type": call.action, "arguments": Snapshot().take(call.tool_call)}
        event = self._same_call(scene, payload)
        if event is None:
            self._end(scene, payload)
        return await self._serve_native(call, scene, self._result_of(scene, event))

    def _same_call(self, scene: Scene, payload: dict[str, Any]) -> RunEvent | None:
        live = self.live(payload, Kind.TOOL_CALL, tool=payload["tool"])
        for event in scene.tape.of(Kind.TOOL_CALL):
            if event.seq in scene.tape.used or at(event.payload, "tool") != at(live.redacted, "tool"):
                continue
            wanted, got = (_bare(at(side, "arguments")) for side in (event.payload, live.redacted))
            if self.ledger.space.first(wanted, Live(_bare(at(live.raw, "arguments")), got)) is None:
                return scene.tape.take(event)
        return None

    def _end(self, scene: Scene, payload: dict[str, Any]) -> NoReturn:
        self.ledger.count("tools", "refused")
        got = self.live(payload, Kind.TOOL_CALL, tool=payload["tool"]).redacted
        message = "the live model made a call that was not recorded: there is no result to go on with"
        self._found(Divergence(Cause.MODEL, Kind.TOOL_CALL, message, scene.tape.path, tool=at(got, "tool"), got=got))
        assert self.ledger.first is not None
        raise self.ledger.first

    async def handoff(self, call: HandoffCall, proceed: Callable[[], Any]) -> Any:  # noqa: ARG002
        """The target, by reference or by name; callbacks are not run."""
        scene = self.here()
        scene.tape.take(scene.tape.next(Kind.HANDOFF))
        return call.target if call.target is not None else self._find_agent(scene, call.to_agent)

    async def guardrail(self, call: GuardrailCall, proceed: Callable[[], Any]) -> Any:
        """Run for real; another verdict is a difference."""
        scene = self.here()
        event = scene.tape.guardrail(call.stage, self.redacted(call.name), None)
        with opened(f"guardrail:{self.clean(call.name)}"):
            output = await proceed()
        self.ledger.count("guardrails", "live")
        if event is not None:
            facts = {"name": call.name, "stage": call.stage, **verdict(getattr(output, "output", output), Snapshot())}
            difference = self.ledger.space.first(event.payload, self.live(facts, Kind.GUARDRAIL, event))
            if difference is not None:
                self._differs(event, difference, "a guardrail came to another verdict", Cause.POLICY)
        return output

    async def mcp_tools(self, server: str, proceed: Callable[[], Any]) -> Any:
        """The recorded list, again and again if need be."""
        scene = self.here()
        name = self.redacted(server)
        listed = [event for event in scene.tape.of(Kind.MCP_TOOLS) if at(event.payload, "server") == name]
        free = [event for event in listed if event.seq not in scene.tape.used]
        if listed and not free:
            scene.tape.used.discard(listed[-1].seq)
        return await super().mcp_tools(server, proceed)


_VOLATILE: Final = frozenset({"id", "call_id", "status"})


def _bare(arguments: JSON) -> JSON:
    """Arguments without the ids a live model draws anew."""
    if not is_object(arguments):
        return arguments
    return {name: value for name, value in arguments.items() if name not in _VOLATILE}


def _request(event: RunEvent, payload: JSON) -> dict[str, JSON]:
    """A request as two runs' requests are compared: a live model's ids are others."""
    bare = dataclasses.replace(event, payload={"request": at(payload, "request")})
    return {"request": at(subject(bare, 0).value, "request")}


def _answer(event: RunEvent, payload: JSON) -> JSON:
    """An answer as two runs' answers are compared: without ids, times and token counts."""
    bare = dataclasses.replace(event, payload={"response": at(payload, "response")})
    response = dict(at(subject(bare, 0).value, "response") or {})
    response.pop("model", None)
    return {"response": response}


class _ComparedModel(ServedModel):
    """The real model; each request and answer is held against the recorded one."""

    def __init__(self, comparer: Comparer, name: str, agent: str, make: Callable[[], Model]) -> None:
        super().__init__(comparer, name, agent)
        self._comparer = comparer
        with allowed():
            self._real = make()

    def get_retry_advice(self, request: Any) -> Any:
        """The real model's own."""
        return self._real.get_retry_advice(request)

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """A live answer."""
        event, scene = self._comparer.asked(ModelCall.of(self._name, args, kwargs, stream=False))
        with allowed():
            response = await self._real.get_response(*args, **kwargs)
        self._comparer.answered(event, scene, response)
        return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """A live stream."""
        event, scene = self._comparer.asked(ModelCall.of(self._name, args, kwargs, stream=True))
        stream: Any = self._real.stream_response(*args, **kwargs)
        async with aclosing(stream):
            while True:
                try:
                    with allowed():
                        piece = await anext(stream)
                except StopAsyncIteration:
                    return
                if getattr(piece, "type", None) == "response.completed":
                    self._comparer.answered(event, scene, piece.response)
                yield piece
