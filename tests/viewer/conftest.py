"""A run that was really recorded, and the viewer as an application that tests can ask."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import sealtrace
from sealtrace.cli.demo import _record
from sealtrace.run import Run
from sealtrace.settings import Settings
from sealtrace.vault.stores import LocalStore
from sealtrace.viewer.app import create_app

HOST = "http://127.0.0.1:8765"


class Counting(LocalStore):
    """A directory that remembers what was read of it.

    Attributes:
        reads: Class, first byte and length of each read; None where an object was read whole.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reads: list[tuple[str, int | None, int | None]] = []

    def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
        """See `Store.get`."""
        self.reads.append((key.split("/", maxsplit=1)[0], start, length))
        return super().get(key, start=start, length=length)


@dataclasses.dataclass(frozen=True)
class Demo:
    """The demo's support desk, recorded once for all tests.

    Attributes:
        folder: The vault's directory.
        vault: The vault's address.
        telemetry: The spans' address.
        run: The run, as the library reads it.
    """

    folder: Path
    vault: str
    telemetry: str
    run: Run

    def settings(self, **more: Any) -> Settings:
        """Settings that read it."""
        return Settings.model_validate({"vault": self.vault, "telemetry": self.telemetry, **more})


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """See `Demo`."""
    folder = tmp_path_factory.mktemp("demo")
    vault, traces = folder / "vault", folder / "traces.jsonl"
    run_id = _record(vault, traces)
    places = {"vault": vault.as_uri(), "telemetry": f"otlp+{traces.as_uri()}"}
    return Demo(vault, places["vault"], places["telemetry"], sealtrace.load(run_id, **places))


@pytest.fixture
def visit() -> Iterator[Callable[..., TestClient]]:
    """Asks a viewer with the given settings, as a browser on this machine would; follows no redirect."""
    opened: list[TestClient] = []

    def open_one(settings: Settings, *, base_url: str = HOST, **options: Any) -> TestClient:
        client = TestClient(create_app(settings, **options), base_url=base_url, follow_redirects=False)
        opened.append(client)
        return client

    yield open_one
    for client in opened:
        client.close()
