"""Pytest plugin: golden runs as tests.

```
pytest --sealtrace                                   collect goldens among the tests and rerun them, offline
pytest --sealtrace --sealtrace-accept --reason "…"   let goldens follow changed code; never in CI
```

In a test of your own, `sealtrace_golden` opens a golden by name, or the one the marker names:

```python
@pytest.mark.sealtrace("refund")
def test_refund(sealtrace_golden):
    golden = sealtrace_golden()
    with sealtrace.rerun(golden.run):
        Runner.run_sync(triage, golden.input)
```

Nothing of sealtrace is imported until it is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from .replay.checks import CheckResult
    from .replay.golden import Golden
    from .replay.report import Report

__all__ = ["GoldenFile", "GoldenItem", "sealtrace_golden"]

_DIRECTORY: Final = "sealtrace_goldens"
_CHECKS: Final = "sealtrace_checks"
_MARKER: Final = "sealtrace"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings."""
    group = parser.getgroup("sealtrace", "golden runs of agents")
    group.addoption("--sealtrace", action="store_true", help="collect golden runs and rerun them offline")
    group.addoption(
        "--sealtrace-accept",
        action="store_true",
        help="let golden runs follow changed code, with a --reason; refused where CI is set",
    )
    names = ["--sealtrace-reason"]
    if "--sealtrace-accept" in sys.argv:
        # The short name is a common word: it is taken only where it is wanted, never from another plugin.
        names.append("--reason")
    group.addoption(*names, dest="sealtrace_reason", default="", help="why the change is right; also --reason")
    parser.addini(_DIRECTORY, "where goldens are, from the root directory", default="tests/golden")
    parser.addini(_CHECKS, "checks to put to each golden: modules, or module:name", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse an accept that nobody can answer for."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(name): a test of a golden run; collected goldens have it too, so `-m sealtrace` works"
    )
    if config.getoption("--sealtrace-accept"):
        _refuse_accept(config)


def _refuse_accept(config: pytest.Config) -> None:
    from .errors import GoldenError
    from .replay.golden import refuse_in_ci

    if not config.getoption("--sealtrace"):
        raise pytest.UsageError("--sealtrace-accept needs --sealtrace")
    if not str(config.getoption("sealtrace_reason")).strip():
        raise pytest.UsageError("--sealtrace-accept needs --reason: whoever reads the golden next wants to know why")
    try:
        refuse_in_ci()
    except GoldenError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect goldens, wherever they are among the tests."""
    if file_path.suffix != ".json" or not parent.config.getoption("--sealtrace"):
        return None
    from .replay.golden_file import is_golden

    return GoldenFile.from_parent(parent, path=file_path) if is_golden(file_path) else None  # pyright: ignore[reportUnknownMemberType]


class GoldenFile(pytest.File):
    """A golden's file: one test."""

    def collect(self) -> Iterator[GoldenItem]:
        """The one test; the file is read when it runs, so that a damaged one fails as a test."""
        yield GoldenItem.from_parent(self, name=self.path.stem)  # pyright: ignore[reportUnknownMemberType]


class GoldenItem(pytest.Item):
    """Reruns a golden and fails where it diverges."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_marker(_MARKER)

    def runtest(self) -> None:
        """Rerun, or accept."""
        from .replay.entry import find_entry, rerun_entry
        from .replay.golden import load
        from .replay.report import Outcome

        golden = load(self.path)
        entry = find_entry(golden.entry, beside=self.config.rootpath)
        if self.config.getoption("--sealtrace-accept"):
            golden = self._accept(golden, entry)
        done = rerun_entry(golden.run, entry, **golden.allowed.options)
        if done.report.outcome is not Outcome.SAME:
            raise _Diverged(golden.name, done.report) from done.error
        self._check(golden)

    def _accept(self, golden: Golden, entry: Any) -> Golden:
        from .replay.accept import follow
        from .replay.golden import save

        accepted = follow(golden.run, entry, **golden.allowed.options)
        if not accepted.what:
            return golden
        self.add_report_section("call", "sealtrace", "accepted:\n" + "\n".join(accepted.what))
        reason = str(self.config.getoption("sealtrace_reason"))
        return save(golden, accepted.run, reason=reason, what=accepted.what)

    def _check(self, golden: Golden) -> None:
        from .replay.checks import find_checks, run_checks

        checks = [check for name in self.config.getini(_CHECKS) for check in find_checks(name)]
        results = run_checks(golden.run, checks)
        if not all(result.ok for result in results):
            raise _Unacceptable(results)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report in place of a traceback into sealtrace."""
        from .errors import SealtraceError

        error = excinfo.value
        if isinstance(error, _Diverged):
            return _report_text(error.report, name=error.golden, cause=error.__cause__)
        if isinstance(error, _Unacceptable):
            from .replay.text import render_checks

            return _text(render_checks(error.results))
        if isinstance(error, SealtraceError):
            return f"{type(error).__name__}: {error}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """What the summary calls it."""
        return self.path, None, f"golden {self.name}"


class _Diverged(Exception):
    def __init__(self, golden: str, report: Report) -> None:
        # The summary line shows this: enough to know what to look at, no content.
        found = report.divergence
        super().__init__(f"{found.cause} at {found.path}" if found is not None else str(report.outcome))
        self.golden = golden
        self.report = report


class _Unacceptable(Exception):
    def __init__(self, results: list[CheckResult]) -> None:
        super().__init__(", ".join(result.check for result in results if not result.ok))
        self.results = results


def _text(renderable: Any) -> str:
    from rich.console import Console

    console = Console(width=200, markup=False, highlight=False, emoji=False, soft_wrap=True, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().rstrip("\n")


def _report_text(report: Report, *, name: str | None, cause: BaseException | None) -> str:
    from .replay.text import render_report
    from .run.safe import one_line

    lines = _text(render_report(report)).splitlines()
    if cause is not None:
        lines.append(f"  the code raised {type(cause).__name__}: {one_line(str(cause), 500)}")
    if name is not None:
        lines.append("  if the change is right: pytest --sealtrace --sealtrace-accept --reason '…'")
        lines.append(f"                      or: sealtrace golden accept {name} --reason '…'")
    return "\n".join(lines)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the divergence report beside the traceback of a test of the user's own."""
    result = yield
    error = call.excinfo.value if call.excinfo is not None else None
    report = getattr(error, "report", None)
    if type(error).__name__ == "ReplayDiverged" and report is not None and not isinstance(item, GoldenItem):
        result.sections.append(("sealtrace", _report_text(report, name=None, cause=None)))
    return result


@pytest.fixture
def sealtrace_golden(request: pytest.FixtureRequest) -> Callable[[str | None], Golden]:
    """Opens a golden by name; without one, that of the test's `sealtrace` marker."""
    from .replay.golden import load

    marker = request.node.get_closest_marker(_MARKER)
    directory = request.config.rootpath / str(request.config.getini(_DIRECTORY))

    def open_golden(name: str | None = None) -> Golden:
        chosen = name if name is not None else marker.args[0] if marker is not None and marker.args else None
        if chosen is None:
            raise pytest.UsageError("name the golden: sealtrace_golden('name') or @pytest.mark.sealtrace('name')")
        return load(directory / f"{chosen}.json")

    return open_golden
