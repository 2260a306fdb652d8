"""What redaction promises, held against as many made-up payloads as one has patience for.

    python tests/redaction/properties.py --cases 100000 --engine default --engine fast

Says how many cases each property had and how many failed, with the smallest failing payload it can cut
one down to, and exits with 1 if any did. Hypothesis looks for odd corners; this looks at sheer numbers,
of payloads such as agents have (`shapes.py`).

A second process, with another hash seed, redacts the same payloads in the opposite order: both must come
to the same. `--profile` and `--style` pick one kind of policy; without them the cases take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
if os.environ.get("SEALTRACE_TEST_WITHOUT_EXTRAS"):
    import redaction.without_extras  # noqa: F401

from redaction.shapes import Payloads
from sealtrace.draft import Draft
from sealtrace.errors import RedactionFailed
from sealtrace.event import EventStatus, Kind, RunEvent
from sealtrace.keys import Keys
from sealtrace.pipeline import Pipeline
from sealtrace.record import Record
from sealtrace.redaction import Policy, Redactor, engines
from sealtrace.redaction.memory import RunMemory
from sealtrace.redaction.tags import _ANY_SURROGATE, PSEUDONYM

__all__ = ["ENGINES", "PROPERTIES", "Options", "Tally", "run"]

ENGINES: Final = {"default": "anchors", "fast": "hyperscan"}
PROPERTIES: Final = (
    "idempotent",
    "idempotent within a run",
    "types stay",
    "JSON stays JSON",
    "same in another process",
    "only RedactionFailed leaves",
    "a broken engine drops the payload",
    "engines agree",
)
_KEYS: Final = Keys(b"a key for the tests only")
_BLOCK: Final = 500
_RUN: Final = 20
"""How many payloads share a memory."""

_DEPTH: Final = 4
"""How many layers of JSON in strings are read as such."""

_SECONDS: Final = 60.0


_RULES: Final[dict[str, Any]] = {
    "fields": [
        {"path": "*.note", "action": "drop"},
        {"path": "*.text", "action": "keep"},
        {"path": "*.email", "action": "tag", "kind": "MAILBOX"},
        {"path": "tool:pay.args.*", "action": "tag"},
    ],
    "overrides": [{"scope": "tool:pay", "profile": "balanced", "off": ["IP"], "media": "keep"}],
}
"""With a detector of one's own where there is an engine for it."""

if any(importlib.util.find_spec(name) for name in ("re2", "regex")):
    _RULES["detectors"] = [
        {"name": "digits", "kind": "PIN", "pattern": "[0-9]{4}"},
        {"name": "words", "kind": "WORD", "pattern": "secret|refund|(?P<value>é)[a-z ]"},
    ]


@dataclasses.dataclass(frozen=True)
class Options:
    """What to run.

    Attributes:
        cases: Payloads per property.
        engine: `default` or `fast`.
        profile: `strict` or `balanced`; both where it is None.
        style: `tag` or `surrogate`; both where it is None.
        seed: Where the stream of payloads begins.
    """

    cases: int
    engine: str = "default"
    profile: str | None = None
    style: str | None = None
    seed: int = 1

    def policies(self, engine: str | None = None) -> list[Policy]:
        """The policies that cases take turns with: each profile and style, one of them with rules of its own."""
        kinds = [
            {"profile": profile, "style": style, "engine": ENGINES[engine or self.engine]}
            for profile in ([self.profile] if self.profile else ["strict", "balanced"])
            for style in ([self.style] if self.style else ["tag", "surrogate"])
        ]
        return [Policy.model_validate(kind) for kind in [*kinds, kinds[0] | _RULES]]


