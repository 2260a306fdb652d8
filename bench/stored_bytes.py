"""Bytes stored per run against unique content, for conversations of 5, 10, 20 and 40 turns.

    python bench/stored_bytes.py

Unique content counts every message, tool result, instruction and tool list once, as JSON text.
Stored bytes count every object of the record, manifest and envelopes included.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from vault.records import Conversation, local


def main() -> None:
    print(f"{'turns':>6} {'unique':>9} {'stored':>9} {'ratio':>6} {'objects':>8} {'largest':>9} {'ms':>7}")
    for turns in (5, 10, 20, 40):
        run = Conversation(turns)
        with tempfile.TemporaryDirectory() as folder:
            store = local(Path(folder))
            before = time.process_time()
            seal = run.store(store)
            spent = (time.process_time() - before) * 1000
            largest = max(item.size for item in store.list(""))
        figures = f"{turns:>6} {run.unique_bytes:>9} {seal.bytes:>9} {seal.bytes / run.unique_bytes:>6.3f}"
        print(f"{figures} {seal.objects:>8} {largest:>9} {spent:>7.1f}")


if __name__ == "__main__":
    main()
