"""The `with` block of a rerun: opens the context, and on the way out says what came of it."""

from __future__ import annotations

import dataclasses
from contextvars import Token
from types import TracebackType
from typing import Any, Final, Self

from agents.tracing import get_trace_provider

from ..agents_sdk import compat, seams
from ..agents_sdk.frames import FRAME
from ..errors import NotComparable
from ..event import Kind
from ..keys import Keys
from ..redaction import Policy, Redactor
from ..settings import Settings
from .cause import Cause
from .divergence import ReplayDiverged
from .guard import GUARD, close_guard, open_guard
from .ledger import Ledger, Refused
from .replayer import Replayer
from .report import Divergence, Receipt, Report
from .scene import OPENER, SCENE
from .tape import Recorded, TapeFrame

__all__ = ["Material", "ReplaySession", "material"]


@dataclasses.dataclass(frozen=True, slots=True)
class Material:
    """Key and policy to redact live values with.

    Attributes:
        same_key: Whether the key made the record's pseudonyms.
        note: What to say of it in the report, if anything.
    """

    keys: Keys
    redactor: Redactor
    same_key: bool
    note: str | None = None


def material(settings: Settings, key_id: str | None) -> Material:
    """Find the record's key: the one that is set, an earlier one, or this process's own, if it recorded the run itself.

    Raises:
        SettingsError: The key or the redaction policy cannot be used.
        VaultError: A key is KMS ciphertext, and KMS refuses or does not answer.
    """
    from ..agents_sdk import current  # noqa: PLC0415 - the runtime is asked for, not made

    runtime = current()
    if runtime is not None and runtime.keys.key_id == key_id:
        return Material(runtime.keys, runtime.redactor, same_key=True)
    known = Keys.all_from_settings(settings)
    keys = next((item for item in known if item.key_id == key_id), known[0])
    redactor = Redactor(
        Policy.load(settings),
        keys,
        timeout=settings.redaction_timeout,
        max_string_bytes=settings.max_string_bytes,
    )
    if keys.key_id == key_id:
        return Material(keys, redactor, same_key=True)
    what = "the record's key is not at hand" if key_id is not None else "the record does not say which key it used"
    return Material(
        keys,
        redactor,
        same_key=False,
        note=f"{what}: pseudonyms were compared by kind; set SEALTRACE_KEY or SEALTRACE_PREVIOUS_KEYS to compare all",
    )


class ReplaySession:
    """A rerun in progress; made by `rerun`, `compare` and `resume`.

    Attributes:
        run: The recorded run, for checks.
        ledger: What has been come to.
    """

    def __init__(self, replayer: Replayer, run: Recorded) -> None:
        self._replayer = replayer
        self.run: Final[Recorded] = run
        self.ledger: Final[Ledger] = replayer.ledger
        self._tokens: list[tuple[Any, Token[Any]]] = []
        self._left: Report | None = None
        self._entered = False

    @property
    def report(self) -> Report:
        """What came of it; what has come of it so far, inside the block."""
        return self._left if self._left is not None else self.ledger.report()

    @property
    def receipt(self) -> Receipt:
        """What was served and refused."""
        return self.report.receipt

    def refuse(self, event: str) -> None:
        """Something in this context tries to reach the outside: never, unless the caller went live."""
        if not self.ledger.guarded:
            return
        self.ledger.blocked[event] += 1
        scene = SCENE.get()
        frame = scene.tape if scene is not None else TapeFrame("", "", ())
        message = (
            f"code tried to reach the outside ({event}): blocked. What does so in a rerun is the user's own code around"
            " the agents: a guardrail (serve its verdicts with guardrails='served'), a callback or an instruction"
        )
        self.ledger.diverge(Divergence(Cause.POLICY, Kind.CUSTOM, message, frame.path, got=event))

    def __enter__(self) -> Self:
        if self._entered:
            raise NotComparable("this rerun is over: call `rerun` again for another one")
        self._entered = True
        report = compat.check()
        if not report.complete:
            missing = ", ".join(name for name, found in report.seams.items() if not found)
            raise NotComparable(
                f"openai-agents {report.sdk_version} lacks what a rerun stands on ({missing}); see `sealtrace doctor`"
            )
        # Made at its first use, it would import what starts processes (trio asks ldconfig) under the guard.
        get_trace_provider()
        seams.install()
        open_guard()
        self._tokens = [
            (seams.TAKEOVER, seams.TAKEOVER.set(self._replayer)),
            (GUARD, GUARD.set(self)),
            (SCENE, SCENE.set(None)),
            (OPENER, OPENER.set(None)),
            (FRAME, FRAME.set(None)),
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        for variable, token in reversed(self._tokens):
            try:
                variable.reset(token)
            except ValueError:  # left in another context than it was entered in
                variable.set(None)
        self._tokens.clear()
        close_guard()
        seams.uninstall()
        if error is None or isinstance(error, Exception):
            self.finish()
        elif not isinstance(error, ReplayDiverged | Refused):
            self.ledger.interrupted()
        self._left = self.ledger.report()
        self._raise(error)
        return None

    def finish(self) -> None:
        """Hold what is left of the record against the rerun."""
        self.ledger.finish()

    def _raise(self, error: BaseException | None) -> None:
        if self.ledger.refusal is not None:
            ours = error is None or isinstance(error, Exception | ReplayDiverged | Refused)
            if ours and not isinstance(error, NotComparable):
                raise self.ledger.refusal from (None if isinstance(error, Refused) else error)
            return
        first = self.ledger.first
        if first is None:
            return
        first.report = self._left
        if error is not first:
            raise first from (None if isinstance(error, ReplayDiverged) else error)
