"""Runs to store: events such as the redactor leaves them, and headers."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from sealtrace.event import Kind, RunEvent, Shared, new_record_id
from sealtrace.settings import Settings
from sealtrace.vault import RecordHeader, VaultWriter
from sealtrace.vault.stores import LocalStore, Store

RUN = "trace_" + "ab" * 16
TRACE = "cd" * 16

_WORDS = re.findall(
    r"\w+",
    "account order invoice refund delivery customer the a of to was is on under policy status pending address please "
    "confirm before after product warranty return window item shipped carrier delay agent escalation ticket priority",
)


def shared(value: Any) -> Shared:
    """A `Shared` as the redactor leaves it."""
    out = Shared(value)
    out.redacted, out.is_redacted = value, True
    return out


def prose(rng: random.Random, size: int) -> str:
    """About `size` characters of text."""
    return " ".join(rng.choices(_WORDS, k=size // 6))[:size]


def rows(rng: random.Random, size: int) -> list[dict[str, Any]]:
    """A tool's result of about `size` bytes as JSON."""
    out: list[dict[str, Any]] = []
    while len(json.dumps(out)) < size:
        out.append(
            {
                "order_id": f"#W{rng.randrange(10**7):07d}",
                "status": rng.choice(["pending", "delivered", "cancelled"]),
                "total": round(rng.uniform(5, 900), 2),
                "note": prose(rng, 60),
            }
        )
    return out


class Conversation:
    """A run of some turns: input, then per turn a generation, a tool call and its result, then output."""

    def __init__(self, turns: int, *, seed: int = 7, run_id: str = RUN, tool_bytes: int = 2048) -> None:
        self.run_id = run_id
        self.record_id = new_record_id()
        self.unique_bytes = 0
        self.events: list[RunEvent] = []
        self._rng = random.Random(seed)
        self._turns(turns, tool_bytes)

    def _turns(self, turns: int, tool_bytes: int) -> None:
        rng = self._rng
        instructions, tools = (
            self._new(prose(rng, 3000)),
            self._new([{"name": f"t{n}", "p": rows(rng, 300)} for n in range(5)]),
        )
        history = [self._new({"role": "user", "content": prose(rng, 200)})]
        self._event(Kind.INPUT, {"input": list(history)})
        for turn in range(turns):
            call_id = f"call_{rng.randbytes(12).hex()}"
            arguments = json.dumps({"order_id": f"#W{rng.randrange(10**7)}"})
            answer = self._new(
                {
                    "type": "function_call",
                    "call_id": call_id,
                    "name": "lookup",
                    "arguments": arguments,
                    "id": f"fc_{turn}",
                }
            )
            request = {
                "model": "gpt-x", "instructions": instructions, "input": list(history), "tools": tools,
                "settings": {"temperature": 0.2}, "stream": False,
            }  # fmt: skip
            self._event(
                Kind.GENERATION, {"request": request, "response": {"output": [answer], "usage": {"total": turn}}}
            )
            self._event(Kind.TOOL_CALL, {"tool": "lookup", "type": "function", "arguments": arguments}, call_id=call_id)
            result = rows(rng, tool_bytes)
            output = self._new({"type": "function_call_output", "call_id": call_id, "output": result})
            self._event(Kind.TOOL_RESULT, {"tool": "lookup", "result": output}, call_id=call_id, duration_ms=12.5)
            history += [answer, output]
        self._event(Kind.OUTPUT, {"final_output": self._new(prose(rng, 300)), "last_agent": "support"})

    def _new(self, value: Any) -> Shared:
        self.unique_bytes += len(json.dumps(value))
        return shared(value)

    def _event(self, kind: Kind, payload: Any, **more: Any) -> None:
        seq = len(self.events)
        rng = self._rng
        digests = {"result": rng.randbytes(16).hex()} if kind is Kind.TOOL_RESULT else {}
        self.events.append(
            RunEvent(
                run_id=self.run_id, record_id=self.record_id, seq=seq, kind=kind, payload=payload, agent="support",
                ts=f"2026-12-01T09:30:{seq // 20 % 60:02d}.{seq % 20 * 50_000 + rng.randrange(50_000):06d}Z",
                frame="run:0", ordinal=seq // 3, model="gpt-x" if kind is Kind.GENERATION else None,
                parent_seq=seq - 1 if seq else None, trace_id=TRACE, span_id=rng.randbytes(8).hex(),
                sdk_span_id=f"span_{rng.randbytes(12).hex()}", digests=digests, **more,
            )
        )  # fmt: skip

    def header(self, **changes: Any) -> RecordHeader:
        """The record's header."""
        return header(self.run_id, self.record_id, **({"event_count": len(self.events)} | changes))

    def store(self, store: Store, settings: Settings | None = None, **changes: Any) -> Any:
        """Write the whole record; its seal."""
        writer = VaultWriter(store, settings or Settings(), ruleset_hash="rules-1")
        for event in self.events:
            writer.append(event)
        return writer.seal(self.header(**changes))


def header(run_id: str, record_id: str, **changes: Any) -> RecordHeader:
    """A header with usual values."""
    values: dict[str, Any] = {
        "run_id": run_id, "record_id": record_id, "workflow_name": "Support",
        "started_at": "2026-12-01T09:30:00.000000Z",
        "ended_at": "2026-12-01T09:31:00.000000Z", "trace_ids": (TRACE,), "root_span_id": "12" * 8, "fidelity": "full",
        "status": "ok", "dropped": 0, "redaction_failed": 0, "open_events": 0, "agents": ("support",),
        "tools": ("lookup",), "models": ("gpt-x",), "input_tokens": 1000, "output_tokens": 200, "group_tag": None,
        "sdk_version": "0.23.0", "sealtrace_version": "0.1.0", "key_id": "00" * 8, "key_ephemeral": False,
        "event_count": 0,
    }  # fmt: skip
    return RecordHeader(**(values | changes))


def plain(value: Any) -> Any:
    """A payload with every `Shared` replaced by its value."""
    if isinstance(value, Shared):
        return plain(value.redacted)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def local(tmp_path: Any) -> LocalStore:
    """A vault in a directory of the test's own."""
    return LocalStore(tmp_path / "vault")
