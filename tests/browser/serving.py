"""The viewer as users start it, in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from services.servers import free_port, running

_PROGRAM = "from sealtrace.cli import main; main()"
_FOREIGN = ("SEALTRACE_", "AWS_", "OTEL_", "OPENAI_")


@dataclasses.dataclass(frozen=True, slots=True)
class Viewer:
    """A running viewer.

    Attributes:
        url: Its origin, without a slash at the end.
        port: Its port on loopback.
        pid: Its process.
    """

    url: str
    port: int
    pid: int

    def run(self, run_id: str, event: int | None = None) -> str:
        """Address of a run's page."""
        return f"{self.url}/runs/{run_id}" + ("" if event is None else f"?event={event}")


@contextlib.contextmanager
def serving(
    folder: Path, vault: str | None, telemetry: str | None = None, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Viewer]:
    """Run `sealtrace serve` until the block ends.

    Args:
        folder: Where its log goes.
        vault: The vault's address.
        telemetry: The source's address.
        options: More options of the command.
        env: More environment, such as credentials; of this process's own it gets no settings.
    """
    port = free_port()
    unset = [f"--unset={name}" for name in os.environ if name.startswith(_FOREIGN)]
    given = [f"{name}={value}" for name, value in (env or {}).items()]
    command = ["env", *unset, *given, sys.executable, "-c", _PROGRAM, "serve", "--port", str(port), *options]
    command += ["--vault", vault] if vault is not None else []
    command += ["--telemetry", telemetry] if telemetry is not None else []
    url = f"http://127.0.0.1:{port}"
    log = folder / f"viewer-{port}.log"
    with running(command, {}, f"{url}/healthz", log) as process:
        yield Viewer(url, port, process.pid)
