"""A switch in every function on the recording path, found by looking, so that new ones are covered."""

from __future__ import annotations

import asyncio
import enum
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any, Final, Protocol

import sealtrace


class Wreck(BaseException):
    """An exception that is no `Exception`."""


ERRORS: Final[tuple[type[BaseException], ...]] = (RuntimeError, Wreck, asyncio.CancelledError, MemoryError)

READ_SIDE: Final = (
    "sealtrace.__main__",
    "sealtrace.cli",
    "sealtrace.demo",
    "sealtrace.pytest_plugin",
    "sealtrace.replay",
    "sealtrace.run",
    "sealtrace.telemetry.reference",
    "sealtrace.telemetry.sources",
    "sealtrace.vault.admin",
    "sealtrace.viewer",
)
"""Not on the recording path."""

GUARD: Final = ("sealtrace._guard",)
"""The guard itself."""

SHELLS: Final = {
    # Called by the SDK or by the application; their bodies are the guard and the SDK's own call.
    "sealtrace.agents_sdk": ("instrument", "uninstrument", "flush", "current", "SealtraceInstrumentor"),
    "sealtrace.agents_sdk.annotations": ("authority", "retrieval", "Document"),
    "sealtrace.agents_sdk.processor": (
        "SealtraceProcessor.on_trace_start",
        "SealtraceProcessor.on_trace_end",
        "SealtraceProcessor.on_span_start",
        "SealtraceProcessor.on_span_end",
        "SealtraceProcessor.force_flush",
        "SealtraceProcessor.shutdown",
    ),
    "sealtrace.agents_sdk.provider": (
        "CurrentSpanProvider",
        "_CurrentSpan",
        "_CurrentTrace",
        "_InStep.start",
        "_InStep.finish",
        "_InStep.export",
        "_InStep.trace_id",
        "_InStep.tracing_api_key",
    ),
    "sealtrace.agents_sdk.seams": ("_SeamModel", "_StreamWatch", "_watched"),
}
"""What cannot be broken without breaking the call that the SDK makes; each is a few lines long."""


class Switchboard:
    """Knows every function that has a switch; arms one at a time."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.called: set[str] = set()
        self.fired: list[Callable[[str], BaseException]] = []
        self._armed: str | None = None
        self._errors: list[Callable[[str], BaseException]] = []

    def arm(self, name: str, errors: Sequence[Callable[[str], BaseException]]) -> None:
        """From now on each call of this function raises, the kinds of errors in turn."""
        self._errors, self.fired, self._armed = list(errors), [], name

    def disarm(self) -> None:
        """Everything works again."""
        self._armed = None

    def pass_through(self, name: str) -> None:
        """What each switch does first."""
        self.called.add(name)
        if self._armed == name:
            error = self._errors[len(self.fired) % len(self._errors)]
            self.fired.append(error)
            raise error("broken on purpose")


class Patcher(Protocol):
    """`pytest.MonkeyPatch`, as far as it is needed."""

    def setattr(self, target: Any, name: str, value: Any) -> None:
        """Set it until the end."""
        ...


def install(board: Switchboard, patch: Patcher) -> None:
    """Put a switch into every function of the recording path."""
    modules = list(_modules())
    everywhere = [module for name, module in sys.modules.items() if name.split(".")[0] == "sealtrace"]
    for module in modules:
        for name, value in list(vars(module).items()):
            if getattr(value, "__module__", None) != module.__name__ or _is_shell(module, name):
                continue
            if isinstance(value, FunctionType):
                switched = _switch(board, f"{module.__name__}.{name}", value)
                for place in everywhere:
                    for alias, bound in list(vars(place).items()):
                        if bound is value:
                            patch.setattr(place, alias, switched)
            elif inspect.isclass(value) and not issubclass(value, BaseException | enum.Enum):
                _install_in_class(board, patch, module, value)


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(sealtrace.__path__, "sealtrace."):
        if not found.name.startswith(READ_SIDE) and found.name not in GUARD:
            try:
                yield importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                if str(error.name).startswith("sealtrace"):
                    raise
                # A part that needs an optional dependency which is not installed: no run can reach it either.


def _is_shell(module: ModuleType, qualname: str) -> bool:
    return qualname in SHELLS.get(module.__name__, ())


def _install_in_class(board: Switchboard, patch: Patcher, module: ModuleType, owner: type) -> None:
    if getattr(owner, "_is_protocol", False):
        return
    for name, value in list(vars(owner).items()):
        qualname = f"{owner.__name__}.{name}"
        if (name.startswith("__") and name != "__init__") or _is_shell(module, qualname):
            continue
        full = f"{module.__name__}.{qualname}"
        if isinstance(value, FunctionType):
            patch.setattr(owner, name, _switch(board, full, value))
        elif isinstance(value, classmethod | staticmethod):
            patch.setattr(owner, name, type(value)(_switch(board, full, value.__func__)))
        elif isinstance(value, property) and value.fget is not None:
            patch.setattr(owner, name, property(_switch(board, full, value.fget), value.fset, value.fdel))


def _switch(board: Switchboard, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    board.names.append(name)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def switched(*args: Any, **kwargs: Any) -> Any:
            board.pass_through(name)
            return await function(*args, **kwargs)

    else:

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            board.pass_through(name)
            return function(*args, **kwargs)

    return switched
