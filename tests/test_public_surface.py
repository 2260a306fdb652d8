"""What users' code relies on does not change by accident."""

from __future__ import annotations

import inspect

import sealtrace

NAMES = {
    "Document",
    "EventStatus",
    "Kind",
    "ReplayDiverged",
    "Run",
    "RunEvent",
    "RunStatus",
    "SealtraceError",
    "__version__",
    "authority",
    "check",
    "compare",
    "effect",
    "flush",
    "instrument",
    "load",
    "rerun",
    "resume",
    "retrieval",
    "uninstrument",
}


def test_the_public_names_are_these() -> None:
    """`__all__` is pinned: a name that comes or goes is a decision, and goes into the changelog."""
    assert set(sealtrace.__all__) == NAMES
    assert len(sealtrace.__all__) == len(NAMES)


def test_every_public_name_is_there_and_documented() -> None:
    """Each name resolves, also the ones loaded on demand, and says what it is for."""
    for name in sealtrace.__all__:
        found = getattr(sealtrace, name)
        assert isinstance(found, str) or inspect.getdoc(found), name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """The lazy loading hides no typing mistake."""
    assert not hasattr(sealtrace, "instrumnet")


def test_parameters_of_the_entry_points() -> None:
    """The parameters that the documentation promises are there, by these names."""
    assert {"vault", "settings"} <= set(inspect.signature(sealtrace.instrument).parameters)
    assert {"run_or_link", "vault", "telemetry"} <= set(inspect.signature(sealtrace.load).parameters)
    assert inspect.signature(sealtrace.flush).parameters["timeout"].default == 10.0
    assert next(iter(inspect.signature(sealtrace.rerun).parameters)) == "run"


def test_divergence_is_heard_where_errors_are_turned_into_text() -> None:
    """`ReplayDiverged` is no Exception, every other error is one of ours."""
    assert issubclass(sealtrace.ReplayDiverged, BaseException)
    assert not issubclass(sealtrace.ReplayDiverged, Exception)
    assert issubclass(sealtrace.SealtraceError, Exception)
