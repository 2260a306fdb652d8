"""Makes a payload safe: applies a policy, redacts each string once, fails closed."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from functools import partial
from typing import Any, Final, Literal

from ..errors import RedactionFailed
from ..event import Kind
from ..keys import Keys
from .detector import Span
from .engines import build_engine
from .memory import RunMemory
from .paths import PathRules
from .policy import Policy
from .remembered import remembered
from .scanner import Change, Scanner
from .tags import Pseudonyms
from .uses import Names
from .walk import Walk
from .whole import stand_in

__all__ = ["Redaction", "Redactor"]

_MEMO_CHARACTERS: Final = 16_000_000
_MEMO_STRINGS: Final = 100_000


@dataclasses.dataclass(frozen=True, slots=True)
class Redaction:
    """A safe payload and how many values of each kind were replaced in it."""

    value: Any
    counts: dict[str, int]


class Redactor:
    """Applies a policy. Deterministic for a key, idempotent, type-preserving.

    Not for concurrent use: the recorder calls it on its one background thread.

    Args:
        policy: What to redact.
        keys: For pseudonyms.
        timeout: Seconds one payload may take.
        max_string_bytes: A longer string is replaced whole.

    Raises:
        SettingsError: The policy asks for an engine that is not installed, or has a pattern that no
            engine with a time bound can run.
    """

    def __init__(self, policy: Policy, keys: Keys, *, timeout: float = 5.0, max_string_bytes: int = 262_144) -> None:
        self._policy = policy
        self._keys = keys
        self._timeout = timeout
        self._max_string = max_string_bytes
        self._rules: dict[Policy, _Rules] = {}
        self._scoped: dict[tuple[str | None, str | None, str | None], tuple[_Rules, PathRules | None]] = {}
        self._base = self._rules_of(policy.base())
        for override in policy.overrides:
            self._rules_of(policy.for_scope(override.scope))
        self.scoped = bool(policy.overrides) or any(":" in rule.path for rule in policy.fields)
        self.ruleset_hash = self._base.digest if not policy.overrides else _digest(policy, self._base.digest)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def prepare(self) -> None:
        """Start what takes its time to start, second opinions for example, so that no payload has to wait for it."""
        for rules in self._rules.values():
            rules.prepare()

    def memory(self) -> RunMemory:
        """A new run's memory."""
        return RunMemory()

    def redact(
        self,
        payload: Any,
        *,
        memory: RunMemory | None = None,
        kind: Kind | None = None,
        agent: str | None = None,
        tool: str | None = None,
    ) -> Redaction:
        """A safe copy of the payload; `Shared` nodes stay in place and are redacted once ever.

        Raises:
            RedactionFailed: It took too long, or something went wrong. The payload must be dropped.
        """
        try:
            for rules in self._rules.values():
                rules.trim()
            walk = Walk(
                self,
                memory if memory is not None else RunMemory(),
                time.monotonic() + self._timeout,
                agent=agent,
                tool=tool,
                kind=str(kind) if kind is not None else None,
            )
            value = walk.run(payload)
        except RedactionFailed:
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - fail closed, whatever it was
            raise RedactionFailed(f"redaction failed with {type(error).__name__}; the payload was dropped") from None
        return Redaction(value, dict(walk.counts))

    def matches(self, text: str) -> bool:
        """Whether a detector finds anything in the text; for names, which have no field to give them away."""
        return self._base.own.matches(text)

    def spans(self, text: str) -> list[Span]:
        """Start, end and kind of what the detectors find in one string, without replacing it."""
        return self._base.scanner.spans(text)

    def rules(self, agent: str | None, tool: str | None, kind: str | None) -> tuple[_Rules, PathRules | None]:
        """The rules for what this agent and this tool say."""
        key = (agent, tool, kind)
        known = self._scoped.get(key)
        if known is None:
            scopes = frozenset((f"agent:{agent}", f"tool:{tool}", f"kind:{kind}"))
            paths = PathRules(self._policy.fields, scopes)
            known = (self._rules_of(self._policy.for_scope(*sorted(scopes))), paths or None)
            if len(self._scoped) < 1024:
                self._scoped[key] = known
        return known

    def _rules_of(self, policy: Policy) -> _Rules:
        rules = self._rules.get(policy)
        if rules is None:
            rules = self._rules[policy] = _Rules(policy, self._keys, self._max_string, self._timeout)
        return rules


class _Rules:
    """The rules of one effective policy, and what is remembered of strings searched under them."""

    def __init__(self, policy: Policy, keys: Keys, max_string: int, timeout: float) -> None:
        self.max_string = max_string
        self.strict = policy.profile == "strict"
        self.keep_media = policy.media == "keep"
        self.field_names = policy.field_names
        pseudonyms = Pseudonyms(keys, surrogates=policy.style == "surrogate")
        self.replacement = pseudonyms.text
        self.number = pseudonyms.number
        self.stand_in = remembered(16_384, longest=512)(partial(stand_in, pseudonyms.text))
        """What stands in place of the value of a telling name, and as what that value is remembered."""
        engine = build_engine(policy, seconds=timeout)
        self.prepare = engine.prepare
        self.scanner = Scanner(engine, pseudonyms.text)
        self.own = Scanner(engine.own, pseudonyms.text)
        """Without second opinions, which may take longer than an agent's thread can wait."""
        self.digest = _digest(policy, engine.rules)
        self.names = Names(telling=policy.field_names, persons=self.strict)
        """What field names are good for; the walk's own note."""
        self._memo: dict[str, Change | Literal[True]] = {}
        self._memo_characters = 0
        self.known = self._memo.get
        """What is remembered of a string: its change, True for nothing found, None for not seen yet."""

    def trim(self) -> None:
        """Forget what is remembered if it is much; only between payloads, never within one."""
        if self._memo_characters > _MEMO_CHARACTERS or len(self._memo) > _MEMO_STRINGS:
            self._memo.clear()
            self._memo_characters = 0

    def search(self, strings: list[str], deadline: float) -> None:
        """Search strings not seen before; `known` knows them afterwards."""
        self._memo_characters += sum(map(len, strings))
        changed = self.scanner.changes(strings, deadline)
        nothing: Literal[True] = True
        self._memo.update(dict.fromkeys(strings, nothing))
        self._memo.update(changed)


def _digest(policy: Policy, rules: str) -> str:
    return hashlib.sha256(f"{policy.digest()}{rules}".encode()).hexdigest()[:16]
