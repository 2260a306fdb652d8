"""One shop, and a thousand ways to change its code or its record.

Each mutant says which event is the first that can differ, where in it, and what kind of change it is.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    GuardrailFunctionOutput,
    Handoff,
    InputGuardrail,
    ModelRetrySettings,
    ModelSettings,
    OutputGuardrail,
    RunContextWrapper,
    ToolGuardrailFunctionOutput,
    handoff,
    retry_policies,
)
from agents.tool_guardrails import ToolInputGuardrail, ToolOutputGuardrail
from openai.types.shared import Reasoning
from pydantic import BaseModel, Field

from replay.world import World, call, say
from sealtrace.event import Kind, RunEvent


class Answer(BaseModel):
    """What the desk answers with."""

    text: str = Field(description="What to tell the customer.")
    paid: bool


class Busy(Exception):
    """A model that has no time."""

    status_code = 503


@dataclasses.dataclass
class Shop:
    """Everything a mutant may change in the code."""

    triage: Agent[Any]
    desk: Agent[Any]
    clerk: Agent[Any]
    given: list[Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def build(world: World) -> Shop:
    """The shop as it was recorded."""

    def tool(name: str, description: str, parameters: dict[str, Any], result: Callable[[dict[str, Any]], Any]) -> Any:
        async def invoke(ctx: RunContextWrapper[Any], arguments: str) -> Any:
            await world.pause()
            world.done.append(name)
            return result(json.loads(arguments))

        schema = {
            "type": "object",
            "properties": parameters,
            "required": list(parameters),
            "additionalProperties": False,
        }
        return FunctionTool(name, description, schema, invoke)

    text = {"type": "string", "description": "A name."}
    lookup = tool("lookup", "Look an order up.", {"order": text}, lambda given: f"order {given['order']}: open")
    stock = tool("stock", "What is in stock.", {"item": text, "most": {"type": "integer"}}, lambda given: {"left": 3})
    refund = tool(
        "refund", "Pay back.", {"order": text, "amount": {"type": "integer"}}, lambda given: {"paid": given["amount"]}
    )

    def verdict(name: str) -> Callable[..., GuardrailFunctionOutput]:
        return lambda *_: GuardrailFunctionOutput({"rule": name, "score": 3}, False)

    def allow(name: str) -> Callable[..., ToolGuardrailFunctionOutput]:
        return lambda _data: ToolGuardrailFunctionOutput.allow(output_info={"rule": name})

    refund.tool_input_guardrails = [ToolInputGuardrail(guardrail_function=allow("in"), name="amount_in")]
    refund.tool_output_guardrails = [ToolOutputGuardrail(guardrail_function=allow("out"), name="amount_out")]
    retry = ModelRetrySettings(max_retries=2, backoff={"initial_delay": 0.0}, policy=retry_policies.http_status([503]))
    clerk = Agent(
        name="Clerk",
        instructions="You are a clerk. Say what you know of an order, and nothing else.",
        model=world.model(Busy("later"), [say("Order A7 is open.")]),
        model_settings=ModelSettings(temperature=0.5, top_p=0.25, retry=retry),
    )
    desk = Agent(
        name="Desk",
        instructions="You pay back what was bought by mistake, after you have asked the clerk.",
        tools=[refund, clerk.as_tool("ask_clerk", "Ask the clerk about an order.")],
        output_type=Answer,
        output_guardrails=[OutputGuardrail(guardrail_function=verdict("kind"), name="kind")],
        model_settings=ModelSettings(temperature=0.25, max_tokens=500, tool_choice="auto"),
        model=world.model(
            [
                call("ask_clerk", {"input": "What of A7?"}, "call_4"),
                call("refund", {"order": "A7", "amount": 12}, "call_5"),
            ],
            [say('{"text": "Paid back.", "paid": true}')],
        ),
    )
    billing = Agent(name="Billing", instructions="You bill.", model=world.model([say("billed")]))
    triage = Agent(
        name="Triage",
        instructions="You find out what a customer of the shop wants and hand over to who can do it.",
        tools=[lookup, stock],
        handoffs=[handoff(desk), handoff(billing, tool_description_override="Hand over to billing.")],
        input_guardrails=[InputGuardrail(guardrail_function=verdict("polite"), name="polite", run_in_parallel=False)],
        model_settings=ModelSettings(temperature=0.1, parallel_tool_calls=True, metadata={"team": "shop"}),
        model=world.model(
            [
                call("lookup", {"order": "A7"}, "call_1"),
                call("lookup", {"order": "A8"}, "call_2"),
                call("stock", {"item": "lamp", "most": 9}, "call_3"),
            ],
            [call("transfer_to_desk", {}, "call_h")],
        ),
    )
    given = [
        {"role": "user", "content": "Hello, I bought a lamp."},
        {"role": "assistant", "content": "And how can I help?"},
        {"type": "function_call", "call_id": "call_0", "name": "stock", "arguments": '{"item": "lamp", "most": 1}'},
        {"type": "function_call_output", "call_id": "call_0", "output": "{'left': 4}"},
        {"role": "user", "content": "I want my money back for order A7."},
    ]
    return Shop(triage, desk, clerk, given)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        name: What was changed.
        kind: The kind of the first event that can differ.
        agent: Its agent; None for any.
        path: What its path begins with.
        causes: The classes that name it rightly.
        code: Changes the shop, or
        record: gives a changed list of events.
        nth: Which event of that kind and agent, from 0.
    """

    name: str
    kind: Kind
    agent: str | None
    path: str
    causes: tuple[str, ...]
    code: Callable[[Shop], None] | None = None
    record: Callable[[list[RunEvent]], list[RunEvent]] | None = None
    nth: int = 0


