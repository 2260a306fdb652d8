"""An OpenTelemetry SDK or a log handler that breaks is no reason for a run to break."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler

import sealtrace
from noninterference.faults import ERRORS
from noninterference.story import MODES, plain, tell
from sealtrace import _guard


class BrokenProcessor(SpanProcessor):
    """Raises wherever it is called."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self.calls = 0

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.calls += 1
        raise self._error("broken on purpose")

    def on_end(self, span: Any) -> None:
        self.calls += 1
        raise self._error("broken on purpose")


class BrokenSampler(Sampler):
    """Raises when it is asked."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self.calls = 0

    def should_sample(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        raise self._error("broken on purpose")

    def get_description(self) -> str:
        return "broken"


class BrokenHandler(logging.Handler):
    """Raises for each record, as handlers that are not the standard library's do."""

    def __init__(self, error: type[BaseException]) -> None:
        super().__init__(logging.DEBUG)
        self._error = error
        self.calls = 0

    def handle(self, record: logging.LogRecord) -> bool:
        self.calls += 1
        raise self._error("broken on purpose")


@pytest.mark.parametrize("error", ERRORS)
def test_a_span_processor_that_raises_changes_nothing(error: type[BaseException], tmp_path: Path) -> None:
    """A span processor of the application's that raises is not felt by the run."""
    broken = BrokenProcessor(error)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(broken)
    sealtrace.instrument(vault=(tmp_path / "vault").as_uri(), tracer_provider=provider)
    for mode in MODES:
        assert asyncio.run(tell(mode)) == plain(mode)
    assert broken.calls


@pytest.mark.parametrize("error", ERRORS)
def test_a_sampler_that_raises_changes_nothing(error: type[BaseException], tmp_path: Path) -> None:
    """A sampler that raises is not felt by the run, and the payloads are kept all the same."""
    broken = BrokenSampler(error)
    sealtrace.instrument(
        vault=(tmp_path / "vault").as_uri(), tracer_provider=TracerProvider(broken, shutdown_on_exit=False)
    )
    for mode in MODES:
        assert asyncio.run(tell(mode)) == plain(mode)
    assert broken.calls


@pytest.mark.parametrize("error", ERRORS)
def test_a_log_handler_that_raises_changes_nothing(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A log handler that raises when we warn is not felt by the run."""
    from sealtrace.redaction import Redactor
    from sealtrace.telemetry import SpanWriter

    broken = BrokenHandler(error)
    ours = logging.getLogger("sealtrace")
    ours.addHandler(broken)
    request.addfinalizer(lambda: ours.removeHandler(broken))
    sealtrace.instrument(vault=(tmp_path / "vault").as_uri())

    def breaks(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(_guard, "_counts", {})  # each kind of failure is logged once in a process
    monkeypatch.setattr(SpanWriter, "start", breaks)
    monkeypatch.setattr(Redactor, "redact", breaks)
    for mode in MODES:
        assert asyncio.run(tell(mode)) == plain(mode)
    assert broken.calls
