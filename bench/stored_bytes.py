"""Bytes stored per run against unique content, for conversations of 5, 10, 20 and 40 turns.

    python bench/stored_bytes.py            real runs of the Agents SDK, through `sealtrace.instrument`
    python bench/stored_bytes.py --made     events made up for the writer, without the SDK

Unique content counts every message, tool result, instruction and tool list once, as JSON text.
Stored bytes count every object of the record, manifest and envelopes included.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from vault.records import Conversation, local, prose, rows

TURNS = (5, 10, 20, 40)


def _made(turns: int, folder: Path) -> tuple[int, float]:
    run = Conversation(turns)
    before = time.process_time()
    run.store(local(folder))
    return run.unique_bytes, time.process_time() - before


def _real(turns: int, folder: Path) -> tuple[int, float]:
    import agents
    from opentelemetry.sdk.trace import TracerProvider

    import sealtrace
    from loopback import items
    from loopback.model import OwnModel

    rng = random.Random(turns)
    results = [json.dumps(rows(rng, 2048)) for _ in range(turns)]
    answers = iter(results)

    @agents.function_tool
    def find_order(order_id: str, reason: str) -> str:
        """Look an order up.

        Args:
            order_id: The order.
            reason: Why it is looked up.
        """
        return next(answers)

    calls = [
        items.call(
            "find_order", {"order_id": f"#W{n:07d}", "reason": prose(rng, 60)}, f"call_{rng.randbytes(12).hex()}"
        )
        for n in range(turns)
    ]
    model = OwnModel([items.reply(one) for one in [*calls, items.message(prose(rng, 300))]])
    agent = agents.Agent("support", instructions=prose(rng, 3000), model=model, tools=[find_order])
    question = prose(rng, 200)
    sealtrace.instrument(vault=(folder / "vault").as_uri(), tracer_provider=TracerProvider())
    before = time.process_time()
    agents.Runner.run_sync(agent, question, max_turns=turns + 2)
    assert sealtrace.flush(30)
    spent = time.process_time() - before
    sealtrace.uninstrument()
    unique = [agent.instructions, question, *model.asked[-1]["input"][1:], *model.answered[-1].items]
    tools = [{"name": find_order.name, "description": find_order.description, "schema": find_order.params_json_schema}]
    return sum(len(json.dumps(part, default=dict)) for part in [*unique, tools]), spent


def main() -> None:
    conversation: Any = _made if "--made" in sys.argv else _real
    print(f"{'turns':>6} {'unique':>9} {'stored':>9} {'ratio':>6} {'objects':>8} {'largest':>9} {'ms':>7}")
    for turns in TURNS:
        with tempfile.TemporaryDirectory() as folder:
            unique, spent = conversation(turns, Path(folder))
            sizes = [item.size for item in local(Path(folder)).list("")]
        figures = f"{turns:>6} {unique:>9} {sum(sizes):>9} {sum(sizes) / unique:>6.3f}"
        print(f"{figures} {len(sizes):>8} {max(sizes):>9} {spent * 1000:>7.1f}")


if __name__ == "__main__":
    main()
