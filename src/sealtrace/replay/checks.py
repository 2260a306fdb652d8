"""Checks: plain functions that say whether a run is acceptable.

```python
@sealtrace.check
def one_refund(run):
    calls = [event for event in run.events if event.kind == "tool_call" and event.payload["tool"] == "issue_refund"]
    assert len(calls) <= 1, f"{len(calls)} refunds in one run"
```

A check gets the recorded run, and says what is wrong: by raising `AssertionError`, by returning
`False` or a sentence, or by returning or yielding sentences or `Violation`s. It may raise
`NotApplicable` where there is nothing to check. The checks that come with sealtrace are in `builtin`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterable
from enum import StrEnum
from types import ModuleType
from typing import Any, Final, Protocol, TypeAlias, overload

from ..errors import SealtraceError, SettingsError
from ..run import Run

__all__ = [
    "Check",
    "CheckResult",
    "NotApplicable",
    "Remark",
    "Verdict",
    "Violation",
    "check",
    "find_checks",
    "run_checks",
]


class Verdict(StrEnum):
    """What a check says."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    """There was nothing to check; neither good nor bad."""
    BROKEN = "broken"
    """The check itself failed, so nothing is known; counted as a failure."""


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong.

    Attributes:
        message: What, in a sentence.
        seq: The event concerned.
        record_id: Its record.
        path: JSON path inside the event's payload.
    """

    message: str
    seq: int | None = None
    record_id: str | None = None
    path: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what is not known."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """Something a check wants said that is not wrong, for example what it could not look at."""

    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check says of one run.

    Attributes:
        check: The check's name.
        run_id: The run.
        verdict: In a word.
        violations: What is wrong, where something is.
        note: Why it did not apply or broke, or what it did not look at.
    """

    check: str
    run_id: str
    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    note: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing stands against the run: passed, or not applicable."""
        return self.verdict in {Verdict.PASSED, Verdict.NOT_APPLICABLE}

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        out: dict[str, Any] = {"check": self.check, "run": self.run_id, "verdict": str(self.verdict)}
        if self.violations:
            out["violations"] = [violation.to_json() for violation in self.violations]
        if self.note is not None:
            out["note"] = self.note
        return out


class NotApplicable(SealtraceError):
    """Raised by a check that has nothing to look at; the message says what it looked for."""


class Session(Protocol):
    """A rerun: it knows the run it is of."""

    @property
    def run(self) -> Any:
        """The recorded run."""
        ...


Said: TypeAlias = "bool | str | Violation | Remark | Iterable[str | Violation | Remark] | None"
CheckFunction: TypeAlias = Callable[[Run], Said]


class Check:
    """A named check; call it with a run or a rerun session to get a `CheckResult`.

    Args:
        function: What does the checking.
        name: Its name; the function's by default.
    """

    def __init__(self, function: CheckFunction, *, name: str | None = None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = name or function.__name__

    def __call__(self, subject: Run | Session) -> CheckResult:
        """Check a run; what the function raises becomes a result, never an exception."""
        run = subject if isinstance(subject, Run) else subject.run
        try:
            said = list(_said(self.function(run)))
        except NotApplicable as reason:
            return CheckResult(self.name, run.id, Verdict.NOT_APPLICABLE, note=str(reason))
        except AssertionError as error:
            # Test runners append the values they compared, which are content, after the first line.
            said = [Violation(next(iter(str(error).splitlines()), "an assertion does not hold"))]
        except Exception as error:  # noqa: BLE001 - a broken check must not hide what the others say
            return CheckResult(self.name, run.id, Verdict.BROKEN, note=f"{type(error).__name__}: {error}")
        violations = tuple(one for one in said if isinstance(one, Violation))
        note = "; ".join(one.message for one in said if isinstance(one, Remark)) or None
        return CheckResult(self.name, run.id, Verdict.FAILED if violations else Verdict.PASSED, violations, note)


@overload
def check(function: CheckFunction, /) -> Check: ...
@overload
def check(*, name: str | None = None) -> Callable[[CheckFunction], Check]: ...


def check(
    function: CheckFunction | None = None, /, *, name: str | None = None
) -> Check | Callable[[CheckFunction], Check]:
    """Make a function a check; see the module's docstring for what it may return.

    Args:
        function: Takes a `Run`.
        name: How it is called in reports; the function's name by default.
    """
    if function is not None:
        return Check(function)
    return functools.partial(Check, name=name)


def run_checks(subject: Run | Session, checks: Iterable[Check]) -> list[CheckResult]:
    """Ask every check; the order is kept and one failure stops nothing."""
    return [one(subject) for one in checks]


def find_checks(reference: str) -> list[Check]:
    """The checks that `package.module` defines, or the one named by `package.module:name`.

    The module is imported, so this runs the user's code.

    Raises:
        SettingsError: There is no such module, it cannot be imported, or it has no such check.
    """
    module_name, _, name = reference.partition(":")
    module = _imported(module_name, reference)
    if not name:
        found = [value for value in vars(module).values() if isinstance(value, Check)]
        if not found:
            raise SettingsError(f"{module_name} has no checks: decorate functions with @sealtrace.check")
        return found
    value = getattr(module, name, None)
    if not isinstance(value, Check):
        raise SettingsError(f"{reference} is no check: decorate the function with @sealtrace.check")
    return [value]


def _imported(name: str, reference: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ValueError as error:
        raise SettingsError(f"{reference!r} names no module: write package.module or package.module:name") from error
    except ImportError as error:
        raise SettingsError(f"cannot import {name}: {error}") from error


_FALSE: Final = "the check says no"


def _said(said: Said) -> Iterable[Violation | Remark]:
    if said is None or said is True:
        return
    if said is False:
        yield Violation(_FALSE)
    elif isinstance(said, str | Violation | Remark):
        yield Violation(said) if isinstance(said, str) else said
    else:
        for one in said:
            yield Violation(one) if isinstance(one, str) else one
