"""Comparing live values with a record whose values were redacted.

Both sides are brought into the same space: the live value goes through the record's redaction
policy and key. Where a pseudonym still meets a plain value (the recorder had learnt of it from
something a rerun never sees), the plain value's own tag is computed and must be the same. Without
the record's key only the kind can be told, and each such field is counted.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from ..event import Kind, Shared, resolve_shared
from ..keys import Keys
from ..redaction import Redactor
from ..redaction.tags import canonical, is_surrogate_number, surrogate_number
from .comparable import PSEUDONYM, by_kind_only
from .jsondiff import Difference, differences, is_ignored
from .shape import JSON, is_array, is_object

__all__ = ["Live", "Space"]

_WHOLE: Final = re.compile(r"<([A-Z][A-Z0-9_]{1,31}):([a-z]{12})>")
_NESTED: Final = 4
_BY_PATTERN: Final = frozenset({"CARD", "EMAIL", "IBAN", "IP", "PHONE", "SSN"})
"""Kinds that are known by their look; others may have been learnt from the name of a field."""


@dataclasses.dataclass(frozen=True, slots=True)
class Live:
    """A live value, raw and redacted; the raw half never leaves this process."""

    raw: JSON
    redacted: JSON


class Space:
    """Redacts live values as the recorder did and compares.

    Args:
        keys: The keys at hand.
        redactor: The redactor at hand, with the record's policy if it is the same one.
        same_key: Whether `keys` made the record's pseudonyms.
        ignore: Paths not to look at, as in `jsondiff.differences`.
        pin: Patterns of text that may differ, such as a clock: what they match counts as equal.
    """

    def __init__(
        self,
        keys: Keys,
        redactor: Redactor,
        *,
        same_key: bool,
        ignore: Iterable[str] = (),
        pin: Iterable[re.Pattern[str]] = (),
    ) -> None:
        self._keys = keys
        self._redactor = redactor
        self.same_key = same_key
        self._ignore = tuple(ignore)
        self._pin = tuple(pin)
        self.memory = redactor.memory()
        self.by_kind = 0
        self.by_key = 0
        self.ignored: Counter[str] = Counter()

    def live(
        self, payload: JSON, *, kind: Kind, agent: str | None = None, tool: str | None = None, recorded: JSON = None
    ) -> Live:
        """Redact a live payload; it may hold `Shared` nodes.

        Args:
            payload: The live value.
            kind: As the recorder would say.
            agent: As the recorder would say.
            tool: As the recorder would say.
            recorded: What it will be compared with. A shared value that is just that was served from
                the record, redacted as it is; it need not be redacted again.

        Raises:
            RedactionFailed: It cannot be made safe, so it cannot be shown or compared either.
        """
        _recognise(payload, recorded)
        done = self._redactor.redact(payload, memory=self.memory, kind=kind, agent=agent, tool=tool)
        return Live(_raw(payload), resolve_shared(done.value))

    def first(self, recorded: JSON, live: Live) -> Difference | None:
        """The first difference that counts, or None."""
        if _same_text(recorded, live.redacted):
            return None
        got = self._reconciled(recorded, live.redacted, live.raw, 0)
        for difference in differences(recorded, got):
            if not self._set_aside(difference):
                return difference
        return None

    def count(self, recorded: JSON, live: Live) -> int:
        """How many differences count."""
        got = self._reconciled(recorded, live.redacted, live.raw, 0)
        return sum(1 for difference in differences(recorded, got) if not self._set_aside(difference))

    def _set_aside(self, difference: Difference) -> bool:
        for pattern in self._ignore:
            if is_ignored(difference.path, (pattern,)):
                self.ignored[pattern] += 1
                return True
        return False

    def _reconciled(self, recorded: JSON, redacted: JSON, raw: JSON, nested: int) -> JSON:
        """The redacted value with what is equal to the record written as the record has it."""
        if is_object(recorded) and is_object(redacted):
            raws = list(raw.values()) if is_object(raw) and len(raw) == len(redacted) else list(redacted.values())
            return {
                name: self._reconciled(recorded[name], value, raws[index], nested) if name in recorded else value
                for index, (name, value) in enumerate(redacted.items())
            }
        if is_array(recorded) and is_array(redacted):
            raws = raw if is_array(raw) and len(raw) == len(redacted) else redacted
            return [
                self._reconciled(recorded[index], value, raws[index], nested) if index < len(recorded) else value
                for index, value in enumerate(redacted)
            ]
        if isinstance(recorded, str) and isinstance(redacted, str):
            return recorded if self._same_string(recorded, redacted, raw, nested) else redacted
        if self._same_number(recorded, redacted, raw):
            return recorded
        return redacted

    def _same_number(self, recorded: JSON, redacted: JSON, raw: JSON) -> bool:
        if not _is_number(recorded) or not _is_number(redacted) or not is_surrogate_number(recorded):
            return False
        if self.same_key:
            if _is_number(raw) and surrogate_number(self._keys, raw) == recorded:
                self.by_key += 1
                return True
            return False
        if is_surrogate_number(redacted):
            self.by_kind += 1
            return True
        return False

    def _same_string(self, recorded: str, redacted: str, raw: JSON, nested: int) -> bool:
        if recorded in (redacted, raw):
            return True
        if self._pinned(recorded, redacted):
            return True
        text = raw if isinstance(raw, str) else redacted
        if nested < _NESTED and recorded[:1] in ("{", "[") and self._same_json_inside(recorded, redacted, text, nested):
            return True
        if PSEUDONYM.search(recorded) is None:
            return False
        if not self.same_key and by_kind_only(recorded) == by_kind_only(redacted):
            self.by_kind += 1
            return True
        return self._aligned(recorded, text)

    def _pinned(self, recorded: str, redacted: str) -> bool:
        for pattern in self._pin:
            if pattern.search(recorded) and pattern.sub("\0", recorded) == pattern.sub("\0", redacted):
                self.ignored[f"pin {pattern.pattern}"] += 1
                return True
        return False

    def _same_json_inside(self, recorded: str, redacted: str, raw: str, nested: int) -> bool:
        """Redaction writes JSON inside a string anew, so its spelling says nothing."""
        try:
            one, other, plain = json.loads(recorded), json.loads(redacted), json.loads(raw)
        except (ValueError, RecursionError):
            return False
        if PSEUDONYM.search(recorded) is None and PSEUDONYM.search(redacted) is None:
            return False
        return _same_text(one, self._reconciled(one, other, plain, nested + 1))

    def _aligned(self, recorded: str, raw: str) -> bool:
        """Whether `raw` is `recorded` with its pseudonyms put back."""
        for lazy in ("?", ""):
            pieces: list[str] = []
            wanted: list[tuple[str, str]] = []
            at = 0
            for match in _WHOLE.finditer(recorded):
                pieces += [re.escape(recorded[at : match.start()]), f"(.+{lazy})"]
                wanted.append((match[1], match[2]))
                at = match.end()
            found = re.fullmatch("".join([*pieces, re.escape(recorded[at:])]), raw, re.DOTALL)
            if found is None:
                return False
            if not self.same_key:
                if any(kind in _BY_PATTERN for kind, _ in wanted):
                    return False  # it would have been found in the live value too
                self.by_kind += 1
                return True
            if all(self._tagged(*want, value) for want, value in zip(wanted, found.groups(), strict=True)):
                self.by_key += 1
                return True
        return False

    def _tagged(self, kind: str, tag: str, value: str) -> bool:
        return value == f"<{kind}:{tag}>" or self._keys.tag(canonical(kind, value)) == tag


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _raw(value: Any) -> JSON:
    """A payload with its `Shared` nodes replaced by what they hold."""
    if isinstance(value, Shared):
        return value.value
    if is_object(value):
        return {name: _raw(item) for name, item in value.items()}
    if is_array(value):
        return [_raw(item) for item in value]
    return value


def _recognise(payload: Any, recorded: JSON) -> None:
    if isinstance(payload, Shared):
        if not payload.is_redacted and recorded is not None and payload.value == recorded:
            payload.redacted, payload.is_redacted = payload.value, True
    elif is_object(payload) and is_object(recorded):
        for name, item in payload.items():
            _recognise(item, recorded.get(name))
    elif is_array(payload) and is_array(recorded):
        for item, other in zip(payload, recorded, strict=False):
            _recognise(item, other)


def _same_text(one: JSON, other: JSON) -> bool:
    # Stricter than `==`, which takes True for 1, and done in C.
    return one is other or (one == other and json.dumps(one) == json.dumps(other))
