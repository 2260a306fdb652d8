"""A refund after a handoff, over both model APIs: the scenario that replay tools were held to.

Triage asks three tools at once, two of them the same and finishing out of order, hands over, and the
refund agent pays, which writes a file. A rerun must pay nothing and notice every change.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    OpenAIProvider,
    RunConfig,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from openai import AsyncOpenAI

import sealtrace
from loopback.items import call, message, reply
from replay.world import World, again, record
from sealtrace.event import RunEvent
from sealtrace.replay.report import Outcome

STEPS = [
    reply(
        call("order", {"number": "A7"}, "call_1"),
        call("policy", {"of": "lamps"}, "call_2"),
        call("order", {"number": "A8"}, "call_3"),
    ),
    reply(call("transfer_to_refunds", {}, "call_4")),
    reply(call("issue_refund", {"order": "A7", "amount": 30}, "call_5")),
    reply(message("Refunded 30 to ann@example.org.")),
]


class Shop:
    """The shop's code; `api` is how it talks to its model."""

    def __init__(self, server: Any, ledger: Path, api: str) -> None:
        self.server = server
        self.ledger = ledger
        self.api = api
        self.prompt = "TRIAGE: route."

    @property
    def paid(self) -> int:
        """How often money was really paid."""
        return len(self.ledger.read_text().splitlines()) if self.ledger.exists() else 0

    async def __call__(self, world: World) -> Any:
        """Serve one customer."""

        @function_tool
        async def order(number: str) -> str:
            """An order."""
            await asyncio.sleep(0.05 if number == "A7" else 0)
            return f"{number}: lamp, card 4111 1111 1111 1111"

        @function_tool
        async def policy(of: str) -> str:
            """What may be refunded."""
            return f"{of} may be refunded"

        @function_tool
        def issue_refund(order: str, amount: int) -> str:
            """Pay."""
            with self.ledger.open("a") as ledger:
                ledger.write(f"{order} {amount}\n")
            return "paid"

        @input_guardrail
        async def polite(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            return GuardrailFunctionOutput("polite", False)

        @output_guardrail
        async def honest(ctx: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
            return GuardrailFunctionOutput("honest", False)

        refunds = Agent(
            name="Refunds",
            instructions="REFUND: pay back.",
            model="gpt-4.1",
            tools=[issue_refund],
            output_guardrails=[honest],
        )
        triage = Agent(
            name="Triage",
            instructions=self.prompt,
            model="gpt-4.1",
            tools=[order, policy],
            handoffs=[refunds],
            input_guardrails=[polite],
        )
        given = "Refund A7 please; I am ann@example.org."
        if not world.live:
            return await world.run(triage, given)
        client = AsyncOpenAI(api_key="sk-test", base_url=f"{self.server.url}/v1", max_retries=0)
        provider = OpenAIProvider(openai_client=client, use_responses=self.api == "responses")
        result = await world.run(triage, given, run_config=RunConfig(model_provider=provider))
        await client.close()
        return result


@pytest.fixture(params=["responses", "chat"])
def shop(request: Any, server: Any, tmp_path: Path) -> Shop:
    """A shop with nothing in its ledger."""
    server.play(STEPS)
    return Shop(server, tmp_path / "ledger", request.param)


def changed(run: Any, kind: str, old: str, new: str, **where: Any) -> Any:
    """The record with one text changed in the events of this kind for which `where` holds."""

    def change(event: RunEvent) -> RunEvent:
        if event.kind != kind or any(getattr(event, name) != value for name, value in where.items()):
            return event
        text = json.dumps(event.payload)
        assert old in text
        return dataclasses.replace(event, payload=json.loads(text.replace(old, new)))

    events = tuple(change(event) for event in run.events)
    return dataclasses.replace(run, records=(dataclasses.replace(run.records[0], events=events),))


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_streamed"])
def test_unchanged_it_is_the_same_and_pays_nothing(shop: Shop, vault_url: str, stream: bool) -> None:
    """Same outcome, no request, no refund: what was paid when it was recorded stays what was paid."""
    run = record(shop, vault_url, world=World(stream=stream))
    assert shop.paid == 1
    sent = len(shop.server.requests)
    session, _ = again(shop, run, world=World(stream=stream))
    assert session.report.outcome is Outcome.SAME
    assert session.receipt.surfaces["model"].served == 4
    assert session.receipt.surfaces["tools"].served == 4
    assert (shop.paid, len(shop.server.requests)) == (1, sent)


def test_a_changed_prompt_is_shown_by_path_with_both_texts(shop: Shop, vault_url: str) -> None:
    """CONFIG at `$.request.instructions` of the first turn, recorded and got."""
    run = record(shop, vault_url)
    shop.prompt = "TRIAGE v2: route."
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(shop, run)
    divergence = caught.value.divergence
    assert (divergence.cause, divergence.path) == ("CONFIG", "$.request.instructions")
    assert (divergence.recorded, divergence.got) == ("TRIAGE: route.", "TRIAGE v2: route.")
    assert shop.paid == 1


def test_a_changed_tool_output_is_found_in_the_request_that_tells_it(shop: Shop, vault_url: str) -> None:
    """TOOL, in the turn after: same call, another result."""
    run = record(shop, vault_url)
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(shop, changed(run, "tool_result", "lamp", "sofa", call_id="call_3"))
    divergence = caught.value.divergence
    assert divergence.cause == "TOOL"
    assert divergence.path.startswith("$.request.input[")
    assert divergence.path.endswith("].output")
    assert "sofa" in divergence.got
    assert shop.paid == 1


def test_a_changed_model_output_is_found_where_it_has_an_effect(shop: Shop, vault_url: str) -> None:
    """Another last answer gives another outcome, and the outcome says so."""
    run = record(shop, vault_url)
    last = [event for event in run.events if event.kind == "generation"][-1]
    with pytest.raises(sealtrace.ReplayDiverged) as caught:
        again(shop, changed(run, "generation", "Refunded 30", "Refunded 99", seq=last.seq))
    assert (caught.value.divergence.kind, caught.value.divergence.path) == ("output", "$.final_output")
    assert shop.paid == 1


def test_nothing_of_the_customer_is_in_record_or_report(shop: Shop, vault_url: str, tmp_path: Path) -> None:
    """Mail address and card number are pseudonyms everywhere, and it reruns all the same."""
    run = record(shop, vault_url)
    stored = json.dumps([event.to_json() for event in run.events])
    assert "ann@example.org" not in stored
    assert "1111 1111" not in stored
    session, _ = again(shop, run)
    assert "ann@example.org" not in json.dumps(session.report.to_json())
    assert session.report.by_kind == 0
