"""Runs to look at: recorded by the real SDK, and made by hand where the SDK would not let such a thing through."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, FunctionTool, RunConfig, Runner, gen_trace_id
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

import sealtrace
from run.halves import span, spans_of, write_otlp
from sealtrace.cli._demo_agent import run_support_desk
from sealtrace.event import Kind, RunEvent, new_record_id, timestamp
from sealtrace.replay.kept import Shelf as Reports
from sealtrace.replay.report import Report
from sealtrace.settings import Settings
from sealtrace.telemetry import OTLPFileSpanExporter
from sealtrace.vault import VaultWriter
from sealtrace.vault.stores import LocalStore, Store
from vault.records import Conversation, header, shared

from .hostile import PAYLOADS

DAY = 86_400 * 10**9

_CHANGED = {"_REFUNDS": "You refund orders of Halcyon Kitchen. Ask a colleague before you refund."}

_ATTRIBUTES = (
    "gen_ai.agent.name",
    "gen_ai.tool.name",
    "gen_ai.request.model",
    "error.type",
    "url.full",
    "sealtrace.handoff.from",
    "sealtrace.handoff.to",
    "sealtrace.replay.url",
)


def record(work: Any, vault: str, exporter: SpanExporter, **settings: Any) -> str:
    """Run agents while everything is recorded; the run's id.

    Args:
        work: Is given the run's id and is awaited.
        vault: Where the payloads go.
        exporter: Where the spans go.
        settings: More settings of `instrument`.
    """
    provider = TracerProvider(resource=Resource({"service.name": "support"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    sealtrace.instrument(vault, tracer_provider=provider, **settings)
    run_id = gen_trace_id()
    try:
        asyncio.run(work(run_id))
        assert sealtrace.flush()
    finally:
        sealtrace.uninstrument()
        provider.shutdown()
    return run_id


async def hostile_desk(trace_id: str) -> None:
    """A model, a customer and tools that say nothing but hostile things, each of them once in every place."""
    texts = [payload.text for payload in PAYLOADS]
    batches = [texts[first : first + 12] for first in range(0, len(texts), 12)]
    steps: list[ModelStep] = []
    for first, batch in enumerate(batches):
        calls = [
            function_call("echo", json.dumps({"number": number, text: text}), call_id=f"call_{number}")
            for number, text in enumerate(map(_sayable, batch), 12 * first)
            if number % 2 == 0
        ]
        steps.append(ModelStep(output=[assistant_message("\n".join(batch)), *calls]))
    steps.append(ModelStep(output=[assistant_message(texts[0])]))

    async def echo(context: Any, arguments: str) -> Any:
        number = json.loads(arguments)["number"]
        return "\n".join(texts[number : number + 2])

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    tool = FunctionTool("echo", texts[1], schema, echo, strict_json_schema=False)
    agent = Agent(name=texts[2], instructions="\n".join(texts[:200]), tools=[tool], model=ScriptedModel(steps))
    config = RunConfig(
        workflow_name=texts[3], trace_id=trace_id, group_id=texts[4], trace_metadata={texts[5]: texts[6]}
    )
    await Runner.run(agent, "\n".join(texts[:200]), run_config=config, max_turns=len(steps) + 1)


def _sayable(text: str) -> str:
    """The text without lone surrogates, which the SDK does not take in a call's arguments."""
    return text.encode("utf-8", "replace").decode()


