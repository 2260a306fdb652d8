"""The takeover of a rerun: runs, model calls and approvals; the rest is in `surfaces`."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from agents import Model
from agents.retry import ModelRetryAdvice
from agents.run_state import RunState

from ..agents_sdk.calls import ModelCall, RunCall
from ..agents_sdk.codec import Snapshot, approval_facts
from ..agents_sdk.requests import build_request, input_payload
from ..event import Kind, RunEvent
from . import serve
from .cause import Cause
from .desk import holds_pseudonyms
from .divergence import ReplayDiverged, cause_in_input, cause_in_request
from .jsondiff import ABSENT, Difference
from .ledger import CANCELLED, Refused
from .memory_session import MemorySession
from .scene import OPENER, SCENE, Scene
from .shape import JSON, at, is_array, is_object, items
from .space import Live
from .surfaces import Surfaces
from .tape import TapeFrame

__all__ = ["Replayer", "ServedModel", "as_asked"]


class Replayer(Surfaces):
    """Answers the SDK from the record."""

    def traces(self) -> bool:
        """Whether the SDK may trace: a rerun is not a run."""
        return False

    # runs

    async def run(self, call: RunCall, proceed: Callable[[RunCall], Any]) -> Any:
        """`Runner.run`, `run_sync` and agents used as tools."""
        scene = self._open(call)
        token = SCENE.set(scene)
        try:
            result = await proceed(call)
        except (ReplayDiverged, Refused):
            raise
        except BaseException as error:
            self._failed(scene, error)
            raise
        finally:
            SCENE.reset(token)
        self._ended(scene, result)
        return result

    def run_streamed(self, call: RunCall, proceed: Callable[[RunCall], Any]) -> Any:
        """`Runner.run_streamed`; the run goes on in a task that copies this context."""
        scene = self._open(call)
        token = SCENE.set(scene)
        try:
            result = proceed(call)
        finally:
            SCENE.reset(token)
        result.run_loop_task.add_done_callback(lambda task: self._streamed(scene, result, task))
        return result

    def _streamed(self, scene: Scene, result: Any, task: Any) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        try:
            if error is None:
                self._ended(scene, result)
            elif not isinstance(error, ReplayDiverged | Refused):
                self._failed(scene, error)
        except (ReplayDiverged, Refused):
            return  # latched; raised when the rerun is left

    def _open(self, call: RunCall) -> Scene:
        self.ledger.check()
        self._refuse_sandbox(call)
        parent = SCENE.get()
        payload, _ = input_payload(call)
        frame = self._frame(parent, call, payload)
        event = next(iter(frame.of(Kind.INPUT)), None) if frame is not None else None
        live = self.live(payload, Kind.INPUT, event)
        if frame is None:
            path = parent.tape.path if parent is not None else ""
            at_frame = TapeFrame("", path, ())
            message = "a run was started that was not recorded"
            self.ledger.unrecorded(
                Kind.INPUT, at_frame, message, cause=Cause.LOGIC, agent=self.clean(call.agent.name), got=live.redacted
            )
        scene = Scene(frame, parent, call.agent)
        scene.agent = self.clean(call.agent.name)
        if event is not None:
            frame.take(event)
            difference = self.ledger.space.first(event.payload, live)
            if difference is not None:
                cause = cause_in_input(difference, event.payload, live.redacted)
                later = self.ledger.space.count(event.payload, live) - 1
                self.ledger.differs(event, difference, "the input is not the recorded one", cause=cause, later=later)
            self.same_agent(event, call.agent.name)
        self.ledger.count("runs", "live")
        self._decisions(frame, call)
        self._replace_session(frame, call, live)
        return scene

    def _refuse_sandbox(self, call: RunCall) -> None:
        """The SDK would start a container before the first seam is reached."""
        wanted = getattr(call.kwargs.get("run_config"), "sandbox", None) is not None
        if wanted or any(cls.__name__ == "SandboxAgent" for cls in type(call.agent).__mro__):
            self.ledger.refuse("sandbox agents cannot be rerun: the SDK starts their sandbox itself")

    def _frame(self, parent: Scene | None, call: RunCall, payload: JSON) -> TapeFrame | None:
        if parent is not None:
            return self.ledger.tape.child(parent.tape, parent.child_path(OPENER.get() or "run"))
        waiting = [root for root in self.ledger.tape.roots if not root.opened]
        # Runs that go on side by side may start in another order: then the one with this very input is meant.
        fitting = (root for root in waiting if len(waiting) == 1 or self._fits(root, call, payload))
        frame = next(fitting, next(iter(waiting), None))
        if frame is not None:
            frame.opened = True
        return frame

    def _fits(self, root: TapeFrame, call: RunCall, payload: JSON) -> bool:
        event = next(iter(root.of(Kind.INPUT)), None)
        if event is None or event.agent not in (None, self.clean(call.agent.name)):
            return False
        return self.ledger.space.first(event.payload, self.live(payload, Kind.INPUT, event)) is None

    def _replace_session(self, frame: TapeFrame, call: RunCall, live: Live) -> None:
        """The user's store is neither read nor written: the record says what was in it."""
        session = call.kwargs.get("session")
        if session is None:
            return
        history = self._history(frame, live)
        name = str(getattr(session, "session_id", "session"))
        call.kwargs = {**call.kwargs, "session": MemorySession(name, history)}
        self.ledger.count("sessions", "served")

    def _history(self, frame: TapeFrame, live: Live) -> list[JSON]:
        """What the first request had before the new input."""
        first = next(iter(frame.of(Kind.GENERATION)), None)
        sent = items(at(first.payload, "request", "input")) if first is not None else []
        new = at(live.redacted, "input")
        raw = at(live.raw, "input")
        if isinstance(new, str):
            new, raw = [{"role": "user", "content": new}], [{"role": "user", "content": raw}]
        if not is_array(new) or len(sent) < len(new):
            return []
        cut = len(sent) - len(new)
        if self.ledger.space.first(sent[cut:], Live(raw, new)) is None:
            return sent[:cut]
        if sent:
            self.ledger.note(
                "the history of a session could not be told from what the run sent, so it began empty: a callback or a"
                " filter changed it"
            )
        return []

    def _ended(self, scene: Scene, result: Any) -> None:
        self.ledger.check()
        frame = scene.tape
        self._interruptions(frame, result)
        outcome = frame.outcome
        if outcome is None:
            return
        last = getattr(getattr(result, "last_agent", None), "name", None)
        final = result.final_output
        live = self.live({"final_output": Snapshot().take(final), "last_agent": last}, Kind.OUTPUT, outcome)
        if outcome.kind is Kind.ERROR:
            if frame.error == _TRIPPED and frame.raced:
                frame.take(outcome)  # a streamed run may end before its guardrail does; the verdict is compared anyway
                return
            self._earlier(outcome)
            got = Difference("$", outcome.payload, live.redacted)
            self.ledger.differs(outcome, got, "it failed when it was recorded, and ended well now")
        recorded = dict(outcome.payload)
        if any(final is lossy for lossy in scene.lossy):
            # A tool's own object was recorded as the text the model saw of it.
            recorded["final_output"] = at(live.redacted, "final_output")
        if self.ledger.space.first(recorded, live) is not None:
            self._earlier(outcome)
        self.ledger.compare(outcome, recorded, live, "the outcome is not the recorded one")
        frame.take(outcome)

    def _earlier(self, outcome: RunEvent) -> None:
        """What was skipped on the way explains an outcome better than the outcome does."""
        frame = outcome.frame
        for event in self.ledger.unconsumed():
            inside = event.frame == frame or event.frame.startswith(f"{frame}/")
            if event.record_id == outcome.record_id and inside and event.seq < outcome.seq:
                self.ledger.differs(event, Difference("$", event.payload, ABSENT), "recorded, and never asked for")

    def _failed(self, scene: Scene, error: BaseException) -> None:
        self.ledger.check()
        outcome = scene.tape.outcome
        name = error.recorded_type if isinstance(error, serve.RecordedError) else type(error).__name__
        if outcome is not None and outcome.kind is Kind.ERROR and scene.tape.error == name:
            scene.tape.take(outcome)
            return
        if name in CANCELLED or outcome is None:
            return  # what it left undone is found when the rerun is left
        if name == _TRIPPED and scene.tape.raced:
            scene.tape.take(outcome)
            return
        if name == "ModelBehaviorError" and self._unreadable(scene.tape):
            self.ledger.refuse(
                "an answer was recorded redacted and can no longer be read as the agent's output type; loosen the"
                " type's validation for pseudonyms such as <EMAIL:...>, or keep the field with a redaction rule"
            )
        self._earlier(outcome)
        recorded = scene.tape.error if outcome.kind is Kind.ERROR else ABSENT
        self.ledger.differs(
            outcome, Difference("$.type", recorded, name), "it failed now with another outcome than was recorded"
        )

    @staticmethod
    def _unreadable(frame: TapeFrame) -> bool:
        answers = [event for event in frame.of(Kind.GENERATION) if event.seq in frame.used]
        return bool(answers) and holds_pseudonyms(at(answers[-1].payload, "response", "output"))

    # approvals

    def approval_decided(self, state: Any, item: Any, approved: bool, reason: str | None) -> None:  # noqa: FBT001
        """A person, or the user's code, decided; compared when the run goes on."""
        self.ledger.check()
        snapshot = Snapshot()
        payload, call_id = approval_facts(item, snapshot)
        payload["approved"] = approved
        if reason is not None:
            payload["reason"] = snapshot.take(reason)
        key = id(state)
        if key not in _decided:
            _decided[key] = []
            weakref.finalize(state, _decided.pop, key, None)
        _decided[key].append((payload, call_id))

    def _decisions(self, frame: TapeFrame, call: RunCall) -> None:
        if not isinstance(call.input, RunState):
            return
        decided = _decided.get(id(call.input), [])
        taken, decided[:] = list(decided), []
        for payload, call_id in taken:
            self._approval(frame, payload, call_id, "a decision that was not made when it was recorded")

    def _interruptions(self, frame: TapeFrame, result: Any) -> None:
        for item in getattr(result, "interruptions", None) or []:
            payload, call_id = approval_facts(item, Snapshot())
            payload["approved"] = None
            self._approval(frame, payload, call_id, "a call waits for approval that did not when it was recorded")

    def _approval(self, frame: TapeFrame, payload: dict[str, Any], call_id: str | None, message: str) -> None:
        live = self.live(payload, Kind.APPROVAL, tool=payload.get("tool"))
        clean_id = self.clean(call_id) if call_id else None
        waits = payload["approved"] is None
        free = [
            event
            for event in frame.of(Kind.APPROVAL)
            if event.seq not in frame.used and (at(event.payload, "approved") is None) == waits
        ]
        event = next((event for event in free if event.call_id == clean_id), next(iter(free), None))
        if event is None:
            self.ledger.count("approvals", "refused")
            self.ledger.unrecorded(Kind.APPROVAL, frame, message, tool=payload.get("tool"), got=live.redacted)
        self.ledger.compare(event, event.payload, live, "the approval is not the recorded one")
        frame.take(event)
        self.ledger.count("approvals", "live")

    # the model

    def model(self, agent: Any, name: str, proceed: Callable[[], Model]) -> Model:  # noqa: ARG002
        """A model that answers from the record; the provider is never asked for one."""
        self.ledger.check()
        return ServedModel(self, name, agent.name)

    async def answer(self, call: ModelCall, agent: str) -> tuple[RunEvent, int]:
        """The recorded answer to a request, and how many attempts had failed before it.

        Raises:
            RecordedError: The recorded request failed for good.
        """
        scene = self.here()
        scene.agent = self.clean(agent)
        request, _ = build_request(call, scene.items, Snapshot())
        event = scene.tape.next(Kind.GENERATION)
        live = self.live({"request": request}, Kind.GENERATION, event or scene.failed)
        if event is None:
            if scene.failed is not None and self._difference(scene.failed, live) is None:
                await self.fail_as_recorded(scene, scene.failed)
            message = "the model was asked once more than when it was recorded"
            self.ledger.count("model", "refused")
            await self.absent(scene, Kind.GENERATION, message, agent=self.clean(agent), got=live.redacted)
        self._same_request(scene, event, live, agent)
        scene.tape.take(event)
        failed = 0
        while at(event.payload, "response") is None:
            following = scene.tape.next(Kind.GENERATION)
            if following is None or self._difference(following, live) is not None:
                break
            event, failed = following, failed + 1
            scene.tape.take(event)
        self.ledger.count("model", "served")
        if at(event.payload, "response") is None:
            scene.failed = event
            await self.fail_as_recorded(scene, event)
        return event, failed

    def _same_request(self, scene: Scene, event: RunEvent, live: Live, agent: str) -> None:
        if not any(at(start.payload, "resumed") for start in scene.tape.of(Kind.INPUT)):
            self.same_agent(event, agent)
        difference = self._difference(event, live)
        if difference is not None:
            recorded = as_asked(at(event.payload, "request"))
            got = at(live.redacted, "request")
            cause = cause_in_request(difference, scene.tape, recorded, got)
            later = self.ledger.space.count({"request": recorded}, live) - 1
            message = "the model was asked something else"
            self.ledger.differs(event, difference, message, cause=cause, later=later)

    def _difference(self, event: RunEvent, live: Live) -> Difference | None:
        return self.ledger.space.first({"request": as_asked(at(event.payload, "request"))}, live)


