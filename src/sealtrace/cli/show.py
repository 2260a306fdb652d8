"""`sealtrace show`: read one run."""

from __future__ import annotations

from typing import Annotated

import typer

from ._options import AsJson, Reason, RunArgument, Telemetry, Vault, print_json

__all__ = ["show"]


def show(
    run: RunArgument,
    event: Annotated[int | None, typer.Option(help="Show this event alone, whole.", min=0)] = None,
    record: Annotated[
        str | None, typer.Option(help="The record of --event, where several have that number.", show_default=False)
    ] = None,
    payloads: Annotated[bool, typer.Option(help="Show each payload after the tree.")] = True,
    vault: Vault = None,
    telemetry: Telemetry = None,
    reason: Reason = None,
    json: AsJson = False,
) -> None:
    """Show a run: its tree with durations, tokens and status, then each payload.

    Reads only: no model is called and no tool is run.
    """
    from ..run import load

    found = load(run, vault=vault, telemetry=telemetry, reason=reason)
    number = event if event is not None else found.linked_event
    if json:
        print_json(found.to_json() if number is None else found.event(number, record).to_json())
        return
    from ..run import text

    out = text.console()
    if number is not None:
        out.print(text.render_event(found.event(number, record)))
        return
    out.print(text.render_run(found))
    if payloads and found.events:
        out.print(text.render_payloads(found))
