"""The observer of live runs: run boundaries here, model calls and tools in the modules beside it."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
import weakref
from collections.abc import Callable
from contextvars import Token
from typing import Any, Final

from agents.run_state import RunState
from agents.tracing import get_current_trace

from ..event import Kind
from ..record import Record
from .calls import RunCall
from .capture_model import ModelCapture
from .capture_tools import ToolCapture
from .codec import Snapshot, approval_facts, class_name, error_facts
from .frames import FRAME, VIA, Frame
from .processor import MODEL_CALL, TraceListener
from .requests import input_payload
from .spanbook import SpanEntry

__all__ = ["Capture"]


@dataclasses.dataclass(slots=True)
class _Run:
    """A `Runner` call in progress: the token between `run_started` and `run_ended`."""

    frame: Frame
    tokens: list[tuple[Any, Token[Any]]]


class Capture(ModelCapture, ToolCapture, TraceListener):
    """Everything that is watched, as one observer for the seams."""

    tracing_off: Callable[[], bool] = staticmethod(lambda: False)
    """Whether the SDK's tracing is switched off for the whole process."""

    fidelity: str = "full"
    """What the self-check says a record of this process is worth; see `compat`."""

    on_run_start: Callable[[], None] = staticmethod(lambda: None)
    """Called at each run's start: is our processor still registered?"""

    def run_started(self, call: RunCall) -> Any:
        """Open a frame; take the input down before anyone can change it."""
        self.on_run_start()
        parent = FRAME.get()
        frame = Frame("", agent=self.clean(_agent_name(call)), muted=self._muted(call, parent), parent=parent)
        if not frame.muted:
            frame.pending.append(input_payload(call))
            if isinstance(call.input, RunState):
                frame.decisions, _decisions[id(call.input)] = _decisions_of(call.input), []
            self._find_record(frame, call)
        return _Run(frame, [])

    def _muted(self, call: RunCall, parent: Frame | None) -> bool:
        config = call.kwargs.get("run_config")
        if (parent is not None and parent.muted) or bool(getattr(config, "tracing_disabled", False)):
            return True
        if self.tracing_off():
            return not self.settings.record_when_tracing_disabled
        trace = get_current_trace()
        return trace is not None and trace.trace_id == "no-op"

    def _find_record(self, frame: Frame, call: RunCall) -> None:
        parent = frame.parent
        if self.tracing_off():
            if parent is not None and parent.record is not None:
                record = parent.record
            else:
                config = call.kwargs.get("run_config")
                record = self.recorder.record(getattr(config, "trace_id", None) or f"trace_{uuid.uuid4().hex}")
                if record.workflow_name is None and config is not None:
                    record.workflow_name = self.clean(config.workflow_name)
            self.trace_known(frame, record)
            return
        trace = get_current_trace()
        if trace is not None:
            self.trace_known(frame, self.recorder.record(trace.trace_id))

    def trace_known(self, frame: Frame, record: Record) -> None:
        """The frame's record is known: give it its path and emit what waited."""
        if frame.record is not None:
            return
        parent = frame.parent
        if parent is not None and parent.record is record:
            frame.path = parent.child_path(VIA.get() or "run")
        else:
            frame.path = f"run:{record.ordinal('', Kind.INPUT)}"
        frame.record = record
        record.fidelity = self.fidelity
        record.hold(run=True)
        record.agents.setdefault(frame.agent)
        for payload, snapshot in frame.pending:
            self.at_once(Kind.INPUT, frame, record, payload, snapshot=snapshot, digest={"input": payload.get("input")})
        frame.pending.clear()
        self._emit_decisions(frame, record)

    def run_entered(self, token: Any) -> None:
        """Make the frame current in this context."""
        if token is not None:
            token.tokens = [(FRAME, FRAME.set(token.frame)), (MODEL_CALL, MODEL_CALL.set(None))]

    def run_left(self, token: Any) -> None:
        """Make the frame before current again."""
        if token is None:
            return
        for variable, saved in token.tokens:
            variable.reset(saved)
        token.tokens = []

    def run_ended(self, token: Any, result: Any, error: BaseException | None) -> None:
        """Take the outcome down and let go of the record."""
        if token is None or token.frame.record is None:
            return
        frame: Frame = token.frame
        record = frame.record
        assert record is not None
        try:
            if error is None:
                self._outcome(frame, record, result)
            else:
                self._failure(frame, record, error)
        finally:
            self.recorder.release(record, run=True)

    def _outcome(self, frame: Frame, record: Record, result: Any) -> None:
        snapshot = Snapshot()
        for item in getattr(result, "interruptions", None) or []:
            self._approval_wanted(frame, record, item)
        payload = {
            "final_output": snapshot.take(result.final_output),
            "last_agent": getattr(getattr(result, "last_agent", None), "name", None),
        }
        digest = {"final_output": payload["final_output"]}
        self.at_once(Kind.OUTPUT, frame, record, payload, snapshot=snapshot, digest=digest)

    def _failure(self, frame: Frame, record: Record, error: BaseException) -> None:
        snapshot = Snapshot()
        name = class_name(error)
        record.ended_as("cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error", name)
        self.at_once(Kind.ERROR, frame, record, error_facts(error, snapshot), snapshot=snapshot, error_type=name)

    # approvals

    def _approval_wanted(self, frame: Frame, record: Record, item: Any) -> None:
        snapshot = Snapshot()
        payload, call_id = approval_facts(item, snapshot)
        payload["approved"] = None
        self._emit_approval(frame, record, payload, call_id, snapshot)

    def approval_decided(self, state: Any, item: Any, approved: bool, reason: str | None) -> None:  # noqa: FBT001
        """A person decided; it is recorded when the run that the decision is for goes on."""
        snapshot = Snapshot()
        payload, call_id = approval_facts(item, snapshot)
        payload["approved"] = approved
        if reason is not None:
            payload["reason"] = snapshot.take(reason)
        _decisions_of(state).append((payload, call_id, snapshot))

    def _emit_decisions(self, frame: Frame, record: Record) -> None:
        decisions, frame.decisions = frame.decisions, []
        for payload, call_id, snapshot in decisions:
            self._emit_approval(frame, record, payload, call_id, snapshot)

    def _emit_approval(
        self, frame: Frame, record: Record, payload: dict[str, Any], call_id: str | None, snapshot: Snapshot
    ) -> None:
        parent = frame.generation_of.get(call_id) if call_id else None
        self.at_once(
            Kind.APPROVAL,
            frame,
            record,
            payload,
            snapshot=snapshot,
            call_id=self.clean(call_id) if call_id else None,
            parent_seq=parent,
            tool=self.clean(payload["tool"]) if payload.get("tool") else None,
        )

    # what the processor hears

    def agent_started(self, record: Record, name: str) -> None:
        """Events from here on are this agent's; after a resume it need not be the starting agent."""
        here = self.here()
        if here is not None and here[1] is record:
            here[0].agent = self.clean(name)
            record.agents.setdefault(here[0].agent)

    def custom_span(self, record: Record, entry: SpanEntry, name: Any, data: Any) -> None:
        """The user's own span: name and data are content and go to the vault only."""
        here = self.here()
        if here is None or here[1] is not record:
            return
        snapshot = Snapshot()
        payload = {"name": snapshot.take(name), "data": snapshot.take(data)}
        self.at_once(Kind.CUSTOM, here[0], record, payload, snapshot=snapshot, entry=entry)


def _agent_name(call: RunCall) -> str:
    return str(getattr(call.agent, "name", ""))


_decisions: Final[dict[int, list[Any]]] = {}


def _decisions_of(state: Any) -> list[Any]:
    key = id(state)
    if key not in _decisions:
        _decisions[key] = []
        weakref.finalize(state, _decisions.pop, key, None)
    return _decisions[key]
