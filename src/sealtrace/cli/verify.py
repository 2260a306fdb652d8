"""`sealtrace verify`: is a run in the vault still what was recorded?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..errors import RunNotFound, SettingsError
from ..settings import Settings, load_settings
from ._options import AsJson, RunArgument, Telemetry, Vault, print_json

if TYPE_CHECKING:
    from ..telemetry.sources import Source
    from ..vault import VaultReader
    from ..vault.verify import Verification

__all__ = ["verify"]


def verify(run: RunArgument, vault: Vault = None, telemetry: Telemetry = None, json: AsJson = False) -> int:
    """Check every stored byte of a run against its manifest, its signature, and the collector.

    Signatures are looked at where `verify_keys` (or `signing_key`) is set, the collector's seal spans
    where a telemetry source is. Exit code 0: nothing is wrong; 10 and up: the worst finding's own code.
    """
    settings = load_settings({"vault": vault, "telemetry": telemetry})
    found = _verified(run, settings)
    if json:
        print_json(_document(found))
    else:
        _print(found, settings)
    return found.exit_code


def _verified(name: str, settings: Settings) -> Verification:
    from ..telemetry.sources import open_source
    from ..vault import Keyring, VaultReader, open_store
    from ..vault.signing import Verifier
    from ..vault.verify import Damage, verify_run

    if settings.vault is None:
        raise SettingsError("nothing to verify: pass --vault or set SEALTRACE_VAULT", setting="vault")
    keyring = Keyring.from_settings(settings)
    reader = VaultReader(open_store(settings.vault, settings), settings.retention, keyring=keyring)
    source = open_source(settings.telemetry, settings) if settings.telemetry else None
    run_id = _run_id(name, reader, source)
    witness = _witness(run_id, source)
    found = verify_run(reader, run_id, verifier=Verifier.from_settings(settings), witness=witness)
    if not witness and [finding.damage for finding in found.findings] == [Damage.NO_RECORD]:
        raise RunNotFound(f"no run {name!r} in {reader.store.url}", run=name)
    return found


def _run_id(name: str, reader: VaultReader, source: Source | None) -> str:
    from ..run import parse_reference

    reference = parse_reference(name)
    if reference.run_id is not None and (reference.trace_id is None or reader.records(reference.run_id)):
        return reference.run_id
    assert reference.trace_id is not None
    spans = source.trace(reference.trace_id) if source is not None else []
    named = [value for span in spans if isinstance(value := span.attributes.get("sealtrace.run.id"), str)]
    found = next(iter(named), None) or reader.find_trace(reference.trace_id)
    if found is None:
        raise RunNotFound(f"no run {name!r} in {reader.store.url}", run=name)
    return found


def _witness(run_id: str, source: Source | None) -> dict[str, str] | None:
    """The Merkle root by record, as the seal spans say; None where there is nobody to ask."""
    if source is None:
        return None
    seals = [span.attributes for span in source.run(run_id) if span.attributes.get("sealtrace.span.kind") == "seal"]
    mine = [seal for seal in seals if seal.get("sealtrace.run.id") == run_id]
    return {str(seal.get("sealtrace.record.id")): str(seal.get("sealtrace.run.merkle_root")) for seal in mine}


def _document(found: Verification) -> dict[str, Any]:
    document: dict[str, Any] = dataclasses.asdict(found) | {"ok": found.ok, "exit_code": found.exit_code}
    document["findings"] = [
        {"damage": finding.damage.name.lower(), "code": int(finding.damage), "record_id": finding.record_id,
         "message": finding.message}
        for finding in found.findings
    ]  # fmt: skip
    return document


def _print(found: Verification, settings: Settings) -> None:
    from rich.text import Text

    from ..run.safe import one_line
    from ..run.text import console

    out = console()
    for finding in found.findings:
        record = f" (record {finding.record_id})" if finding.record_id else ""
        name = finding.damage.name.lower().replace("_", " ")
        out.print(Text.assemble(("✗ ", "bold red"), (f"{name}: ", "bold"), one_line(f"{finding.message}{record}", 600)))
    counts = f"{found.records} records, {found.objects} objects are as they were stored"
    counts += f", {found.expired} expired" if found.expired else ""
    counts += (
        f"; {found.signed} signed" if settings.verify_keys or settings.signing_key else "; signatures not asked for"
    )
    counts += f"; {found.witnessed} confirmed by the collector" if settings.telemetry else "; the collector not asked"
    out.print(Text.assemble(("✓ ", "green") if found.ok else ("  ", ""), f"{found.run_id}: {counts}"))
