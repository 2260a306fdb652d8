"""Servers that several tests share, and waiting for them."""

from __future__ import annotations

# The SDK's fork hook starts a thread pool in the child; where the pool's module is imported after the
# first tracer provider was made, its lock is still taken then, and the child hangs.
import concurrent.futures.thread  # noqa: F401
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from .servers import Collector, Jaeger, binary

T = TypeVar("T")


@pytest.fixture(scope="session")
def jaeger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jaeger]:
    """One Jaeger for the session."""
    binary("jaeger")
    with Jaeger(tmp_path_factory.mktemp("jaeger")).run() as running:
        yield running


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory, jaeger: Jaeger) -> Iterator[Collector]:
    """One development collector for the session, in front of Jaeger and of files."""
    binary("otelcol")
    with Collector(tmp_path_factory.mktemp("collector"), jaeger=jaeger).run() as running:
        yield running


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Ask until the answer is true, for 30 seconds at most; returns the answer."""

    def ask(question: Callable[[], T], *, seconds: float = 30) -> T:
        deadline = time.monotonic() + seconds
        while not (answer := question()):
            assert time.monotonic() < deadline, "it did not come true in time"
            time.sleep(0.05)
        return answer

    return ask


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a CA, a server's and a client's certificate (ca.pem, server.pem, client.pem; keys in .key)."""
    from .certificates import make

    folder = tmp_path_factory.mktemp("certificates")
    make(folder)
    return folder
