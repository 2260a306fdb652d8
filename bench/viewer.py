"""A run of 10,000 events in the viewer: what a reader waits for, and what it costs.

    python bench/viewer.py [--events 10000]

The run lies in a bucket (an S3 server in this process, which counts what it is asked) and in a trace file; the
viewer is `sealtrace serve` in a process of its own; the browser is Debian's Chromium without a window. All on one
machine, so the server's, the bucket's and the browser's work compete.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

PRESSES = 60
MANY = 20

_PAINT = """
const [page] = performance.getEntriesByType("navigation");
const paint = performance.getEntriesByName("first-contentful-paint")[0];
return [paint.startTime, page.responseStart, page.domContentLoadedEventEnd, page.loadEventEnd, page.decodedBodySize];
"""
_WATCH = """
window.switches = [];
let pressed = 0;
addEventListener("keydown", () => { pressed = performance.now(); }, true);
new MutationObserver(() => {
  const begun = pressed;
  // The frame after the one that is being made: by then it has been painted.
  requestAnimationFrame(() => requestAnimationFrame(() => window.switches.push(performance.now() - begun)));
}).observe(document.querySelector("#open"), { childList: true });
"""


def main() -> None:
    """Measure, and print what was measured."""
    from browser.bucket import Bucket
    from browser.chromium import browsing
    from browser.runs import Long
    from browser.serving import serving
    from run.halves import write_otlp
    from sealtrace.vault.stores import LocalStore

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=10_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sealtrace-bench-") as name, Bucket().running() as bucket:
        folder = Path(name)
        run = Long(wanted.events)
        run.store(LocalStore(folder / "vault"))
        bucket.fill(folder / "vault")
        telemetry = write_otlp(folder / "traces.jsonl", list(run.spans()))
        stored = sum(path.stat().st_size for path in (folder / "vault").rglob("*") if path.is_file())
        print(f"{len(run.events):,} events, {stored / 1e6:.1f} MB stored, {wanted.events:,} spans in a file")
        env = bucket.environment("owner", "owner")
        with serving(folder, bucket.vault, telemetry, env=env) as viewer, browsing(folder / "profile") as browser:
            print(f"server, idle: {_rss(viewer.pid)}")
            for what in ("first paint, run not open yet", "first paint, again"):
                bucket.asked.clear()
                browser.open(viewer.run(run.run_id))
                _painted(what, browser.script(_PAINT), bucket.asked)
            print(f"server, run open: {_rss(viewer.pid)}")
            for what, start in (("from the first event", 0), ("from the middle", len(run.events) // 2)):
                browser.open(viewer.run(run.run_id, start))
                _walk(browser, bucket, what)
            print(f"server, after the walks: {_rss(viewer.pid)}")
            _each(browser, bucket, viewer, run)
            assert browser.trouble() == []
        _many(folder, wanted.events)


def _painted(what: str, found: list[float], asked: list[Any]) -> None:
    paint, answer, ready, loaded, size = found
    print(
        f"{what}: {paint:.0f} ms (first byte {answer:.0f} ms, DOM ready {ready:.0f} ms, loaded {loaded:.0f} ms, "
        f"{size / 1024:.0f} KB of HTML); {_gets(asked)}"
    )


def _walk(browser: Any, bucket: Any, what: str) -> None:
    browser.script(_WATCH)
    bucket.asked.clear()
    for count in range(1, PRESSES + 1):
        browser.press("j")
        browser.until(lambda count=count: browser.script("return window.switches.length") >= count, "no next event")
    times = sorted(browser.script("return window.switches"))
    print(
        f"event switch by j, {what}: median {statistics.median(times):.0f} ms, "
        f"p95 {times[int(len(times) * 0.95)]:.0f} ms, most {times[-1]:.0f} ms; "
        f"{PRESSES} events, {_gets(bucket.asked)}"
    )


def _each(browser: Any, bucket: Any, viewer: Any, run: Any) -> None:
    """Ranged reads for single events far apart, none of which shares anything with the one before."""
    by_kind: dict[str, list[int]] = {}
    whole = 0
    for event in run.events[7 :: len(run.events) // 97]:
        bucket.asked.clear()
        browser.open(f"{viewer.run(run.run_id, event.seq)}")
        ranged = [item for item in bucket.asked if item[0] == "GET" and item[2]]
        whole += sum(item[0] == "GET" and not item[2] and "/content/" in item[1] for item in bucket.asked)
        by_kind.setdefault(event.kind.value, []).append(len(ranged))
    for kind, counts in sorted(by_kind.items()):
        print(f"ranged GETs to open one {kind} far from the last: median {statistics.median(counts)}, "
              f"most {max(counts)} ({len(counts)} events)")  # fmt: skip
    print(f"payload objects read whole meanwhile: {whole}")


def _many(folder: Path, events: int) -> None:
    """Memory of a server that opens one long run after another."""
    import httpx

    from browser.runs import Long
    from browser.serving import serving
    from sealtrace.vault.stores import LocalStore

    runs = [f"trace_{number:032x}" for number in range(1, MANY + 1)]
    for run_id in runs:
        Long(events, run_id=run_id).store(LocalStore(folder / "many"))
    with serving(folder, (folder / "many").as_uri()) as viewer, httpx.Client(timeout=120) as client:
        for count, run_id in enumerate(runs, 1):
            client.get(viewer.run(run_id)).raise_for_status()
            if count in (1, MANY // 2, MANY):
                print(f"server, after {count} such runs: {_rss(viewer.pid)}")


def _gets(asked: list[Any]) -> str:
    gets = [item for item in asked if item[0] == "GET"]
    ranged = sum(1 for item in gets if item[2])
    lists = sum(1 for item in gets if "list-type" in item[1] or item[1].count("/") <= 1)
    return f"{ranged} ranged GETs, {len(gets) - ranged - lists} whole GETs, {lists} listings"


def _rss(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    values = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("Vm")}
    return f"{values['VmRSS']:.0f} MB resident, {values['VmHWM']:.0f} MB at most"


if __name__ == "__main__":
    begun = time.monotonic()
    main()
    print(f"({time.monotonic() - begun:.0f} s)")
