"""Recorded runs made by hand: what the recorder leaves of a conversation, without a recorder."""

from __future__ import annotations

import copy
import dataclasses
import json

from sealtrace.event import Kind, RunEvent
from sealtrace.run import JoinedRecord, Run
from sealtrace.vault import RecordHeader

RUN_ID = "trace_" + "a" * 32
NOW = "2026-12-01T09:00:00.000000Z"


def header(run_id, record_id, count, *, key_id):
    """What the manifest of a record that is whole says."""
    return RecordHeader(
        run_id=run_id,
        record_id=record_id,
        workflow_name="refunds",
        started_at=NOW,
        ended_at=NOW,
        trace_ids=("f" * 32,),
        root_span_id="e" * 16,
        fidelity="full",
        status="ok",
        dropped=0,
        redaction_failed=0,
        open_events=0,
        agents=("triage",),
        tools=("lookup",),
        models=("gpt-test",),
        input_tokens=1,
        output_tokens=2,
        group_tag="g",
        sdk_version="0.24.0",
        sealtrace_version="0.1.0",
        key_id=key_id,
        key_ephemeral=True,
        event_count=count,
    )


def loaded(talk, findings=(), *, key_id="k" * 16):
    """The conversation as a run that `sealtrace.load` gives, with what a recorder adds to each event."""
    events = tuple(
        dataclasses.replace(event, trace_id="f" * 32, span_id="e" * 16, digests={"x": "d" * 32}, duration_ms=1.5)
        for event in talk.events
    )
    return run_of(events, findings, key_id=key_id)


def run_of(events, findings=(), *, key_id="k" * 16):
    """A loaded run of one record with these events."""
    run_id, record_id = (events[0].run_id, events[0].record_id) if events else (RUN_ID, "record")
    made = header(run_id, record_id, len(events), key_id=key_id)
    record = JoinedRecord(record_id, made, tuple(events), (), stored=len(events), in_vault=True)
    return Run(run_id, (record,), (), tuple(findings))


class Conversation:
    """Plays an agent loop and writes down its events; ids differ from one instance to the next."""

    def __init__(self, *, salt="x", agent="triage", instructions="TRIAGE: route.", run_id=RUN_ID):
        self.salt = salt
        self.run_id = run_id
        self.agent = agent
        self.request = {
            "model": "gpt-test",
            "stream": False,
            "settings": {"temperature": 0.0},
            "instructions": instructions,
            "tools": [{"type": "function", "name": "lookup", "description": "Look up.", "parameters": {}}],
        }
        self.events = []
        self.history = []
        self.frame = "run:0"
        self.answered = None
        self._ordinals = {}
        self._ids = 0

    def _id(self, prefix):
        self._ids += 1
        return f"{prefix}_{self.salt}{self._ids}"

    def event(self, kind, payload, **fields):
        """Append an event; returns it."""
        key = (self.frame, kind)
        ordinal = self._ordinals[key] = self._ordinals.get(key, -1) + 1
        event = RunEvent(
            run_id=self.run_id,
            record_id=f"record{self.salt}",
            seq=len(self.events),
            ts=f"2026-12-01T00:00:{len(self.events):02d}.000000Z",
            kind=kind,
            frame=self.frame,
            ordinal=ordinal,
            agent=self.agent,
            payload=copy.deepcopy(payload),
            **fields,
        )
        self.events.append(event)
        return event

    def user(self, text):
        """The run's input."""
        self.history.append({"role": "user", "content": text})
        self.event(Kind.INPUT, {"input": text})
        return self

    def asks(self, *calls, digests=None):
        """The model asks for tools: pairs of name and arguments."""
        items = [
            {
                "type": "function_call",
                "id": self._id("fc"),
                "call_id": self._id("call"),
                "name": name,
                "arguments": json.dumps(arguments),
            }
            for name, arguments in calls
        ]
        self._generation(items, digests)
        return self

    def says(self, text, *, final=True):
        """The model answers with text, and that is the run's output."""
        item = {
            "type": "message",
            "id": self._id("msg"),
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        }
        self._generation([item], None)
        if final:
            self.event(Kind.OUTPUT, {"final_output": text, "last_agent": self.agent})
        return self

    def _generation(self, items, digests):
        payload = {
            "request": {**self.request, "input": list(self.history)},
            "response": {"output": items, "usage": {"input_tokens": 7}, "response_id": self._id("resp")},
        }
        config = {"model": self.request["model"], "sdk": "0.24.0"}
        self.answered = self.event(Kind.GENERATION, payload, config=config, digests=digests or {})
        self.history += items

    def runs(self, *results, finish=None):
        """The tools the model asked for run; `finish` is the order they end in."""
        items = self.answered.payload["response"]["output"]
        calls = [
            self.event(
                Kind.TOOL_CALL,
                {"tool": item["name"], "type": "function", "arguments": item["arguments"]},
                call_id=item["call_id"],
                parent_seq=self.answered.seq,
            )
            for item in items
        ]
        for index in finish or range(len(calls)):
            call = calls[index]
            self.event(
                Kind.TOOL_RESULT,
                {"tool": call.payload["tool"], "output_kind": "json", "result": results[index]},
                call_id=call.call_id,
                parent_seq=call.seq,
            )
        self.history += [
            {"type": "function_call_output", "call_id": call.call_id, "output": _shown(results[index])}
            for index, call in enumerate(calls)
        ]
        return self

    def guardrail(self, name, *, tripped=False, stage="input", info=None):
        """A guardrail says what it thinks."""
        self.event(Kind.GUARDRAIL, {"name": name, "stage": stage, "tripped": tripped, "output_info": info})
        return self

    def hands_off(self, to):
        """The conversation goes to another agent."""
        self.event(
            Kind.HANDOFF, {"from": self.agent, "to": to, "tool": f"transfer_to_{to}", "arguments": ""}, call_id="call_h"
        )
        self.agent = to
        return self

    def run(self):
        """What was written down."""
        return run_of(self.events)


def _shown(result):
    return result if isinstance(result, str) else str(result)


def refund(salt="x", *, results=(["a"], ["b"], "policy"), finish=None, refunded="done", **options):
    """Triage with three parallel tools, a handoff, a refund and an answer."""
    talk = Conversation(salt=salt, **options)
    talk.user("Refund order 7, I am <EMAIL:abcdefghijkl>").guardrail("polite")
    talk.asks(("lookup", {"id": 1}), ("lookup", {"id": 2}), ("policy", {})).runs(*results, finish=finish)
    talk.hands_off("refund_agent")
    talk.asks(("issue_refund", {"order": 7, "amount": 10})).runs(refunded)
    return talk.says("Refunded.")
