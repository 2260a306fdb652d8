"""Without any recorder: is each canary alive in its channel, and would a leak be seen?"""

from __future__ import annotations

import agents
import pytest

from canary.channels import MODELS, Canaries, channels
from canary.scan import found
from canary.scenario import MODES, STREAMED, Desk, SpyProcessor
from loopback.server import LoopbackServer

# The SDK's `run_sync` shuts down the async generators of a loop that it then goes on using.
pytestmark = pytest.mark.filterwarnings("ignore:asynchronous generator:ResourceWarning")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", MODELS)
def test_each_canary_lives_in_its_channel(model: str, mode: str, vendor: LoopbackServer) -> None:
    """Every channel carries its canary where it should be seen, so the canary test cannot pass on nothing."""
    desk = Desk(model, mode, Canaries(), vendor)
    agents.add_trace_processor(SpyProcessor(desk.witness))

    outcomes = desk.run_all()

    sightings = desk.witness.sightings()
    wanted = channels(model, streamed=mode == STREAMED)
    assert [c.name for c in wanted if c.name not in sightings[c.place]] == []
    failed = {name: type(outcome.error).__name__ for name, outcome in outcomes.items() if outcome.error}
    assert sorted(failed) == ["fatal tool", "guardrail error", "model error", "tripwire", "unknown tool"], failed
    assert outcomes["main"].final is not None
    assert desk.unplayed == 1, "the last run trips before its model is asked; all else was asked for"


def test_a_leak_to_the_vendor_would_be_seen(vendor: LoopbackServer) -> None:
    """Left alone, the SDK posts content to the trace endpoint that the canary test watches."""
    canaries = Canaries()
    Desk("responses", STREAMED, canaries, vendor).run_all()
    agents.flush_traces()

    posted = canaries.names(found(canaries.of.values(), *(request.everything for request in vendor.ingested)))
    assert {"tool_argument", "tool_result", "custom_span_data", "group_id", "tracing_api_key"} <= posted
