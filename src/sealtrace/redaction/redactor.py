"""Makes a payload safe: walks the JSON, redacts each string once, fails closed."""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import json
import re
import time
from collections import Counter
from typing import Any, Final

from ..errors import RedactionFailed
from ..event import Kind, Shared
from ..keys import Keys
from .detectors import DETECTORS
from .fields import kind_of_field, looks_like_schema
from .memory import RunMemory
from .policy import FieldRule, Policy
from .scanner import Scanner
from .tags import PSEUDONYM, is_surrogate_number, pseudonym, surrogate_number

__all__ = ["Redaction", "Redactor"]

_MAX_DEPTH: Final = 64
_MAX_JSON_IN_STRING: Final = 4
_MEMO: Final = 4096
_MEDIA: Final = re.compile(r"data:[\w.+-]{1,60}/[\w.+-]{1,80}(?:;[\w.=+-]{1,80}){0,4};base64,")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{1024,}={0,2}\Z")

# Names the SDK and a rerun need to find their way; their values are scanned, never replaced whole.
_STRUCTURAL: Final = frozenset({"type", "id", "call_id", "name", "role", "status", "object", "model", "tool", "kind"})


@dataclasses.dataclass(frozen=True, slots=True)
class Redaction:
    """A safe payload and how many values of each kind were replaced in it."""

    value: Any
    counts: dict[str, int]


class Redactor:
    """Applies a policy. Deterministic for a key, idempotent, type-preserving.

    Args:
        policy: What to redact.
        keys: For pseudonyms.
        timeout: Seconds one payload may take.
        max_string_bytes: A longer string is replaced whole.
    """

    def __init__(self, policy: Policy, keys: Keys, *, timeout: float = 5.0, max_string_bytes: int = 262_144) -> None:
        self._policy = policy
        self._keys = keys
        self._timeout = timeout
        self._max_string = max_string_bytes
        self._detectors = tuple(item for item in DETECTORS if item.kind not in policy.off)
        self.scanner = Scanner(self._detectors, keys)
        self._memo: dict[str, tuple[str, dict[str, int]]] = {}

    @property
    def ruleset_hash(self) -> str:
        """16 hex digits: the rules and the policy, not the key."""
        rules = [(item.kind, item.pattern.pattern, item.anchors, item.digits) for item in self._detectors]
        return hashlib.sha256(f"{self._policy.digest()}{rules!r}".encode()).hexdigest()[:16]

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
        walk = _Walk(
            self, memory if memory is not None else RunMemory(), (f"agent:{agent}", f"tool:{tool}", f"kind:{kind}")
        )
        try:
            value = walk.value(payload, ())
        except RedactionFailed:
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - fail closed, whatever it was
            raise RedactionFailed(f"redaction failed with {type(error).__name__}; the payload was dropped") from None
        return Redaction(value, dict(walk.counts))

    def text(self, text: str, counts: Counter[str]) -> str:
        """One string by the detectors alone, remembered while the process lives."""
        known = self._memo.get(text)
        if known is None:
            found: Counter[str] = Counter()
            known = (self.scanner.redact(text, lambda kind: found.update((kind,))), dict(found))
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            self._memo[text] = known
        counts.update(known[1])
        return known[0]

    def tag(self, kind: str, value: str) -> str:
        """The pseudonym of a value."""
        return pseudonym(self._keys, kind, value)

    def number(self, value: float) -> int:
        """The surrogate of a number."""
        return surrogate_number(self._keys, value)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    @property
    def limits(self) -> tuple[float, int]:
        """Seconds per payload and bytes per string."""
        return self._timeout, self._max_string


