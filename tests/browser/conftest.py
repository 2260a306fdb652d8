"""One browser and one viewer for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .chromium import Browser, browsing
from .runs import Shelf, shelf
from .serving import Viewer, serving


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For what lives as long as the session."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="session")
def window(folder: Path) -> Iterator[Browser]:
    """The one window; use `browser`."""
    with browsing(folder / "profile") as open_window:
        yield open_window


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    """A browser in which nothing has gone wrong, and nothing has when the test is over."""
    window.forget()
    yield window
    assert window.trouble() == []


@pytest.fixture(scope="session")
def shelved(folder: Path) -> Shelf:
    """Runs of every state."""
    return shelf(folder)


@pytest.fixture(scope="session")
def viewer(folder: Path, shelved: Shelf) -> Iterator[Viewer]:
    """The viewer, on a loopback port of its own."""
    env = {"SEALTRACE_REPORTS": str(shelved.reports)}
    with serving(folder, shelved.vault, shelved.telemetry, env=env) as running:
        yield running
