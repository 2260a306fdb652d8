"""The channels by which content moves through a run, each with where it must be seen to be alive."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

RESPONSES: Final = "responses"
CHAT: Final = "chat"
OWN: Final = "own"
MODELS: Final = (RESPONSES, CHAT, OWN)


class Place(Enum):
    """Where a canary is seen when its channel is alive, before any recorder is in the picture."""

    ASKED = "what the model was asked"
    ANSWERED = "what the model answered"
    APPLICATION = "what the application's own code was given or gave"
    TRACING = "what the SDK hands to trace processors"
    OUTCOME = "what the caller of the run got"


class Kept(Enum):
    """What the vault holds of a channel."""

    YES = "recorded content"
    NO = "never: a credential, media, or not part of what happened"
    ANY = "may or may not be kept"


@dataclass(frozen=True)
class Channel:
    """One way for content to travel.

    Attributes:
        name: Unique.
        place: Where it is seen when it is alive.
        kept: Whether the vault must hold it.
        models: Kinds of model for which it exists.
        streamed_only: It exists only when a run is streamed.
    """

    name: str
    place: Place
    kept: Kept = Kept.YES
    models: tuple[str, ...] = MODELS
    streamed_only: bool = False


_HOSTED: Final = (RESPONSES, OWN)
_A, _B, _C, _T, _O = Place.ASKED, Place.ANSWERED, Place.APPLICATION, Place.TRACING, Place.OUTCOME

CHANNELS: Final = (
    # what the model is asked
    Channel("instructions", _A),
    Channel("prompt_variable", _A, models=_HOSTED),
    Channel("user_input", _A),
    Channel("input_image", _A, Kept.NO),
    Channel("input_file", _A, Kept.NO),
    Channel("session_item", _A),
    Channel("tool_description", _A),
    Channel("tool_parameter_description", _A),
    Channel("agent_tool_description", _A),
    Channel("mcp_tool_description", _A),
    Channel("handoff_description", _A),
    Channel("output_schema", _A),
    Channel("settings_metadata", _A),
    Channel("extra_args", _A),
    Channel("extra_body", _A),
    Channel("extra_query", _A),
    Channel("extra_headers", _A, Kept.NO),
    Channel("hosted_mcp_authorization", _A, Kept.NO, models=_HOSTED),
    Channel("hosted_mcp_headers", _A, Kept.NO, models=_HOSTED),
    # what it answers
    Channel("assistant_text", _B),
    Channel("stream_delta", _B, Kept.ANY, models=_HOSTED, streamed_only=True),
    Channel("reasoning_summary", _B),
    Channel("reasoning_encrypted", _B, Kept.ANY, models=_HOSTED),
    Channel("file_search_query", _B, models=_HOSTED),
    Channel("file_search_result", _B, models=_HOSTED),
    Channel("web_search_query", _B, models=_HOSTED),
    Channel("hosted_mcp_argument", _B, models=_HOSTED),
    Channel("hosted_mcp_result", _B, models=_HOSTED),
    Channel("retry_error", _B),
    Channel("model_error", _O),
    Channel("unknown_tool_name", _O, Kept.ANY),
    Channel("final_output", _O),
    # tools and what surrounds them
    Channel("tool_argument", _C),
    Channel("tool_result", _A),
    Channel("tool_image", _C, Kept.NO),
    Channel("tool_error_formatted", _A),
    Channel("tool_error_raised", _O),
    Channel("tool_rejection", _A),
    Channel("shell_command", _C, models=_HOSTED),
    Channel("shell_output", _A, models=_HOSTED),
    Channel("patch_diff", _C, models=_HOSTED),
    Channel("patch_output", _A, models=_HOSTED),
    Channel("custom_tool_input", _C, models=_HOSTED),
    Channel("custom_tool_output", _A, models=_HOSTED),
    Channel("agent_tool_input", _A),
    Channel("agent_tool_output", _A),
    Channel("mcp_argument", _C),
    Channel("mcp_result", _A),
    Channel("mcp_error", _A),
    Channel("handoff_argument", _C),
    Channel("approval_argument", _O),
    Channel("rejection_message", _A),
    Channel("input_guardrail_info", _O),
    Channel("output_guardrail_info", _O),
    Channel("tool_input_guardrail_info", _O),
    Channel("tool_output_guardrail_info", _O),
    Channel("tripped_guardrail_info", _O),
    Channel("guardrail_error", _O),
    # what the application tells tracing, the context and us
    Channel("custom_span_data", _T),
    Channel("span_error_message", _T, Kept.ANY),
    Channel("span_error_data", _T, Kept.ANY),
    Channel("trace_metadata", _T, Kept.ANY),
    Channel("group_id", _T, Kept.ANY),
    Channel("tracing_api_key", _T, Kept.NO),
    Channel("context_object", _C, Kept.NO),
    Channel("retrieval_query", _C),
    Channel("retrieval_text", _C),
)


def channels(model: str, *, streamed: bool) -> list[Channel]:
    """The channels that exist for this kind of model and way of running."""
    return [channel for channel in CHANNELS if model in channel.models and (streamed or not channel.streamed_only)]


class Canaries:
    """One unique string per channel.

    Args:
        shape: Makes the string from the channel's number and a unique word of letters.
    """

    def __init__(self, shape: str = "plain") -> None:
        make = SHAPES[shape]
        self.of: dict[str, str] = {
            channel.name: make(number, f"quokka{channel.name.replace('_', '')}quokka")
            for number, channel in enumerate(CHANNELS)
        }

    def __getattr__(self, name: str) -> str:
        try:
            return self.of[name]
        except KeyError:
            raise AttributeError(name) from None

    def names(self, canaries: set[str]) -> set[str]:
        """The channels these strings belong to."""
        return {name for name, canary in self.of.items() if canary in canaries}


def _luhn(number: int) -> str:
    """A card number, valid as to its check digit, from a test range."""
    body = f"424242{number:09d}"
    digits = [int(char) for char in body]
    total = sum(sum(divmod(digit * 2, 10)) if index % 2 == 0 else digit for index, digit in enumerate(reversed(digits)))
    return body + str(-total % 10)


SHAPES: Final = {
    "plain": lambda number, word: word,
    "email": lambda number, word: f"{word}@example.com",
    "card": lambda number, word: _luhn(731 * (number + 1)),
    "key": lambda number, word: f"sk-proj-{(word * 3)[:20]}{number:04d}T3BlbkFJ{(word[::-1] * 3)[:20]}",
}
