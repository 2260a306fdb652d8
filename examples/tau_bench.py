"""Drive recorded customer-service conversations through the real Runner, record them, and check the record.

    SEALTRACE_TEST_DATA=tau_bench_gpt-4o-airline.json.gz python examples/tau_bench.py [--limit N] [--dir FOLDER]

The data are conversations of the tau-bench benchmark (sierra-research/tau-bench, historical
trajectories, MIT licence): chat messages with tool calls and tool results. SEALTRACE_TEST_DATA names
the file or the folder it is in. A scripted model plays the recorded assistant, the tools answer
with the recorded results, and every user message is a `Runner.run` of its own; a conversation is
one trace and so one run.

What the model was sent, what it answered, and what the tools got and gave is written down as it
happens. Afterwards each run is loaded from the vault and compared with that: everything there, in
order, and equal but for what was redacted.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import copy
import dataclasses
import gzip
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, Runner, Usage, gen_trace_id, trace
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import sealtrace
from sealtrace.redaction.tags import PSEUDONYM, is_surrogate_number
from sealtrace.telemetry import OTLPFileSpanExporter

FILE = "tau_bench_gpt-4o-airline.json.gz"


@dataclasses.dataclass
class Sent:
    """What went over the line in one conversation, in order: `(event kind, content)`."""

    run_id: str
    log: list[tuple[str, Any]] = dataclasses.field(default_factory=list)
    contents: set[str] = dataclasses.field(default_factory=set)

    def note(self, kind: str, content: Any) -> None:
        """Something was sent or came back."""
        self.log.append((kind, copy.deepcopy(content)))

    def unique(self, *values: Any) -> None:
        """Content, to be counted once however often it is sent."""
        self.contents.update(json.dumps(value, ensure_ascii=False) for value in values)


class Replayed(Model):
    """Answers with the recorded assistant messages, one after the other."""

    def __init__(self, sent: Sent) -> None:
        self.turns: collections.deque[dict[str, Any]] = collections.deque()
        self.sent = sent
        self.calls = 0

    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:  # noqa: A002
        """The next recorded answer."""
        self.calls += 1
        turn = self.turns.popleft()
        output: list[Any] = []
        if turn.get("content"):
            text = ResponseOutputText(text=turn["content"], type="output_text", annotations=[])
            output.append(
                ResponseOutputMessage(
                    id=f"msg_{self.calls}", role="assistant", status="completed", type="message", content=[text]
                )
            )
        for call in turn.get("tool_calls") or []:
            made = call["function"]
            output.append(
                ResponseFunctionToolCall(
                    type="function_call", call_id=call["id"], name=made["name"], arguments=made["arguments"]
                )
            )
        plain = [item.model_dump(mode="json", exclude_unset=True) for item in output]
        self.sent.note("generation", {"instructions": system_instructions, "input": input, "output": plain})
        self.sent.unique(system_instructions, *input, *plain)
        usage = Usage(requests=1, input_tokens=len(input), output_tokens=len(output), total_tokens=0)
        return ModelResponse(output=output, usage=usage, response_id=f"resp_{self.calls}")

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        """Not needed here."""
        raise NotImplementedError("the recorded conversations are not streamed")


def distinct_call_ids(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages with tool call ids made distinct: some conversations use one twice."""
    messages: list[dict[str, Any]] = copy.deepcopy(conversation["traj"])
    seen: collections.Counter[str] = collections.Counter()
    latest: dict[str, str] = {}
    for message in messages:
        for call in message.get("tool_calls") or []:
            original = call["id"]
            seen[original] += 1
            call["id"] = latest[original] = original if seen[original] == 1 else f"{original}_{seen[original]}"
        if message["role"] == "tool":
            message["tool_call_id"] = latest[message["tool_call_id"]]
    return messages


def build_tool(name: str, results: dict[str, str], sent: Sent) -> FunctionTool:
    async def invoke(context: Any, arguments: str) -> str:
        sent.note("tool_call", {"tool": name, "call_id": context.tool_call_id, "arguments": arguments})
        result = results[context.tool_call_id]
        sent.note("tool_result", {"tool": name, "call_id": context.tool_call_id, "result": result})
        sent.unique(result)
        return result

    schema: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}
    return FunctionTool(
        name=name, description=name, params_json_schema=schema, on_invoke_tool=invoke, strict_json_schema=False
    )


