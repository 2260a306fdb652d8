"""What tracing costs: CPU per run, as a multiple of the same run without tracing.

    .venv/bin/python bench/overhead.py [--rounds 60] [--runs 10] [--model client|own|both] [--json FILE]

One process per kind of tracing, all alive at once and asked in turn, in an order drawn anew each round:
whatever else the machine does hits all alike. Each round gives one ratio per kind; printed are the medians
over the rounds with the 10th and 90th percentile. Two costs are told apart: CPU of the thread that runs the
agent, which is what a user waits for, and CPU of the whole process, background threads and their draining
included. Every exporter does nothing; sealtrace redacts and stores besides, into a directory in memory.

The peers are installed by this script, each into an environment of its own outside the checkout
(SEALTRACE_BENCH_CACHE, by default ~/.cache/sealtrace-bench), held to the versions installed here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = {
    "official": "opentelemetry-instrumentation-genai-openai-agents",
    "openinference": "openinference-instrumentation-openai-agents",
}
TITLES = {
    "off": "no tracing",
    "sdk": "SDK tracing, a processor that does nothing",
    "sealtrace": "sealtrace, spans and vault",
    "sealtrace-spans": "sealtrace, spans only",
    "official": f"{PEERS['official']}",
    "openinference": f"{PEERS['openinference']}",
}
MEASURES = ("agent", "process")


def main() -> int:
    """Parse, prepare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=60, help="how often each kind is asked")
    parser.add_argument("--runs", type=int, default=10, help="agent runs each time")
    parser.add_argument("--model", choices=["client", "own", "both"], default="both", help="see workload.py")
    parser.add_argument("--only", nargs="*", choices=list(TITLES), help="these kinds, and no tracing")
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    given = parser.parse_args()
    kinds = [kind for kind in TITLES if not given.only or kind == "off" or kind in given.only]
    pythons = {kind: _peer_python(PEERS[kind]) if kind in PEERS else Path(sys.executable) for kind in kinds}
    everything = {}
    for model in ("client", "own") if given.model == "both" else (given.model,):
        rounds = _interleave(pythons, model, given.rounds, given.runs)
        everything[model] = {"rounds": rounds, "summary": _summary(rounds)}
        _show(model, given.rounds, given.runs, everything[model]["summary"])
    if given.json:
        given.json.write_text(json.dumps(everything, indent=1))
    return 0


# --- the peers' environments ---------------------------------------------------------------------------------


def _peer_python(package: str) -> Path:
    """Python of an environment that has this peer and, at this environment's versions, what both need."""
    root = Path(os.environ.get("SEALTRACE_BENCH_CACHE", Path.home() / ".cache" / "sealtrace-bench"))
    venv = root / package
    python = venv / "bin" / "python"
    pins = _uv("pip", "freeze", "--python", sys.executable, "--exclude-editable")
    stamp = venv / "pins.txt"
    if not stamp.is_file() or stamp.read_text() != pins:
        print(f"installing {package} into {venv}", file=sys.stderr)
        shutil.rmtree(venv, ignore_errors=True)
        _uv("venv", "--quiet", "--python", sys.executable, str(venv))
        constraints = venv / "constraints.txt"
        constraints.write_text(pins)
        _uv("pip", "install", "--quiet", "--python", str(python), "--prerelease", "allow", "-c", str(constraints),
            package, "openai-agents", "opentelemetry-sdk")  # fmt: skip
        stamp.write_text(pins)
    return python


def _uv(*arguments: str) -> str:
    own = HERE.parent / ".tools" / "bin" / "uv"
    command = [str(own) if own.is_file() else "uv", *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


# --- measuring -----------------------------------------------------------------------------------------------


@dataclass
class Worker:
    """One measured process."""

    process: subprocess.Popen[str]

    def read(self) -> dict[str, Any]:
        """The next line it writes; ends the benchmark if it died."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, runs: int) -> dict[str, float]:
        """CPU seconds per run, over this many runs."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"runs": runs}) + "\n")
        self.process.stdin.flush()
        return self.read()


def _interleave(pythons: dict[str, Path], model: str, rounds: int, runs: int) -> list[dict[str, dict[str, float]]]:
    out: list[dict[str, dict[str, float]]] = []
    order = list(pythons)
    draw = random.Random(7)
    with _workers(pythons, model) as workers:
        for _ in range(rounds):
            draw.shuffle(order)
            out.append({kind: workers[kind].ask(runs) for kind in order})
    return out


@contextlib.contextmanager
def _workers(pythons: dict[str, Path], model: str) -> Iterator[dict[str, Worker]]:
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SEALTRACE_", "OPENAI_"))
    }
    environ["PYTHONHASHSEED"] = "0"
    workers: dict[str, Worker] = {}
    try:
        for kind, python in pythons.items():
            command = [str(python), str(HERE / "worker.py"), kind, model]
            pipe = subprocess.PIPE
            workers[kind] = Worker(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ))
            workers[kind].read()  # one after the other: a worker is ready when it has warmed up
        yield workers
    finally:
        for worker in workers.values():
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        for worker in workers.values():
            worker.process.wait(timeout=30)


# --- telling -------------------------------------------------------------------------------------------------


def _summary(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, dict[str, float]]]:
    return {kind: {measure: _figures(rounds, kind, measure) for measure in MEASURES} for kind in rounds[0] | {}}


def _figures(rounds: list[dict[str, dict[str, float]]], kind: str, measure: str) -> dict[str, float]:
    ratios = sorted(entry[kind][measure] / entry["off"][measure] for entry in rounds)
    return {
        "ratio": statistics.median(ratios),
        "p10": ratios[len(ratios) // 10],
        "p90": ratios[len(ratios) * 9 // 10],
        "ms": 1000 * statistics.median(entry[kind][measure] for entry in rounds),
        "spans": statistics.median(entry[kind]["spans"] for entry in rounds),
    }


def _show(model: str, rounds: int, runs: int, summary: dict[str, dict[str, dict[str, float]]]) -> None:
    what = {
        "client": "the SDK's Responses model and client, in-memory transport",
        "own": "a model class that builds nothing",
    }
    print(f"\nCPU per run / no tracing; {what[model]}; {rounds} interleaved rounds of {runs} runs; median (p10-p90)\n")
    print(f"{'':52} {'spans':>5} {'agent thread':>28} {'whole process':>28}")
    for kind, title in TITLES.items():
        if kind not in summary:
            continue
        cells = []
        for measure in MEASURES:
            figures = summary[kind][measure]
            ratio = f"{figures['ratio']:.2f} ({figures['p10']:.2f}-{figures['p90']:.2f})"
            cells.append(f"{ratio} {figures['ms']:6.2f} ms")
        print(f"{title:52} {summary[kind]['agent']['spans']:5.0f} {cells[0]:>28} {cells[1]:>28}")


if __name__ == "__main__":
    sys.exit(main())
