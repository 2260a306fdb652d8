"""Options that several commands share."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, TypeAlias

import typer

__all__ = ["AsJson", "Force", "Reason", "RunArgument", "Telemetry", "Vault", "print_json"]

RunArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run id, an OpenTelemetry trace id, or a link to either.")
]
Vault: TypeAlias = Annotated[
    str | None,
    typer.Option(help="file:///path or s3://bucket/prefix; SEALTRACE_VAULT by default.", show_default=False),
]
Telemetry: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--telemetry",
        "--source",
        help="otlp+file:///path, jaeger://host:port or tempo://host:port; SEALTRACE_TELEMETRY by default.",
        show_default=False,
    ),
]
Reason: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Why the payloads are read, for the read audit; SEALTRACE_READ_REASON by default.", show_default=False
    ),
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there already.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output; ASCII, so that nothing in it acts on a terminal."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")
