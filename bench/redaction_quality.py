"""Measure what redaction finds and what it touches in vain, beside two other tools.

    SEALTRACE_TEST_DATA=... python bench/redaction_quality.py [--misses] [--peers]

Corpora, in the directory that SEALTRACE_TEST_DATA names: secrets and look-alikes derived from gitleaks'
rule fixtures, sentences with labelled personal data from presidio-research. `--peers` also runs
Kingfisher and Presidio, if this interpreter can import them. A secret counts as found when anything
in its line was replaced; a span of personal data when no character of it is left.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import sysconfig
from collections import Counter, defaultdict
from pathlib import Path

from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor

_ENTITIES = (
    "EMAIL_ADDRESS",
    "CREDIT_CARD",
    "PHONE_NUMBER",
    "IBAN_CODE",
    "US_SSN",
    "IP_ADDRESS",
    "PERSON",
    "STREET_ADDRESS",
)


_MODEL = os.environ.get("SPACY_MODEL", "en_core_web_sm")


def _rows() -> tuple[list[dict], list[dict]]:
    data = Path(os.environ["SEALTRACE_TEST_DATA"])
    with gzip.open(data / "secrets_gitleaks_half_a.jsonl.gz", "rt") as file:
        secrets = [json.loads(line) for line in file]
    return secrets, json.loads((data / "pii_presidio_half_a.json").read_text(encoding="utf-8"))


def _redactor(profile: str) -> Redactor:
    return Redactor(Policy(profile=profile), Keys(b"a key for benchmarks only"), timeout=60)


def secrets(rows: list[dict], finds, label: str, *, misses: bool) -> None:
    found = [(row, finds(row["text"])) for row in rows]
    positives = [hit for row, hit in found if row["label"]]
    negatives = [hit for row, hit in found if not row["label"]]
    print(
        f"  {label:28s} recall {sum(positives) / len(positives):.3f} ({sum(positives)}/{len(positives)})"
        f"   negatives flagged {sum(negatives) / len(negatives):.3f} ({sum(negatives)}/{len(negatives)})"
    )
    if misses:
        for row, hit in found:
            if hit != row["label"]:
                print(f"      {'missed' if row['label'] else 'flagged'} {row['rule']}: {row['text'][:110]!r}")


def personal(rows: list[dict], covers, label: str, *, misses: bool) -> None:
    total: Counter[str] = Counter()
    full: Counter[str] = Counter()
    left: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        covered = covers(row["full_text"])
        for span in row["spans"]:
            kind = span["entity_type"]
            if kind not in _ENTITIES:
                continue
            total[kind] += 1
            wanted = [
                position
                for position in range(span["start_position"], span["end_position"])
                if row["full_text"][position].isalnum()
            ]
            if all(position in covered for position in wanted):
                full[kind] += 1
            else:
                left[kind].append(row["full_text"][max(0, span["start_position"] - 30) : span["end_position"] + 10])
    print(f"  {label:28s} " + "  ".join(f"{kind} {full[kind] / total[kind]:.2f}" for kind in _ENTITIES))
    if misses:
        for kind in _ENTITIES[:6]:
            for text in left[kind]:
                print(f"      missed {kind}: {text!r}")


def _covered_by(redactor: Redactor):
    return lambda text: {position for start, end, _ in redactor.spans(text) for position in range(start, end)}


def over_redaction(profile: str) -> None:
    """Changed characters on text without secrets: this interpreter's own library, and made-up logs, SQL and ids."""
    redactor = _redactor(profile)
    library = Path(sysconfig.get_paths()["stdlib"])
    groups = {
        "source code": "\n".join(path.read_text("utf-8", "replace") for path in sorted(library.glob("[a-m]*.py"))[:80])
    }
    groups.update(_made_up())
    for name, text in groups.items():
        touched = 0
        pieces = [text[start : start + 20_000] for start in range(0, len(text), 20_000)]
        for piece in pieces:
            touched += len(_covered_by(redactor)(piece))
        print(f"  {profile:9s} {name:24s} {len(text):9d} characters, changed {touched / len(text):.4%}")


