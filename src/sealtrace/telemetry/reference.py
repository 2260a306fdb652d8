"""What is generated from the allow-list: the attribute reference and the collector's list of keys."""

from __future__ import annotations

import sys

from .metadata import ATTRIBUTES, METADATA_PREFIX, SCHEMA_URL, Gate

__all__ = ["allowed_keys", "page"]


def page() -> str:
    """The attribute reference as Markdown; `docs/attributes.md` is this and nothing else."""
    rows = "\n".join(
        f"| `{item.key}` | {item.meaning} | {item.gate.value}"
        f"{': ' + ', '.join(f'`{word}`' for word in sorted(item.words)) if item.words else ''} | {item.source} |"
        for item in (ATTRIBUTES[key] for key in sorted(ATTRIBUTES))
    )
    return (
        "# Span attributes\n\n"
        "Generated from `sealtrace.telemetry.metadata` by `python -m sealtrace.telemetry.reference`.\n"
        "No span of sealtrace carries any other attribute, nor a status description, an event or a link.\n\n"
        f"Keys and meanings are those of the GenAI semantic conventions, which are in development; the scope's\n"
        f"schema URL is the one their registry declares, `{SCHEMA_URL}`.\n\n"
        "| key | meaning | value | source |\n|---|---|---|---|\n"
        f"{rows}\n"
        f"| `{METADATA_PREFIX}*` | trace metadata under the keys listed in `trace_metadata_keys`"
        f" | {Gate.IDENTIFIER.value} | sealtrace |\n"
    )


def allowed_keys() -> str:
    """The part of the collector's list of allowed keys that is ours, as it stands in `scrub.yaml`."""
    return "".join(f"      - {key}\n" for key in sorted(ATTRIBUTES))


if __name__ == "__main__":
    sys.stdout.write(allowed_keys() if sys.argv[1:] == ["--allowed-keys"] else page())
