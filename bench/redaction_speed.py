"""Measure how fast redaction is, beside two other tools, and that work grows no faster than text.

    SEALTRACE_TEST_DATA=... python bench/redaction_speed.py [--peers] [--curve] [--mb 10]

CPU time of this process, best of five. Each round has a new redactor, so nothing is remembered from
the round before; within a round every unique string is searched once, as in a recorder. Three rates:

* `redact` is the whole of it, on parsed JSON, per byte of its JSON text;
* `strings` is the engine alone on what a recorder gives it: the strings in that JSON, each once, joined;
* `text` is the engine alone on the JSON text, quotes and all: what other tools are given, to compare with.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import sysconfig
import time
from pathlib import Path

from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor
from sealtrace.redaction.engines import build_engine, fast_installed

_KEYS = Keys(b"a key for benchmarks only")


_MODEL = os.environ.get("SPACY_MODEL", "en_core_web_sm")


def _payloads() -> dict[str, list]:
    data = Path(os.environ["SEALTRACE_TEST_DATA"])
    with gzip.open(data / "tau_bench_gpt-4o-airline.json.gz", "rt") as file:
        runs = json.load(file)
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [path.read_text("utf-8", "replace")[:200_000] for path in sorted(library.glob("*.py"))[:100]]
    messages = [run["traj"] for run in runs]
    return {
        "tau-bench messages": messages,
        "tau-bench as sent": _as_sent(messages[:40]),
        "coding run": [json.loads((data / "swe_agent_marshmallow_fc.traj").read_text(encoding="utf-8"))],
        "code as tool results": [[{"type": "function_call_output", "output": text}] for text in files],
    }


def _as_sent(runs: list) -> list:
    """Every model request of a run as it is sent: the history grows with each."""
    return [run[:end] for run in runs for end in range(1, len(run)) if run[end].get("role") == "assistant"]


def _best(action, rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        action()
        best = min(best, time.process_time() - started)
    return best


def _ready(engine: str, profile: str = "strict"):
    """The engine, compiled: Hyperscan does so on a thread of its own, and the default engine answers until then."""
    searcher = build_engine(Policy(engine=engine, profile=profile))
    for one in searcher._engines:
        if hasattr(one, "wait"):
            one.wait()
    return searcher


def _redact_all(engine: str, profile: str, payloads: list):
    _ready(engine, profile)

    def action() -> None:
        redactor = Redactor(Policy(engine=engine, profile=profile), _KEYS, timeout=600)
        for payload in payloads:
            redactor.redact(payload)

    return action


def _search(engine: str, profile: str, texts: list[str]):
    searcher = _ready(engine, profile)

    def action() -> None:
        for text in texts:
            searcher.find(text)

    return action


def _strings(payloads: list) -> list[str]:
    """What the walk of these payloads gives an engine to search."""
    redactor = Redactor(Policy(engine="anchors"), _KEYS, timeout=600)
    scanner = redactor._base.scanner
    inner, given = scanner._engine, []

    class Tape:
        name = "tape"

        def find(self, text: str, depth: int = 0):
            given.append(text)
            return inner.find(text, depth)

    scanner._engine = Tape()
    for payload in payloads:
        redactor.redact(payload)
    return given


def speeds(engines: list[str]) -> None:
    calibration = json.dumps(_payloads()["tau-bench messages"])
    print(
        f"  json.loads here: {len(calibration) / _best(lambda: json.loads(calibration)) / 1e6:.0f} MB/s of CPU time\n"
    )
    heads = [f"{engine} {what}" for engine in engines for what in ("redact", "strings", "text")]
    print(f"  MB/s {'':29s}" + "".join(f"{head:>19s}" for head in heads))
    for name, payloads in _payloads().items():
        texts, strings = [json.dumps(payload, ensure_ascii=False) for payload in payloads], _strings(payloads)
        size, held = (sum(len(text.encode()) for text in some) for some in (texts, strings))
        for profile in ("strict", "balanced"):
            row = f"  {name:24s}{profile:10s}"
            for engine in engines:
                row += f"{size / _best(_redact_all(engine, profile, payloads)) / 1e6:19.1f}"
                row += f"{held / _best(_search(engine, profile, strings)) / 1e6:19.1f}"
                row += f"{size / _best(_search(engine, profile, texts)) / 1e6:19.1f}"
            print(row, flush=True)


def peers() -> None:
    texts = [json.dumps(payload, ensure_ascii=False) for payload in _payloads()["tau-bench messages"]]
    size = sum(len(text.encode()) for text in texts)
    try:
        import kingfisher_sdk
    except ImportError:
        print("  kingfisher: not installed here")
    else:
        scanner = kingfisher_sdk.Scanner(policy=kingfisher_sdk.DetectionPolicy(inline_ignores=False))
        scanner.scan("warm up")
        seconds = _best(lambda: [scanner.scan(text) for text in texts], 2)
        print(f"  kingfisher, tau-bench messages: {size / seconds / 1e6:.1f} MB/s")
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider

        __import__(_MODEL)  # or Presidio would fetch it
    except ImportError:
        print(f"  presidio: not installed here, or without {_MODEL}")
        return
    models = [{"lang_code": "en", "model_name": _MODEL}]
    engine = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models}).create_engine()
    analyzer = AnalyzerEngine(nlp_engine=engine)
    few = texts[:3]
    seconds = _best(lambda: [analyzer.analyze(text, language="en") for text in few], 1)
    print(f"  presidio, 3 runs of tau-bench: {sum(map(len, few)) / seconds / 1e3:.1f} KB/s")


_NEAR = (
    "a@b 4111-1111-1111-1112 ghp_abc eyJhbGci. sk-sk- token= key: password secret -----BEGIN 1.2.3. ::1: curl -u x +1 "
)
_UNITS = {"near matches": _NEAR, "digits": "1 ", "dashes": "a-", "signs": "a@", "assignments": "key=", "escapes": "%41"}


def curve(engines: list[str], megabytes: float) -> None:
    """Seconds for texts of near matches, doubled four times: the ratio must stay near two."""
    for engine in engines:
        _ready(engine)
        for name, unit in _UNITS.items():
            top = megabytes if unit == _NEAR else megabytes / 10
            row = f"  {engine:10s} {name:14s}"
            last = 0.0
            for part in (16, 8, 4, 2, 1):
                size = int(top * 1e6 / part)
                text = (unit * (size // len(unit) + 1))[:size]
                redactor = Redactor(Policy(engine=engine), _KEYS, timeout=3600, max_string_bytes=1 << 40)
                redactor.redact("x" * 5000)
                started = time.process_time()
                redactor.redact(text)
                took = time.process_time() - started
                row += f"  {size / 1e6:.2f} MB {took:.2f} s" + (f" (x{took / last:.1f})" if last else "")
                last = took
            print(row, flush=True)


def main() -> None:
    engines = ["anchors", "hyperscan"] if fast_installed() else ["anchors"]
    if len(engines) == 1:
        print("  hyperscan: sealtrace[fast] is not installed here")
    speeds(engines)
    if "--peers" in sys.argv:
        print()
        peers()
    if "--curve" in sys.argv:
        print()
        curve(engines, float(sys.argv[sys.argv.index("--mb") + 1]) if "--mb" in sys.argv else 10)


if __name__ == "__main__":
    main()
