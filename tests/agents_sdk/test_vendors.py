"""Who serves a model."""

from __future__ import annotations

from typing import Any

import pytest
from agents import OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents.testing import ScriptedModel
from openai import AsyncAzureOpenAI, AsyncOpenAI

from sealtrace.agents_sdk.vendors import provider_of

OPENAI = AsyncOpenAI(api_key="none")
AZURE = AsyncAzureOpenAI(api_key="none", azure_endpoint="https://none.example", api_version="1")


class _Own(OpenAIResponsesModel):
    """An application's own model on top of the SDK's."""


def _routed(name: str) -> Any:
    made = type("LitellmModel", (), {"__module__": "agents.extensions.models.litellm_model"})()
    made.model = name
    return made


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        (OpenAIResponsesModel("gpt-5", OPENAI), "openai"),
        (OpenAIChatCompletionsModel("gpt-5", OPENAI), "openai"),
        (OpenAIResponsesModel("gpt-5", AZURE), "azure.ai.openai"),
        (_Own("gpt-5", OPENAI), "openai"),
        (_routed("anthropic/claude"), "anthropic"),
        (_routed("bedrock/nova"), "aws.bedrock"),
        (_routed("unheard-of/model"), None),
        (_routed("model"), None),
        (ScriptedModel([]), None),
        (object(), None),
    ],
)
def test_provider(model: Any, provider: str | None) -> None:
    """The SDK's own models and routers name their provider; of other classes nothing is claimed."""
    assert provider_of(model) == provider
