"""Record an agent run to a bucket.

    SEALTRACE_VAULT=s3://my-bucket/agents python examples/s3.py

Credentials are found as by every AWS client. For a store that is not AWS add SEALTRACE_ENDPOINT_URL
(and SEALTRACE_ADDRESSING_STYLE=path where it wants that). The bucket must exist: who may write and
who may read it, and for how many days, is a decision to make beforehand. Recording needs to put
objects and nothing else; reading needs to get and list.
"""

from __future__ import annotations

import os
import sys

from agents import Agent, Runner, gen_trace_id
from agents.run_config import RunConfig
from agents.testing import ScriptedModel, assistant_message

import sealtrace
from sealtrace.settings import load_settings
from sealtrace.vault import open_store


def main() -> int:
    if not os.environ.get("SEALTRACE_VAULT", "").startswith("s3://"):
        print("set SEALTRACE_VAULT=s3://bucket/prefix", file=sys.stderr)
        return 64

    # Every setting may be an argument, an environment variable or a line in pyproject.toml.
    sealtrace.instrument(retention={"io": 30, "content": 7, "meta": 400})

    agent = Agent(name="Greeter", instructions="Greet.", model=ScriptedModel([[assistant_message("Good morning!")]]))
    run_id = gen_trace_id()
    Runner.run_sync(agent, "I am ana.pop@example.com, hello!", run_config=RunConfig(trace_id=run_id))

    # False means that the bucket did not take it; what is left stays queued and is tried again.
    if not sealtrace.flush(timeout=30):
        print("the bucket did not take the payloads; the log says why", file=sys.stderr)
        return 1

    settings = load_settings()
    store = open_store(str(settings.vault), settings)
    digits = run_id.removeprefix("trace_")
    for kind in ("io", "content", "meta"):
        for item in store.list(f"{kind}/v1/{digits[:2]}/{digits}/"):
            print(f"{item.size:>6} bytes  {item.key}")

    run = sealtrace.load(run_id)
    print(f"{run.id}: {run.status}")
    print(f"the customer's message, as stored: {run.event(0).payload['input']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