AGENTS = ("triage", "desk", "clerk")


def mutants(events: list[RunEvent]) -> Iterator[Mutant]:
    """All of them, for a record of the unchanged shop."""
    for name in AGENTS:
        yield from _instructions(name)
        yield from _settings(name)
        yield from _models(name)
        yield from _tools(name)
    yield from _handoffs()
    yield from _schema()
    yield from _input()
    yield from _guardrails()
    yield from _results(events)
    yield from _answers(events)
    yield from _missing(events)
    yield from _retries()


def _asked(what: str, agent: str, path: str, code: Callable[[Shop], None], *causes: str) -> Mutant:
    return Mutant(what, Kind.GENERATION, agent.capitalize(), f"$.request.{path}", causes or ("CONFIG",), code)


def _set(agent: str, **fields: Any) -> Callable[[Shop], None]:
    def change(shop: Shop) -> None:
        for name, value in fields.items():
            setattr(getattr(shop, agent), name, value)

    return change


def _edits(text: str, every: int) -> Iterator[tuple[str, str]]:
    for index in range(0, len(text), every):
        yield f"drop {index}", text[:index] + text[index + 1 :]
        yield f"put {index}", f"{text[:index]}~{text[index:]}"
        if text[index].swapcase() != text[index]:
            yield f"case {index}", text[:index] + text[index].swapcase() + text[index + 1 :]


def _instructions(agent: str) -> Iterator[Mutant]:
    text = getattr(build(World(live=False)), agent).instructions
    for what, changed in [*_edits(text, 2), ("none", None), ("empty", " "), ("twice", text * 2)]:
        if changed != text:
            yield _asked(f"{agent} instructions {what}", agent, "instructions", _set(agent, instructions=changed))


_SETTINGS: dict[str, tuple[Any, ...]] = {
    "temperature": (0.0, 0.9, 1, None),
    "top_p": (0.1, 0.99, None),
    "frequency_penalty": (0.1, 1.5),
    "presence_penalty": (0.1, 1.5),
    "tool_choice": ("required", "none", "lookup"),
    "parallel_tool_calls": (False, None, True),
    "truncation": ("auto", "disabled"),
    "max_tokens": (1, 499, None),
    "reasoning": (Reasoning(effort="low"), Reasoning(effort="high")),
    "verbosity": ("low", "high"),
    "metadata": ({"team": "other"}, {"team": "shop", "more": "x"}, None),
    "store": (True, False),
    "prompt_cache_retention": ("24h", "in_memory"),
    "include_usage": (True, False),
    "response_include": (["reasoning.encrypted_content"],),
    "top_logprobs": (1, 5),
    "extra_query": ({"a": 1},),
    "extra_body": ({"a": 1}, {"b": [1, 2]}),
    "extra_args": ({"seed": 1}, {"seed": 2}),
}


