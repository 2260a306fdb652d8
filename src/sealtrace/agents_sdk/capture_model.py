"""Model calls: the exact request, the whole answer, each attempt."""

from __future__ import annotations

import time
from typing import Any, Final

from agents import ModelResponse
from agents.version import __version__ as sdk_version

from .._version import __version__
from ..event import Kind
from .calls import ModelCall
from .codec import Snapshot, class_name, error_facts, settings_fields, usage_fields
from .emitter import Emitter, Pending
from .processor import MODEL_CALL
from .requests import build_request
from .spanbook import SpanEntry

__all__ = ["ModelCapture", "response_facts"]

_SPAN_SETTINGS: Final = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty")
_CONFIG_TYPES: Final = (bool, int, float)
_CONFIG_WORDS: Final = ("truncation", "verbosity", "prompt_cache_retention")


class ModelCapture(Emitter):
    """The model half of the observer."""

    def model_started(self, call: ModelCall) -> Any:
        """Take the request down; returns the token for `model_ended`."""
        here = self.here()
        if here is None:
            return None
        frame, record = here
        event = self.begin(Kind.GENERATION, frame, record)
        token = _ModelToken(event)
        MODEL_CALL.set(token)
        model = event.model = self.clean(call.model)
        record.models.setdefault(model)
        request, event.digest = build_request(call, frame.items, event.snapshot)
        event.payload["request"] = request
        event.config = self._config(call, model)
        frame.last_generation = event.seq
        token.facts = {
            "gen_ai.provider.name": call.provider,
            "gen_ai.request.model": call.model,
            "gen_ai.agent.name": frame.agent,
            **_span_settings(call),
        }
        return token

    def _config(self, call: ModelCall, model: str) -> dict[str, Any]:
        settings = settings_fields(call.settings) if call.settings is not None else {}
        plain = {
            name: value
            for name, value in settings.items()
            if type(value) in _CONFIG_TYPES or (name in _CONFIG_WORDS and type(value) is str)
        }
        config: dict[str, Any] = {"model": model, "stream": call.stream, **plain}
        effort = getattr(settings.get("reasoning"), "effort", None)
        if effort is not None:
            config["reasoning_effort"] = self.clean(effort)
        prompt: Any = call.prompt
        if isinstance(prompt, dict):
            for name in ("id", "version"):
                if prompt.get(name) is not None:
                    config[f"prompt_{name}"] = self.clean(prompt[name])
        if call.output_schema is not None and not call.output_schema.is_plain_text():
            config["output_schema"] = self.clean(call.output_schema.name())
        config["sdk"] = sdk_version
        config["sealtrace"] = __version__
        flags = dict(flag.split("=", 1) for flag in self.settings.feature_flags if "=" in flag)
        if flags:
            config["flags"] = flags
        return config

    def model_span(self, call: Any, entry: SpanEntry) -> None:
        """The SDK started its span for this call: it is the call's span from now on."""
        token: _ModelToken = call
        if token.done or token.entry is not None:
            return
        token.entry = token.event.entry = entry
        entry.deferred = True
        self.book.first_event(entry, token.event.seq)

    def model_first_chunk(self, token: Any) -> None:
        """The first chunk of a streamed answer has arrived."""
        if token is not None:
            token.first_chunk_ns = time.time_ns()

    def model_ended(self, token: Any, response: Any, error: BaseException | None, chunks: int | None) -> None:
        """Take the answer or the failure down and finish the event and its span."""
        if token is None or token.done:
            return
        token.done = True
        MODEL_CALL.set(None)
        event: Pending = token.event
        error_type = class_name(error) if error is not None else None
        if error is not None:
            event.payload["error"] = error_facts(error, event.snapshot)
        if response is not None:
            self._response(event, token, response)
        if chunks is not None:
            stream: dict[str, Any] = {"chunks": chunks}
            if token.first_chunk_ns is not None:
                seconds = (token.first_chunk_ns - event.started_ns) / 1e9
                stream["first_chunk_ms"] = round(seconds * 1000, 3)
                token.facts["gen_ai.response.time_to_first_chunk"] = seconds
            event.payload["stream"] = stream
        self._finish_span(token, error_type)
        self.end(event, error_type=error_type)

    def _response(self, event: Pending, token: _ModelToken, response: Any) -> None:
        facts = response_facts(response, event.snapshot)
        event.payload["response"] = facts
        event.digest = {**(event.digest or {}), "output": facts["output"]}
        usage = facts["usage"]
        event.record.add_usage(usage.get("input_tokens", 0), usage.get("output_tokens", 0))
        for item in facts["output"]:
            call_id = item.get("call_id") if type(item) is dict else None
            if type(call_id) is str:
                event.within.generation_of[call_id] = event.seq
                if type(item.get("name")) is str:
                    event.within.call_ids[item["name"], item.get("arguments")] = call_id
        token.facts |= {
            "gen_ai.response.id": facts["response_id"],
            "gen_ai.response.model": facts.get("model"),
            "gen_ai.response.finish_reasons": [_finish_reason(facts["output"])],
            "gen_ai.usage.input_tokens": usage.get("input_tokens"),
            "gen_ai.usage.output_tokens": usage.get("output_tokens"),
            "gen_ai.usage.cache_read.input_tokens": usage.get("cached_tokens"),
            "gen_ai.usage.cache_write.input_tokens": usage.get("cache_write_tokens"),
            "gen_ai.usage.reasoning.output_tokens": usage.get("reasoning_tokens"),
        }

    def _finish_span(self, token: _ModelToken, error_type: str | None) -> None:
        facts = {name: value for name, value in token.facts.items() if value is not None}
        event = token.event
        entry = token.entry
        if entry is None and event.record.root is None:
            return  # the SDK's tracing is off: there is no tree to hang a span from
        if entry is None:
            # A model class of the user's own makes no span; without one its tokens would be nowhere.
            entry = self.book.retroactive("model", event.record, facts, event.started_ns, error_type, seq=event.seq)
            event.entry = entry
            return
        entry.attributes.update(facts)
        entry.error_type = error_type or entry.error_type
        entry.deferred = False
        if entry.ended_ns is not None:
            self.book.end(entry)


