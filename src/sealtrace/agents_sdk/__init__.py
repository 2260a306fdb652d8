"""Watching OpenAI Agents SDK runs; the only package of ours that knows the SDK."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
from opentelemetry.trace import TracerProvider

from .._guard import report, safely
from ..errors import SealtraceError
from ..lifetime import fresh_lock
from ..settings import Settings, load_settings
from .runtime import Runtime

__all__ = ["SealtraceInstrumentor", "current", "flush", "instrument", "uninstrument"]

_log: Final = logging.getLogger("sealtrace")
_lock: Final = fresh_lock()
_runtime: Runtime | None = None


def instrument(vault: str | None = None, *, tracer_provider: TracerProvider | None = None, **settings: Any) -> None:
    """Record every Agents SDK run of this process from now on.

    Spans go to the application's OpenTelemetry tracer provider; sealtrace never makes one. Payloads
    go, redacted, to the vault. The SDK's own exporter to its vendor is removed unless
    `keep_openai_exporter=True`. A second call does nothing; `uninstrument` first to change settings.

    Args:
        vault: `file:///path` or `s3://bucket/prefix`; `SEALTRACE_VAULT` by default. With neither,
            runs leave spans only.
        tracer_provider: Use this one instead of the global one.
        **settings: Any field of `sealtrace.settings.Settings`.

    Raises:
        SettingsError: A setting is unknown or cannot be used; nothing is instrumented then.
        VaultError: The vault's address cannot be used.
    """
    global _runtime  # noqa: PLW0603 - there is one SDK in a process
    with _lock:
        if _runtime is not None:
            return
        resolved: Settings = load_settings({"vault": vault, **settings})
        if not resolved.enabled:
            return
        runtime = Runtime(resolved, tracer_provider)
        runtime.start()
        _runtime = runtime


def uninstrument() -> None:
    """Stop recording, give the SDK back as it was, store what waits. Idempotent."""
    global _runtime
    with _lock:
        runtime, _runtime = _runtime, None
    if runtime is not None:
        runtime.stop()


def flush(timeout: float = 10.0) -> bool:
    """Wait until everything recorded so far is stored.

    Args:
        timeout: Seconds to wait at most.

    Returns:
        True if nothing is left to store (also when nothing is instrumented); False if time ran out
        or the vault did not take it, in which case it stays queued.
    """
    runtime = _runtime
    return True if runtime is None else bool(safely(runtime.recorder.flush, timeout))


def current() -> Runtime | None:
    """The runtime in force, for `doctor` and for reruns."""
    return _runtime


class SealtraceInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """The entry point of `opentelemetry-instrument`: settings come from the environment alone.

    An exception in an instrumentor stops every instrumentor after it, so none leaves this one.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """What must be installed for this to make sense."""
        return ("openai-agents >= 0.22, < 0.25",)

    def _instrument(self, **kwargs: Any) -> None:
        try:
            instrument(tracer_provider=kwargs.get("tracer_provider"))
        except SealtraceError as error:
            _log.error("sealtrace is not recording: %s", error)
        except BaseException as error:  # noqa: BLE001
            report("SealtraceInstrumentor", error)

    def _uninstrument(self, **kwargs: Any) -> None:  # noqa: ARG002 - the base class's signature
        uninstrument()
