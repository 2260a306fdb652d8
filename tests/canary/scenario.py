"""A support desk whose runs carry a canary through every channel.

`Desk` builds the application for one cell of the matrix and runs it: one long run with tools, MCP,
an agent as a tool, hosted tools, a handoff, approvals and a resume, then short runs that fail in
each way a run can fail. Every part of the application notes what it is given, so that a channel can
be seen to be alive without any recorder.
"""

# No `from __future__ import annotations` here: the SDK evaluates the tools' annotations.

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from agents import (
    Agent,
    ApplyPatchTool,
    CustomTool,
    FileSearchTool,
    GuardrailFunctionOutput,
    HostedMCPTool,
    InputGuardrail,
    ModelRetrySettings,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    OutputGuardrail,
    RunConfig,
    RunContextWrapper,
    Runner,
    ShellTool,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    ToolOutputImage,
    TracingProcessor,
    WebSearchTool,
    custom_span,
    function_tool,
    handoff,
    retry_policies,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.editor import ApplyPatchResult
from mcp.server import MCPServer as McpImplementation
from mcp.server.mcpserver.exceptions import ToolError
from openai import AsyncOpenAI
from pydantic import BaseModel, Field, create_model

import sealtrace
from canary.channels import CHAT, OWN, Canaries, Place
from canary.scan import found
from loopback import items
from loopback.items import Failure, Step, reply
from loopback.mcp import InProcessMcp
from loopback.model import OwnModel
from loopback.server import LoopbackServer

RUN, SYNC, STREAMED = "run", "run_sync", "run_streamed"
MODES = (RUN, SYNC, STREAMED)


@dataclass
class Witness:
    """Notes what is seen where."""

    canaries: Canaries
    notes: dict[Place, list[bytes]] = field(default_factory=lambda: {place: [] for place in Place})

    def see(self, place: Place, *values: Any) -> None:
        """Note these values."""
        self.notes[place] += [value if isinstance(value, bytes) else _text(value).encode() for value in values]

    def sightings(self) -> dict[Place, set[str]]:
        """The channels seen, by place."""
        strings = set(self.canaries.of.values())
        return {place: self.canaries.names(found(strings, b"\n".join(notes))) for place, notes in self.notes.items()}


def _text(value: Any) -> str:
    if isinstance(value, BaseException):
        return "\n".join(_text(part) for part in (repr(value), str(value), *value.args, value.__cause__) if part)
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    try:
        return json.dumps(value)
    except TypeError:
        return repr(value)


class SpyProcessor(TracingProcessor):
    """A trace processor that looks at everything the SDK gives it."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def on_trace_start(self, trace: Any) -> None:
        self._witness.see(Place.TRACING, trace.export(), trace.tracing_api_key)

    def on_trace_end(self, trace: Any) -> None:
        pass

    def on_span_start(self, span: Any) -> None:
        pass

    def on_span_end(self, span: Any) -> None:
        self._witness.see(Place.TRACING, span.export(), span.error)

    def shutdown(self) -> None:
        pass

    def force_flush(self) -> None:
        pass


@dataclass
class Context:
    """The application's run context."""

    secret: str


class Escalation(BaseModel):
    """What the model must say to hand off."""

    reason: str


class DeskError(Exception):
    """An error of the application's own."""


class Editor:
    """Applies a patch to nothing."""

    def __init__(self, see: Callable[[Any], None], output: str) -> None:
        self._see = see
        self._output = output

    def create_file(self, operation: Any) -> ApplyPatchResult:
        """Note the diff."""
        self._see(operation.diff)
        return ApplyPatchResult(status="completed", output=self._output)

    update_file = delete_file = create_file


@dataclass
class Outcome:
    """What the caller of one run got."""

    final: Any = None
    error: BaseException | None = None
    items: list[Any] = field(default_factory=list)


class Desk:
    """The application of one cell.

    Args:
        model: `responses`, `chat` or `own`.
        mode: How runs are started.
        canaries: What to plant.
        server: The model vendor.
        sensitive: The SDK's `trace_include_sensitive_data`.
    """

    def __init__(
        self, model: str, mode: str, canaries: Canaries, server: LoopbackServer, *, sensitive: bool = True
    ) -> None:
        self.kind = model
        self.mode = mode
        self.c = canaries
        self.witness = Witness(canaries)
        self._server = server
        self._sensitive = sensitive
        self._client: AsyncOpenAI | None = None
        self._own = OwnModel()
        self._loop = asyncio.new_event_loop()
        self.model = self._model()

    # running

    def run_all(self) -> dict[str, Outcome]:
        """All runs of the scenario; outcomes by name."""
        asyncio.set_event_loop(self._loop)
        unknown = self.c.unknown_tool_name
        try:
            return {
                "main": self._main(),
                "fatal tool": self._short("fatal", self._triage(), self.script_of_call("explode", {})),
                "model error": self._short("broken", self._plain(), [Failure(self.c.model_error, 400)]),
                "unknown tool": self._short("unknown", self._plain(), self.script_of_call(unknown, {})),
                "tripwire": self._short("tripped", self._guarded(trips=True), [reply(items.message("never"))]),
                "guardrail error": self._short("failed", self._guarded(trips=False), [reply(items.message("never"))]),
            }
        finally:
            self._close()

    def _close(self) -> None:
        if self._client is not None:
            self._loop.run_until_complete(self._client.close())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        self._loop.close()

    def _play(self, steps: list[Step]) -> None:
        if self.kind == OWN:
            self._own.play(steps)
        else:
            self._server.play(steps)

    @property
    def unplayed(self) -> int:
        """Steps that no model request asked for."""
        return self._own.unplayed if self.kind == OWN else self._server.unplayed

    def _run(self, agent: Agent[Any], given: Any, **options: Any) -> Any:
        if self.mode == SYNC:
            return Runner.run_sync(agent, given, **options)
        if self.mode == RUN:
            return self._loop.run_until_complete(Runner.run(agent, given, **options))
        return self._loop.run_until_complete(self._streamed(agent, given, options))

    async def _streamed(self, agent: Agent[Any], given: Any, options: dict[str, Any]) -> Any:
        result = Runner.run_streamed(agent, given, **options)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                self.witness.see(Place.ANSWERED, event.data)
        return result

    def _short(self, workflow: str, agent: Agent[Any], steps: list[Step]) -> Outcome:
        self._play(steps)
        outcome = Outcome()
        try:
            result = self._run(agent, "A short question.", **self._options(workflow))
            outcome.final = result.final_output
        except Exception as error:
            outcome.error = error
            self.witness.see(Place.OUTCOME, error, getattr(error, "guardrail_result", None))
        self._note_model()
        return outcome

    def _main(self) -> Outcome:
        session = SQLiteSession("desk", ":memory:")
        self._loop.run_until_complete(session.add_items([{"role": "user", "content": self.c.session_item}]))
        options = {**self._options("main"), "session": session, "context": Context(self.c.context_object)}
        self._play(self._main_script())
        triage = self._triage()
        result = self._run(triage, self._input(), **options)
        self._note_result(result)
        self.witness.see(Place.OUTCOME, [item.arguments for item in result.interruptions])
        state = result.to_state()
        first, second = result.interruptions
        state.approve(first)
        state.reject(second, rejection_message=self.c.rejection_message)
        result = self._run(triage, state, session=session, run_config=options["run_config"])
        self._note_result(result)
        self._note_model()
        session.close()
        return Outcome(result.final_output, items=result.to_input_list())

    def _note_result(self, result: Any) -> None:
        see = self.witness.see
        see(Place.OUTCOME, result.final_output)
        for name in (
            "input_guardrail_results",
            "output_guardrail_results",
            "tool_input_guardrail_results",
            "tool_output_guardrail_results",
        ):
            see(Place.OUTCOME, [repr(item.output) for item in getattr(result, name)])

    def _note_model(self) -> None:
        see = self.witness.see
        if self.kind == OWN:
            see(Place.ASKED, *(_request_text(request) for request in self._own.asked))
            see(Place.ANSWERED, *self._own.answered)
        else:
            see(Place.ASKED, *(request.everything for request in self._server.model_requests))
            see(Place.ANSWERED, *self._server.sent)

    # the application

    def _model(self) -> Any:
        if self.kind == OWN:
            return self._own
        self._client = AsyncOpenAI(api_key="sk-loopback", base_url=f"{self._server.url}/v1", max_retries=0)
        if self.kind == CHAT:
            return OpenAIChatCompletionsModel("gpt-loopback", self._client)
        return OpenAIResponsesModel("gpt-loopback", self._client)

    def _options(self, workflow: str) -> dict[str, Any]:
        return {
            "run_config": RunConfig(
                workflow_name=f"Desk {workflow}",
                group_id=self.c.group_id,
                trace_metadata={"note": self.c.trace_metadata, "tier": "gold"},
                tracing={"api_key": self.c.tracing_api_key},
                trace_include_sensitive_data=self._sensitive,
                session_input_callback=lambda history, new: history + new,
            )
        }

    def _settings(self, *, retries: bool) -> ModelSettings:
        retry = ModelRetrySettings(
            max_retries=1, backoff={"initial_delay": 0.0, "jitter": False}, policy=retry_policies.http_status([503])
        )
        return ModelSettings(
            temperature=0.2,
            metadata={"ticket": self.c.settings_metadata},
            extra_args={"user": self.c.extra_args},
            extra_body={"annotation": self.c.extra_body},
            extra_query={"region": self.c.extra_query},
            extra_headers={"x-internal-token": self.c.extra_headers},
            retry=retry if retries else None,
        )

    def _input(self) -> list[Any]:
        image = base64.b64encode(self.c.input_image.encode()).decode()
        file = base64.b64encode(self.c.input_file.encode()).decode()
        content = [
            {"type": "input_text", "text": f"Where is my order? {self.c.user_input}"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{image}", "detail": "low"},
            {"type": "input_file", "filename": "order.txt", "file_data": f"data:text/plain;base64,{file}"},
        ]
        return [{"role": "user", "content": content}]

    def _triage(self) -> Agent[Any]:
        guardrail = InputGuardrail(self._verdict(self.c.input_guardrail_info), name="polite", run_in_parallel=False)
        return Agent(
            "Triage",
            instructions=f"Sort the questions. {self.c.instructions}",
            model=self.model,
            model_settings=self._settings(retries=True),
            tools=[*self._tools(), self._helper_tool(), *self._native_tools(), *self._hosted_tools()],
            mcp_servers=[self._mcp()],
            handoffs=[self._handoff()],
            input_guardrails=[guardrail],
        )

    def _plain(self) -> Agent[Any]:
        return Agent("Plain", instructions="Answer.", model=self.model)

    def _guarded(self, *, trips: bool) -> Agent[Any]:
        check = (
            self._verdict(self.c.tripped_guardrail_info, trips=True) if trips else self._raise(self.c.guardrail_error)
        )
        guardrail = InputGuardrail(check, name="strict", run_in_parallel=False)
        return Agent("Guarded", instructions="Answer.", model=self.model, input_guardrails=[guardrail])

    @staticmethod
    def _verdict(info: str, *, trips: bool = False) -> Callable[..., Any]:
        def check(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            return GuardrailFunctionOutput(output_info={"why": info}, tripwire_triggered=trips)

        return check

    @staticmethod
    def _raise(message: str) -> Callable[..., Any]:
        def check(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            raise DeskError(message)

        return check

    def _tools(self) -> list[Any]:
        c, see = self.c, self.witness.see

        @tool_input_guardrail(name="sane_arguments")
        def before(data: Any) -> ToolGuardrailFunctionOutput:
            return ToolGuardrailFunctionOutput.allow({"seen": c.tool_input_guardrail_info})

        @tool_output_guardrail(name="sane_result")
        def after(data: Any) -> ToolGuardrailFunctionOutput:
            return ToolGuardrailFunctionOutput.allow({"seen": c.tool_output_guardrail_info})

        @function_tool(
            description_override=f"Finds an order. {c.tool_description}",
            tool_input_guardrails=[before],
            tool_output_guardrails=[after],
        )
        async def lookup(
            context: RunContextWrapper[Any],
            order: Annotated[str, Field(description=f"Its number. {c.tool_parameter_description}")],
        ) -> dict[str, Any]:
            see(Place.APPLICATION, order, context.context.secret)
            with custom_span("lookup stage", {"row": c.custom_span_data}) as span:
                span.set_error({"message": c.span_error_message, "data": {"row": c.span_error_data}})
            see(Place.APPLICATION, c.retrieval_query, c.retrieval_text)
            sealtrace.retrieval(c.retrieval_query, [sealtrace.Document("doc_1", text=c.retrieval_text)])
            return {"state": "shipped", "note": c.tool_result}

        def formatted(context: Any, error: Exception) -> str:
            return f"That failed: {error}"

        @function_tool(failure_error_function=formatted)
        def flaky() -> str:
            """Fail, and say why."""
            raise DeskError(c.tool_error_formatted)

        @function_tool(failure_error_function=None)
        def explode() -> str:
            """Fail for good."""
            raise DeskError(c.tool_error_raised)

        @function_tool
        def picture() -> ToolOutputImage:
            """Draw."""
            data = base64.b64encode(c.tool_image.encode()).decode()
            see(Place.APPLICATION, data)
            return ToolOutputImage(image_url=f"data:image/png;base64,{data}")

        @tool_input_guardrail(name="never")
        def refuse(data: Any) -> ToolGuardrailFunctionOutput:
            return ToolGuardrailFunctionOutput.reject_content(f"Not allowed. {c.tool_rejection}")

        @function_tool(tool_input_guardrails=[refuse])
        def forbidden() -> str:
            """Must never be called."""
            raise AssertionError

        return [lookup, flaky, explode, picture, forbidden]

    def _native_tools(self) -> list[Any]:
        c, see = self.c, self.witness.see

        def shell(request: Any) -> str:
            see(Place.APPLICATION, request.data.action.commands)
            return c.shell_output

        async def custom(context: Any, given: str) -> str:
            see(Place.APPLICATION, given)
            return c.custom_tool_output

        if self.kind == CHAT:
            return []
        editor = Editor(lambda diff: see(Place.APPLICATION, diff), c.patch_output)
        return [ShellTool(shell), ApplyPatchTool(editor), CustomTool("grep", "Searches.", custom)]

    def _helper_tool(self) -> Any:
        helper = Agent("Helper", instructions="Help.", model=self.model)
        return helper.as_tool("ask_helper", f"Asks a helper. {self.c.agent_tool_description}")

    def _hosted_tools(self) -> list[Any]:
        if self.kind == CHAT:
            return []
        config = {
            "type": "mcp",
            "server_label": "crm",
            "server_url": "https://crm.example/mcp",
            "require_approval": "never",
            "authorization": self.c.hosted_mcp_authorization,
            "headers": {"x-crm-token": self.c.hosted_mcp_headers},
        }
        return [
            FileSearchTool(["vs_1"], include_search_results=True),
            WebSearchTool(),
            HostedMCPTool(tool_config=config),
        ]

    def _mcp(self) -> InProcessMcp:
        implementation = McpImplementation("notebook")
        c, see = self.c, self.witness.see

        @implementation.tool(description=f"Keeps a note. {c.mcp_tool_description}")
        def remember(note: str) -> str:
            see(Place.APPLICATION, note)
            return f"kept: {c.mcp_result}"

        @implementation.tool(description="Loses a note.")
        def forget() -> str:
            raise ToolError(c.mcp_error)

        return InProcessMcp(implementation)

    def _handoff(self) -> Any:
        async def escalated(context: Any, data: Escalation) -> None:
            self.witness.see(Place.APPLICATION, data)

        return handoff(
            self._specialist(),
            on_handoff=escalated,
            input_type=Escalation,
            tool_description_override=f"Hands over. {self.c.handoff_description}",
        )

    def _specialist(self) -> Agent[Any]:
        @function_tool(needs_approval=True)
        def refund(note: str) -> str:
            """Pay back."""
            return "paid"

        answer = create_model("Answer", text=(str, Field(description=f"The answer. {self.c.output_schema}")))
        prompt = {"id": "pmpt_1", "version": "3", "variables": {"who": self.c.prompt_variable}}
        guardrail = OutputGuardrail(self._verdict(self.c.output_guardrail_info), name="kind")
        return Agent(
            "Specialist",
            instructions="Settle it.",
            prompt=None if self.kind == CHAT else prompt,
            model=self.model,
            model_settings=self._settings(retries=False),
            tools=[refund],
            output_type=answer,
            output_guardrails=[guardrail],
        )

    # what the model says

    def _main_script(self) -> list[Step]:
        c = self.c
        hosted = [
            items.file_search(c.file_search_query, c.file_search_result),
            items.web_search(c.web_search_query),
            items.shell(c.shell_command, "call_shell"),
            items.patch(f"+{c.patch_diff}\n", "call_patch"),
            items.custom("grep", c.custom_tool_input, "call_grep"),
            items.hosted_mcp("find", {"q": c.hosted_mcp_argument}, c.hosted_mcp_result),
        ]
        calls = [
            items.call("lookup", {"order": c.tool_argument}, "call_lookup"),
            items.call("flaky", {}, "call_flaky"),
            items.call("picture", {}, "call_picture"),
            items.call("ask_helper", {"input": c.agent_tool_input}, "call_helper"),
            items.call("forbidden", {}, "call_forbidden"),
            items.call("remember", {"note": c.mcp_argument}, "call_remember"),
            items.call("forget", {}, "call_forget"),
        ]
        return [
            Failure(c.retry_error, 503),
            reply(
                items.reasoning(c.reasoning_summary, c.reasoning_encrypted),
                *hosted,
                items.message(f"One moment.\n{c.assistant_text}"),
                *calls,
                deltas=(c.stream_delta,),
            ),
            reply(items.message(c.agent_tool_output)),
            reply(items.call("transfer_to_specialist", {"reason": c.handoff_argument}, "call_handoff")),
            reply(
                items.call("refund", {"note": c.approval_argument}, "call_refund_1"),
                items.call("refund", {"note": "and again"}, "call_refund_2"),
            ),
            reply(items.message(json.dumps({"text": c.final_output}))),
        ]

    @staticmethod
    def script_of_call(name: str, arguments: dict[str, Any]) -> list[Step]:
        """One call of a tool, then an answer."""
        return [reply(items.call(name, arguments, "call_short")), reply(items.message("done"))]


def _request_text(request: dict[str, Any]) -> str:
    schema = request.get("output_schema")
    parts = [repr(request)]
    if schema is not None and not schema.is_plain_text():
        parts.append(json.dumps(schema.json_schema()))
    return "\n".join(parts)


__all__ = ["MODES", "RUN", "STREAMED", "SYNC", "Desk", "Outcome", "SpyProcessor", "Witness"]
