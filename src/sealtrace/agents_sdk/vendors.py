"""Who serves a model, by the names of the GenAI conventions."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["provider_of"]

_OPENAI_CLASSES: Final = frozenset({"OpenAIResponsesModel", "OpenAIResponsesWSModel", "OpenAIChatCompletionsModel"})
_ROUTERS: Final = frozenset({"LitellmModel", "AnyLLMModel"})
_ROUTED: Final = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""What routers put before a model's name, and what the conventions call it."""


def provider_of(model: Any) -> str | None:
    """The conventions' `gen_ai.provider.name` of a model object, as far as its class tells.

    A client of OpenAI's may talk to a server that only speaks like OpenAI's; the conventions ask for
    the instrumentation's best knowledge, and that is "openai". Of a model class of the
    application's own nothing is known: None.
    """
    for cls in type(model).__mro__:
        if not cls.__module__.startswith("agents."):
            continue
        if cls.__name__ in _OPENAI_CLASSES:
            client = type(getattr(model, "_client", None)).__name__
            return "azure.ai.openai" if "Azure" in client else "openai"
        if cls.__name__ in _ROUTERS:
            name = getattr(model, "model", None)
            return _ROUTED.get(name.partition("/")[0]) if isinstance(name, str) else None
    return None