class Tally:
    """Cases and failures of each property, and the first few failing payloads."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.examples: list[tuple[str, Policy, Any]] = []

    def add(self, name: str, policy: Policy, payload: Any, *, holds: bool) -> None:
        """One case of a property."""
        self.cases[name] += 1
        if not holds:
            self.failures[name] += 1
            if self.failures[name] <= 5:
                self.examples.append((name, policy, payload))


def run(options: Options) -> Tally:
    """Hold every property against the same stream of payloads."""
    tally = Tally()
    with _second_process(options) as elsewhere:
        _ordinary(options, tally, elsewhere)
    _hostile(options, tally)
    _broken(options, tally)
    return tally


# -- payloads as they should be


def _ordinary(options: Options, tally: Tally, elsewhere: Iterator[list[bytes]]) -> None:
    policies = options.policies()
    redactors = [_redactor(policy) for policy in policies]
    others = [_redactor(policy) for policy in options.policies("default")] if options.engine == "fast" else []
    memory = RunMemory()
    for first, block in _blocks(options):
        digests = next(elsewhere)
        for offset, payload in enumerate(block):
            turn = (first + offset) % len(policies)
            policy, redactor = policies[turn], redactors[turn]
            done = redactor.redact(payload)
            text = json.dumps(done.value)
            tally.add("idempotent", policy, payload, holds=_settled(redactor, done.value, text))
            if offset % _RUN == 0:
                memory = redactor.memory()
            tally.add("idempotent within a run", policy, payload, holds=_settled_in(redactor, payload, memory))
            tally.add("types stay", policy, payload, holds=_shape(done.value) == _shape(payload))
            tally.add("JSON stays JSON", policy, payload, holds=_still_json(payload, done.value, _DEPTH))
            same = _digest(payload, text, done.counts) == digests[offset]
            tally.add("same in another process", policy, payload, holds=same)
            if others:
                other = others[turn].redact(payload)
                agree = json.dumps(other.value) == text and other.counts == done.counts
                tally.add("engines agree", policy, payload, holds=agree)


def _blocks(options: Options) -> Iterator[tuple[int, list[Any]]]:
    payloads = Payloads(options.seed)
    for first in range(0, options.cases, _BLOCK):
        yield first, [payloads.next() for _ in range(min(_BLOCK, options.cases - first))]


def _redactor(policy: Policy) -> Redactor:
    made = Redactor(policy, _KEYS, timeout=_SECONDS)
    for engine in made._base.scanner._engine._engines:
        if isinstance(engine, _Compiling):
            engine.wait()  # or the default engine would stand in for it
    return made


@runtime_checkable
class _Compiling(Protocol):
    def wait(self) -> None: ...


def _settled(redactor: Redactor, value: Any, text: str) -> bool:
    again = redactor.redact(value)
    return not again.counts and json.dumps(again.value) == text


def _settled_in(redactor: Redactor, payload: Any, memory: RunMemory) -> bool:
    once = redactor.redact(payload, memory=memory).value
    again = redactor.redact(once, memory=memory)
    return not again.counts and json.dumps(again.value) == json.dumps(once)


def _shape(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return [_shape(item) for item in value.values()]
    if kind is list:
        return [kind, *(_shape(item) for item in value)]
    return kind


def _still_json(before: Any, after: Any, depth: int) -> bool:
    """Whether each string that held JSON holds JSON of the same shape, or was replaced whole."""
    if type(before) is dict:
        pairs = zip(before.values(), after.values(), strict=True)
        return all(_still_json(old, new, depth) for old, new in pairs)
    if type(before) is list:
        return all(_still_json(old, new, depth) for old, new in zip(before, after, strict=True))
    if type(before) is not str or before == after or not depth or before.strip()[:1] not in {"{", "[", '"'}:
        return True
    try:
        inner = json.loads(before, parse_constant=_refuse)
    except ValueError:
        return True
    if after == "<DROPPED>" or PSEUDONYM.fullmatch(after) or _ANY_SURROGATE.fullmatch(after):
        return True
    try:
        safe = json.loads(after)
    except ValueError:
        return False
    return _shape(inner) == _shape(safe) and _still_json(inner, safe, depth - 1)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


# -- the same in another process


def _digest(payload: Any, text: str, counts: dict[str, int]) -> bytes:
    whole = f"{json.dumps(payload)}\n{text}\n{sorted(counts.items())}"
    return hashlib.blake2b(whole.encode(), digest_size=8).digest()


def _digests(options: Options) -> Iterator[bytes]:
    """One digest a case, a block at a time, the last of each block redacted first."""
    redactors = [_redactor(policy) for policy in options.policies()]
    for first, block in _blocks(options):
        out: list[bytes] = []
        for offset in reversed(range(len(block))):
            done = redactors[(first + offset) % len(redactors)].redact(block[offset])
            out.append(_digest(block[offset], json.dumps(done.value), done.counts))
        yield b"".join(reversed(out))


@contextlib.contextmanager
def _second_process(options: Options) -> Iterator[Iterator[list[bytes]]]:
    command = [sys.executable, str(Path(__file__).resolve()), "--digests", "--cases", str(options.cases)]
    command += ["--engine", options.engine, "--seed", str(options.seed)]
    command += ["--profile", options.profile] if options.profile else []
    command += ["--style", options.style] if options.style else []
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)}
    if "redaction.without_extras" in sys.modules:  # the tests' environment has lost the variable by now
        environment["SEALTRACE_TEST_WITHOUT_EXTRAS"] = "1"
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        pipe = process.stdout

        def answers() -> Iterator[list[bytes]]:
            for first in range(0, options.cases, _BLOCK):
                size = min(_BLOCK, options.cases - first)
                raw = pipe.read(8 * size)
                if len(raw) != 8 * size:
                    raise AssertionError(f"the second process ended early, with exit code {process.wait()}")
                yield [raw[index : index + 8] for index in range(0, len(raw), 8)]

        try:
            yield answers()
        finally:
            if process.poll() is None:
                process.terminate()


# -- payloads as they should not be


class _Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no")

    __str__ = __repr__

    def __bool__(self) -> bool:
        raise ValueError("no")

    def __hash__(self) -> int:
        raise ValueError("no")

    def __eq__(self, other: object) -> bool:
        raise ValueError("no")


class _Text(str):
    __slots__ = ()


class _Whole(int):
    __slots__ = ()


class _Mapping(dict[str, Any]):
    __slots__ = ()


def _cycle() -> Any:
    out: list[Any] = [1]
    out.append({"password": out})
    return out


def _deep(levels: int) -> Any:
    out: Any = "x"
    for _ in range(levels):
        out = {"password": [out]}
    return out


_STRANGE: Final[list[Callable[[random.Random], Any]]] = [
            lambda draw: draw.randbytes(5), lambda _: object(), lambda _: _Unprintable(), lambda _: {1, 2},
            lambda _: (1, "a"), lambda _: {1: "x"}, lambda _: {None: "x", True: 1}, lambda _: {"a": float("nan")},
            lambda _: float("inf"), lambda _: 1j, lambda _: _Text("jane.roe@corp-mail.example"),
            lambda _: _Whole(4111111111111111), lambda _: _Mapping(email="x@y-z.example"),
            lambda _: {_Text("password"): "hunter2-Zebra"}, lambda _: _cycle(),
            lambda draw: _deep(draw.choice([30, 70, 1500])), lambda _: 10**5000, lambda _: "[" * 5000,
            lambda _: '{"a":' * 3000, lambda _: "1" * 5000, lambda _: f"[{'9' * 5000}]", lambda _: range(3),
            lambda _: Ellipsis, lambda _: iter([1]), lambda _: len, lambda _: int, lambda _: ValueError("jane"),
            lambda _: {"phone": object()}, lambda _: {"email": (1,)}, lambda _: {"card": {"n": {5: 5}}},
            lambda _: {"ssn": [b"x"]}, lambda _: {"pin": float("nan")}, lambda _: {"pin": float("inf")},
            lambda _: {"pin": 10**5000}, lambda _: {"tin": -(10**400)},
        ]  # fmt: skip


def _hostile(options: Options, tally: Tally) -> None:
    """Whatever stands in a payload, redaction returns plain JSON or says that it failed."""
    name = "only RedactionFailed leaves"
    draw = random.Random(options.seed)
    policies = options.policies()
    redactors = [_redactor(policy) for policy in policies]
    for first, block in _blocks(dataclasses.replace(options, seed=options.seed + 1)):
        for offset, payload in enumerate(block):
            turn = (first + offset) % len(policies)
            spoilt = _spoilt(payload, draw)
            tally.add(name, policies[turn], spoilt, holds=_contained(redactors[turn], spoilt))


def _contained(redactor: Redactor, payload: Any) -> bool:
    try:
        return type(redactor.redact(payload).counts) is dict
    except RedactionFailed as error:
        # A chained exception could quote the payload in a traceback.
        return error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None)
    except BaseException:
        return False


def _spoilt(payload: Any, draw: random.Random) -> Any:
    kind = draw.random()
    if kind < 0.25 and type(payload) is dict and payload:
        name = draw.choice(list(payload))
        return {**payload, name: _spoilt(payload[name], draw)}
    if kind < 0.5 and type(payload) is list and payload:
        index = draw.randrange(len(payload))
        return [*payload[:index], _spoilt(payload[index], draw), *payload[index + 1 :]]
    strange = draw.choice(_STRANGE)(draw)
    return strange if kind < 0.75 else [payload, {"password": strange}, {"note": strange}]


# -- engines as they should not be


class _Plan:
    """What the next search does, and the clock it does it to.

    Attributes:
        next: 0 answers, 1 raises, 2 lets two minutes go by and answers.
        asked: How many searches there were.
    """

    def __init__(self) -> None:
        self.next = 0
        self.asked = 0
        self._clock = time.monotonic
        self._late = 0.0

    def monotonic(self) -> float:
        """The time, with what has gone by."""
        return self._clock() + self._late

    def happens(self) -> None:
        """Something goes wrong, or nothing."""
        self.asked += 1
        if self.next == 1:
            raise _ERRORS[self.asked % len(_ERRORS)]
        if self.next == 2:
            self._late += 2 * _SECONDS


_ERRORS: Final = (
    ValueError("jane.roe"), MemoryError(), RecursionError(), KeyError("jane.roe"), TimeoutError(), SystemError(),
    UnicodeError(), asyncio.CancelledError(), GeneratorExit(), OSError(5, "jane.roe"),
)  # fmt: skip


class _Breaking:
    """A real engine that does as planned."""

    name = "breaking"

    def __init__(self, real: Any, plan: _Plan) -> None:
        self._real = real
        self._plan = plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def find(self, *arguments: Any, **named: Any) -> Any:
        self._plan.happens()
        return self._real.find(*arguments, **named)


class _Kept:
    """Takes events as the vault's writer does, and keeps the last."""

    event: RunEvent

    def append(self, event: RunEvent) -> None:
        self.event = event


