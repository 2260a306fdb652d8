"""Walks one payload: structure first, then all the text in it at once.

Walking decides what is redacted because of where it stands (field names, rules by path, media) and
collects every other string. Only then is text searched: by then each value that a field name gave
away is known, so it is found in the text of the same payload too, wherever the two stand.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Final

from ..errors import RedactionFailed
from ..event import Shared
from .embedded import own_name, parsed, written
from .fields import is_person, looks_like_schema
from .media import SHORT_BASE64, is_media
from .memory import SHORTEST_REMEMBERED, RunMemory
from .names import NameStrength, secret_value
from .paths import PathRules
from .renaming import rename
from .settling import settled
from .surroundings import Scopes, Surroundings
from .tags import PSEUDONYM
from .texts import Texts, by_text
from .uses import PERSON_NAME, PLAIN, SILENT, STRUCTURAL_USE, Use, use_of
from .validators import card
from .where import Where
from .whole import SHORTEST, Whole

__all__ = ["Walk"]

_MAX_DEPTH: Final = 64
_MAX_JSON_IN_STRING: Final = 4
_OPENING: Final = frozenset('{[" \n')
_SHORTEST_MEDIA: Final = 64
_SMALLEST_CARD: Final = 10**14
_ROUNDS: Final = 4
_IMMUTABLE: Final = frozenset({bool, float, type(None)})


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
        self._scoped = scopes.scoped
        self._todo: dict[tuple[Surroundings, bool], Texts] = {}
        self._memory = memory
        self._deadline = deadline
        self._enter(scopes.rules(agent, tool, kind))
        self.counts: Counter[str] = Counter()
        self._shared_done: dict[int, tuple[Shared, list[Any], Counter[str]]] = {}
        self._late: list[Callable[[], None]] = []

    def run(self, payload: Any) -> Any:
        """The safe copy.

        Raises:
            RedactionFailed: It took too long, or the payload is not plain JSON.
        """
        holder: list[Any] = [None]
        self._place(holder, 0, payload, Where(self.counts))
        self._search()
        for finish in self._late:  # inner ones come before outer ones
            finish()
        for shared, held, counts in self._shared_done.values():
            shared.redacted = held[0]
            shared.redactions = dict(counts)
            shared.is_redacted = True
            self.counts.update(counts)
        del self._whole  # it holds this walk, and all that was walked would wait for the garbage collector
        return holder[0]

    def _enter(self, rules: tuple[Surroundings, PathRules | None]) -> None:
        self._around, self._paths = around, _ = rules
        self._free = self._todo.setdefault((around, False), Texts())
        self._fixed = self._todo.setdefault((around, True), Texts())
        self._keep, self._keep_fixed = self._free.places.append, self._fixed.places.append
        self._shape = around.names.shape
        self._short = min(_SHORTEST_MEDIA, around.max_string + 1)
        """Shorter texts are not media and not too long."""
        self._whole = Whole(around, self._memory, self._in_time, self._keys)

    # -- structure

    def _place(self, into: Any, at: Any, value: Any, where: Where) -> None:
        kind = type(value)
        if kind is str:
            self._string(into, at, value, where, structural=False)
        elif kind is dict:
            into[at] = self._dict(value, where)
        elif kind is list:
            into[at] = self._list(value, where)
        elif kind is int:
            into[at] = self._loose_number(value, where.counts)
        elif kind in _IMMUTABLE:
            into[at] = value
        elif kind is Shared:
            into[at] = value
            self._shared(value, where)
        else:
            raise RedactionFailed(f"a value of type {kind.__name__} is not plain JSON; the payload was dropped")

    def _inside(self, where: Where, name: str) -> Where:
        return where.deeper() if self._paths is None else where.inside(name)

    def _in_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise RedactionFailed("redaction took too long; the payload was dropped")

    def _loose_number(self, value: int, counts: Counter[str]) -> float:
        """A card number is one also where it is written as a number."""
        if _SMALLEST_CARD <= value < 10**16 and card(str(value)) and not 10**15 > value >= 4 * 10**14:
            counts["CARD"] += 1
            return self._around.number("CARD", value)
        return value

    def _check(self, where: Where) -> None:
        """Raise for what is too deep or too late; who calls has looked, as a call for each container takes its time."""
        if where.depth > _MAX_DEPTH:
            raise RedactionFailed("the payload is nested too deeply to redact; it was dropped")
        self._in_time()

    def _list(self, value: list[Any], where: Where) -> list[Any]:
        if where.depth > _MAX_DEPTH or time.monotonic() > self._deadline:
            self._check(where)
        out = value.copy()
        if _IMMUTABLE.issuperset(map(type, value)):  # an embedding has thousands
            return out
        inner = self._inside(where, "")
        keep, short = self._keep, self._short
        for index, item in enumerate(value):
            kind = type(item)
            if kind is dict:
                out[index] = self._dict(item, inner)
            elif kind is str and SHORTEST <= len(item) < short and item[0] not in _OPENING:
                keep((item, out, index, inner))
            elif kind is int:
                if item >= _SMALLEST_CARD:
                    out[index] = self._loose_number(item, where.counts)
            elif kind not in _IMMUTABLE:
                self._place(out, index, item, inner)
        return out

    def _dict(self, value: dict[Any, Any], where: Where, *, of_tool: bool = False) -> dict[str, Any]:
        if where.depth > _MAX_DEPTH or time.monotonic() > self._deadline:
            self._check(where)
        if self._scoped and not of_tool:
            tool = self._tool_of(value)
            if tool is not None:
                return self._under_rules_of(tool, value, where)
        shape = self._shape(tuple(value)) or self._around.names.shape_of(value)
        if shape is None or self._paths is not None or (shape.person and is_person(value)):
            return self._unusual(value, where)
        return self._usual(value, shape.uses, where)

    def _usual(self, value: dict[str, Any], uses: tuple[Use, ...], where: Where) -> dict[str, Any]:
        """Of a mapping whose names are all known, and where no rule by path can hold: most of a payload."""
        keep, keep_fixed, short = self._keep, self._keep_fixed, self._short
        out = value.copy()
        for name, item, use in zip(value, value.values(), uses, strict=True):
            kind = type(item)
            if use is not PLAIN and use is not STRUCTURAL_USE:
                if kind is str and use.kind is not None:
                    out[name] = self._whole.text(item, use.kind, where.counts)
                else:
                    self._telling(out, name, item, use, where.below or where.deeper())
            elif kind is str:
                if SHORTEST <= len(item) < short and item[0] not in _OPENING:
                    (keep if use is PLAIN else keep_fixed)((item, out, name, where))
                elif len(item) >= SHORTEST_REMEMBERED:
                    self._string(out, name, item, where, structural=use is STRUCTURAL_USE)
            elif kind is dict:
                out[name] = self._dict(item, where.below or where.deeper())
            elif kind is int:
                if item >= _SMALLEST_CARD:
                    out[name] = self._loose_number(item, where.counts)
            elif kind not in _IMMUTABLE:
                self._place(out, name, item, where.below or where.deeper())
        return out

    def _under_rules_of(self, tool: str, value: dict[Any, Any], where: Where) -> dict[str, Any]:
        before = self._around, self._paths
        self._enter(self._scopes.rules(self._agent, tool, self._kind))
        try:
            return self._dict(value, Where(where.counts, where.nested), of_tool=True)
        finally:
            self._enter(before)

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

    def _unusual(self, value: dict[Any, Any], where: Where) -> dict[str, Any]:
        out: dict[str, Any] = {}
        around, paths = self._around, self._paths
        uses = around.names.uses
        person = around.strict and "name" in value and is_person(value)
        odd_names: list[str] = []
        for name, item in value.items():
            use = uses.get(name)
            if use is None:
                use = self._use_of(name, odd_names)
            if paths is None and not person and (use in SILENT or not around.field_names):
                if type(item) is str:
                    self._string(out, name, item, where, structural=use is STRUCTURAL_USE)
                else:
                    self._place(out, name, item, where.deeper())
                continue
            inner = self._inside(where, name)
            rule = paths.match(inner.path) if paths is not None else None
            if rule is None:
                self._telling(out, name, item, PERSON_NAME if person and name == "name" else use, inner)
            elif rule.action == "keep":
                out[name] = self._whole.kept(item)
            else:
                out[name] = self._whole.redacted(item, rule.kind, inner.counts, drop=rule.action == "drop")
        if odd_names:
            self._keys(out, odd_names, where.counts)
        return out

    def _use_of(self, name: Any, odd_names: list[str]) -> Use:
        """What a name is good for; remembered for names in which nothing is found."""
        if type(name) is not str:
            raise RedactionFailed("a key that is not a string is not plain JSON; the payload was dropped")
        use = use_of(name)
        if len(name) >= SHORTEST and self._around.known(own_name(name)) is not True:
            odd_names.append(name)
        else:
            self._around.names.add(name, use)
        return use

    def _telling(self, out: dict[str, Any], name: str, item: Any, use: Use, where: Where) -> None:
        """A member whose name may say what its value is."""
        kind, around = type(item), self._around
        if around.field_names:
            if use.kind is not None and not (kind is dict and looks_like_schema(item)):
                out[name] = self._whole.redacted(item, use.kind, where.counts, drop=False)
                return
            if kind is str and use.strength and self._is_secret(item, use.strength):
                out[name] = self._whole.redacted(item, "SECRET", where.counts, drop=False)
                return
        if kind is not str:
            self._place(out, name, item, where)
        elif use.media and SHORT_BASE64.match(item) and not around.keep_media:
            where.counts["MEDIA"] += 1
            out[name] = around.replacement("MEDIA", item)
        else:
            self._string(out, name, item, where, structural=use is STRUCTURAL_USE)

    def _is_secret(self, value: str, strength: NameStrength) -> bool:
        if value[:1] in {"[", "{", '"'}:
            return False  # JSON, and walked as such
        if PSEUDONYM.search(value) or len(value) > 8192 or any(character.isspace() for character in value[:64]):
            return False
        return secret_value(value, strength, strict=self._around.strict, quoted=True)

    def _keys(self, out: dict[str, Any], names: list[str], counts: Counter[str]) -> None:
        """Keys are text too; one that changes is renamed once the search is done, and order is kept."""
        around = self._around
        harmless = around.names.uses
        own = {name: own_name(name) for name in names if name not in harmless or self._odd(name)}
        if not own:
            return
        nowhere = Where(counts, _MAX_JSON_IN_STRING)
        for text in own.values():
            self._fixed.met.add(text)
            self._keep_fixed((text, None, None, nowhere))

        self._late.append(partial(rename, out, own, around))

    def _shared(self, shared: Shared, where: Where) -> None:
        if shared.is_redacted or id(shared) in self._shared_done:
            return
        counts: Counter[str] = Counter()
        holder: list[Any] = [None]
        # Only marked as redacted at the very end: if anything fails on the way, it is not.
        self._shared_done[id(shared)] = (shared, holder, counts)
        self._place(holder, 0, shared.value, Where(counts, 0, where.depth, where.path))

    # -- text

    def _string(self, into: Any, at: Any, text: str, where: Where, *, structural: bool) -> None:
        into[at] = text
        if len(text) < SHORTEST:
            if not structural and len(text) >= SHORTEST_REMEMBERED:
                self._free.brief.append((text, into, at, where))
            return
        texts = self._fixed if structural else self._free
        if self._odd(text) and text not in texts.met:
            if self._no_text(into, at, text, where):
                return
            texts.met.add(text)
        texts.places.append((text, into, at, where))

    def _odd(self, text: str) -> bool:
        """Whether a text may be media, too long or JSON."""
        return len(text) >= self._short or text[0] in _OPENING

    def _no_text(self, into: Any, at: Any, text: str, where: Where) -> bool:
        """Whether a string is media, too long or JSON, and done with."""
        size, around = len(text), self._around
        if size >= _SHORTEST_MEDIA and not around.keep_media and is_media(text):
            where.counts["MEDIA"] += 1
            into[at] = around.replacement("MEDIA", text)
            return True
        if size > around.max_string and len(PSEUDONYM.sub("", text)) > around.max_string:
            where.counts["OVERSIZE"] += 1
            into[at] = around.replacement("OVERSIZE", text)
            return True
        return text[0] in _OPENING and where.nested < _MAX_JSON_IN_STRING and self._json_inside(into, at, text, where)

    def _json_inside(self, into: Any, at: Any, text: str, where: Where) -> bool:
        inner = parsed(text)
        if inner is None:
            return False
        holder: list[Any] = [None]
        self._place(holder, 0, inner, where.in_json())

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
            revealed = self._searched()
            if not revealed:
                return
            outer, self._late = self._late, []
            for into, at, safe, where in revealed:
                if self._scoped or not self._json_inside(into, at, safe, where):
                    into[at] = self._around.replacement("UNSTABLE", safe)
            self._late += outer
        raise RedactionFailed("a text became another with every look; the payload was dropped")

    def _searched(self) -> list[tuple[Any, Any, str, Where]]:
        revealed: list[tuple[Any, Any, str, Where]] = []
        for (around, structural), texts in self._todo.items():
            places = texts.take(brief=len(self._memory) > 0)
            if not places:
                continue
            unique = dict.fromkeys(map(itemgetter(0), places))
            changed = settled(around, unique, self._memory, self._deadline, structural=structural)
            for text, held in by_text(places, changed):
                safe, found = changed[text]
                opens = safe[:1] in _OPENING and parsed(safe) is not None
                for _, into, at, where in held:
                    for kind, count in found.items():
                        where.counts[kind] += count
                    if into is None:
                        continue
                    into[at] = safe
                    if opens and where.nested < _MAX_JSON_IN_STRING:
                        revealed.append((into, at, safe, where))
        return revealed
