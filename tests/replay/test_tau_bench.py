"""Two hundred real conversations, recorded into an S3 vault and rerun from it."""

from __future__ import annotations

import asyncio
import collections
import copy
import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from agents import Agent, FunctionTool, Runner
from agents.tracing import trace
from moto.server import ThreadedMotoServer

import sealtrace
import sealtrace.settings
from replay.world import KEY, World, call, say
from sealtrace.replay.report import Outcome

DATA = Path(os.environ.get("SEALTRACE_TEST_DATA", "/nonexistent")) / "tau_bench_gpt-4o-airline.json.gz"
BUCKET = "tau"

pytestmark = [
    pytest.mark.skipif(not DATA.is_file(), reason="SEALTRACE_TEST_DATA names no directory with tau-bench runs"),
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow"),
]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server on the loopback interface with one bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=url).create_bucket(Bucket=BUCKET)
    yield url
    server.stop()


def unique_ids(trajectory: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A quarter of the conversations reuse a call id, which the SDK refuses."""
    made = copy.deepcopy(trajectory)
    seen: collections.Counter[str] = collections.Counter()
    last: dict[str, str] = {}
    for message in made:
        for asked in message.get("tool_calls") or []:
            original = asked["id"]
            seen[original] += 1
            asked["id"] = original if seen[original] == 1 else f"{original}__{seen[original]}"
            last[original] = asked["id"]
        if message["role"] == "tool":
            message["tool_call_id"] = last[message["tool_call_id"]]
    return made


class Conversation:
    """One trajectory as code: the user's turns, and what model and tools said."""

    def __init__(self, trajectory: list[dict[str, Any]]) -> None:
        self.trajectory = unique_ids(trajectory)
        self.results = {m["tool_call_id"]: m["content"] for m in self.trajectory if m["role"] == "tool"}
        asked = [c["function"]["name"] for m in self.trajectory for c in m.get("tool_calls") or []]
        self.tools = sorted(set(asked))

    def turns(self) -> Iterator[tuple[str, list[Any]]]:
        """What the user said, and the model's answers up to the user's next words."""
        index = 1
        while index < len(self.trajectory):
            user = self.trajectory[index]["content"]
            index += 1
            steps: list[Any] = []
            while index < len(self.trajectory) and self.trajectory[index]["role"] != "user":
                if self.trajectory[index]["role"] == "assistant":
                    steps.append(self._items(self.trajectory[index], index))
                index += 1
            if not steps:
                return
            if getattr(steps[-1][-1], "call_id", None):
                steps.append([say("(end)")])
            yield user, steps

    @staticmethod
    def _items(message: dict[str, Any], index: int) -> list[Any]:
        items: list[Any] = [say(message["content"], f"msg_{index}")] if message.get("content") else []
        for asked in message.get("tool_calls") or []:
            items.append(call(asked["function"]["name"], asked["function"]["arguments"], asked["id"]))
        return items

    async def run(self, world: World) -> int:
        """The whole conversation; gives how many turns it had."""

        def tool(name: str) -> FunctionTool:
            async def invoke(ctx: Any, arguments: str) -> Any:
                world.done.append(name)
                return self.results[ctx.tool_call_id]

            schema = {"type": "object", "properties": {}, "additionalProperties": True}
            return FunctionTool(name, name, schema, invoke, strict_json_schema=False)

        tools = [tool(name) for name in self.tools]
        history: list[Any] = []
        turns = 0
        for user, steps in self.turns():
            agent = Agent(
                name="airline", instructions=self.trajectory[0]["content"], tools=tools, model=world.model(*steps)
            )
            result = await Runner.run(agent, [*history, {"role": "user", "content": user}], max_turns=60)
            history = result.to_input_list()
            turns += 1
        return turns


def test_all_200_runs_rerun_from_s3(endpoint: str) -> None:
    """No divergence, no tool executed; the figures are printed."""
    conversations = [Conversation(one["traj"]) for one in json.loads(gzip.decompress(DATA.read_bytes()))]
    vault, options = f"s3://{BUCKET}/runs", {"endpoint_url": endpoint, "addressing_style": "path"}
    plain = _plain(conversations)
    sealtrace.instrument(vault=vault, key=KEY, exit_timeout=120, **options)
    executed = 0

    async def record_all() -> None:
        nonlocal executed
        for number, conversation in enumerate(conversations):
            world = World()
            with trace("tau", trace_id=f"trace_{number:032x}"):
                await conversation.run(world)
            executed += len(world.done)

    began = time.perf_counter()
    asyncio.run(record_all())
    assert sealtrace.flush(180)
    recorded_in = time.perf_counter() - began
    sealtrace.uninstrument()
    settings = sealtrace.settings.load_settings({"vault": vault, "key": KEY, **options})
    began = time.perf_counter()
    runs = [sealtrace.load(f"trace_{number:032x}", settings=settings) for number in range(len(conversations))]
    loaded_in = time.perf_counter() - began
    turns = served = 0
    began = time.perf_counter()
    for conversation, run in zip(conversations, runs, strict=True):
        world = World(live=False)
        with sealtrace.rerun(run, key=KEY) as session:
            turns += asyncio.run(conversation.run(world))
        assert session.report.outcome is Outcome.SAME
        assert session.report.matched == session.report.total
        assert world.done == []
        served += session.receipt.surfaces["model"].served
    rerun_in = time.perf_counter() - began
    print(
        f"{len(runs)} runs, {turns} user turns, {served} model calls, {executed} tool calls recorded;"
        f" recorded in {recorded_in:.1f} s, loaded in {loaded_in:.1f} s, rerun in {rerun_in:.1f} s"
        f" ({served / rerun_in:.0f} model turns/s), on the scripted model alone {plain:.1f} s,"
        f" ratio {plain / rerun_in:.2f}"
    )
    assert len(runs) == 200
    assert executed > 1000


def _plain(conversations: list[Conversation]) -> float:
    """Seconds the same runs take on the scripted model, nothing recorded."""
    from agents import set_tracing_disabled

    set_tracing_disabled(True)
    try:
        began = time.perf_counter()
        for conversation in conversations:
            asyncio.run(conversation.run(World()))
        return time.perf_counter() - began
    finally:
        set_tracing_disabled(False)
