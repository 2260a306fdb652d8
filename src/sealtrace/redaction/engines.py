"""Which engine a policy gets: the fastest installed, the user's own patterns, second opinions."""

from __future__ import annotations

import importlib.util
from functools import lru_cache

from ..errors import SettingsError
from .detector import Detector
from .detectors import built_in
from .engine import AnchorEngine, Engine, Found, PlainEngine
from .opinions import Opinion, kingfisher, presidio
from .policy import Policy

__all__ = ["Composite", "build_engine", "fast_installed"]


class Composite:
    """Several engines as one.

    Args:
        engines: All of them.
        rules: Describes the rules, for the ruleset hash.
        off: Kinds that are let through.

    Attributes:
        own: The same without second opinions, which may take their time and are not for the agent's thread.
        rules: Describes the rules, for the ruleset hash.
    """

    name = "composite"

    def __init__(self, engines: list[Engine], rules: str, off: frozenset[str]) -> None:
        self._engines = engines
        self._off = off
        self.rules = rules
        mine = [engine for engine in engines if not isinstance(engine, Opinion)]
        self.own: Composite = self if len(mine) == len(engines) else Composite(mine, rules, off)

    def prepare(self) -> None:
        """Start now the processes that the first search would otherwise wait for."""
        for engine in self._engines:
            if isinstance(engine, Opinion):
                engine.prepare()

    def find(self, text: str, depth: int = 0) -> list[Found]:
        """See `Engine`."""
        found = [item for engine in self._engines for item in engine.find(text, depth)]
        return [item for item in found if item[2] not in self._off] if self._off else found


def build_engine(policy: Policy, *, seconds: float = 5.0) -> Composite:
    """The engine for a policy.

    Args:
        policy: What it asks for.
        seconds: How long a second opinion may take over one search.

    Raises:
        SettingsError: An engine or a second opinion that the policy names is not installed, or there
            is no engine with a time bound for the user's own patterns.
    """
    off = policy.off | {"MEDIA"} if policy.media == "keep" else policy.off
    detectors = tuple(detector for detector in built_in(policy.profile) if not off & {detector.name, detector.kind})
    engines: list[Engine] = [_searcher(policy, detectors)]
    if policy.detectors:
        from .custom import CustomEngine  # noqa: PLC0415 - the module needs an extra

        engines.append(CustomEngine(policy.detectors))
    engines += [_second_opinion(name, policy, seconds) for name in sorted(policy.also)]
    rules = repr([(item.name, item.kind, item.pattern) for item in detectors])
    return Composite(engines, rules, off)


def fast_installed() -> bool:
    """Whether all is there that `[fast]` brings for searching."""
    return all(importlib.util.find_spec(name) is not None for name in ("hyperscan", "sealtrace_fast"))


def _searcher(policy: Policy, detectors: tuple[Detector, ...]) -> Engine:
    if policy.engine == "plain":
        return PlainEngine(detectors)
    if policy.engine != "anchors" and fast_installed():
        return _hyperscan(detectors)
    if policy.engine == "hyperscan":
        raise _missing("the engine hyperscan", "fast")
    return AnchorEngine(detectors)


@lru_cache(maxsize=8)
def _hyperscan(detectors: tuple[Detector, ...]) -> Engine:
    """One for each set of detectors: compiling takes its time."""
    from .hyperscan_engine import HyperscanEngine  # noqa: PLC0415 - an extra

    return HyperscanEngine(detectors)


def _second_opinion(name: str, policy: Policy, seconds: float) -> Engine:
    module, extra = {"kingfisher": ("kingfisher_sdk", "secrets"), "presidio": ("presidio_analyzer", "presidio")}[name]
    if importlib.util.find_spec(module) is None:
        raise _missing(f"a second opinion from {name}", extra)
    return kingfisher(seconds) if name == "kingfisher" else presidio(policy.presidio_model, seconds)


def _missing(what: str, extra: str) -> SettingsError:
    return SettingsError(
        f"the redaction policy asks for {what}, which is not installed: install sealtrace[{extra}]",
        setting="redaction_policy",
    )
