"""A model class of the application's own: no client, no HTTP, no spans."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from agents import Model, ModelResponse, Usage, generation_span
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import TypeAdapter

from . import wire
from .items import Failure, Step

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class ModelFailed(Exception):
    """What this model raises for a `Failure`."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status_code = status


class OwnModel(Model):
    """Answers from a script and keeps what it was asked.

    Args:
        steps: The script, or a function from the request to a step.
        spans: Whether it opens a generation span, as the SDK's own models do.
    """

    def __init__(self, steps: Iterable[Step] | Callable[[dict[str, Any]], Step] = (), *, spans: bool = False) -> None:
        self._spans = spans
        self.asked: list[dict[str, Any]] = []
        self.answered: list[Any] = []
        self._lock = threading.Lock()
        self.play(steps)

    def play(self, steps: Iterable[Step] | Callable[[dict[str, Any]], Step]) -> None:
        """Answer what follows with these."""
        self._responder = steps if callable(steps) else None
        self._script = [] if callable(steps) else list(steps)

    @property
    def unplayed(self) -> int:
        """Steps of the script that nobody asked for."""
        return len(self._script)

    def _step(self, request: dict[str, Any]) -> Any:
        with self._lock:
            self.asked.append(request)
            step = self._responder(request) if self._responder else self._script.pop(0)
            self.answered.append(step)
        if isinstance(step, Failure):
            raise ModelFailed(step.message, step.status)
        return step

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name
        model_settings: Any,
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """The whole answer."""
        with generation_span(model="own-model", disabled=not self._spans):
            step = self._step(_request(system_instructions, input, model_settings, args, kwargs))
        done = Response.model_validate(wire.response({"model": "own-model"}, step))
        usage = Usage(
            requests=1,
            input_tokens=wire.USAGE["input_tokens"],
            output_tokens=wire.USAGE["output_tokens"],
            total_tokens=wire.USAGE["total_tokens"],
            input_tokens_details=InputTokensDetails.model_validate(wire.USAGE["input_tokens_details"]),
            output_tokens_details=OutputTokensDetails.model_validate(wire.USAGE["output_tokens_details"]),
        )
        return ModelResponse(output=done.output, usage=usage, response_id=done.id)

    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name
        model_settings: Any,
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """The answer as events."""
        with generation_span(model="own-model", disabled=not self._spans):
            step = self._step(_request(system_instructions, input, model_settings, args, kwargs))
        for event in wire.response_events({"model": "own-model"}, step):
            yield _EVENT.validate_python(event)


def _request(instructions: Any, given: Any, settings: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("tools", "output_schema", "handoffs", "tracing")
    return {
        "instructions": instructions,
        "input": given,
        "settings": settings,
        **dict(zip(names, args, strict=False)),
        **kwargs,
    }