class _Walk:
    """One payload's redaction."""

    def __init__(self, redactor: Redactor, memory: RunMemory, scopes: tuple[str, ...]) -> None:
        self._redactor = redactor
        self._memory = memory
        self._policy = redactor.policy
        timeout, self._max_string = redactor.limits
        self._deadline = time.monotonic() + timeout
        self._scopes = scopes
        self.counts: Counter[str] = Counter()

    def value(self, value: Any, path: tuple[str, ...], nested: int = 0) -> Any:
        kind = type(value)
        if kind is str:
            return self._string(value, nested)
        if value is None or kind is bool or kind is int or kind is float:
            return value
        if len(path) > _MAX_DEPTH:
            raise RedactionFailed("the payload is nested too deeply to redact; it was dropped")
        if kind is dict:
            return {self._string(name, nested): self._field(name, item, path, nested) for name, item in value.items()}
        if kind is list:
            return [self.value(item, path, nested) for item in value]
        if kind is Shared:
            return self._shared(value, path)
        raise RedactionFailed(f"a value of type {kind.__name__} is not plain JSON; the payload was dropped")

    def _shared(self, shared: Shared, path: tuple[str, ...]) -> Shared:
        if not shared.is_redacted:
            before = self.counts.copy()
            shared.redacted = self.value(shared.value, path)
            shared.redactions = dict(self.counts - before)
            shared.is_redacted = True
        return shared

    def _field(self, name: str, value: Any, path: tuple[str, ...], nested: int) -> Any:
        inner = (*path, name)
        for rule in self._policy.fields:
            if self._applies(rule, inner):
                return value if rule.action == "keep" else self._whole(value, rule.kind, drop=rule.action == "drop")
        if self._policy.field_names and name not in _STRUCTURAL:
            kind = kind_of_field(name)
            if kind is not None and not (type(value) is dict and looks_like_schema(value)):
                return self._whole(value, kind, drop=False)
        return self.value(value, inner, nested)

    def _applies(self, rule: FieldRule, path: tuple[str, ...]) -> bool:
        pattern = rule.path
        if pattern.startswith(("agent:", "tool:", "kind:")):
            scope, _, pattern = pattern.partition(".")
            if scope not in self._scopes:
                return False
        return fnmatch.fnmatchcase(".".join(path), pattern) or fnmatch.fnmatchcase(".".join(path), f"*.{pattern}")

    def _whole(self, value: Any, kind: str, *, drop: bool) -> Any:
        """Replace every leaf below a sensitive field, keeping its type."""
        leaf = type(value)
        if leaf is str:
            if not value or PSEUDONYM.fullmatch(value) or value == "<DROPPED>":
                return value
            self.counts[kind] += 1
            if drop:
                return "<DROPPED>"
            tag = self._redactor.tag(kind, value)
            self._memory.remember(value, tag)
            return tag
        if leaf is int or leaf is float:
            if is_surrogate_number(value):
                return value
            self.counts[kind] += 1
            return 0 if drop else self._redactor.number(value)
        if leaf is dict:
            return {
                self._string(name, 0): item
                if name in _STRUCTURAL and type(item) is not str
                else self._whole(item, kind, drop=drop)
                for name, item in value.items()
            }
        if leaf is list:
            return [self._whole(item, kind, drop=drop) for item in value]
        if leaf is Shared:
            raise RedactionFailed("a shared value stands below a sensitive field; the payload was dropped")
        return value

    def _string(self, text: str, nested: int) -> str:
        if len(text) < 4:
            return text
        if time.monotonic() > self._deadline:
            raise RedactionFailed("redaction took too long; the payload was dropped")
        if self._is_media(text):
            self.counts["MEDIA"] += 1
            return self._redactor.tag("MEDIA", text)
        if len(text) > self._max_string:
            self.counts["OVERSIZE"] += 1
            return self._redactor.tag("OVERSIZE", text)
        if text[0] in "{[" and nested < _MAX_JSON_IN_STRING:
            inside = self._json_inside(text, nested)
            if inside is not None:
                return inside
        text, remembered = self._memory.apply(text)
        if remembered:
            self.counts["REMEMBERED"] += remembered
        return self._redactor.text(text, self.counts)

    def _is_media(self, text: str) -> bool:
        if self._policy.media == "keep":
            return False
        return (text.startswith("data:") and _MEDIA.match(text) is not None) or (
            len(text) >= 1024 and _BASE64.match(text) is not None
        )

    def _json_inside(self, text: str, nested: int) -> str | None:
        try:
            parsed = json.loads(text, object_pairs_hook=_no_duplicates)
        except (ValueError, RecursionError):
            return None
        if type(parsed) not in (dict, list):
            return None
        safe = self.value(parsed, (), nested + 1)
        # Unchanged text is kept as it is: the model saw this spelling.
        return text if safe == parsed else json.dumps(safe, ensure_ascii=False)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate keys: searched as text instead")
    return out
