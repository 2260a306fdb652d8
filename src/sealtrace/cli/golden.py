"""`sealtrace golden`: recorded runs kept as tests in your repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._exits import DIFFERENT, NOT_FOUND, OK, PROBLEM
from ._options import AsJson, RunArgument, Telemetry, Vault, print_json

if TYPE_CHECKING:
    from ..redaction import Redactor

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Recorded runs kept as tests in your repository.")

_Directory = Annotated[Path, typer.Option("--dir", help="Where goldens are kept.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="A golden's name, or its file.")]
_Reason = Annotated[str, typer.Option(help="Why; kept in the golden for whoever reads it next.")]
_DIRECTORY = Path("tests/golden")


@app.command()
def add(
    run: RunArgument,
    name: Annotated[str, typer.Option(help="A new name.")],
    entry: Annotated[str, typer.Option(help="The code to rerun, package.module:agent or package.module:function.")],
    reason: _Reason,
    directory: _Directory = _DIRECTORY,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A path that may differ: `$.request.instructions`.", show_default=False),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Text that may differ: a clock in the instructions.", show_default=False),
    ] = None,
    served_guardrails: Annotated[
        bool, typer.Option("--served-guardrails", help="Serve recorded verdicts instead of running guardrails.")
    ] = False,
    vault: Vault = None,
    telemetry: Telemetry = None,
) -> int:
    """Write a recorded run to a file that reruns without vault, network or model.

    The code is not run now. What the vault gave is redacted once more with the rules in force.
    """
    from ..replay import golden
    from ..run import load

    made = golden.add(
        load(run, vault=vault, telemetry=telemetry, reason=reason),
        name=name,
        entry=entry,
        reason=reason,
        redactor=_redactor(),
        directory=directory,
        allowed=golden.Allowed(tuple(ignore or ()), tuple(pin or ()), "served" if served_guardrails else "run"),
    )
    typer.echo(f"{made.path}: {len(made.run.events)} events, {made.path.stat().st_size} bytes")
    typer.echo(f"review and commit it; rerun it with `sealtrace golden rerun {name}` or `pytest --sealtrace`")
    return OK


def _redactor() -> Redactor:
    from ..keys import Keys
    from ..redaction import Policy, Redactor
    from ..settings import load_settings

    settings = load_settings()
    keys = Keys.from_settings(settings)
    policy = Policy.load(settings)
    return Redactor(policy, keys, timeout=settings.redaction_timeout, max_string_bytes=settings.max_string_bytes)


@app.command(name="list")
def list_(directory: _Directory = _DIRECTORY, json: AsJson = False) -> int:
    """List goldens. Exit code 1: one cannot be read."""
    from ..errors import GoldenError
    from ..replay import golden
    from ..run.safe import one_line

    rows: list[dict[str, object]] = []
    for path in golden.find(directory):
        try:
            found = golden.load(path)
        except GoldenError as error:
            rows.append({"path": str(path), "error": str(error)})
            continue
        last = found.history[-1]
        rows.append(
            {
                "name": found.name,
                "path": str(path),
                "entry": found.entry,
                "events": len(found.run.events),
                "since": last.at,
                "reason": last.reason,
            }
        )
    if json:
        print_json(rows)
    else:
        for row in rows:
            if "error" in row:
                typer.echo(one_line(f"{row['path']}  {row['error']}", 500))
            else:
                typer.echo(one_line("  ".join(str(row[name]) for name in ("name", "entry", "events", "reason")), 500))
    return PROBLEM if any("error" in row for row in rows) else OK


@app.command()
def show(name: _Name, directory: _Directory = _DIRECTORY, json: AsJson = False) -> int:
    """Show a golden: where it comes from, its history, the run with its payloads."""
    from ..replay import golden
    from ..run import text
    from ..run.safe import one_line

    found = golden.load(_path(name, directory))
    if json:
        print_json(found.run.to_json())
        return OK
    typer.echo(f"{one_line(found.name)}: {one_line(found.entry)}, from {found.run.id}")
    for name_, value in found.allowed.to_json().items():
        typer.echo(one_line(f"  may differ: {name_} {value}", 500))
    for change in found.history:
        typer.echo(f"  {change.at[:19]}  {change.action}  {one_line(change.reason, 500)}")
        for what in change.what:
            typer.echo(f"      {one_line(what, 500)}")
    out = text.console()
    out.print(text.render_run(found.run))
    out.print(text.render_payloads(found.run))
    return OK


@app.command()
def rerun(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names or files; all of them by default.")
    ] = None,
    directory: _Directory = _DIRECTORY,
    json: AsJson = False,
) -> int:
    """Rerun goldens offline: a simulation, without model, tools or network.

    Exit code 0: the same; 1: one cannot be read, or its code not be imported; 2: one diverged; 3: one
    cannot be compared.
    """
    from ..replay import golden

    paths = [_path(name, directory) for name in names] if names else list(golden.find(directory))
    if not paths:
        typer.echo(f"no goldens in {directory}; add one with `sealtrace golden add RUN --name … --entry …`", err=True)
        return PROBLEM
    results = [_rerun(path, quiet=json) for path in paths]
    if json:
        print_json([document for _, document in results])
    codes = {code for code, _ in results}
    return next((code for code in (DIFFERENT, NOT_FOUND, PROBLEM) if code in codes), OK)


def _rerun(path: Path, *, quiet: bool) -> tuple[int, dict[str, object]]:
    from ..errors import SealtraceError
    from ..replay import golden
    from ..replay.entry import find_entry, rerun_entry
    from ..replay.text import render_report
    from ..run.safe import one_line
    from ..run.text import console
    from ._exits import code_of

    try:
        found = golden.load(path)
        code = find_entry(found.entry, beside=Path.cwd())
        report = rerun_entry(found.run, code, **found.allowed.options).report
    except SealtraceError as error:
        if not quiet:
            typer.echo(f"{one_line(path.stem)}: {one_line(str(error), 2000)}")
        return code_of(error), {"golden": path.stem, "error": str(error)}
    if not quiet:
        typer.echo(f"{one_line(found.name)}:")
        console().print(render_report(report))
    return report.exit_code, {"golden": found.name, **report.to_json()}


@app.command()
def accept(
    name: _Name,
    reason: _Reason,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Take this newly recorded run in its place.", show_default=False),
    ] = None,
    directory: _Directory = _DIRECTORY,
    vault: Vault = None,
    telemetry: Telemetry = None,
) -> int:
    """Let a golden follow changed code, with a reason; refused where CI is set.

    Without --run the code is rerun on the recorded answers, and what it asks now replaces what it asked
    then. Where it does something there is no recorded answer to, record the run again and give --run.
    """
    from ..replay import golden
    from ..replay.accept import follow
    from ..replay.entry import find_entry
    from ..run import load
    from ..run.safe import one_line

    golden.refuse_in_ci()
    found = golden.load(_path(name, directory))
    if run is not None:
        newer = golden.kept(load(run, vault=vault, telemetry=telemetry, reason=reason), _redactor())
        what: tuple[str, ...] = (f"recorded again: {newer.id}",)
    else:
        accepted = follow(found.run, find_entry(found.entry, beside=Path.cwd()), **found.allowed.options)
        newer, what = accepted.run, accepted.what
    if not what:
        typer.echo("nothing to accept: it reruns the same")
        return OK
    golden.save(found, newer, reason=reason, what=what)
    for line in what:
        typer.echo(f"accepted  {one_line(line, 500)}")
    return OK


def _path(name: str, directory: Path) -> Path:
    return Path(name) if name.endswith(".json") else directory / f"{name}.json"