def _broken(options: Options, tally: Tally) -> None:
    """What a sound redactor makes of it, or no payload and an event that says so; never anything between."""
    name = "a broken engine drops the payload"
    draw = random.Random(options.seed)
    policies = options.policies()
    sound = [_redactor(policy) for policy in policies]
    plan, searcher = _Plan(), engines._searcher

    def broken(*arguments: Any) -> Any:
        return _Breaking(searcher(*arguments), plan)

    with mock.patch.object(engines, "_searcher", broken), mock.patch.object(time, "monotonic", plan.monotonic):
        kept = _Kept()
        pipelines = [_pipeline(_redactor(policy), kept) for policy in policies]
        for first, block in _blocks(dataclasses.replace(options, seed=options.seed + 2)):
            for offset, payload in enumerate(block):
                turn = (first + offset) % len(policies)
                plan.next, asked = draw.choice([0, 1, 1, 2]), plan.asked
                record = Record("trace_" + "0" * 32)
                pipelines[turn].write(_draft(record, payload), record)
                event = kept.event
                if plan.next and plan.asked > asked:
                    holds = event.status == EventStatus.REDACTION_FAILED and event.payload is None
                    holds = holds and not event.redactions and record.redaction_failed == 1
                else:
                    done = sound[turn].redact({"value": payload})
                    holds = event.payload == done.value and event.redactions == done.counts
                tally.add(name, policies[turn], payload, holds=holds)


