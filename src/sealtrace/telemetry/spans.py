"""The only place where a span of ours gets a name or an attribute."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, TracerProvider

from .. import _version
from .._guard import safely
from ..settings import Settings
from .metadata import METADATA_PREFIX, SCHEMA_URL, Attribute, Gate, attribute

__all__ = ["IdentifierCleaner", "SpanWriter"]

_MAX_INT: Final = 2**63 - 1
_CLASS_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}\Z")
_OUR_ID: Final = re.compile(r"(?:trace_)?[0-9a-f]{32,64}\Z|tag:[a-z]{12}\Z")
_MAX_LINK: Final = 512

_OPERATION: Final = {
    "trace": "invoke_workflow",
    "agent": "invoke_agent",
    "model": "chat",
    "tool": "execute_tool",
    "speech": "speech",
    "transcription": "transcription",
}
_NAME: Final = {
    "trace": ("invoke_workflow", "sealtrace.workflow.name"),
    "agent": ("invoke_agent", "gen_ai.agent.name"),
    "model": ("chat", "gen_ai.request.model"),
    "tool": ("execute_tool", "gen_ai.tool.name"),
    "handoff": ("handoff", "sealtrace.handoff.from"),
    "guardrail": ("guardrail", "sealtrace.guardrail.name"),
    "turn": ("turn", "sealtrace.turn.index"),
    "mcp_tools": ("tools/list", "sealtrace.mcp.server"),
    "seal": ("sealtrace.seal", ""),
}


class IdentifierCleaner(Protocol):
    """The identifier gate, see `redaction.IdentifierGate`."""

    def clean(self, value: Any) -> str:
        """The name, or a keyed tag in its place."""
        ...

    def tag(self, value: Any) -> str:
        """Always a keyed tag."""
        ...


class SpanWriter:
    """Starts, fills and ends spans; lets through only what the allow-list allows.

    It never raises, never asks a foreign object for its text, never sets a status description, an
    event or a link. What does not pass is left out and counted in `refused`.

    Args:
        tracer_provider: Where spans go; None for the global provider, whenever that is set.
        gate: The identifier gate.
        settings: The settings in force.
    """

    def __init__(self, tracer_provider: TracerProvider | None, gate: IdentifierCleaner, settings: Settings) -> None:
        self._tracer = trace.get_tracer(
            "sealtrace", _version.__version__, tracer_provider=tracer_provider, schema_url=SCHEMA_URL
        )
        self._gate = gate
        self._metadata = frozenset(f"{METADATA_PREFIX}{key}" for key in settings.trace_metadata_keys)
        self.refused = 0
        self._check: dict[Gate, Callable[[Attribute, Any], Any]] = {
            Gate.NUMBER: _number,
            Gate.FLAG: lambda _, value: value if type(value) is bool else None,
            Gate.IDENTIFIER: self._identifier,
            Gate.WORD: lambda item, value: value if type(value) is str and value in item.words else None,
            Gate.WORDS: _words,
            Gate.TAG: self._tag,
            Gate.LINK: _link,
        }

    def start(
        self, kind: str, attributes: Mapping[str, Any], *, parent: Context | None, start_time: int | None = None
    ) -> Span:
        """Start a span of this kind (see `sealtrace.span.kind`).

        Args:
            kind: What the span is in the SDK's tree.
            attributes: What is known at the start; samplers see it.
            parent: The context to hang it from; an empty one makes a new trace.
            start_time: Nanoseconds since the epoch; now by default.
        """
        passed = self._pass({**attributes, "sealtrace.span.kind": kind, "gen_ai.operation.name": _OPERATION.get(kind)})
        if kind == "trace" and "sealtrace.workflow.name" in passed:
            # GenAI 0.1.0 merged workflows into agent spans: the workflow's name is the agent's there.
            passed.setdefault("gen_ai.agent.name", passed["sealtrace.workflow.name"])
        return self._tracer.start_span(
            _name(kind, passed),
            context=parent,
            kind=SpanKind.CLIENT if kind == "model" else SpanKind.INTERNAL,
            attributes=passed,
            start_time=start_time,
            record_exception=False,
            set_status_on_exception=False,
        )

    def set(self, span: Span, attributes: Mapping[str, Any]) -> None:
        """Set attributes on an open span."""
        safely(span.set_attributes, self._pass(attributes))

    def end(
        self,
        span: Span,
        attributes: Mapping[str, Any] | None = None,
        *,
        error_type: str | None = None,
        end_time: int | None = None,
    ) -> None:
        """Set what is known at the end, and end the span.

        Args:
            span: The span.
            attributes: More attributes.
            error_type: Class name of the exception it ended with; makes the status ERROR, without text.
            end_time: Nanoseconds since the epoch; now by default.
        """
        passed = self._pass(attributes or {})
        if error_type is not None:
            passed["error.type"] = error_type if _CLASS_NAME.match(error_type) else "_OTHER"
            span.set_status(Status(StatusCode.ERROR))
        if "gen_ai.request.model" in passed:
            span.update_name(f"chat {passed['gen_ai.request.model']}")
        if passed:
            span.set_attributes(passed)
        span.end(end_time)

    def seal(self, parent: SpanContext, attributes: Mapping[str, Any]) -> None:
        """The zero-length span that says a record's manifest is stored, under the run's root."""
        context = trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
        self.start("seal", attributes, parent=context).end()

    def _pass(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        passed: dict[str, Any] = {}
        for key, value in attributes.items():
            if value is None:
                continue
            item = attribute(key)
            if item is None or (item.key == METADATA_PREFIX and key not in self._metadata):
                self.refused += 1
                continue
            checked = self._check[item.gate](item, value)
            if checked is None:
                self.refused += 1
            else:
                passed[key] = checked
        return passed

    def _identifier(self, item: Attribute, value: Any) -> Any:
        if item.key == METADATA_PREFIX and type(value) in (bool, int, float):
            return value if type(value) is bool else _number(item, value)
        return self._gate.clean(value) if isinstance(value, str) else None

    def _tag(self, item: Attribute, value: Any) -> Any:  # noqa: ARG002 - one signature for all gates
        if type(value) is not str:
            return None
        return value if _OUR_ID.match(value) else self._gate.tag(value)


def _number(item: Attribute, value: Any) -> Any:  # noqa: ARG001 - one signature for all gates
    if type(value) is int:
        return value if -_MAX_INT <= value <= _MAX_INT else None
    return value if type(value) is float and math.isfinite(value) else None


def _words(item: Attribute, value: Any) -> Any:
    if type(value) not in (list, tuple):
        return None
    words = [word for word in value if type(word) is str and word in item.words]
    return words or None


def _link(item: Attribute, value: Any) -> Any:  # noqa: ARG001 - one signature for all gates
    return (
        value if type(value) is str and value.startswith(("http://", "https://")) and len(value) <= _MAX_LINK else None
    )


def _name(kind: str, passed: Mapping[str, Any]) -> str:
    verb, key = _NAME.get(kind, (kind, ""))
    detail = passed.get(key)
    return f"{verb} {detail}" if detail is not None else verb
