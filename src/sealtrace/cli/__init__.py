"""The `sealtrace` command.

One module per command. Every module here whose name has no leading underscore has either a function
of the module's own name, which is the command, or a typer application `app`, which is a group of that
name. Adding a command is adding a file.
"""

from __future__ import annotations

import importlib
import io
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from .._version import __version__
from ..errors import SealtraceError
from ._exits import OK, USAGE, code_of, say

__all__ = ["app", "main", "run"]

_FIRST: Final = ("demo", "runs", "show", "doctor")
"""The order of the help page; the rest follows by name."""

_UsageError: Final[Any] = typer.BadParameter.__mro__[2]
"""Root of what the parser raises; its home differs between versions of typer."""


def main() -> None:
    """The console script's entry point."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a run's letters need not be the terminal's
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Returns:
        The exit code, see `docs/cli.md`.
    """
    try:
        result = app(list(arguments), prog_name="sealtrace", standalone_mode=False)
        sys.stdout.flush()
    except SealtraceError as error:
        say(error)
        return code_of(error)
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone, as `| head` does: not a failure of ours.
        sys.stdout = None
        return OK
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # the parser's own way with it
            sys.stdout = None
            return OK
        raise
    except _UsageError as error:
        error.show()
        return USAGE
    return result if isinstance(result, int) else OK


def _version_wanted(value: bool) -> None:
    if value:
        typer.echo(f"sealtrace {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version_wanted, is_eager=True)
    ] = False,
) -> None:
    """Agents SDK runs: metadata in your traces, redacted payloads in your bucket, joined back here."""


def _assemble() -> typer.Typer:
    made = typer.Typer(
        name="sealtrace",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    made.callback()(_root)
    names = [item.name for item in pkgutil.iter_modules(__path__) if not item.name.startswith("_")]
    names.sort(key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    for name in names:
        module = importlib.import_module(f"{__name__}.{name}")
        group = getattr(module, "app", None)
        if group is not None:
            made.add_typer(group, name=name)
        else:
            made.command(name)(getattr(module, name))
    return made


app: Final = _assemble()
"""The typer application."""
