"""`sealtrace policy`: check redaction policies and see what they do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ._options import AsJson, print_json

if TYPE_CHECKING:
    from ..redaction import Redactor

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Check redaction policies and see what they do.")

# One invented value of each kind, to see which a policy finds.
_EXAMPLES: Final[dict[str, Any]] = {
    "EMAIL": "write to jane.roe@corp-mail.example",
    "CARD": "card 4111 1111 1111 1111",
    "IBAN": "pay to DE89 3704 0044 0532 0130 00",
    "SSN": "SSN 219-09-9999",
    "PHONE": "call +46 8 928 571 38",
    "IP": "from 193.99.144.80",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl",
    "SECRET": "API_TOKEN=q8Zt3LmN7pXv2RkW9sYd",
    "PRIVATE_KEY": "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2,
    "MEDIA": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",
    "NAME": {"last_name": "Roe"},
    "ADDRESS": {"street_address": "1 Example Road"},
    "DATE_OF_BIRTH": {"date_of_birth": "1990-02-01"},
    "NATIONAL_ID": {"passport_number": "X1234567"},
}


@app.callback()
def _group() -> None:
    """Check redaction policies and see what they do."""


@app.command("test")
def try_policy(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A policy (.toml), or any other file to try a policy on.")
    ],
    on: Annotated[
        Path | None,
        typer.Option("--on", metavar="SAMPLE", help="Try the policy FILE on this file.", show_default=False),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="The policy to try, where FILE is not one.", show_default=False)
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="strict or balanced, where the policy does not say.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Check a policy and show what it does: counts by kind, never what was found.

    With a policy alone, it is tried on one invented value of each kind. A wrong policy is exit code
    1 and a message that names the line.
    """
    from ._redaction import redactor_of

    is_policy = file.suffix == ".toml"
    redactor = redactor_of(profile, file if is_policy else policy)
    sample = on if is_policy else file
    report = _on_file(redactor, sample) if sample is not None else _on_examples(redactor)
    if json:
        print_json(report)
        return
    typer.echo(f"policy   {file if is_policy else policy or 'built in'}")
    for name, value in report.items():
        if isinstance(value, dict):
            typer.echo(f"{name}")
            for kind, number in sorted(value.items()):
                typer.echo(f"  {kind:16s} {number}")
        else:
            typer.echo(f"{name:8s} {value}")


def _on_examples(redactor: Redactor) -> dict[str, Any]:
    found = {kind: "found" if redactor.redact(value).counts else "let through" for kind, value in _EXAMPLES.items()}
    return {"profile": redactor.policy.profile, "ruleset": redactor.ruleset_hash, "kinds": found}


def _on_file(redactor: Redactor, path: Path) -> dict[str, Any]:
    from ..errors import SettingsError

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read the sample {path}: {error.strerror}") from error
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SettingsError(f"the sample {path} is UTF-16: convert it to UTF-8 first")
    text = raw.decode("utf-8-sig", "replace")
    counts: Counter[str] = Counter()
    for line in text.split("\n") if path.suffix in {".jsonl", ".ndjson"} else [text]:
        counts.update(redactor.redact(line).counts)
    return {
        "profile": redactor.policy.profile,
        "ruleset": redactor.ruleset_hash,
        "size": len(text),
        "replaced": dict(counts),
    }