_TRIPPED: Final = "InputGuardrailTripwireTriggered"

_decided: Final[dict[int, list[Any]]] = {}


def as_asked(request: JSON) -> JSON:
    """A recorded request with the model by the name that was asked for; a rerun knows no other."""
    if not is_object(request) or "requested_model" not in request:
        return request
    asked = {name: value for name, value in request.items() if name != "requested_model"}
    asked["model"] = request["requested_model"]
    return asked


class ServedModel(Model):
    """Answers from the record."""

    def __init__(self, replayer: Replayer, name: str, agent: str) -> None:
        self._replayer = replayer
        self._name = name
        self._agent = agent

    def get_retry_advice(self, request: Any) -> ModelRetryAdvice:  # noqa: ARG002
        """Recorded retries are over: what is raised is the last attempt's failure."""
        return ModelRetryAdvice(suggested=False, replay_safety="unsafe")

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """The recorded answer, whole."""
        call = ModelCall.of(self._name, args, kwargs, stream=False)
        event, failed = await self._replayer.answer(call, self._agent)
        return serve.model_response(at(event.payload, "response"), failed_attempts=failed)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The recorded answer as a stream."""
        call = ModelCall.of(self._name, args, kwargs, stream=True)
        event, failed = await self._replayer.answer(call, self._agent)
        for piece in serve.stream_events(at(event.payload, "response"), self._name, failed_attempts=failed):
            yield piece