def _settings(agent: str) -> Iterator[Mutant]:
    before = getattr(build(World(live=False)), agent).model_settings
    for field, values in _SETTINGS.items():
        for value in values:
            if getattr(before, field) == value:
                continue
            changed = dataclasses.replace(before, **{field: value})
            yield _asked(
                f"{agent} settings {field}={value}", agent, f"settings.{field}", _set(agent, model_settings=changed)
            )


def _models(agent: str) -> Iterator[Mutant]:
    for name in ("scripted-2", "gpt-5", "scripted", "SCRIPTED-1"):
        yield _asked(f"{agent} model {name}", agent, "model", _set(agent, model=name))

    def rename(shop: Shop) -> None:
        getattr(shop, agent).name = "Someone"

    if agent == "desk":
        # What the model is told of a handoff holds the name it had when the handoff was made.
        yield Mutant("desk renamed", Kind.HANDOFF, "Triage", "$.to", ("LOGIC", "CONFIG"), rename)
    else:
        yield Mutant(f"{agent} renamed", Kind.INPUT, agent.capitalize(), "$.agent", ("LOGIC", "CONFIG"), rename)


def _tools(agent: str) -> Iterator[Mutant]:
    shop = build(World(live=False))
    tools = getattr(shop, agent).tools

    def on(index: int, change: Callable[[Any], None]) -> Callable[[Shop], None]:
        return lambda shop: change(getattr(shop, agent).tools[index])

    def all_of(change: Callable[[list[Any]], Any]) -> Callable[[Shop], None]:
        return lambda shop: change(getattr(shop, agent).tools)

    extra = FunctionTool("extra", "One more.", {"type": "object", "properties": {}}, _never)
    for place in range(len(tools) + 1):
        yield _asked(f"{agent} tool added at {place}", agent, "tools", all_of(lambda t, p=place: t.insert(p, extra)))
    if len(tools) > 1:
        yield _asked(f"{agent} tools turned round", agent, "tools", all_of(lambda t: t.reverse()))
    for index, tool in enumerate(tools):
        yield _asked(f"{agent} tool {index} removed", agent, "tools", all_of(lambda t, i=index: t.pop(i)))
        yield _asked(f"{agent} tool {index} twice", agent, "tools", on(index, lambda t: setattr(t, "name", "other")))
        for what, text in [*_edits(tool.description, 1), ("empty", "")]:
            yield _asked(
                f"{agent} tool {index} description {what}",
                agent,
                "tools",
                on(index, lambda t, text=text: setattr(t, "description", text)),
            )
        yield _asked(
            f"{agent} tool {index} not strict",
            agent,
            "tools",
            on(index, lambda t: setattr(t, "strict_json_schema", False)),
        )
        for what, schema in _schemas(tool.params_json_schema):
            yield _asked(
                f"{agent} tool {index} schema {what}",
                agent,
                "tools",
                on(index, lambda t, schema=schema: setattr(t, "params_json_schema", schema)),
            )


async def _never(*_: Any) -> Any:
    raise AssertionError("a tool ran")


