"""`sealtrace doctor`: what is recorded, where it goes, and whether content gets anywhere else."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ..settings import Settings, load_settings
from ._checks import Level, Row, capture_rows, import_row, others_rows, place_rows, span_rows
from ._exits import PROBLEM
from ._keychecks import key_rows
from ._options import AsJson, Telemetry, Vault, print_json
from ._probe import probing

__all__ = ["doctor"]


def doctor(
    module: Annotated[
        str | None,
        typer.Option("--import", metavar="MODULE", help="Import the application first, to see what it registers."),
    ] = None,
    vault: Vault = None,
    telemetry: Telemetry = None,
    json: AsJson = False,
) -> None:
    """Check what records, where payloads and spans go, and that nobody else gets content.

    Exits with 1 when content leaks or runs cannot be recorded. A probe run on a scripted model goes to
    a temporary folder; nothing is sent anywhere.
    """
    settings = load_settings({"vault": vault, "telemetry": telemetry})
    rows = list(_rows(settings, module))
    good = all(row.level is not Level.BAD for row in rows)
    if json:
        print_json({"ok": good, "rows": [dataclasses.asdict(row) for row in rows], "settings": _in_force(settings)})
    else:
        _print(rows, settings)
    if not good:
        raise typer.Exit(PROBLEM)


def _rows(settings: Settings, module: str | None) -> Iterator[Row]:
    if module is not None:
        # As `python -m` does: an application is looked for where the command is called.
        sys.path.insert(0, "")
        yield import_row(module)
        yield _self_instrumented()
    if not settings.enabled:
        yield Row("recording", Level.BAD, "switched off; unset SEALTRACE_ENABLED")
    yield from _watched(settings)
    yield from place_rows(settings)
    yield from key_rows(settings)
    yield from span_rows(settings, application=module is not None)
    yield from others_rows()


def _self_instrumented() -> Row:
    from ..agents_sdk import current

    what = "sealtrace"
    if current() is not None:
        return Row(what, Level.OK, "the application calls instrument()")
    text = "importing the application does not call instrument(); what follows is as if it had"
    return Row(what, Level.NOTE, f"{text} (opentelemetry-instrument does it by itself)")


def _watched(settings: Settings) -> Iterator[Row]:
    from ..agents_sdk import current

    running = current()
    if running is not None:
        yield from capture_rows(running.settings)
        yield Row("probe run", Level.NOTE, "not made: the application is recording already")
        return
    with probing() as probe:
        yield from capture_rows(settings)
        yield probe.row()


def _in_force(settings: Settings) -> dict[str, Any]:
    """The settings that are not the default; secrets are masked by their type."""
    given: dict[str, Any] = settings.model_dump(mode="json", exclude_defaults=True)
    return given


def _print(rows: list[Row], settings: Settings) -> None:
    from rich.text import Text

    from ..run.safe import one_line
    from ..run.text import console

    signs = {Level.OK: ("✓", "green"), Level.NOTE: ("·", "yellow"), Level.BAD: ("✗", "bold red")}
    width = max(len(row.what) for row in rows)
    out = console()
    for row in rows:
        name = (f" {row.what:<{width}}  ", "bold" if row.level is Level.BAD else "")
        out.print(Text.assemble(signs[row.level], name, one_line(row.text, 600)))
    given = _in_force(settings)
    if given:
        shown = ", ".join(f"{name}={one_line(str(value))}" for name, value in given.items())
        out.print(Text(f"\nsettings: {shown}", "dim"))
