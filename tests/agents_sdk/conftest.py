"""A recorded run in a few lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, Runner
from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import sealtrace
from sealtrace.event import RunEvent
from sealtrace.settings import Settings
from sealtrace.vault import StoredRecord, VaultReader, open_store


def say(text: str) -> ResponseOutputMessage:
    """A model's text answer."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="msg_1", role="assistant", status="completed", type="message", content=[part])


def call(name: str, arguments: Any, call_id: str) -> ResponseFunctionToolCall:
    """A model's tool call."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ResponseFunctionToolCall(
        type="function_call", call_id=call_id, name=name, arguments=text, id=f"fc_{call_id}"
    )


def model(*steps: list[Any]) -> ScriptedModel:
    """A model that answers with these output items, turn by turn."""
    return ScriptedModel([ModelStep(output=step) for step in steps])


def run(agent: Agent[Any], given: Any, **options: Any) -> Any:
    """`Runner.run` in a loop of its own, which is closed again; the SDK's `run_sync` leaves one open."""
    return asyncio.run(Runner.run(agent, given, **options))


@pytest.fixture
def records(vault_url: str) -> Callable[[], list[StoredRecord]]:
    """Everything that lies in the test's vault, oldest first, once what waits is stored."""

    def read() -> list[StoredRecord]:
        assert sealtrace.flush(10)
        found = list(VaultReader(open_store(vault_url, Settings())).recent(1000))
        return sorted(found, key=lambda record: record.record_id)

    return read


@pytest.fixture
def events(records: Callable[[], list[StoredRecord]], vault_url: str) -> Callable[[], list[RunEvent]]:
    """The events of all records, in order."""

    def read() -> list[RunEvent]:
        reader = VaultReader(open_store(vault_url, Settings()))
        whole = [r for found in records() for r in reader.records(found.run_id) if r.record_id == found.record_id]
        assert not any(record.gaps() for record in whole)
        return [event for record in whole for event in record.events()]

    return read