def _pipeline(redactor: Redactor, kept: Any) -> Pipeline:
    return Pipeline(
        redactor,
        kept,
        _KEYS,
        sdk_version="0",
        on_sealed=lambda _record, _seal: None,
        on_redacted=lambda _seconds, *, failed: None,
    )


def _draft(record: Record, payload: Any) -> Draft:
    return Draft(record=record, seq=0, kind=Kind.CUSTOM, ordinal=0, started_ns=0, payload={"value": payload})


# -- cutting down what failed


def smallest(fails: Callable[[Any], bool], payload: Any) -> Any:
    """The payload with as much taken away as can be without losing the failure."""
    budget = 4000
    shrinking = True
    while shrinking:
        shrinking = False
        for smaller in _smaller(payload):
            budget -= 1
            if budget < 0:
                return payload
            if fails(smaller):
                payload, shrinking = smaller, True
                break
    return payload


def _smaller(value: Any) -> Iterator[Any]:
    if type(value) is dict:
        yield from value.values()
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name, item in value.items():
            for less in _smaller(item):
                yield {**value, name: less}
    elif type(value) is list:
        yield from value
        for index, item in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for less in _smaller(item):
                yield [*value[:index], less, *value[index + 1 :]]
    elif type(value) is str:
        size = len(value) // 2
        while size:
            for start in range(0, len(value), size):
                yield value[:start] + value[start + size :]
            size //= 2


