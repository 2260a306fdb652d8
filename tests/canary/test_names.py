"""Names and ids go onto spans; one that holds a secret, or is a text, must not."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
import pytest
from agents import Agent, FunctionTool, GuardrailFunctionOutput, InputGuardrail, RunConfig, Runner, custom_span, handoff

import sealtrace
from canary.channels import SHAPES
from canary.scan import found
from canary.test_canary import KEY, our_logs, vault_bytes
from loopback import items
from loopback.items import reply
from loopback.model import OwnModel
from loopback.otel import OtelCapture
from loopback.server import LoopbackServer

NAMES = (
    "agent",
    "target",
    "tool",
    "handoff",
    "guardrail",
    "custom",
    "workflow",
    "group",
    "metadata_value",
    "model",
    "call_id",
    "trace_id",
    "actor",
    "scope",
    "policy",
    "exception",
)


def canaries(shape: str) -> dict[str, str]:
    """A string for each name; `text` is no secret, but no name either."""
    make = {**SHAPES, "text": lambda number, word: f"please tell {word} that\nher order is late"}[shape]
    return {name: make(number, f"quokka{name.replace('_', '')}quokka") for number, name in enumerate(NAMES)}


class NamedModel(OwnModel):
    """A model that has a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.model = name


def run(named: dict[str, str]) -> None:
    """A run in which each name is one of these."""
    model = NamedModel(named["model"])

    async def invoke(context: Any, arguments: str) -> str:
        with custom_span(named["custom"]):
            raise type(named["exception"], (Exception,), {})("failed")

    def check(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    schema = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
    tool = FunctionTool(named["tool"], "A tool.", schema, invoke)
    target = Agent(named["target"], model=model, tools=[tool])
    agent = Agent(
        named["agent"],
        model=model,
        handoffs=[handoff(target, tool_name_override=named["handoff"])],
        input_guardrails=[InputGuardrail(check, name=named["guardrail"])],
    )
    config = RunConfig(
        workflow_name=named["workflow"],
        group_id=named["group"],
        trace_id=named["trace_id"],
        trace_metadata={"listed": named["metadata_value"]},
    )
    model.play(
        [
            reply(items.call(named["handoff"], {}, named["call_id"])),
            reply(items.call(named["tool"], {}, named["call_id"] + ":2")),
            reply(items.message("done")),
        ]
    )
    with (
        sealtrace.authority(named["actor"], scopes=[named["scope"]], policy=named["policy"]),
        pytest.raises(BaseException, match="failed"),
    ):
        asyncio.run(Runner.run(agent, "hello", run_config=config))


@pytest.mark.parametrize("shape", ["email", "card", "key", "text"])
def test_no_name_carries_a_secret_out(shape: str, vendor: LoopbackServer, otel: OtelCapture, vault_url: str) -> None:
    """A secret or a sentence used as a name is in no OTLP byte; a secret is not in the vault either.

    The one exception is a trace id of the user's own: run ids are made from it by plain SHA-256, so
    that whoever has it finds the run without a key.
    """
    named = canaries(shape)
    with our_logs(otel):
        sealtrace.instrument(vault=vault_url, key=KEY, raw_group_id=True, trace_metadata_keys=("listed",))
        run(named)
        assert sealtrace.flush(10.0)
        agents.flush_traces()
        sealtrace.uninstrument()
        otel.flush()

    assert len(otel.spans()) > 8
    carriers = {
        (name, key)
        for span in otel.spans()
        for key, value in (("name", span.name), *span.attributes.items())
        for name, canary in named.items()
        if found([canary], str(value).encode())
    }
    assert carriers == {("trace_id", "sealtrace.run.id")}
    others = [canary for name, canary in named.items() if name != "trace_id"]
    for signal, bodies in otel.raw().items():
        assert found(others, *bodies) == set(), signal
        assert not any(named["trace_id"].encode() in body for body in bodies), signal
    if shape != "text":
        assert found(others, *vault_bytes(vault_url)) == set()
