"""Walks one payload: structure first, then all the text in it at once.

Walking decides what is redacted because of where it stands (field names, rules by path, media) and
collects every other string. Only then is text searched: by then each value that a field name gave
away is known, so it is found in the text of the same payload too, wherever the two stand.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..errors import RedactionFailed
from ..event import Shared
from .embedded import own_name, parsed, written
from .fields import is_person, kind_of_field, looks_like_schema
from .media import MEDIA_FIELDS, SHORT_BASE64, is_media
from .memory import SHORTEST_REMEMBERED, RunMemory
from .names import NameStrength, name_strength, secret_value
from .paths import PathRules
from .scanner import Change
from .settling import settled
from .surroundings import STRUCTURAL, Scopes, Surroundings, Use
from .tags import PSEUDONYM
from .validators import card
from .whole import SHORTEST, Whole

__all__ = ["Walk"]

_MAX_DEPTH: Final = 64
_MAX_JSON_IN_STRING: Final = 4
_OPENING: Final = frozenset('{[" \n')
_ROUNDS: Final = 4
_IMMUTABLE: Final = (bool, type(None))


class _Where:
    """Where the walk is: the names that lead here, how many JSON texts deep, and who counts."""

    __slots__ = ("counts", "nested", "path")

    def __init__(self, path: tuple[str, ...], nested: int, counts: Counter[str]) -> None:
        self.path = path
        self.nested = nested
        self.counts = counts

    def inside(self, name: str) -> _Where:
        return _Where((*self.path, name), self.nested, self.counts)


_MAX_NAMES: Final = 10_000
_MAX_NAME: Final = 200

_Todo: TypeAlias = dict[str, list[tuple[Any, Any, _Where]]]
"""Texts to search, and where each of them stands: container, key, the way there."""


class Walk:
    """One payload's redaction.

    Args:
        scopes: The redactor.
        memory: Values given away by their fields, of the whole run.
        deadline: `time.monotonic()` at which to give up.
        agent: The agent's name.
        tool: The tool's name.
        kind: The event's kind.
    """

    def __init__(
        self,
        scopes: Scopes,
        memory: RunMemory,
        deadline: float,
        *,
        agent: str | None = None,
        tool: str | None = None,
        kind: str | None = None,
    ) -> None:
        self._scopes = scopes
        self._agent, self._kind = agent, kind
        self._todo: dict[tuple[Surroundings, bool], _Todo] = {}
        self._memory = memory
        self._deadline = deadline
        self._enter(scopes.rules(agent, tool, kind))
        self.counts: Counter[str] = Counter()
        self._shared_done: dict[int, tuple[Shared, list[Any], Counter[str]]] = {}
        self._brief: list[tuple[_Todo, str, tuple[Any, Any, _Where]]] = []
        """Too short for a detector; searched once there is something remembered, which may come later."""
        self._late: list[Callable[[], None]] = []

    def run(self, payload: Any) -> Any:
        """The safe copy.

        Raises:
            RedactionFailed: It took too long, or the payload is not plain JSON.
        """
        holder: list[Any] = [None]
        self._place(holder, 0, payload, _Where((), 0, self.counts))
        self._search()
        for finish in self._late:  # inner ones come before outer ones
            finish()
        for shared, held, counts in self._shared_done.values():
            shared.redacted = held[0]
            shared.redactions = dict(counts)
            shared.is_redacted = True
            self.counts.update(counts)
        return holder[0]

    def _enter(self, rules: tuple[Surroundings, PathRules | None]) -> None:
        self._around, self._paths = rules
        self._free = self._todo.setdefault((self._around, False), {})
        self._fixed = self._todo.setdefault((self._around, True), {})
        self._whole = Whole(self._around, self._memory, self._in_time, self._keys)

    # -- structure

    def _place(self, into: Any, at: Any, value: Any, where: _Where) -> None:
        kind = type(value)
        if kind is str:
            self._string(into, at, value, where, structural=False)
        elif kind is dict:
            into[at] = self._dict(value, where)
        elif kind is list:
            self._check(where.path)
            out: list[Any] = [None] * len(value)
            into[at] = out
            inner = where.inside("")
            for index, item in enumerate(value):
                self._place(out, index, item, inner)
        elif kind is int:
            into[at] = self._loose_number(value, where.counts)
        elif kind in _IMMUTABLE or kind is float:
            into[at] = value
        elif kind is Shared:
            into[at] = value
            self._shared(value, where.path)
        else:
            raise RedactionFailed(f"a value of type {kind.__name__} is not plain JSON; the payload was dropped")

    def _check(self, path: tuple[str, ...]) -> None:
        if len(path) > _MAX_DEPTH:
            raise RedactionFailed("the payload is nested too deeply to redact; it was dropped")
        self._in_time()

    def _in_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise RedactionFailed("redaction took too long; the payload was dropped")

    def _loose_number(self, value: int, counts: Counter[str]) -> float:
        """A card number is one also where it is written as a number."""
        if 10**14 <= value < 10**16 and card(str(value)) and not 10**15 > value >= 4 * 10**14:
            counts["CARD"] += 1
            return self._around.number("CARD", value)
        return value

    def _dict(self, value: dict[Any, Any], where: _Where) -> dict[str, Any]:
        self._check(where.path)
        if self._scopes.scoped:
            tool = self._tool_of(value)
            if tool is not None:
                before = self._around, self._paths
                self._enter(self._scopes.rules(self._agent, tool, self._kind))
                try:
                    return self._members(value, _Where((), where.nested, where.counts))
                finally:
                    self._enter(before)
        return self._members(value, where)

    def _tool_of(self, value: dict[Any, Any]) -> str | None:
        """The tool whose call or output this item is: the history of a conversation obeys the tool's rules too."""
        call = value.get("call_id", value.get("tool_call_id"))
        name = value.get("name")
        if type(name) is str and "arguments" in value:
            if type(call) is str:
                self._memory.tools[call] = name
            return name
        if type(call) is str and ("output" in value or "content" in value):
            return self._memory.tools.get(call)
        return None

    def _members(self, value: dict[Any, Any], where: _Where) -> dict[str, Any]:
        out: dict[str, Any] = {}
        around = self._around
        uses = around.uses
        counts = where.counts
        person = around.strict and "name" in value and is_person(value)
        plain = self._paths is None and not person
        odd_names: list[str] = []
        for name, item in value.items():
            use = uses.get(name)
            if use is None:
                use = self._use_of(name, odd_names)
            if plain and (use is Use.PLAIN or use is Use.STRUCTURAL or not around.field_names):
                # Most of a payload ends here: a name that says nothing, and a value that is seldom a container.
                kind = type(item)
                if kind is str:
                    self._string(out, name, item, where, structural=use is Use.STRUCTURAL)
                elif item is None or kind is bool or kind is float:
                    out[name] = item
                else:
                    self._place(out, name, item, where.inside(name))
            else:
                self._field(out, name, item, where.inside(name), person=person)
        if odd_names:
            self._keys(out, odd_names, counts)
        return out

    def _use_of(self, name: Any, odd_names: list[str]) -> Use:
        """What a name is good for; remembered for names in which nothing is found."""
        if type(name) is not str:
            raise RedactionFailed("a key that is not a string is not plain JSON; the payload was dropped")
        if name in STRUCTURAL:
            use = Use.STRUCTURAL
        elif kind_of_field(name) is not None or name_strength(name) != NameStrength.NONE or name in MEDIA_FIELDS:
            use = Use.TELLING
        else:
            use = Use.PLAIN
        if len(name) >= SHORTEST and self._around.known(own_name(name)) is not True:
            odd_names.append(name)
        elif len(self._around.uses) < _MAX_NAMES and len(name) <= _MAX_NAME:
            self._around.uses[name] = use
        return use

    def _field(self, out: dict[str, Any], name: str, item: Any, where: _Where, *, person: bool) -> None:
        counts = where.counts
        rule = self._paths.match(where.path) if self._paths is not None else None
        if rule is not None:
            out[name] = (
                self._whole.kept(item)
                if rule.action == "keep"
                else self._whole.redacted(item, rule.kind, counts, drop=rule.action == "drop")
            )
            return
        person_name = person and name == "name"
        structural = name in STRUCTURAL and not person_name
        if self._around.field_names and not structural:
            kind = "NAME" if person_name else kind_of_field(name)
            if kind is not None and not (type(item) is dict and looks_like_schema(item)):
                out[name] = self._whole.redacted(item, kind, counts, drop=False)
                return
            if type(item) is str and self._named_secret(name, item):
                out[name] = self._whole.redacted(item, "SECRET", counts, drop=False)
                return
        if type(item) is not str:
            self._place(out, name, item, where)
        elif name in MEDIA_FIELDS and SHORT_BASE64.match(item) and not self._around.keep_media:
            counts["MEDIA"] += 1
            out[name] = self._around.replacement("MEDIA", item)
        else:
            self._string(out, name, item, where, structural=structural)

    def _named_secret(self, name: str, value: str) -> bool:
        if value[:1] in {"[", "{", '"'}:
            return False  # JSON, and walked as such
        if PSEUDONYM.search(value) or len(value) > 8192 or any(character.isspace() for character in value[:64]):
            return False
        return secret_value(value, name_strength(name), strict=self._around.strict, quoted=True)

    def _keys(self, out: dict[str, Any], names: list[str], counts: Counter[str]) -> None:
        """Keys are text too; one that changes is renamed once the search is done, and order is kept."""
        around = self._around
        own = {name: own_name(name) for name in names}
        for text in own.values():
            self._fixed.setdefault(text, []).append((None, None, _Where((), _MAX_JSON_IN_STRING, counts)))

        def rename() -> None:
            changed = {
                name: known.text + name[len(text) :]
                for name, text in own.items()
                if isinstance(known := around.known(text), Change)
            }
            if not changed:
                return
            items = list(out.items())
            out.clear()
            for name, item in items:
                safe = changed.get(name, name)
                count = 1
                while safe in out:
                    count += 1
                    safe = f"{changed.get(name, name)}#{count}"
                out[safe] = item

        self._late.append(rename)

    def _shared(self, shared: Shared, path: tuple[str, ...]) -> None:
        if shared.is_redacted or id(shared) in self._shared_done:
            return
        counts: Counter[str] = Counter()
        holder: list[Any] = [None]
        # Only marked as redacted at the very end: if anything fails on the way, it is not.
        self._shared_done[id(shared)] = (shared, holder, counts)
        self._place(holder, 0, shared.value, _Where(path, 0, counts))

    # -- text

    def _string(self, into: Any, at: Any, text: str, where: _Where, *, structural: bool) -> None:
        counts = where.counts
        into[at] = text
        size = len(text)
        if size < SHORTEST:
            if not structural and size >= SHORTEST_REMEMBERED:
                self._brief.append((self._free, text, (into, at, where)))
            return
        todo = self._fixed if structural else self._free
        places = todo.get(text)
        if places is not None:
            places.append((into, at, where))
            return
        if size >= 64 and not self._around.keep_media and is_media(text):
            counts["MEDIA"] += 1
            into[at] = self._around.replacement("MEDIA", text)
            return
        if size > self._around.max_string and len(PSEUDONYM.sub("", text)) > self._around.max_string:
            counts["OVERSIZE"] += 1
            into[at] = self._around.replacement("OVERSIZE", text)
            return
        if text[0] in _OPENING and where.nested < _MAX_JSON_IN_STRING and self._json_inside(into, at, text, where):
            return
        todo[text] = [(into, at, where)]

    def _json_inside(self, into: Any, at: Any, text: str, where: _Where) -> bool:
        inner = parsed(text)
        if inner is None:
            return False
        holder: list[Any] = [None]
        self._place(holder, 0, inner, _Where(where.path, where.nested + 1, where.counts))

        def finish() -> None:
            safe = holder[0]
            # Unchanged text is kept as it is: the model saw this spelling.
            if safe != inner:
                into[at] = written(safe, text)

        self._late.append(finish)
        return True

    def _search(self) -> None:
        """Search what was collected; text that reads as JSON only since something in it was replaced is walked, too."""
        for _ in range(_ROUNDS):
            if self._brief and len(self._memory):
                for todo, text, place in self._brief:
                    todo.setdefault(text, []).append(place)
                self._brief = []
            revealed = self._searched()
            if not revealed:
                return
            outer, self._late = self._late, []
            for into, at, safe, where in revealed:
                if self._scopes.scoped or not self._json_inside(into, at, safe, where):
                    into[at] = self._around.replacement("UNSTABLE", safe)
            self._late += outer
        raise RedactionFailed("a text became another with every look; the payload was dropped")

    def _searched(self) -> list[tuple[Any, Any, str, _Where]]:
        revealed: list[tuple[Any, Any, str, _Where]] = []
        for (around, structural), collected in self._todo.items():
            if not collected:
                continue
            todo = dict(collected)
            collected.clear()
            changed = settled(around, todo, self._memory, self._deadline, structural=structural)
            for text, (safe, found) in changed.items():
                opens = safe[:1] in _OPENING and parsed(safe) is not None
                for into, at, where in todo[text]:
                    where.counts.update(found)
                    if into is None:
                        continue
                    into[at] = safe
                    if opens and where.nested < _MAX_JSON_IN_STRING:
                        revealed.append((into, at, safe, where))
        return revealed
