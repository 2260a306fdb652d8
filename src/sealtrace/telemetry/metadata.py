"""The allow-list: the only attributes a span of ours can have.

Never a deny-list. An attribute that is not named here cannot be set, and each says what may be in
it: a number, a word of a closed set, an identifier that has passed the gate. Keys and meanings
follow the OpenTelemetry GenAI semantic conventions (repository semantic-conventions-genai, v0.1.0)
where they define one; what they do not define is under `sealtrace.`.
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Final

__all__ = ["ATTRIBUTES", "METADATA_PREFIX", "SCHEMA_URL", "Attribute", "Gate"]

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The schema that the GenAI registry's own manifest declares for the names used here.

All GenAI conventions are in development. The schemas of the core conventions (`schemas/1.x.y`) would
be a false claim: they do not know the newer names, for example `gen_ai.usage.cache_write.input_tokens`.
"""

METADATA_PREFIX: Final = "sealtrace.metadata."
"""Trace metadata keys that the user lists become attributes under this prefix."""


class Gate(Enum):
    """What a value must be before it may pass."""

    COUNT = "a whole number of at most 64 bits"
    NUMBER = "a finite number"
    FLAG = "true or false"
    IDENTIFIER = "a name: short, sane, free of secrets, else a keyed tag"
    CLASS_NAME = "a class name that passes the gate for names, else `_OTHER`"
    WORD = "one of the words listed"
    TAG = "a keyed tag or an id that we made ourselves"
    LINK = "an address under the viewer's, which is a setting"
    WORDS = "a list of the words listed"


@dataclasses.dataclass(frozen=True, slots=True)
class Attribute:
    """One allowed attribute.

    Attributes:
        key: The attribute's name.
        gate: What may be in it.
        source: Where the name comes from.
        meaning: What it says.
        words: The closed set, for `Gate.WORD` and `Gate.WORDS`.
    """

    key: str
    gate: Gate
    source: str
    meaning: str
    words: frozenset[str] = frozenset()


_GENAI: Final = "GenAI semantic conventions 0.1.0"
_MCP: Final = "MCP semantic conventions (GenAI 0.1.0)"
_CORE: Final = "OpenTelemetry semantic conventions"
_OURS: Final = "sealtrace"

_OPERATIONS: Final = frozenset({"chat", "invoke_agent", "invoke_workflow", "execute_tool", "speech", "transcription"})
_STATUS: Final = frozenset({"ok", "error", "cancelled", "incomplete"})

