"""A recorded run with a value of every kind in every place: none of them is in the vault."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Final

import pytest
from agents import Agent, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

import sealtrace

_CANARIES: Final = {
    "mail": "jane.canary@corp-mail.example",
    "card": "5555 5555 5555 4444",
    "iban": "DE89 3704 0044 0532 0130 00",
    "ssn": "SSN 219-09-9999",
    "phone": "+46 8 928 571 38",
    "ip": "193.99.144.80",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl",
    "github": "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8",
    "openai": "sk-proj-T3BlbkFJ9xYzQ7mN2pLw8vRt5uKd1cXe",
    "assigned": "DB_PASSWORD=hunter2-Canary",
    "url": "postgres://app:hunter3-Canary@db/app",
    "bearer": "Authorization: Bearer q8Zt3LmN7pXv2RkW9sYd",
    "pem": "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3 + "-----END PRIVATE KEY-----",
    "born": "born on 2/8/1935",
}
_NEEDLES: Final = (
    "jane.canary", "5555 5555", "3704 0044", "219-09", "928 571", "193.99.144", "eyJhbGci", "A1b2C3d4", "T3BlbkFJ",
    "hunter2", "hunter3", "q8Zt3LmN", "MIIEvQ", "2/8/1935", "Quuxington", "12 Canary Road",
)  # fmt: skip


@pytest.mark.parametrize("engine", ["anchors", "auto"])
def test_no_kind_reaches_the_vault(tmp_path: Path, engine: str) -> None:
    """Planted in instructions, input, arguments, a tool's result and the answer; read back as raw bytes."""
    everything = "; ".join(_CANARIES.values())

    @function_tool
    def lookup(query: str) -> str:
        """Look somebody up."""
        return json.dumps({"last_name": "Quuxington", "street_address": "12 Canary Road", "note": everything + query})

    policy = tmp_path / "policy.toml"
    policy.write_text(f'engine = "{engine}"\n', encoding="utf-8")
    sealtrace.instrument(vault=(tmp_path / "vault").as_uri(), redaction_policy=policy)
    call = function_call("lookup", {"query": everything}, call_id="call_1")
    model = ScriptedModel([[call], [assistant_message(f"Quuxington of 12 Canary Road: {everything}")]])
    agent = Agent(name="Desk", instructions=f"Never say {everything}", tools=[lookup], model=model)
    Runner.run_sync(agent, f"Find: {everything}")
    assert sealtrace.flush()
    sealtrace.uninstrument()
    stored = b"".join(_unpacked(path) for path in (tmp_path / "vault").rglob("*") if path.is_file())
    assert b"<EMAIL:" in stored, "nothing was stored, so nothing was tested"
    assert b"lookup" in stored
    assert [needle for needle in _NEEDLES if needle.encode() in stored] == []


def _unpacked(path: Path) -> bytes:
    raw, out = path.read_bytes(), b""
    while raw[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        out += member.decompress(raw)
        raw = member.unused_data
    return out + raw
