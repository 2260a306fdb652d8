"""The demo's support desk: real Agents SDK agents on a scripted model, so that no key is needed.

A customer writes with a card number in the message. Triage hands over to the refunds desk, which
looks two things up at once; the lookup brings an e-mail address along; the refund itself fails in
a tool whose failure handler hides the exception; guardrails look at what goes in and out.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from agents import (
    Agent,
    GuardrailFunctionOutput,
    RunContextWrapper,
    Runner,
    RunResult,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)
from agents.run_config import RunConfig
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from pydantic import BaseModel

__all__ = ["CARD", "CONTENT", "EMAIL", "SECRETS", "run_support_desk"]

CARD: Final = "4012 8888 8888 1881"
"""A test number of the card industry; passes the Luhn check, belongs to nobody."""

EMAIL: Final = "maria.ferreira@example.com"

_MESSAGE: Final = f"My espresso machine arrived with a cracked tank. Please refund order R-2048 to {CARD}."
_TRIAGE: Final = "You greet customers of Halcyon Kitchen and pass them to the right desk."
_REFUNDS: Final = "You refund orders of Halcyon Kitchen. Look the order up before you refund."
_REASON: Final = "cracked water tank, wants the money back"
_NOTE: Final = "left at the back door with the neighbour"
_POLICY: Final = "within 30 days a broken item is refunded in full"
_DECLINED: Final = "gateway refused: issuer said insufficient merchant balance"
_SORRY: Final = "The refund could not be booked. Tell the customer a colleague will do it by hand."
_ABUSE: Final = "polite, no abuse found"
_PROMISE: Final = "names a day but no amount, fine"
_THINKING: Final = "I will look at the order and our policy first."
_ANSWER: Final = "I am sorry about the cracked tank. A colleague will refund you by Thursday."
_TITLE: Final = "Espresso machine Aurora 3, copper"

SECRETS: Final = (CARD, CARD.replace(" ", ""), EMAIL)
"""What must be in neither half."""

CONTENT: Final = (
    "My espresso machine arrived",
    _TRIAGE,
    _REFUNDS,
    _REASON,
    _NOTE,
    _POLICY,
    _DECLINED,
    _SORRY,
    _ABUSE,
    _PROMISE,
    _THINKING,
    _ANSWER,
    _TITLE,
    "R-2048",
    "Finds an order and where it was delivered.",
    "Why the customer is passed on",
)
"""Strings from every place content comes from: each must be in the vault, none in the spans."""


class _Reason(BaseModel):
    """Why the customer is passed on to another desk."""

    reason: str


@function_tool
async def find_order(order_id: str) -> dict[str, Any]:
    """Finds an order and where it was delivered."""
    await asyncio.sleep(0.03)
    return {"order": order_id, "item": _TITLE, "customer": EMAIL, "delivery_note": _NOTE, "total": 389.0}


@function_tool
async def refund_policy(topic: str) -> str:
    """Reads the refund policy."""
    await asyncio.sleep(0.01)
    return f"{topic}: {_POLICY}"


def _explain(context: RunContextWrapper[Any], error: Exception) -> str:  # noqa: ARG001 - the SDK's signature
    return _SORRY


@function_tool(failure_error_function=_explain)
async def issue_refund(order_id: str, amount: float) -> str:
    """Pays an order back."""
    await asyncio.sleep(0.01)
    raise RuntimeError(f"{_DECLINED} ({order_id}, {amount})")


@input_guardrail
async def no_abuse(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:  # noqa: ARG001
    """Looks for abuse in what the customer wrote."""
    return GuardrailFunctionOutput(output_info=_ABUSE, tripwire_triggered=False)


@output_guardrail
async def no_promises(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:  # noqa: ARG001
    """Looks for promises of money in the answer."""
    return GuardrailFunctionOutput(output_info={"verdict": _PROMISE}, tripwire_triggered=False)


def _step(inputs: int, outputs: int, *items: Any) -> ModelStep:
    usage = Usage(requests=1, input_tokens=inputs, output_tokens=outputs, total_tokens=inputs + outputs)
    return ModelStep(output=list(items), usage=usage, response_id=f"resp_demo_{inputs}")


async def run_support_desk(trace_id: str) -> RunResult:
    """One run of the support desk; the same every time.

    Args:
        trace_id: The SDK trace id it gets, and so the run's id.
    """
    refunds = Agent(
        name="Refunds desk",
        instructions=_REFUNDS,
        tools=[find_order, refund_policy, issue_refund],
        output_guardrails=[no_promises],
        model=ScriptedModel(
            [
                _step(
                    412,
                    58,
                    assistant_message(_THINKING),
                    function_call("find_order", {"order_id": "R-2048"}, call_id="call_order"),
                    function_call("refund_policy", {"topic": "broken item"}, call_id="call_policy"),
                ),
                _step(
                    547, 31, function_call("issue_refund", {"order_id": "R-2048", "amount": 389.0}, call_id="call_pay")
                ),
                _step(602, 27, assistant_message(_ANSWER)),
            ]
        ),
    )

    async def noted(context: RunContextWrapper[Any], reason: _Reason) -> None:
        """The desk could log the reason here; the demo has no log."""

    triage = Agent(
        name="Triage",
        instructions=_TRIAGE,
        handoffs=[handoff(refunds, on_handoff=noted, input_type=_Reason)],
        input_guardrails=[no_abuse],
        model=ScriptedModel(
            [
                _step(
                    188,
                    24,
                    function_call("transfer_to_refunds_desk", {"reason": _REASON}, call_id="call_handoff"),
                )
            ]
        ),
    )
    config = RunConfig(
        workflow_name="Support desk demo",
        trace_id=trace_id,
        group_id="conversation-77",
        trace_metadata={"note": _NOTE},
    )
    return await Runner.run(triage, _MESSAGE, run_config=config)
