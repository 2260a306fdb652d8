"""`sealtrace demo`: the whole path on one machine, with no key, no server and no account."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json as jsonlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SealtraceError
from ._exits import PROBLEM
from ._options import AsJson, print_json

if TYPE_CHECKING:
    from ..run import Run

__all__ = ["demo"]


def demo(
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="Where to put the vault and the trace file; a new temporary folder by default."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Record a support desk of agents, join the two halves, show the run, and prove what is where.

    Writes PATH/vault (redacted payloads) and PATH/traces.jsonl (spans, as OTLP JSON).
    """
    from ..run import load

    place = folder if folder is not None else Path(tempfile.mkdtemp(prefix="sealtrace-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    vault, traces = place.resolve() / "vault", place.resolve() / "traces.jsonl"
    run_id = _record(vault, traces)
    run = load(run_id, vault=vault.as_uri(), telemetry=f"otlp+{traces.as_uri()}", reason="sealtrace demo")
    proof = _prove(vault, traces)
    if json:
        print_json({"dir": str(place), "run": run.to_json(), "proof": dataclasses.asdict(proof)})
    else:
        _show(run, proof, vault, traces)
    if not proof.holds:
        raise typer.Exit(PROBLEM)


def _record(vault: Path, traces: Path) -> str:
    """Run the agents while everything is recorded; returns the run's id."""
    from agents import gen_trace_id, set_tracing_disabled
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from ..agents_sdk import current, flush, instrument, uninstrument
    from ..telemetry import OTLPFileSpanExporter
    from ._demo_agent import run_support_desk

    if current() is not None:
        raise SealtraceError("this process is instrumented already; run the demo in a process of its own")
    provider = TracerProvider(resource=Resource.create({"service.name": "sealtrace-demo"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPFileSpanExporter(traces)))
    instrument(vault=vault.as_uri(), tracer_provider=provider, enabled=True)
    try:
        set_tracing_disabled(False)
        run_id = gen_trace_id()
        asyncio.run(run_support_desk(run_id))
        if not flush():
            raise SealtraceError(f"the payloads could not be stored in {vault}; the log says why")
        provider.force_flush()
    finally:
        uninstrument()
        provider.shutdown()
    return run_id


@dataclasses.dataclass(frozen=True, slots=True)
class _Proof:
    """What was looked for in the raw bytes, and where it was found."""

    looked_for: int
    span_bytes: int
    in_spans: tuple[str, ...]
    vault_bytes: int
    missing_from_vault: tuple[str, ...]
    secrets_in_vault: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Content is in the vault alone, and the card and the address are nowhere."""
        return not (self.in_spans or self.missing_from_vault or self.secrets_in_vault)


def _prove(vault: Path, traces: Path) -> _Proof:
    from ._demo_agent import CONTENT, SECRETS

    spans = traces.read_bytes()
    stored = [path.read_bytes() for path in sorted(vault.rglob("*")) if path.is_file()]
    plain = [layer for data in stored for layer in _layers(data)]
    return _Proof(
        looked_for=len(CONTENT) + len(SECRETS),
        span_bytes=len(spans),
        in_spans=_found((*CONTENT, *SECRETS), _layers(spans)),
        vault_bytes=sum(map(len, stored)),
        missing_from_vault=tuple(text for text in CONTENT if text not in _found(CONTENT, plain)),
        secrets_in_vault=_found(SECRETS, plain),
    )


def _found(texts: Iterable[str], haystacks: Iterable[bytes]) -> tuple[str, ...]:
    """Which texts occur, as they are, in base64, or as inside a JSON string."""
    layers = list(haystacks)
    return tuple(text for text in texts if any(form in layer for form in _forms(text) for layer in layers))


def _forms(text: str) -> tuple[bytes, ...]:
    raw = text.encode()
    # Base64 cuts bytes in threes, so what stands before decides which of three forms a text takes.
    cut = [base64.b64encode(raw[shift : len(raw) - (len(raw) - shift) % 3]) for shift in range(3)]
    return (raw, jsonlib.dumps(text)[1:-1].encode(), *cut)


def _layers(data: bytes) -> Iterator[bytes]:
    """The bytes, and what is compressed in them, base64 of it included."""
    yield data
    if data.startswith(b"\x1f\x8b"):
        yield _unzip(data)
    elif data.startswith(b"{") and b'"H4sI' in data:
        for value in jsonlib.loads(data).values():
            if isinstance(value, str) and value.startswith("H4sI"):
                yield _unzip(base64.b64decode(value))


def _unzip(data: bytes) -> bytes:
    """All members of a gzip file."""
    out = b""
    while data:
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(data)
        data = member.unused_data
    return out


def _show(run: Run, proof: _Proof, vault: Path, traces: Path) -> None:
    from rich.text import Text

    from ..run import text

    out = text.console()
    out.print(text.render_run(run))
    out.print()
    out.print(text.render_event(_telling(run)))
    out.print()
    out.print(Text("Where the content is", "bold"))
    for good, line in _verdicts(proof, vault, traces):
        out.print(Text.assemble(("  ✓ ", "green") if good else ("  ✗ ", "bold red"), line))
    out.print()
    options = f"--vault {vault.as_uri()} --telemetry otlp+{traces.as_uri()}"
    out.print(Text(f"Read it again:  sealtrace show {run.id} {options}", "dim"))


def _telling(run: Run) -> Any:
    """The tool result that had an e-mail address in it: it shows what redaction leaves."""
    results = [event for event in run.events if event.kind == "tool_result" and event.redactions]
    return results[0] if results else run.events[0]


def _verdicts(proof: _Proof, vault: Path, traces: Path) -> Iterator[tuple[bool, str]]:
    found = f": {', '.join(map(repr, proof.in_spans))}" if proof.in_spans else ""
    looked = f"{proof.looked_for} strings of content looked for, {len(proof.in_spans)} found{found}"
    yield not proof.in_spans, f"{traces}: {proof.span_bytes} bytes of spans, {looked}"
    missing = proof.missing_from_vault
    there = f"lacks {', '.join(map(repr, missing))}" if missing else "holds all of it but the secrets, as it should"
    yield not missing, f"{vault}: {proof.vault_bytes} bytes, {there}"
    leaked = proof.secrets_in_vault
    gone = f"not redacted: {', '.join(leaked)}" if leaked else "the card number and the e-mail address are not in it"
    yield not leaked, f"{vault}: {gone}"
