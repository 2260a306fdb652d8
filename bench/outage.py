"""Ten thousand events while the bucket cannot be reached, and then it can.

    python bench/outage.py

Real runs of the Agents SDK, recorded to an S3 server in another process: once with the server up, once
with it away for the whole load, once more with it up. Prints the runs' own times, the process's memory, and
what was lost, dropped and stored twice after the server came back.
"""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

RUNS, TURNS = 56, 60
BUCKET = "vault-bucket"
_SERVER = "import sys; from moto.server import main; main(['-p', sys.argv[1], '-H', '127.0.0.1'])"


def _server(port: int) -> subprocess.Popen[bytes]:
    import boto3

    command = [sys.executable, "-c", _SERVER, str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    return server


def _worker(port: int, folder: Path, *, away: bool) -> dict[str, Any]:
    import agents

    import sealtrace
    from loopback import items
    from loopback.model import OwnModel
    from sealtrace.agents_sdk import current
    from vault.records import prose, rows

    rng = random.Random(1)
    results = [json.dumps(rows(rng, 1000)) for _ in range(TURNS)]

    @agents.function_tool
    def find_order(order_id: str) -> str:
        """Look an order up."""
        return results[int(order_id)]

    sealtrace.instrument(
        vault=f"s3://{BUCKET}", endpoint_url=f"http://127.0.0.1:{port}", region="us-east-1", addressing_style="path",
        spool=folder / "spool", key="a key for this benchmark only", spool_bytes=512 * 1024 * 1024,
    )  # fmt: skip
    times: list[float] = []
    for number in range(RUNS):
        calls = [items.call("find_order", {"order_id": str(n)}, f"call_{number}_{n}") for n in range(TURNS)]
        model = OwnModel([items.reply(one) for one in [*calls, items.message(prose(rng, 300))]])
        agent = agents.Agent("support", instructions=prose(rng, 2000), model=model, tools=[find_order])
        before = time.perf_counter()
        agents.Runner.run_sync(agent, prose(rng, 100), max_turns=TURNS + 2)
        times.append(time.perf_counter() - before)
    spooled = sum(path.stat().st_size for path in (folder / "spool").rglob("*.spool"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    server = _server(port) if away else None
    deadline = time.monotonic() + 120
    while not sealtrace.flush(20) and time.monotonic() < deadline:
        time.sleep(0.2)
    out = {"median_ms": statistics.median(times) * 1000, "rss_mb": memory, "spooled": spooled, **_stored(port)}
    assert current() is not None
    sealtrace.uninstrument()
    out["left_in_spool"] = len(list((folder / "spool").rglob("*.spool")))
    if server is not None:
        server.terminate()
    return out


def _stored(port: int) -> dict[str, int]:
    from sealtrace.settings import Settings
    from sealtrace.vault import VaultReader, open_store

    settings = Settings(endpoint_url=f"http://127.0.0.1:{port}", region="us-east-1", addressing_style="path")
    records = list(VaultReader(open_store(f"s3://{BUCKET}", settings)).recent(10**6))
    headers = [record.header for record in records if record.header is not None]
    return {
        "runs": len({record.run_id for record in records}),
        "records": len(records),
        "events": sum(len(record.envelopes()) for record in records),
        "lost": sum(len(record.gaps()) for record in records),
        "dropped": sum(header.dropped for header in headers),
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(_worker(int(sys.argv[1]), Path(sys.argv[2]), away=sys.argv[3] == "away")))
        return
    environ = os.environ | {
        "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_EC2_METADATA_DISABLED": "true",
        "OPENAI_API_KEY": "sk-none",
    }  # fmt: skip
    os.environ.update(environ)
    medians: dict[str, list[float]] = {"up": [], "away": []}
    for kind in ("up", "away", "up"):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = _server(port) if kind == "up" else None
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, str(port), folder, kind]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        if server is not None:
            server.terminate()
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        medians[kind].append(found["median_ms"])
        print(f"{kind:>5}: {found}")
    print(f"run time, away / up: {statistics.mean(medians['away']) / statistics.mean(medians['up']):.2f}")


if __name__ == "__main__":
    main()