def failing(name: str, policy: Policy) -> Callable[[Any], bool] | None:
    """Whether a property fails for a payload, where that can be told of one payload alone."""

    def check(payload: Any) -> bool:
        redactor = _redactor(policy)
        done = redactor.redact(payload)
        if name == "idempotent":
            return not _settled(redactor, done.value, json.dumps(done.value))
        if name == "types stay":
            return _shape(done.value) != _shape(payload)
        if name == "JSON stays JSON":
            return not _still_json(payload, done.value, _DEPTH)
        other = _redactor(policy.model_copy(update={"engine": "anchors"})).redact(payload)
        return json.dumps(other.value) != json.dumps(done.value) or other.counts != done.counts

    return check if name in {"idempotent", "types stay", "JSON stays JSON", "engines agree"} else None


def report(options: Options, tally: Tally) -> None:
    """Print what held and what did not."""
    for name in PROPERTIES:
        if tally.cases[name]:
            print(f"{options.engine:8s} {name:36s} {tally.cases[name]:8d} cases {tally.failures[name]:6d} failed")
    for name, policy, payload in tally.examples:
        fails = failing(name, policy)
        least = smallest(fails, payload) if fails is not None and fails(payload) else payload
        print(f"  {name} fails ({policy.profile}, {policy.style}): {least!a:.600}")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--engine", choices=sorted(ENGINES), action="append")
    parser.add_argument("--profile", choices=["strict", "balanced"])
    parser.add_argument("--style", choices=["tag", "surrogate"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--digests", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    failed = 0
    for engine in given.engine or ["default"]:
        options = Options(given.cases, engine, given.profile, given.style, given.seed)
        if given.digests:
            for block in _digests(options):
                sys.stdout.buffer.write(block)
            return 0
        tally = run(options)
        report(options, tally)
        failed += tally.failures.total()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