async def drive(conversation: dict[str, Any]) -> Sent:
    """Play one conversation through the Runner."""
    messages = distinct_call_ids(conversation)
    sent = Sent(gen_trace_id())
    model = Replayed(sent)
    results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    names = sorted({call["function"]["name"] for message in messages for call in message.get("tool_calls") or []})
    tools: list[Any] = [build_tool(name, results, sent) for name in names]
    agent = Agent(name="Airline desk", instructions=messages[0]["content"], tools=tools, model=model)
    history: list[Any] = []
    with trace("tau-bench", trace_id=sent.run_id):
        for said, answers in turns(messages[1:]):
            model.turns.extend(answers)
            sent.note("input", [*history, {"role": "user", "content": said}])
            result = await Runner.run(agent, [*history, {"role": "user", "content": said}], max_turns=60)
            sent.note("output", result.final_output)
            history = result.to_input_list()
    if model.turns:
        raise AssertionError("the conversation was not played to its end")
    return sent


def turns(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Each user message with the assistant messages up to the next one."""
    out: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        if message["role"] == "user":
            out.append((message["content"], []))
        elif message["role"] == "assistant":
            out[-1][1].append(message)
    out = [(said, answers) for said, answers in out if answers]
    for _, answers in out:
        if answers[-1].get("tool_calls"):  # the episode ended on a tool call; the Runner wants a last word
            answers.append({"content": "(end)"})
    return out


# the check

_CHECKED = ("input", "generation", "tool_call", "tool_result", "output")


def same(sent: Any, stored: Any) -> bool:
    """Whether what is stored is what was sent, but for pseudonyms in place of sensitive values."""
    if isinstance(sent, str) and isinstance(stored, str):
        return sent == stored or _same_json(sent, stored) or _same_text(sent, stored)
    if isinstance(sent, dict) and isinstance(stored, dict):
        return len(sent) == len(stored) and all(
            same(key, name) and same(value, item)
            for (key, value), (name, item) in zip(sent.items(), stored.items(), strict=True)
        )
    if isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(map(same, sent, stored))
    if type(sent) in (int, float) and type(stored) is int and is_surrogate_number(stored):
        return True
    return type(sent) is type(stored) and sent == stored


def _same_json(sent: str, stored: str) -> bool:
    if not sent.startswith(("{", "[")):
        return False
    try:
        return same(json.loads(sent), json.loads(stored))
    except ValueError:
        return False


def _same_text(sent: str, stored: str) -> bool:
    if not PSEUDONYM.search(stored):
        return False
    pattern = ".+?".join(re.escape(piece) for piece in PSEUDONYM.split(stored))
    return re.fullmatch(pattern, sent, re.DOTALL) is not None


def differences(sent: Sent, run: sealtrace.Run) -> list[str]:
    """What is wrong with the record of a run, in words; empty if nothing is."""
    found = [finding.message for finding in run.findings]
    if run.status != "complete":
        found.append(f"the run is {run.status}")
    found += [f"gap: event {seq}" for record in run.records for seq in record.gaps]
    events = [
        event for event in run.events if event.kind in {"input", "generation", "tool_call", "tool_result", "output"}
    ]
    if len(events) != len(sent.log):
        found.append(f"{len(sent.log)} things were sent, {len(events)} are recorded")
    # Parallel calls: each call and result is compared with its own, and the model's requests in their order.
    stored = collections.defaultdict(collections.deque)
    for event in events:
        stored[event.kind.value, event.call_id].append(event.payload)
    for kind, content in sent.log:
        key = (kind, content["call_id"] if kind.startswith("tool_") else None)
        payload = stored[key].popleft() if stored[key] else None
        if payload is None or not _matches(kind, content, payload):
            found.append(f"{kind} {key[1] or ''} is not what was sent")
    found += [f"event {event.seq} hangs from the wrong one" for event in events if not _parent_fits(run, event)]
    order = [event.kind.value for event in events if not event.kind.startswith("tool_")]
    if order != [kind for kind, _ in sent.log if not kind.startswith("tool_")]:
        found.append("the order is not the one things were sent in")
    return found


def _parent_fits(run: sealtrace.Run, event: sealtrace.RunEvent) -> bool:
    """A result hangs from its call, a call from the model's answer that asked for it, each later than the other."""
    if not event.kind.startswith("tool_"):
        return True
    if event.parent_seq is None or event.parent_seq >= event.seq:
        return False
    parent = run.event(event.parent_seq, event.record_id)
    if event.kind == "tool_result":
        return parent.kind == "tool_call" and parent.call_id == event.call_id
    asked = [item.get("call_id") for item in parent.payload["response"]["output"]]
    return parent.kind == "generation" and event.call_id in asked


def _matches(kind: str, content: Any, payload: dict[str, Any]) -> bool:
    if kind == "input":
        return same(content, payload["input"])
    if kind == "output":
        return same(content, payload["final_output"])
    if kind == "generation":
        request, response = payload["request"], payload["response"]
        return (
            same(content["instructions"], request["instructions"])
            and same(content["input"], request["input"])
            and same(content["output"], response["output"])
        )
    name = "arguments" if kind == "tool_call" else "result"
    return content["tool"] == payload["tool"] and same(content[name], payload[name])


# the whole


def conversations() -> list[dict[str, Any]]:
    named = Path(os.environ["SEALTRACE_TEST_DATA"])
    with gzip.open(named / FILE if named.is_dir() else named, "rt", encoding="utf-8") as file:
        found: list[dict[str, Any]] = json.load(file)
    return found


def main(limit: int | None, folder: Path) -> int:
    data = conversations()[:limit]
    vault, traces = folder / "vault", folder / "traces.jsonl"
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPFileSpanExporter(traces), max_queue_size=20_000))
    sealtrace.instrument(vault=vault.as_uri(), tracer_provider=provider)

    began = time.perf_counter()
    sent: list[Sent] = []
    for conversation in data:
        sent.append(asyncio.run(drive(conversation)))
        # A scripted model answers at once: without this the queue would fill as no real service's does.
        sealtrace.flush()
        provider.force_flush()
    seconds = time.perf_counter() - began
    sealtrace.uninstrument()
    provider.shutdown()

    began = time.perf_counter()
    telemetry = f"otlp+{traces.as_uri()}"
    runs = [sealtrace.load(item.run_id, vault=vault.as_uri()) for item in sent]
    wrong = {item.run_id: found for item, run in zip(sent, runs, strict=True) if (found := differences(item, run))}
    checked = time.perf_counter() - began
    joined = sealtrace.load(sent[-1].run_id, vault=vault.as_uri(), telemetry=telemetry)
    if joined.status != "complete":
        wrong.setdefault(joined.id, []).append(f"with its spans the run is {joined.status}")

    objects = [path for path in vault.rglob("*") if path.is_file()]
    figures = {
        "runs": len(runs),
        "model_requests": sum(run.usage["requests"] for run in runs),
        "tool_calls": sum(1 for run in runs for event in run.events if event.kind == "tool_call"),
        "events": sum(len(run.events) for run in runs),
        "seconds_recording": round(seconds, 2),
        "seconds_loading_and_checking": round(checked, 2),
        "bytes_stored": sum(path.stat().st_size for path in objects),
        "unique_content_bytes": sum(len(text.encode()) for item in sent for text in item.contents),
        "objects": len(objects),
        "gaps": sum(len(record.gaps) for run in runs for record in run.records),
        "redactions": sum(sum(event.redactions.values()) for run in runs for event in run.events),
        "runs_wrong": len(wrong),
    }
    print(json.dumps(figures, indent=2))
    for run_id, found in list(wrong.items())[:10]:
        print(f"{run_id}: {'; '.join(found[:5])}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Record tau-bench conversations and check the record.")
    parser.add_argument("--limit", type=int, default=None, help="how many conversations, all by default")
    parser.add_argument("--dir", type=Path, default=None, help="where to put vault and traces")
    given = parser.parse_args()
    sys.exit(main(given.limit, (given.dir or Path(tempfile.mkdtemp(prefix="sealtrace-tau-"))).resolve()))
