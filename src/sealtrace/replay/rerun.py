"""`sealtrace.rerun`: run the agent code again on the recorded answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from ..errors import SettingsError
from ..redaction import IdentifierGate
from ..settings import Settings, load_settings
from .desk import Options
from .effects import Redirects
from .jsondiff import parse_path
from .ledger import Ledger
from .replayer import Replayer
from .report import Mode
from .session import ReplaySession, material
from .space import Space
from .tape import Recorded, Tape, open_tape

__all__ = ["make_ledger", "rerun"]


def rerun(
    run: Recorded | str,
    *,
    guardrails: Literal["run", "served"] = "run",
    ignore: Iterable[str] = (),
    pin: Iterable[str] = (),
    redirect: Mapping[str, Callable[..., Any]] | None = None,
    agents: Sequence[Any] = (),
    exceptions: Iterable[type[BaseException]] = (),
    **settings: Any,
) -> ReplaySession:
    """Run agent code again on a record, without a model, a tool or a network: a simulation.

    ```python
    with sealtrace.rerun(run) as session:
        Runner.run_sync(agent, "refund order 7")
    session.report.outcome  # same
    ```

    Every request is compared with the recorded one before the recorded answer is served; the first
    difference raises `ReplayDiverged`. Tools of every kind are served and never executed.

    Args:
        run: A loaded run, or its id or a link to it.
        guardrails: `run` them for real and compare their verdicts; `served` takes the recorded ones.
        ignore: JSON paths that may differ, such as `$.request.instructions` or `$..timestamp`.
        pin: Regular expressions; text they match may differ, such as a clock in the instructions.
        redirect: Sandboxes by tool name: called in the tool's place, and held to the recorded result.
        agents: Agents that a handoff's callback may choose and that no handoff leads to by itself.
        exceptions: Exception classes of your own that recorded failures are raised as.
        settings: As for `instrument`: `vault`, `telemetry`, `key`, `redaction_policy`, …

    Raises:
        NotComparable: The record lacks what a rerun needs; the message says what.
        SettingsError: An argument cannot be used.
    """
    in_force = load_settings(settings)
    found = find(run, in_force)
    tape = open_tape(found)
    ledger, gate = make_ledger(tape, in_force, Mode.RERUN, ignore=ignore, pin=pin)
    options = Options(
        guardrails=guardrails,
        redirects=Redirects(redirect),
        agents=agents,
        exceptions={cls.__name__: cls for cls in exceptions},
    )
    return ReplaySession(Replayer(ledger, gate, options), found)


def find(run: Recorded | str, settings: Settings) -> Recorded:
    """The run itself, loaded where only its id or a link was given."""
    if not isinstance(run, str):
        return run
    from ..run import load  # noqa: PLC0415 - needed only where a run is given by its id

    found: Any = load(run, settings=settings)
    return cast(Recorded, found)


def make_ledger(
    tape: Tape, settings: Settings, mode: Mode, *, ignore: Iterable[str] = (), pin: Iterable[str] = ()
) -> tuple[Ledger, IdentifierGate]:
    """What a rerun keeps its books in, with the record's key where it can be had.

    Raises:
        SettingsError: A path or a pattern cannot be read, or the key or the policy cannot be used.
    """
    paths = tuple(ignore)
    try:
        for path in paths:
            parse_path(path)
        patterns = tuple(re.compile(pattern) for pattern in pin)
    except (ValueError, re.error) as error:
        raise SettingsError(f"cannot ignore that: {error}", setting="ignore") from None
    found = material(settings, tape.key_id)
    space = Space(found.keys, found.redactor, same_key=found.same_key, ignore=paths, pin=patterns)
    ledger = Ledger(tape, space, mode)
    if found.note is not None:
        ledger.note(found.note)
    if tape.ruleset is not None and tape.ruleset != found.redactor.ruleset_hash:
        ledger.note("the redaction rules in force are not the record's: values they treat otherwise may differ")
    return ledger, IdentifierGate(found.keys, found.redactor)
