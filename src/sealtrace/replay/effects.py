"""What tools do to the world, and where a write may go instead.

In a rerun no tool runs, whatever it declares. The declaration matters where a call is let through:
to a sandbox that the user names, or live after `resume`. A tool that declares nothing is a write.
"""

from __future__ import annotations

import inspect
import json
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from ..errors import SettingsError

__all__ = ["EFFECTS", "Effect", "Redirects", "effect", "effect_of"]

Effect: TypeAlias = Literal["read", "write", "external"]
"""`read` looks, `write` changes something of ours, `external` changes something of others: a mail, a payment."""

EFFECTS: Final[tuple[str, ...]] = get_args(Effect)

T = TypeVar("T")

_declared: Final[dict[int, tuple[weakref.ReferenceType[Any], str]]] = {}


def effect(kind: Effect) -> Callable[[T], T]:
    """Declare what a tool does; a decorator for the tool or for its function.

    ```python
    @sealtrace.effect("read")
    @function_tool
    def balance(account: str) -> str: ...
    ```

    Raises:
        SettingsError: There is no such kind.
    """
    if kind not in EFFECTS:
        raise SettingsError(f"{kind!r} is not an effect; a tool is one of {', '.join(EFFECTS)}", setting="effect")

    def declare(tool: T) -> T:
        key = id(tool)
        _declared[key] = (weakref.ref(tool, lambda _gone: _declared.pop(key, None)), kind)
        return tool

    return declare


def effect_of(tool: object) -> str:
    """What the tool declared, itself or by its function; `write` where it declared nothing."""
    for candidate in (tool, *_functions(tool)):
        found = _declared.get(id(candidate))
        if found is not None and found[0]() is candidate:
            return found[1]
    return "write"


class Redirects:
    """Sandboxes by tool name.

    Args:
        given: A callable per tool. It gets the call's arguments by name, and the tool context too if
            its first parameter is named `ctx` or `context`.

    Raises:
        SettingsError: What is given cannot be called.
    """

    def __init__(self, given: Mapping[str, Callable[..., Any]] | None) -> None:
        self._given = dict(given or {})
        for name, sandbox in self._given.items():
            if not callable(sandbox):
                raise SettingsError(f"the sandbox for {name!r} cannot be called", setting="redirect")

    def __contains__(self, name: str) -> bool:
        return name in self._given

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that have a sandbox."""
        return tuple(self._given)

    def refuse_original(self, tool: Any) -> None:
        """Make sure that the sandbox is not the tool itself.

        Raises:
            SettingsError: It is, or it wraps the tool's function.
        """
        sandbox = self._given[tool.name]
        originals = {id(item) for item in (tool, *_functions(tool))}
        if any(id(item) in originals for item in (sandbox, *_unwrapped(sandbox))):
            raise SettingsError(
                f"the sandbox for {tool.name!r} is the tool itself: a rerun never runs a tool; name another callable",
                setting="redirect",
            )

    async def call(self, name: str, context: Any, arguments: str) -> Any:
        """Have the sandbox take a call."""
        sandbox = self._given[name]
        parsed = json.loads(arguments) if arguments.strip() else {}
        first = next(iter(inspect.signature(sandbox).parameters), None)
        result = sandbox(context, **parsed) if first in ("ctx", "context") else sandbox(**parsed)
        return await result if inspect.isawaitable(result) else result


def _functions(tool: Any) -> list[Any]:
    """The functions a tool is made of, as far as they can be found: its own and those it closes over."""
    found: list[Any] = []
    waiting = [getattr(tool, "on_invoke_tool", None), getattr(tool, "executor", None)]
    while waiting and len(found) < 64:
        function = waiting.pop()
        if function is None or any(function is known for known in found):
            continue
        found.append(function)
        waiting += _unwrapped(function)
        if hasattr(function, "__dict__"):
            waiting += [value for value in vars(function).values() if inspect.isroutine(value)]
        for cell in getattr(function, "__closure__", None) or ():
            value = _content(cell)
            if inspect.isroutine(value) or (callable(value) and not isinstance(value, type)):
                waiting.append(value)
    return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _unwrapped(function: Any) -> list[Any]:
    found: list[Any] = []
    for name in ("__wrapped__", "__func__", "func"):
        inner = getattr(function, name, None)
        if inner is not None:
            found += [inner, *_unwrapped(inner)]
    return found