class _ModelToken:
    """A model call in progress."""

    __slots__ = ("done", "entry", "event", "facts", "first_chunk_ns")

    def __init__(self, event: Pending) -> None:
        self.event = event
        self.entry: SpanEntry | None = None
        self.facts: dict[str, Any] = {}
        self.first_chunk_ns: int | None = None
        self.done = False


def response_facts(response: Any, snapshot: Snapshot) -> dict[str, Any]:
    """Output items, usage and ids of a `ModelResponse` or of a streamed, completed `Response`."""
    if isinstance(response, ModelResponse):
        usage = usage_fields(response.usage)
        response_id, request_id = response.response_id, response.request_id
    else:
        usage = usage_fields(response.usage, requests=1) if response.usage is not None else {}
        response_id, request_id = response.id, getattr(response, "_request_id", None)
    facts: dict[str, Any] = {
        "output": [snapshot.take(item) for item in response.output],
        "usage": usage,
        "response_id": response_id,
    }
    if request_id is not None:
        facts["request_id"] = request_id
    model = getattr(response, "model", None)
    if isinstance(model, str):
        facts["model"] = model
    return facts


def _finish_reason(output: list[Any]) -> str:
    return "tool_calls" if any(type(item) is dict and "call_id" in item for item in output) else "stop"


def _span_settings(call: ModelCall) -> dict[str, Any]:
    out: dict[str, Any] = {"gen_ai.request.stream": call.stream}
    for name in _SPAN_SETTINGS:
        value = getattr(call.settings, name, None)
        if value is not None:
            out[f"gen_ai.request.{name}"] = value
    return out
