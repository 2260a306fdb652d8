"""A user's project in a directory: agents, a script that records a run of them, and the recorded golden."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SHOP = '''
"""A shop: triage looks things up, twice at once, and hands over to refunds."""

from pathlib import Path

from agents import Agent, GuardrailFunctionOutput, Runner, function_tool, input_guardrail

EFFECTS = Path(__file__).parent / "effects.txt"


@input_guardrail
def polite(context, agent, given):
    return GuardrailFunctionOutput(output_info={"rude": False}, tripwire_triggered=False)


@function_tool
def lookup(order: int) -> str:
    """Look an order up."""
    return f"order {order} was paid"


@function_tool
def issue_refund(order: int, amount: int) -> str:
    """Pay back."""
    with EFFECTS.open("a") as file:
        file.write(f"{order} {amount}\\n")
    return "refunded"


refunds = Agent(name="refunds", instructions="REFUND: pay back.", model="gpt-test", tools=[issue_refund])
triage = Agent(
    name="triage",
    instructions="TRIAGE: route.",
    model="gpt-test",
    tools=[lookup],
    handoffs=[refunds],
    input_guardrails=[polite],
)


async def desk(text):
    return await Runner.run(triage, text)


not_code = 7
'''

RECORD = '''
"""Record one run; prints its id."""

import asyncio
import json
import sys

import shop
from agents import ModelProvider, RunConfig, Runner, trace
from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import sealtrace


def call(name, arguments, call_id):
    text = json.dumps(arguments)
    return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=text, id="fc" + call_id)


def say(text):
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="msg_1", role="assistant", status="completed", type="message", content=[part])


MODEL = ScriptedModel(
    [
        ModelStep(output=[call("lookup", {"order": 7}, "call_1"), call("lookup", {"order": 8}, "call_2")]),
        ModelStep(output=[call("transfer_to_refunds", {}, "call_3")]),
        ModelStep(output=[call("issue_refund", {"order": 7, "amount": 10}, "call_4")]),
        ModelStep(output=[say("Refunded. Mail goes to mia@example.org.")]),
    ]
)


class Provider(ModelProvider):
    def get_model(self, name):
        return MODEL


sealtrace.instrument(vault=sys.argv[1], key="a secret of the shop, long enough")
with trace("refunds", trace_id="trace_" + "5" * 32):
    asyncio.run(
        Runner.run(
            shop.triage, "Refund order 7 to mia@example.org", run_config=RunConfig(model_provider=Provider())
        )
    )
assert sealtrace.flush(30)
'''

RUN_ID = "trace_" + "5" * 32


def environment(**extra: str) -> dict[str, str]:
    """The environment of a developer's machine: no CI, no plugins but ours, nothing of this session's."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", **extra}


def record(directory: Path) -> None:
    """Write the project and record a run of it into `directory/vault`."""
    directory.mkdir()
    (directory / "shop.py").write_text(SHOP)
    (directory / "record.py").write_text(RECORD)
    vault = (directory / "vault").as_uri()
    done = subprocess.run(
        [sys.executable, "record.py", vault],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (directory / "effects.txt").read_text() == "7 10\n"


class Project:
    """A copy of the recorded project, to change and to test.

    Args:
        source: What `record` made.
        directory: Where to copy it.
    """

    def __init__(self, source: Path, directory: Path) -> None:
        shutil.copytree(source, directory)
        (directory / "effects.txt").unlink()
        self.directory = directory
        self.golden = directory / "tests" / "golden" / "refund.json"

    def change(self, old: str, new: str) -> None:
        """Change the code."""
        text = (self.directory / "shop.py").read_text()
        assert old in text
        (self.directory / "shop.py").write_text(text.replace(old, new))

    def sealtrace(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run the command in the project."""
        return self._run(["-c", "from sealtrace.cli import main; main()", *arguments], extra)

    def pytest(self, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run pytest in the project, with the plugin."""
        return self._run(["-m", "pytest", "-p", "sealtrace.pytest_plugin", "-p", "no:cacheprovider", *arguments], extra)

    def _run(self, arguments: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.directory,
            env=environment(**extra),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    @property
    def effects(self) -> list[str]:
        """What the tools did to the world."""
        path = self.directory / "effects.txt"
        return path.read_text().splitlines() if path.exists() else []
