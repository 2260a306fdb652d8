"""`sealtrace spool`: what waits for the vault, and storing it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import SettingsError
from ..settings import Settings, load_settings
from ._exits import OK, PROBLEM
from ._options import AsJson, Vault, print_json

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="What waits for the vault, and storing it.")

_Spool = Annotated[
    Path | None, typer.Option(help="The spool's directory; SEALTRACE_SPOOL by default.", show_default=False)
]


@app.command()
def status(spool: _Spool = None, json: AsJson = False) -> int:
    """Count the records that dead processes left; living ones look after their own."""
    from ..vault import waiting

    settings, root = _root({"spool": spool})
    records, size = waiting(root)
    if json:
        print_json({"spool": str(root), "records": records, "bytes": size, "recoverable": settings.key is not None})
        return OK
    typer.echo(f"{root}: {records} records, {size} B wait")
    if settings.key is None:
        typer.echo("no `key` is set: records of dead processes cannot be read")
    return OK


@app.command()
def drain(spool: _Spool = None, vault: Vault = None, json: AsJson = False) -> int:
    """Store what dead processes left. Exit code 1 if something could not be read."""
    from ..vault import Keyring, Preparation, Signer, SpoolKey, open_store, recover

    settings, root = _root({"spool": spool, "vault": vault})
    if settings.vault is None:
        raise SettingsError("no vault to store it in: pass --vault or set SEALTRACE_VAULT", setting="vault")
    store = open_store(settings.vault, settings)
    preparation = Preparation(Keyring.from_settings(settings), Signer.from_settings(settings))
    found = list(recover(root, SpoolKey.from_settings(settings), store, preparation=preparation))
    problems = [item for item in found if item.problem is not None]
    if json:
        print_json([dataclasses.asdict(item) for item in found])
    else:
        for item in problems:
            typer.echo(f"✗ {item.problem}")
        erased = sum(item.erased for item in found)
        typer.echo(f"stored {len(found) - len(problems) - erased} records in {store.url}")
        if erased:
            typer.echo(f"threw away {erased} records of runs that were erased")
    return PROBLEM if problems else OK


def _root(arguments: dict[str, Any]) -> tuple[Settings, Path]:
    settings = load_settings(arguments)
    if settings.spool is None:
        raise SettingsError("no spool: pass --spool or set SEALTRACE_SPOOL", setting="spool")
    return settings, settings.spool