class Forged:
    """A run that only who may write to the vault could forge: every name and value in it is hostile.

    Attributes:
        run_id: The run's id.
        events: Its events.
    """

    def __init__(self, texts: Iterable[str], run_id: str) -> None:
        self.run_id = run_id
        self.record_id = new_record_id()
        self.texts = tuple(texts)
        self.events: list[RunEvent] = []
        self._begin = time.time_ns()
        self._event(Kind.INPUT, {"input": [shared({"role": "user", "content": text}) for text in self.texts]}, "user")
        for number, text in enumerate(self.texts):
            if number % 8 == 0:
                batch = self.texts[number : number + 8]
                self._generation(batch)
                self._other(number // 8, batch)
            self._call(text, f"call_{number}")
        self._event(Kind.OUTPUT, {"final_output": "\n".join(self.texts), "last_agent": self.texts[0]}, "user")

    def _generation(self, texts: tuple[str, ...]) -> None:
        request = {
            "model": texts[0],
            "instructions": shared("\n".join(texts)),
            "input": [shared({"role": "user", "content": text, text: text}) for text in texts],
            "tools": shared(
                [{"name": text, "description": text, "params_json_schema": {text: text}} for text in texts]
            ),
            "settings": {text: text for text in texts},
        }
        output = [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            for text in texts
        ]
        output += [
            {"type": "function_call", "call_id": text, "name": text, "arguments": json.dumps({text: text})}
            for text in texts
        ]
        self._event(Kind.GENERATION, {"request": request, "response": {"output": output}}, texts[0], model=texts[0])

    def _call(self, text: str, call_id: str) -> None:
        arguments = json.dumps({text: text})
        call = {"tool": text, "type": text, "arguments": arguments}
        parent = self._event(Kind.TOOL_CALL, call, text, call_id=call_id)
        result = {"type": "function_call_output", "call_id": call_id, "output": text}
        payload = {"tool": text, "result": shared(result), "arguments": {text: [text]}}
        self._event(
            Kind.TOOL_RESULT, payload, text, call_id=call_id, error_type=text, parent_seq=parent, duration_ms=1.5
        )

    def _other(self, number: int, texts: tuple[str, ...]) -> None:
        """Two events of the rarer kinds, each with all of these texts in it."""
        text, same = texts[0], dict(zip(texts, texts, strict=True))
        kinds = (
            (Kind.HANDOFF, {"from": text, "to": texts[-1], "arguments": same}),
            (Kind.GUARDRAIL, {"name": text, "stage": text, "tripped": True, "output_info": same}),
            (Kind.CUSTOM, {"name": text, "data": same}),
            (Kind.APPROVAL, {"tool": text, "decision": text, **same}),
            (Kind.RETRIEVAL, {"query": text, "documents": [{"id": one, "version": one, one: one} for one in texts]}),
            (Kind.MCP_TOOLS, {"server": text, "tools": [{"name": one, "description": one} for one in texts]}),
            (Kind.ERROR, {"message": text, **same}),
            (Kind.CHECKPOINT, {"name": text, "state": list(texts)}),
        )
        for kind, payload in (kinds[number % 8], kinds[(number + 3) % 8]):
            self._event(kind, payload, text, actor={"who": text, "scopes": list(texts), text: text})

    def _event(self, kind: Kind, payload: Any, name: str, **more: Any) -> int:
        seq = len(self.events)
        self.events.append(
            RunEvent(
                run_id=self.run_id, record_id=self.record_id, seq=seq, kind=kind, payload=payload, agent=name,
                ts=timestamp(self._begin + seq * 1_000_000), frame="run:0", ordinal=seq, trace_id=self.run_id[-32:],
                span_id=f"{seq + 1:016x}", config={"model": name, "feature_flags": {name: name}},
                redactions={name: 1}, **more,
            )
        )  # fmt: skip
        return seq

    def store(self, store: Store) -> None:
        """Write the whole record."""
        writer = VaultWriter(store, Settings(), ruleset_hash=self.texts[0])
        for event in self.events:
            writer.append(event)
        names = tuple(self.texts)
        writer.seal(
            header(
                self.run_id, self.record_id, event_count=len(self.events), workflow_name=self.texts[0], agents=names,
                tools=names, models=names, trace_ids=(self.run_id[-32:],), group_tag=self.texts[1],
                sdk_version=self.texts[2], sealtrace_version=self.texts[3], status=self.texts[4], key_id=self.texts[5],
            )
        )  # fmt: skip

    def spans(self) -> Iterator[Any]:
        """Spans with hostile names, attributes and resource, as a collector without an allow-list may have them."""
        trace = {"trace_id": self.run_id[-32:], "run_id": self.run_id, "record_id": self.record_id}
        root = "f" * 16
        yield span(root, "trace", self.texts[0], attributes={"sealtrace.workflow.name": self.texts[0]}, **trace)
        for number, text in enumerate(self.texts):
            kind = ("agent", "model", "tool", "handoff", "guardrail", "custom", None)[number % 7]
            attributes = dict.fromkeys(_ATTRIBUTES, text)
            yield span(
                f"{number + 1:016x}", kind, text, root, attributes=attributes, resource={"service.name": text}, **trace
            )


class Long:
    """A run of thousands of events: one agent after another, each with a conversation of its own.

    Attributes:
        run_id: The run's id.
        events: Its events.
    """

    def __init__(self, count: int, *, turns: int = 25, run_id: str = f"trace_{'1a' * 16}") -> None:
        self.run_id = run_id
        self.events: list[RunEvent] = []
        self._whole = Conversation(turns, run_id=run_id)
        begin, number = time.time_ns() - count * 10**9, 0
        while len(self.events) < count:
            part = Conversation(turns, run_id=run_id, seed=number)
            for event in part.events:
                seq = len(self.events)
                self.events.append(
                    dataclasses.replace(
                        event,
                        record_id=self._whole.record_id,
                        seq=seq,
                        frame=f"run:{number}",
                        ts=timestamp(begin + seq * 10**9),
                        duration_ms=900.0,
                        parent_seq=None if event.parent_seq is None else seq - 1,
                    )
                )
            number += 1
        self.events = self._whole.events = self.events[:count]

    def store(self, store: Store) -> None:
        """Write the whole record."""
        self._whole.store(store)

    def spans(self) -> Iterator[Any]:
        """Its spans, at the times of its events."""
        begin = time.time_ns() - len(self.events) * 10**9
        seqs = {event.span_id: event.seq for event in self.events}
        for item in spans_of(self._whole):
            start = begin + seqs.get(item.span_id, 0) * 10**9
            length = 900_000_000 if item.span_id in seqs else len(self.events) * 10**9
            yield dataclasses.replace(item, start_ns=start, end_ns=start + length)


@dataclasses.dataclass(frozen=True, slots=True)
class Shelf:
    """Runs of every state, in one vault and one trace file.

    Attributes:
        vault: The vault's address.
        telemetry: The source's address.
        whole: Recorded by the SDK; complete.
        again: The same agents once more; complete.
        changed: They once more, one of them told something else; complete.
        expired: Its payloads are past their time.
        partial: Its process died: no manifest.
        spans_only: No payload was ever stored.
        reports: Directory of kept reports of reruns.
        diverged: Name of the report of a rerun that came out differently.
        same: Name of the report of one that did not.
    """

    vault: str
    telemetry: str
    whole: str
    again: str
    changed: str
    expired: str
    partial: str
    spans_only: str
    reports: Path
    diverged: str
    same: str


def shelf(folder: Path, **settings: Any) -> Shelf:
    """Fill a vault in this folder."""
    vault, traces = (folder / "vault").as_uri(), folder / "traces.jsonl"
    whole = record(run_support_desk, vault, OTLPFileSpanExporter(traces), **settings)
    again = record(run_support_desk, vault, OTLPFileSpanExporter(traces), **settings)
    with told(**_CHANGED):
        changed = record(run_support_desk, vault, OTLPFileSpanExporter(traces), **settings)
    store = LocalStore(folder / "vault")
    expired = Conversation(3, run_id=f"trace_{'e1' * 16}")
    past = time.time_ns() - 60 * DAY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sealtrace.vault.writer.time.time_ns", lambda: past)
        expired.store(store)
    spans = spans_of(expired)
    partial = Conversation(4, run_id=f"trace_{'d1' * 16}", seed=8)
    writer = VaultWriter(store, Settings(), ruleset_hash="rules-1")
    for event in partial.events[:9]:
        writer.append(event)
    writer.flush()
    lost = Conversation(2, run_id=f"trace_{'c1' * 16}", seed=9)
    for number, run in enumerate((partial, lost), 1):
        spans += [dataclasses.replace(item, trace_id=f"{number:032x}") for item in spans_of(run)]
    more = folder / "more.jsonl"
    write_otlp(more, spans)
    with traces.open("a", encoding="utf-8") as out:
        out.write(more.read_text(encoding="utf-8"))
    telemetry = f"otlp+{traces.as_uri()}"
    kept = Reports(folder / "reports", days=7)
    diverged, same = (kept.keep(rerun(whole, vault, telemetry, **texts)) for texts in (_CHANGED, {}))
    return Shelf(
        vault,
        telemetry,
        whole,
        again,
        changed,
        expired.run_id,
        partial.run_id,
        lost.run_id,
        folder / "reports",
        diverged,
        same,
    )


def rerun(run_id: str, vault: str, telemetry: str, **texts: str) -> Report:
    """Run the support desk again on its record, with some of its texts changed; what came of it."""
    run = sealtrace.load(run_id, vault=vault, telemetry=telemetry)
    with told(**texts), contextlib.suppress(sealtrace.ReplayDiverged), sealtrace.rerun(run) as session:
        asyncio.run(run_support_desk(run_id))
    return session.report


@contextlib.contextmanager
def told(**texts: str) -> Iterator[None]:
    """The support desk with other texts, by the names they have in its module."""
    with pytest.MonkeyPatch.context() as patch:
        for name, text in texts.items():
            patch.setattr(f"sealtrace.cli._demo_agent.{name}", text)
        yield
