"""Kill a recording process at random moments, often its recovery too, and look whether anything acknowledged is gone.

    python tests/vault/kill9.py [TRIALS] [SEED] [sealed]

With `sealed` payloads are encrypted under envelope keys and manifests are signed. Prints one JSON line of
figures; exit status 1 if anything was lost, torn or shown as more than it is.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

from sealtrace.event import Kind, RunEvent, new_record_id
from sealtrace.settings import Settings
from sealtrace.vault import Keyring, Preparation, Signer, VaultReader, VaultWriter, Verifier
from sealtrace.vault.recovery import Recovered, recover
from sealtrace.vault.spool import SpoolKey
from sealtrace.vault.stores import LocalStore
from sealtrace.vault.verify import Damage, verify_run
from vault.records import header, shared

_SECRET = "0123456789abcdef0123456789abcdef"


def _payload(record_id: str, seq: int) -> dict[str, Any]:
    rng = random.Random(f"{record_id}{seq}")
    return {"result": {"text": rng.randbytes(rng.randrange(10, 9000)).hex()}, "seq": seq}


def _record(settings: Settings, vault: Path, acks: int) -> None:
    """The child: writes records for ever, and says what has been taken."""
    writer = VaultWriter(LocalStore(vault), settings, ruleset_hash="r")
    while True:
        record_id = new_record_id()
        run_id = f"trace_{record_id}"
        count = random.randrange(1, 40)
        common = shared({"role": "system", "content": "x" * 500})
        for seq in range(count):
            payload = _payload(record_id, seq) | {"request": common}
            writer.append(
                RunEvent(
                    run_id=run_id, record_id=record_id, seq=seq, kind=Kind.TOOL_RESULT, payload=payload,
                    ts="2026-12-01T09:30:00.000000Z",
                )
            )  # fmt: skip
            os.write(acks, f"E {record_id} {seq}\n".encode())
            if random.random() < 0.1:
                writer.tick()
        writer.seal(header(run_id, record_id, event_count=count))
        os.write(acks, f"S {record_id} {count}\n".encode())


def _sealed(home: Path) -> dict[str, Any]:
    (home / "wrap").write_text("0f" * 32, encoding="ascii")
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (home / "sign.pem").write_bytes(pem)
    return {"envelope_key": f"file:{home / 'wrap'}", "signing_key": home / "sign.pem"}


def _trial(home: Path, rng: random.Random, *, sealed: bool) -> tuple[list[str], dict[str, Any]]:
    vault, spool = home / "vault", home / "spool"
    settings = Settings(
        spool=spool,
        key=SecretStr(_SECRET),
        segment_bytes=65_536,
        segment_seconds=0.01,
        **(_sealed(home) if sealed else {}),
    )
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            _record(settings, vault, writing)
        finally:
            os._exit(9)
    os.close(writing)
    select.select([reading], [], [], 10)
    time.sleep(rng.uniform(0, 0.15))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with os.fdopen(reading) as pipe:
        lines = [line.split() for line in pipe.read().splitlines()]
    if rng.random() < 0.5:
        _recover_and_die(settings, vault, rng)
    found = _recover(settings, vault)
    faults = [f"not recovered: {item.problem}" for item in found if item.problem]
    left = [str(path) for path in spool.rglob("*.spool")]
    return faults + _faults(vault, settings, lines) + [f"left: {path}" for path in left], {
        "acknowledged": sum(line[0] == "E" for line in lines),
        "sealed": sum(line[0] == "S" for line in lines),
        "recovered": len(found),
        "recovered_open": sum(not item.complete for item in found),
    }


def _recover(settings: Settings, vault: Path) -> list[Recovered]:
    assert settings.spool is not None
    preparation = Preparation(Keyring.from_settings(settings), Signer.from_settings(settings))
    return list(recover(settings.spool, SpoolKey.from_settings(settings), LocalStore(vault), preparation=preparation))


def _recover_and_die(settings: Settings, vault: Path, rng: random.Random) -> None:
    """A recovery that is killed as well."""
    pid = os.fork()
    if pid == 0:
        try:
            _recover(settings, vault)
        finally:
            os._exit(9)
    time.sleep(rng.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _faults(vault: Path, settings: Settings, lines: list[list[str]]) -> list[str]:
    reader = VaultReader(LocalStore(vault), keyring=Keyring.from_settings(settings))
    verifier = Verifier.from_settings(settings)
    sealed = {line[1] for line in lines if line[0] == "S"}
    acknowledged: dict[str, int] = {}
    for kind, record_id, number in lines:
        if kind == "E":
            acknowledged[record_id] = int(number)
    out: list[str] = []
    for record_id, last in acknowledged.items():
        records = reader.records(f"trace_{record_id}")
        if len(records) != 1:
            out.append(f"{record_id}: {len(records)} records")
            continue
        (record,) = records
        checked = verify_run(reader, f"trace_{record_id}", verifier=verifier)
        out += [f"{record_id}: {item.message}" for item in checked.findings if item.damage is not Damage.INCOMPLETE]
        events = {event.seq: event for event in record.events()}
        for seq in range(last + 1):
            if seq not in events or events[seq].payload is None or events[seq].payload["seq"] != seq:
                out.append(f"{record_id}: event {seq} was acknowledged and is gone")
            elif events[seq].payload["result"] != _payload(record_id, seq)["result"]:
                out.append(f"{record_id}: event {seq} is torn")
        manifest = record.manifest
        if manifest is None:
            out.append(f"{record_id}: no manifest")
        elif record.gaps() or len(events) != manifest.header.event_count:
            out.append(f"{record_id}: {len(events)} events, the manifest says {manifest.header.event_count}")
        elif record_id in sealed and not manifest.complete:
            out.append(f"{record_id}: was sealed and is shown as incomplete")
        listed = {segment.key for segment in manifest.segments} if manifest else set()
        stray = {
            item.key for item in record.objects if "/manifest-" not in item.key and "/key-" not in item.key
        } - listed
        if stray:
            out.append(f"{record_id}: {len(stray)} objects twice")
        if sum("/key-" in item.key for item in record.objects) != (settings.envelope_key is not None):
            out.append(f"{record_id}: not one key")
    return out


def main() -> int:
    """Run the trials."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    totals: dict[str, Any] = {"trials": trials, "faults": 0}
    for _ in range(trials):
        with tempfile.TemporaryDirectory() as home:
            faults, figures = _trial(Path(home), rng, sealed="sealed" in sys.argv)
        for fault in faults[:5]:
            print(fault, file=sys.stderr)
        totals["faults"] += len(faults)
        for name, value in figures.items():
            totals[name] = totals.get(name, 0) + value
    print(json.dumps(totals))
    return 1 if totals["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