def _made_up() -> dict[str, str]:
    import random
    import uuid

    draw = random.Random(7)
    number = draw.randint
    hexes = ["".join(draw.choices("0123456789abcdef", k=40)) for _ in range(1500)]
    stamps = [
        f"2026-{number(1, 12):02d}-{number(1, 28):02d}T{number(0, 23):02d}:{number(0, 59):02d}:{number(0, 59):02d}"
        f".{number(0, 999999):06d}Z"
        for _ in range(1500)
    ]
    rows = list(zip(stamps, hexes, strict=True))
    return {
        "logs": "\n".join(
            f"{stamp} INFO [worker-{n % 16}] GET /api/v2/orders/{number(10**6, 10**8)} 200 {number(1, 900)}ms "
            f"bytes={number(100, 10**6)} trace={h[:32]}"
            for n, (stamp, h) in enumerate(rows)
        ),
        "sql": "\n".join(
            "SELECT o.id, o.total FROM orders o JOIN items i ON i.order_id = o.id WHERE o.sku = "
            f"'AB-{number(1000, 99999)}-{number(10, 99)}' AND o.created_at > '{stamp[:10]}' LIMIT {number(1, 500)};"
            for stamp in stamps
        ),
        "product ids": "\n".join(
            f"sku-{number(10**9, 10**10)} EAN {number(10**12, 10**13 - 1)} lot {number(1000, 9999)}-{number(10, 99)} "
            f"order #W{number(10**6, 10**7)}"
            for _ in range(1500)
        ),
        "uuids": "\n".join(str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(1500)),
        "hashes": "\n".join(f"commit {h}\nsha256:{draw.getrandbits(256):064x}" for h in hexes),
        "timestamps": "\n".join(
            f"{stamp} epoch {number(10**9, 2 * 10**9)} ms {number(10**12, 2 * 10**12)}" for stamp in stamps
        ),
        "prices": "\n".join(
            f"item {n}: ${number(1, 9999)}.{number(0, 99):02d} x {number(1, 12)} = {number(1, 10**6) / 100:,.2f} USD"
            for n in range(1500)
        ),
    }


def peers(secret_rows: list[dict], personal_rows: list[dict]) -> None:
    try:
        import kingfisher_sdk as kingfisher
    except ImportError:
        print("  kingfisher: not installed here")
    else:
        scanner = _kingfisher(kingfisher)
        secrets(secret_rows, scanner, "kingfisher", misses=False)
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider

        __import__(_MODEL)  # or Presidio would fetch it
    except ImportError:
        print(f"  presidio: not installed here, or without {_MODEL}")
        return
    engine = NlpEngineProvider(
        nlp_configuration={"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": _MODEL}]}
    ).create_engine()
    analyzer = AnalyzerEngine(nlp_engine=engine)

    def covered(text: str) -> set[int]:
        return {p for result in analyzer.analyze(text, language="en") for p in range(result.start, result.end)}

    personal(personal_rows, covered, f"presidio + {_MODEL}", misses=False)


def _kingfisher(module):
    scanner = module.Scanner(policy=module.DetectionPolicy(inline_ignores=False))
    return lambda text: bool(scanner.scan(text))


def main() -> None:
    misses = "--misses" in sys.argv
    secret_rows, personal_rows = _rows()
    print("secrets (half A)")
    for profile in ("strict", "balanced"):
        redactor = _redactor(profile)
        secrets(
            secret_rows, lambda text, r=redactor: bool(r.redact(text).counts), f"sealtrace {profile}", misses=misses
        )
    print("personal data (half A): share of spans of which no letter or digit is left")
    for profile in ("strict", "balanced"):
        personal(personal_rows, _covered_by(_redactor(profile)), f"sealtrace {profile}", misses=misses)
    if "--peers" in sys.argv:
        print("peers")
        peers(secret_rows, personal_rows)
    print("changed characters on text without secrets")
    for profile in ("balanced", "strict"):
        over_redaction(profile)


if __name__ == "__main__":
    main()