def _schemas(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, value in _leaves(schema):
        if path[-1] == "additionalProperties" or path[0] == "title":
            continue
        yield f"{path}", _with(schema, path, f"{value}x" if isinstance(value, str) else "x")
    for name in schema["properties"]:
        gone = copy.deepcopy(schema)
        del gone["properties"][name]
        yield f"without {name}", gone
    more = copy.deepcopy(schema)
    more["properties"]["more"] = {"type": "boolean"}
    yield "one more", more
    loose = copy.deepcopy(schema)
    loose["required"] = []
    yield "nothing required", loose


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return changed


def _handoffs() -> Iterator[Mutant]:
    def at(index: int, change: Callable[[Handoff[Any, Any]], None]) -> Callable[[Shop], None]:
        return lambda shop: change(shop.triage.handoffs[index])

    for index in range(2):
        yield _asked(f"handoff {index} removed", "triage", "handoffs", lambda s, i=index: s.triage.handoffs.pop(i))
        text = build(World(live=False)).triage.handoffs[index].tool_description
        for what, changed in _edits(text, 2):
            yield _asked(
                f"handoff {index} description {what}",
                "triage",
                "handoffs",
                at(index, lambda h, text=changed: setattr(h, "tool_description", text)),
            )
        yield _asked(
            f"handoff {index} renamed", "triage", "handoffs", at(index, lambda h: setattr(h, "tool_name", "give_away"))
        )
        schema = {"type": "object", "properties": {"why": {"type": "string"}}}
        yield _asked(
            f"handoff {index} schema",
            "triage",
            "handoffs",
            at(index, lambda h, schema=schema: setattr(h, "input_json_schema", schema)),
        )
    yield _asked("handoffs turned round", "triage", "handoffs", lambda s: s.triage.handoffs.reverse())
    yield _asked("handoff added", "triage", "handoffs", lambda s: s.triage.handoffs.append(handoff(Agent(name="New"))))
    yield _asked("handoff added to the desk", "desk", "handoffs", lambda s: s.desk.handoffs.append(handoff(s.clerk)))


def _schema() -> Iterator[Mutant]:
    class More(Answer):
        more: str

    class Other(BaseModel):
        text: str
        paid: int

    class Described(BaseModel):
        text: str = Field(description="Something else.")
        paid: bool

    for cls in (More, Other, Described, str, None, list[Answer]):
        yield _asked(
            f"output type {cls}", "desk", "output_schema", lambda s, cls=cls: setattr(s.desk, "output_type", cls)
        )
    yield _asked("output type added", "triage", "output_schema", lambda s: setattr(s.triage, "output_type", Answer))


def _input() -> Iterator[Mutant]:
    given = build(World(live=False)).given
    for index, item in enumerate(given):
        field = next(name for name in ("content", "arguments", "output") if name in item)
        for what, text in _edits(item[field], 2):
            yield Mutant(
                f"input {index} {what}",
                Kind.INPUT,
                "Triage",
                "$.input",
                ("EVIDENCE",) if field == "output" else ("INPUT",),
                lambda s, i=index, field=field, text=text: s.given[i].update({field: text}),
            )
        yield Mutant(
            f"input {index} removed", Kind.INPUT, "Triage", "$.input", ("INPUT",), lambda s, i=index: s.given.pop(i)
        )
        yield Mutant(
            f"input {index} twice",
            Kind.INPUT,
            "Triage",
            "$.input",
            ("INPUT",),
            lambda s, i=index: s.given.insert(i, dict(s.given[i])),
        )
    yield Mutant("input turned round", Kind.INPUT, "Triage", "$.input", ("INPUT",), lambda s: s.given.reverse())


def _guardrails() -> Iterator[Mutant]:
    def verdict(info: Any, tripped: bool) -> Callable[..., GuardrailFunctionOutput]:
        return lambda *_: GuardrailFunctionOutput(info, tripped)

    same = {"polite": {"rule": "polite", "score": 3}, "kind": {"rule": "kind", "score": 3}}
    said: list[Any] = [None, "x", 4, [], {"rule": "x"}, {"rule": "x", "score": 4}, {"score": 3, "x": 1}]
    for agent, name, nth in (("triage", "polite", 0), ("desk", "kind", 2)):

        def change(shop: Shop, agent: str = agent, **fields: Any) -> None:
            given = shop.triage.input_guardrails if agent == "triage" else shop.desk.output_guardrails
            if not fields:
                given.clear()
            for field, value in fields.items():
                setattr(given[0], field, value)

        def guarded(
            what: str, path: str, agent: str = agent, nth: int = nth, change: Any = change, **fields: Any
        ) -> Mutant:
            code = functools.partial(change, **fields)
            return Mutant(what, Kind.GUARDRAIL, agent.capitalize(), path, ("POLICY",), code, nth=nth)

        yield guarded(f"{name} trips", "$.tripped", guardrail_function=verdict(same[name], True))
        for value in said:
            yield guarded(f"{name} says {value}", "$.output_info", guardrail_function=verdict(value, False))
        yield guarded(f"{name} removed", "$")
        yield guarded(f"{name} renamed", "$", name="other")
    for field, name in (("tool_input_guardrails", "in"), ("tool_output_guardrails", "out")):

        def swap(shop: Shop, output: Any, field: str = field) -> None:
            getattr(shop.desk.tools[0], field)[0].guardrail_function = lambda _data: output

        nth = 0 if name == "in" else 1
        outputs = {
            "says more": (ToolGuardrailFunctionOutput.allow(output_info={"rule": name, "x": 1}), "$.output_info"),
            "says nothing": (ToolGuardrailFunctionOutput.allow(), "$.output_info"),
            "rejects": (ToolGuardrailFunctionOutput.reject_content("no", output_info={"rule": name}), "$.behavior"),
            "raises": (ToolGuardrailFunctionOutput.raise_exception(output_info={"rule": name}), "$.behavior"),
        }
        for what, (output, path) in outputs.items():
            yield Mutant(
                f"tool guardrail {name} {what}",
                Kind.GUARDRAIL,
                "Desk",
                path,
                ("POLICY",),
                lambda s, output=output, swap=swap: swap(s, output),
                nth=nth,
            )
        yield Mutant(
            f"tool guardrail {name} removed",
            Kind.GUARDRAIL,
            "Desk",
            "$",
            ("POLICY",),
            lambda s, field=field: getattr(s.desk.tools[0], field).clear(),
            nth=nth,
        )


def _on(seq: int, change: Callable[[RunEvent], RunEvent | None]) -> Callable[[list[RunEvent]], list[RunEvent]]:
    def apply(events: list[RunEvent]) -> list[RunEvent]:
        changed = [change(event) if event.seq == seq else event for event in events]
        return [event for event in changed if event is not None]

    return apply


def _payload(seq: int, path: tuple[Any, ...], new: Any) -> Callable[[list[RunEvent]], list[RunEvent]]:
    return _on(seq, lambda event: dataclasses.replace(event, payload=_with(event.payload, path, new)))


def _results(events: list[RunEvent]) -> Iterator[Mutant]:
    """A tool gave something else: the next request is the first that is different."""
    for event in events:
        if event.kind is not Kind.TOOL_RESULT or event.frame != "run:0" or event.payload["tool"] == "ask_clerk":
            continue
        following = next(e for e in events if e.kind is Kind.GENERATION and e.frame == "run:0" and e.seq > event.seq)
        nth = [e.seq for e in events if e.kind is Kind.GENERATION and e.agent == following.agent].index(following.seq)
        values: list[Any] = [None, "", "x", 1, [], {}, {"x": 1}, "order A7: opeN", {"left": 3.5}, {"paid": 13}]
        for value in values:
            if value == event.payload["result"]:
                continue
            yield Mutant(
                f"result {event.seq} is {value!r}",
                Kind.GENERATION,
                following.agent,
                "$.request.input",
                ("TOOL",),
                record=_payload(event.seq, ("result",), value),
                nth=nth,
            )
    one, other = (e for e in events if e.kind is Kind.TOOL_RESULT and e.payload["tool"] == "lookup")

    def swapped(given: list[RunEvent]) -> list[RunEvent]:
        results = {one.seq: other.payload, other.seq: one.payload}
        return [dataclasses.replace(e, payload=results.get(e.seq, e.payload)) for e in given]

    yield Mutant("results swapped", Kind.GENERATION, "Triage", "$.request.input", ("TOOL",), record=swapped, nth=1)


def _answers(events: list[RunEvent]) -> Iterator[Mutant]:
    """The recorded answers differ from what the record says came after them: the code took another way."""
    for event in events:
        if event.kind is not Kind.GENERATION or "response" not in event.payload:
            continue
        for index, item in enumerate(event.payload["response"]["output"]):
            path = ("response", "output", index)
            if item["type"] != "function_call":
                continue
            if item["name"].startswith("transfer"):
                continue
            tool_call = next(e for e in events if e.kind is Kind.TOOL_CALL and e.call_id == item["call_id"])
            nth = [e.seq for e in events if e.kind is Kind.TOOL_CALL and e.agent == tool_call.agent].index(
                tool_call.seq
            )
            if item["name"] == "ask_clerk":
                continue
            parsed = json.loads(item["arguments"])
            for name in parsed:
                for value in ("Z9", 77, None, ["x"], {"y": 1}, True, 0.5):
                    changed = json.dumps({**parsed, name: value})
                    yield Mutant(
                        f"answer {event.seq} argument {name}={value}",
                        Kind.TOOL_CALL,
                        tool_call.agent,
                        "$.arguments",
                        ("LOGIC",),
                        record=_payload(event.seq, (*path, "arguments"), changed),
                        nth=nth,
                    )
    outcome = next(e for e in events if e.kind is Kind.OUTPUT and e.frame == "run:0")
    for path, value in _leaves(outcome.payload):
        yield Mutant(
            f"output {path}",
            Kind.OUTPUT,
            "Desk",
            "$.final_output" if path[0] == "final_output" else "$.last_agent",
            ("LOGIC",),
            record=_payload(outcome.seq, path, not value if isinstance(value, bool) else f"{value}x"),
        )


_GONE: dict[Kind, str] = {
    Kind.TOOL_CALL: "LOGIC",
    Kind.HANDOFF: "LOGIC",
    Kind.GUARDRAIL: "POLICY",
}


def _missing(events: list[RunEvent]) -> Iterator[Mutant]:
    """The code does one thing more than the record has."""
    for event in events:
        cause = _GONE.get(event.kind)
        if cause is None:
            continue
        yield Mutant(
            f"{event.kind} {event.seq} was not recorded",
            event.kind,
            None,
            "$",
            (cause,),
            record=_on(event.seq, lambda _event: None),
            nth=-1,
        )
    for event in events:
        if event.kind in _GONE or event.kind in (Kind.MCP_TOOLS, Kind.APPROVAL):
            twice = dataclasses.replace(event, seq=event.seq + 10_000, ordinal=event.ordinal + 100, call_id="call_x")
            cause = _GONE.get(event.kind, "POLICY")
            yield Mutant(
                f"{event.kind} {event.seq} was recorded twice",
                event.kind,
                None,
                "$",
                (cause,),
                record=lambda given, twice=twice: [*given, twice],
                nth=-1,
            )


def _retries() -> Iterator[Mutant]:
    """The attempts of the clerk's request."""

    def generations(events: list[RunEvent]) -> list[RunEvent]:
        return [e for e in events if e.kind is Kind.GENERATION and e.agent == "Clerk"]

    def only_failed(events: list[RunEvent]) -> list[RunEvent]:
        gone = generations(events)[1]
        return [e for e in events if e is not gone]

    def failed_otherwise(events: list[RunEvent]) -> list[RunEvent]:
        first = generations(events)[0]
        return _payload(first.seq, ("request", "settings", "temperature"), 0.75)(events)

    def one_more(events: list[RunEvent]) -> list[RunEvent]:
        last = generations(events)[1]
        return [*events, dataclasses.replace(last, seq=last.seq + 10_000, ordinal=9)]

    yield Mutant("the last attempt is gone", Kind.OUTPUT, "Clerk", "$", ("LOGIC",), record=only_failed, nth=-1)
    yield Mutant(
        "the first attempt asked something else",
        Kind.GENERATION,
        "Clerk",
        "$.request.settings.temperature",
        ("CONFIG",),
        record=failed_otherwise,
    )
    yield Mutant("one answer too many", Kind.GENERATION, "Clerk", "$", ("LOGIC",), record=one_more, nth=-1)
