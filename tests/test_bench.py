"""The benchmarks run; what they measure is read by people."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench"


def test_the_overhead_benchmark_measures_every_kind_in_each_round(tmp_path: Path) -> None:
    """Without the peers, which it would install: each round has a positive time and the spans of each kind."""
    out = tmp_path / "figures.json"
    command = [sys.executable, str(BENCH / "overhead.py"), "--rounds", "2", "--runs", "1", "--model", "own"]
    command += ["--only", "sdk", "sealtrace", "sealtrace-spans", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rounds = json.loads(out.read_text(encoding="utf-8"))["own"]["rounds"]
    assert [set(entry) for entry in rounds] == [{"off", "sdk", "sealtrace", "sealtrace-spans"}] * 2
    assert all(figures["agent"] > 0 and figures["process"] > 0 for entry in rounds for figures in entry.values())
    for entry in rounds:
        assert entry["off"]["spans"] == entry["sdk"]["spans"] == 0
        assert entry["sealtrace"]["spans"] == entry["sealtrace-spans"]["spans"] + 1, "the seal's own span"
        assert entry["sealtrace-spans"]["spans"] >= 13