_LIST: Final = (
    Attribute("gen_ai.operation.name", Gate.WORD, _GENAI, "what kind of operation the span is", _OPERATIONS),
    Attribute("gen_ai.provider.name", Gate.IDENTIFIER, _GENAI, "who serves the model"),
    Attribute("gen_ai.agent.name", Gate.IDENTIFIER, _GENAI, "the agent; on the root span the workflow"),
    Attribute("gen_ai.conversation.id", Gate.IDENTIFIER, _GENAI, "`group_id` as it is; only where set so"),
    Attribute("gen_ai.tool.name", Gate.IDENTIFIER, _GENAI, "the tool"),
    Attribute(
        "gen_ai.tool.type", Gate.WORD, _GENAI, "what kind of tool", frozenset({"function", "extension", "datastore"})
    ),
    Attribute("gen_ai.tool.call.id", Gate.IDENTIFIER, _GENAI, "the model's id of the call"),
    Attribute("gen_ai.request.model", Gate.IDENTIFIER, _GENAI, "the model asked for"),
    Attribute("gen_ai.request.stream", Gate.FLAG, _GENAI, "whether the answer was streamed"),
    Attribute("gen_ai.request.temperature", Gate.NUMBER, _GENAI, "sampling temperature"),
    Attribute("gen_ai.request.top_p", Gate.NUMBER, _GENAI, "nucleus sampling"),
    Attribute("gen_ai.request.max_tokens", Gate.COUNT, _GENAI, "most tokens to generate"),
    Attribute("gen_ai.request.frequency_penalty", Gate.NUMBER, _GENAI, "frequency penalty"),
    Attribute("gen_ai.request.presence_penalty", Gate.NUMBER, _GENAI, "presence penalty"),
    Attribute("gen_ai.response.id", Gate.IDENTIFIER, _GENAI, "the provider's id of the answer"),
    Attribute("gen_ai.response.model", Gate.IDENTIFIER, _GENAI, "the model that answered"),
    Attribute(
        "gen_ai.response.finish_reasons", Gate.WORDS, _GENAI, "why the model stopped",
        frozenset({"stop", "length", "tool_calls", "content_filter", "error"}),
    ),
    Attribute("gen_ai.response.time_to_first_chunk", Gate.NUMBER, _GENAI, "seconds until the first chunk"),
    Attribute("gen_ai.usage.input_tokens", Gate.COUNT, _GENAI, "tokens of the request"),
    Attribute("gen_ai.usage.output_tokens", Gate.COUNT, _GENAI, "tokens of the answer"),
    Attribute("gen_ai.usage.cache_read.input_tokens", Gate.COUNT, _GENAI, "request tokens read from the cache"),
    Attribute("gen_ai.usage.cache_write.input_tokens", Gate.COUNT, _GENAI, "request tokens written to the cache"),
    Attribute("gen_ai.usage.reasoning.output_tokens", Gate.COUNT, _GENAI, "answer tokens spent on reasoning"),
    Attribute("mcp.method.name", Gate.WORD, _MCP, "the MCP method", frozenset({"tools/call", "tools/list"})),
    Attribute("error.type", Gate.CLASS_NAME, _CORE, "class name of the exception, or `_OTHER`"),
    Attribute("sealtrace.run.id", Gate.TAG, _OURS, "the run: `trace_` and 32 hex digits"),
    Attribute("sealtrace.record.id", Gate.TAG, _OURS, "the record, that is, the process's part of the run"),
    Attribute("sealtrace.seq", Gate.COUNT, _OURS, "number of the first event that happened in this span"),
    Attribute("sealtrace.sdk.trace_id", Gate.IDENTIFIER, _OURS, "the Agents SDK's own trace id"),
    Attribute("sealtrace.sdk.span_id", Gate.IDENTIFIER, _OURS, "the Agents SDK's own span id"),
    Attribute("sealtrace.span.kind", Gate.WORD, _OURS, "what the span is in the SDK's tree", frozenset(
        {"trace", "task", "turn", "agent", "model", "tool", "handoff", "guardrail", "custom", "mcp_tools", "speech",
         "speech_group", "transcription", "seal"})),
    Attribute("sealtrace.workflow.name", Gate.IDENTIFIER, _OURS, "the workflow"),
    Attribute("sealtrace.session.tag", Gate.TAG, _OURS, "keyed tag of `group_id`"),
    Attribute("sealtrace.turn.index", Gate.COUNT, _OURS, "number of the turn, from 1"),
    Attribute("sealtrace.agent.tool_count", Gate.COUNT, _OURS, "how many tools the agent has"),
    Attribute("sealtrace.agent.handoff_count", Gate.COUNT, _OURS, "how many handoffs the agent has"),
    Attribute("sealtrace.handoff.from", Gate.IDENTIFIER, _OURS, "the agent that hands off"),
    Attribute("sealtrace.handoff.to", Gate.IDENTIFIER, _OURS, "the agent that takes over"),
    Attribute("sealtrace.guardrail.name", Gate.IDENTIFIER, _OURS, "the guardrail"),
    Attribute(
        "sealtrace.guardrail.stage", Gate.WORD, _OURS, "what it looks at",
        frozenset({"input", "output", "tool_input", "tool_output"}),
    ),
    Attribute("sealtrace.guardrail.tripped", Gate.FLAG, _OURS, "whether it stopped the run"),
    Attribute("sealtrace.custom.name", Gate.TAG, _OURS, "keyed tag of a custom span's name, which is content"),
    Attribute("sealtrace.mcp.server", Gate.IDENTIFIER, _OURS, "the MCP server"),
    Attribute("sealtrace.mcp.tool_count", Gate.COUNT, _OURS, "how many tools the server listed"),
    Attribute("sealtrace.replay.url", Gate.LINK, _OURS, "where the run can be opened; only where set so"),
    Attribute("sealtrace.fidelity", Gate.WORD, _OURS, "what the record is worth", frozenset({"full", "trace"})),
    Attribute("sealtrace.run.status", Gate.WORD, _OURS, "how the run ended", _STATUS),
    Attribute("sealtrace.run.events", Gate.COUNT, _OURS, "events of the record"),
    Attribute("sealtrace.run.dropped", Gate.COUNT, _OURS, "payloads that were dropped"),
    Attribute("sealtrace.run.redaction_failed", Gate.COUNT, _OURS, "payloads dropped because redaction failed"),
    Attribute("sealtrace.run.bytes", Gate.COUNT, _OURS, "bytes stored for the record"),
    Attribute("sealtrace.run.objects", Gate.COUNT, _OURS, "objects stored for the record"),
    Attribute("sealtrace.run.merkle_root", Gate.TAG, _OURS, "Merkle root of the record's lines"),
)  # fmt: skip

ATTRIBUTES: Final[dict[str, Attribute]] = {item.key: item for item in _LIST}
"""The allow-list, by key."""
