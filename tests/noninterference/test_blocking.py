"""A vault that is slow, down or full holds up no run."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import sealtrace
from noninterference.story import plain, tell
from sealtrace.agents_sdk import current
from sealtrace.errors import VaultDenied, VaultUnavailable
from sealtrace.vault.stores.local import LocalStore


def test_a_vault_that_hangs_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """While every write to the vault hangs, runs go on as if there was none, and all is stored once it is back."""
    back, entered = threading.Event(), threading.Event()
    request.addfinalizer(back.set)
    put = LocalStore.put

    def hanging(self: LocalStore, key: str, data: bytes, **options: Any) -> None:
        entered.set()
        back.wait()
        put(self, key, data, **options)

    monkeypatch.setattr(LocalStore, "put", hanging)
    sealtrace.instrument(vault=(tmp_path / "vault").as_uri())

    for mode in ("run", "run_streamed", "run"):
        assert asyncio.run(tell(mode)) == plain(mode)
    assert entered.wait(10)
    assert not sealtrace.flush(0.01)

    back.set()
    assert sealtrace.flush(10)
    assert list((tmp_path / "vault").rglob("manifest-*"))


@pytest.mark.parametrize("error", [VaultUnavailable("down"), VaultDenied("no"), OSError(28, "No space left on device")])
def test_a_vault_that_refuses_changes_nothing(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vault that is down, denies or is full changes no run, and `flush` says that not all is stored."""

    def refusing(self: LocalStore, key: str, data: bytes, **options: Any) -> None:
        raise error

    monkeypatch.setattr(LocalStore, "put", refusing)
    sealtrace.instrument(vault=(tmp_path / "vault").as_uri(), exit_timeout=0.2)

    assert asyncio.run(tell("run")) == plain("run")
    assert asyncio.run(tell("run_streamed")) == plain("run_streamed")
    assert not sealtrace.flush(0.5)
    sealtrace.uninstrument()


def test_a_full_queue_drops_payloads_and_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """When nothing can be written for long, the newest payloads are dropped and counted, and the run is the same."""
    back = threading.Event()
    request.addfinalizer(back.set)
    put = LocalStore.put

    def hanging(self: LocalStore, key: str, data: bytes, **options: Any) -> None:
        back.wait()
        put(self, key, data, **options)

    monkeypatch.setattr(LocalStore, "put", hanging)
    sealtrace.instrument(vault=(tmp_path / "vault").as_uri(), queue_events=10)
    for _ in range(3):
        assert asyncio.run(tell("run")) == plain("run")
    runtime = current()
    assert runtime is not None
    assert runtime.recorder.dropped > 0
    back.set()
    assert sealtrace.flush(10)


def test_run_sync_is_the_same(tmp_path: Path) -> None:
    """`run_sync` gives the same result in the same order, with the recorder and without."""
    from agents import Agent, Runner

    from loopback import items
    from loopback.items import reply
    from loopback.model import OwnModel

    def told() -> Any:
        model = OwnModel([reply(items.message("hello"))])
        return Runner.run_sync(Agent("sync", model=model), "hi").final_output

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        before = told()
        sealtrace.instrument(vault=(tmp_path / "vault").as_uri())
        assert told() == before == "hello"
    finally:
        asyncio.set_event_loop(None)
        loop.close()
