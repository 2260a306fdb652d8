"""`sealtrace rerun RUN`: the agent code again, on the record's answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._private_file import refuse_taken, write_private
from ..errors import NotComparable, SettingsError
from ._exits import NOT_FOUND, say
from ._options import AsJson, Force, Reason, Telemetry, Vault, print_json

if TYPE_CHECKING:
    from ..replay.kept import Shelf
    from ..replay.report import Report

__all__ = ["rerun"]


def rerun(
    run: Annotated[str, typer.Argument(metavar="RUN", help="An id, a link or a golden file.")],
    entry: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="The code: an agent, or a function that is called with the run's input or with nothing.",
            show_default=False,
        ),
    ] = None,
    stub: Annotated[
        bool, typer.Option("--stub", help="Without the code: walk the run with agents rebuilt from the record.")
    ] = False,
    served_guardrails: Annotated[
        bool, typer.Option("--served-guardrails", help="Serve recorded verdicts instead of running guardrails.")
    ] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A path that may differ: `$.request.instructions`.", show_default=False),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Text that may differ: a clock in the instructions.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write the report as one self-contained HTML file here.", show_default=False),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write the report as JSON here.", show_default=False)] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the report in SEALTRACE_REPORTS, where the viewer shows it.")
    ] = False,
    force: Force = False,
    vault: Vault = None,
    telemetry: Telemetry = None,
    reason: Reason = None,
    json: AsJson = False,
) -> int:
    """Rerun a recorded run: a simulation on recorded model answers and tool results.

    No model is asked, no tool is run, nothing leaves the process. Exit code 0: the same; 2: diverged;
    3: not found or not comparable.
    """
    from ..replay.opening import open_run

    if (entry is None) == (not stub):
        raise typer.BadParameter("name the code with --entry module:agent, or walk the record with --stub")
    for file in (html, report):
        if file is not None:
            refuse_taken(file, force=force)
    shelf = _shelf() if keep else None
    try:
        found = open_run(run, vault=vault, telemetry=telemetry, reason=reason)
        if entry is None:
            from ..replay.stub import walk

            came = walk(found, ignore=ignore or (), pin=pin or ())
        else:
            from ..replay.entry import find_entry, rerun_entry

            guardrails = "served" if served_guardrails else "run"
            code = find_entry(entry, beside=Path.cwd())
            came = rerun_entry(found, code, guardrails=guardrails, ignore=ignore or (), pin=pin or ()).report
    except NotComparable as error:
        say(error)
        return NOT_FOUND
    if html is not None:
        from ..viewer.exported import rerun_file

        write_private(html, rerun_file(came), force=force)
    if report is not None:
        from ..replay.kept import to_text

        write_private(report, to_text(came), force=force)
    name = shelf.keep(came) if shelf is not None else None
    _print(came, name, as_json=json)
    return came.exit_code


def _shelf() -> Shelf:
    from ..replay.kept import Shelf
    from ..settings import load_settings

    settings = load_settings()
    if settings.reports is None:
        raise SettingsError("no directory to keep reports in: set SEALTRACE_REPORTS", setting="reports")
    return Shelf(settings.reports, days=settings.retention.content)


def _print(report: Report, name: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json(report.to_json() | ({"kept": name} if name is not None else {}))
        return
    from ..replay.text import render_report
    from ..run.text import console

    console().print(render_report(report))
    if name is not None:
        console().print(f"  kept as {name}; `sealtrace serve` shows it at /reruns/{name}", style="dim")
