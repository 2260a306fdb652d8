"""The only module that touches the Agents SDK's private names.

A seam is a place where the SDK's own code calls something we have to see or, in a rerun, to answer.
`install` puts a thin wrapper at each seam; the wrapper asks, for this very context, whether a
`Takeover` (a rerun) answers, an `Observer` (the recorder) watches, or nobody is interested. Seams
that the installed SDK does not have are reported, never guessed.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import os
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, Final, Protocol

from agents import Model
from agents.guardrail import InputGuardrail, OutputGuardrail
from agents.handoffs import Handoff
from agents.mcp.util import MCPUtil
from agents.models import get_default_model
from agents.run import AgentRunner
from agents.run_state import RunState
from agents.tool_guardrails import ToolInputGuardrail, ToolOutputGuardrail
from agents.tracing.provider import DefaultTraceProvider

from .._guard import safely
from ..lifetime import adopt, fresh_lock
from .calls import GuardrailCall, HandoffCall, ModelCall, NativeCall, RunCall, ToolCall
from .vendors import provider_of

__all__ = [
    "SEAMS",
    "TAKEOVER",
    "Observer",
    "Takeover",
    "found_seams",
    "handoff_target",
    "install",
    "mark_agent_tool",
    "mark_executed",
    "observe",
    "tool_outcome",
    "uninstall",
]


class Observer(Protocol):
    """Watches live runs. Each `*_started` returns a token that its `*_ended` gets back.

    Every method is called through the guard, so it may raise; it must not block.
    """

    def run_started(self, call: RunCall) -> Any: ...
    def run_entered(self, token: Any) -> None: ...
    def run_left(self, token: Any) -> None: ...
    def run_ended(self, token: Any, result: Any, error: BaseException | None) -> None: ...
    def model_started(self, call: ModelCall) -> Any: ...
    def model_first_chunk(self, token: Any) -> None: ...
    def model_ended(self, token: Any, response: Any, error: BaseException | None, chunks: int | None) -> None: ...
    def tool_started(self, call: ToolCall) -> Any: ...
    def tool_ended(self, token: Any, output: Any, error: BaseException | None) -> None: ...
    def tool_failed(self, error: BaseException) -> None: ...
    def native_started(self, call: NativeCall) -> Any: ...
    def native_ended(self, token: Any, item: Any, error: BaseException | None) -> None: ...
    def guardrail_started(self, call: GuardrailCall) -> Any: ...
    def guardrail_ended(self, token: Any, output: Any, error: BaseException | None) -> None: ...
    def handoff_started(self, call: HandoffCall) -> Any: ...
    def handoff_ended(self, token: Any, target: Any, error: BaseException | None) -> None: ...
    def mcp_started(self, server: str) -> Any: ...
    def mcp_ended(self, token: Any, tools: Any, error: BaseException | None) -> None: ...
    def computer_resolved(self, computer: Any) -> None: ...
    def approval_decided(self, state: Any, item: Any, approved: bool, reason: str | None) -> None: ...  # noqa: FBT001


class Takeover(Protocol):
    """Answers in place of the outside world; a rerun is one. What it raises reaches the run."""

    def model(self, agent: Any, name: str, proceed: Callable[[], Model]) -> Model: ...
    async def tool(self, call: ToolCall, proceed: Callable[[], Any]) -> Any: ...
    async def native(self, call: NativeCall, proceed: Callable[[], Any]) -> Any: ...
    async def guardrail(self, call: GuardrailCall, proceed: Callable[[], Any]) -> Any: ...
    async def handoff(self, call: HandoffCall, proceed: Callable[[], Any]) -> Any: ...
    async def mcp_tools(self, server: str, proceed: Callable[[], Any]) -> Any: ...
    async def computer(self, tool: Any, proceed: Callable[[], Any]) -> Any: ...
    async def run(self, call: RunCall, proceed: Callable[[RunCall], Any]) -> Any: ...
    def run_streamed(self, call: RunCall, proceed: Callable[[RunCall], Any]) -> Any: ...
    def approval_decided(self, state: Any, item: Any, approved: bool, reason: str | None) -> None: ...  # noqa: FBT001
    def hosted_approval(self, request_id: str) -> dict[str, Any] | None: ...
    def traces(self) -> bool: ...


TAKEOVER: Final[ContextVar[Takeover | None]] = ContextVar("sealtrace_takeover", default=None)

_observer: Observer | None = None


def observe(observer: Observer | None) -> None:
    """Set who watches live runs in this process; None for nobody."""
    global _observer  # noqa: PLW0603 - there is one SDK in a process and one observer of it
    _observer = observer


async def _watched(
    start: Callable[[], Any],
    end: Callable[[Any, Any, BaseException | None], None],
    proceed: Callable[[], Any],
) -> Any:
    token = safely(start)
    try:
        result = await proceed()
    except BaseException as error:
        safely(end, token, None, error)
        raise
    safely(end, token, result, None)
    return result


# the model


class _SeamModel(Model):
    """Stands in for the model the SDK resolved and lets the observer see each call."""

    def __init__(self, inner: Model, name: str, wanted: str) -> None:
        self._inner = inner
        self._name = name
        self._wanted = wanted
        self._provider = safely(provider_of, inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, stream: bool) -> ModelCall:
        return ModelCall.of(self._name, args, kwargs, stream=stream, wanted=self._wanted, provider=self._provider)

    def get_retry_advice(self, request: Any) -> Any:
        return self._inner.get_retry_advice(request)

    async def close(self) -> None:
        await self._inner.close()

    async def _cleanup_on_run_end(self, owner: Any) -> None:
        cleanup = getattr(self._inner, "_cleanup_on_run_end", None)
        if cleanup is not None:
            await cleanup(owner)

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        observer = _observer
        if observer is None:
            return await self._inner.get_response(*args, **kwargs)
        return await _watched(
            lambda: observer.model_started(self._call(args, kwargs, stream=False)),
            lambda token, response, error: observer.model_ended(token, response, error, None),
            lambda: self._inner.get_response(*args, **kwargs),
        )

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        observer = _observer
        stream: Any = self._inner.stream_response(*args, **kwargs)
        if observer is None:
            async for event in stream:
                yield event
            return
        token = safely(lambda: observer.model_started(self._call(args, kwargs, stream=True)))
        watch = _StreamWatch(observer, token)
        try:
            if hasattr(stream, "aclose"):
                async with aclosing(stream):
                    async for event in stream:
                        watch.saw(event)
                        yield event
            else:
                async for event in stream:
                    watch.saw(event)
                    yield event
        except BaseException as error:
            watch.ended(error)
            raise
        watch.ended(None)


class _StreamWatch:
    def __init__(self, observer: Observer, token: Any) -> None:
        self._observer = observer
        self._token = token
        self._chunks = 0
        self._done = False

    def saw(self, event: Any) -> None:
        """Count a chunk; the terminal one ends the call before the consumer can stop reading."""
        if self._chunks == 0:
            safely(self._observer.model_first_chunk, self._token)
        self._chunks += 1
        if getattr(event, "type", None) == "response.completed":
            self._done = True
            safely(self._observer.model_ended, self._token, event.response, None, self._chunks)

    def ended(self, error: BaseException | None) -> None:
        if not self._done:
            self._done = True
            reason = error or RuntimeError("the stream ended without a completed response")
            safely(self._observer.model_ended, self._token, None, reason, self._chunks)


_models: weakref.WeakValueDictionary[tuple[int, str], _SeamModel] = weakref.WeakValueDictionary()


def model_name(agent: Any, run_config: Any) -> str:
    """The name of the model this run would use, found without building a client for it."""
    wanted = run_config.model if run_config.model is not None else agent.model
    if isinstance(wanted, Model):
        name = getattr(wanted, "model", None)
        return str(name) if isinstance(name, str) else type(wanted).__name__
    return wanted if isinstance(wanted, str) else get_default_model()


def _wrap_get_model(original: Any) -> Any:
    @functools.wraps(original)
    def get_model(agent: Any, run_config: Any) -> Any:
        takeover = TAKEOVER.get()
        if takeover is not None:
            return takeover.model(agent, model_name(agent, run_config), lambda: original(agent, run_config))
        model = original(agent, run_config)
        if _observer is None:
            return model
        return safely(_seam_model, model, agent, run_config) or model

    return get_model


def _wrap_model_check(original: Any) -> Any:
    @functools.wraps(original)
    def get_model(agent: Any, run_config: Any) -> Any:
        # Only asked for its class; making one would ask for credentials.
        takeover = TAKEOVER.get()
        if takeover is not None:
            return takeover.model(agent, model_name(agent, run_config), lambda: original(agent, run_config))
        return original(agent, run_config)

    return get_model


def _seam_model(model: Model, agent: Any, run_config: Any) -> Model:
    # The SDK keeps models by identity, so the same model must get the same wrapper while in use.
    wanted = model_name(agent, run_config)
    known = _models.get((id(model), wanted))
    if known is not None and known._inner is model:  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return known
    name = getattr(model, "model", None)
    wrapper = _SeamModel(model, name if isinstance(name, str) else wanted, wanted)
    _models[id(model), wanted] = wrapper
    return wrapper


# tools


def _wrap_invoke(original: Any) -> Any:
    @functools.wraps(original)
    async def invoke(*, function_tool: Any, context: Any, arguments: str) -> Any:
        def proceed() -> Any:
            return original(function_tool=function_tool, context=context, arguments=arguments)

        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return await takeover.tool(_tool_call(function_tool, context, arguments), proceed)
        if observer is None:
            return await proceed()
        return await _watched(
            lambda: observer.tool_started(_tool_call(function_tool, context, arguments)), observer.tool_ended, proceed
        )

    return invoke


def _wrap_failure(original: Any) -> Any:
    @functools.wraps(original)
    async def handle(*, function_tool: Any, context: Any, error: BaseException) -> Any:
        # The SDK turns the exception into text for the model here; its type is seen nowhere else.
        observer = _observer
        if observer is not None and TAKEOVER.get() is None:
            safely(observer.tool_failed, error)
        return await original(function_tool=function_tool, context=context, error=error)

    return handle


def _tool_call(tool: Any, context: Any, arguments: str) -> ToolCall:
    binding = getattr(tool, "_mcp_tool_binding", None)
    return ToolCall(
        tool=tool,
        name=tool.name,
        call_id=str(getattr(context, "tool_call_id", "") or ""),
        arguments=arguments,
        mcp_server=binding[0] if isinstance(binding, tuple) else None,
        is_agent=bool(getattr(tool, "_is_agent_tool", False)),
        context=context,
    )


def _wrap_action(owner: Any, original: Any) -> Any:
    inner = original.__func__

    @functools.wraps(inner)
    async def execute(cls: Any, **kwargs: Any) -> Any:
        def proceed() -> Any:
            return inner(cls, **kwargs)

        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return await takeover.native(NativeCall.of(owner.__name__, kwargs), proceed)
        if observer is None:
            return await proceed()
        return await _watched(
            lambda: observer.native_started(NativeCall.of(owner.__name__, kwargs)), observer.native_ended, proceed
        )

    wrapper: Any = execute
    return classmethod(wrapper)


def _wrap_resolve_computer(original: Any) -> Any:
    @functools.wraps(original)
    async def resolve_computer(*, tool: Any, run_context: Any) -> Any:
        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return await takeover.computer(tool, lambda: original(tool=tool, run_context=run_context))
        computer = await original(tool=tool, run_context=run_context)
        if observer is not None:
            safely(observer.computer_resolved, computer)
        return computer

    return resolve_computer


def _wrap_list_tools(original: Any) -> Any:
    inner = original.__func__

    @functools.wraps(inner)
    async def list_tools(cls: Any, server: Any, run_context: Any, agent: Any) -> Any:
        def proceed() -> Any:
            return inner(cls, server, run_context, agent)

        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return await takeover.mcp_tools(server.name, proceed)
        if observer is None:
            return await proceed()
        return await _watched(lambda: observer.mcp_started(server.name), observer.mcp_ended, proceed)

    wrapper: Any = list_tools
    return classmethod(wrapper)


def _wrap_hosted_approvals(original: Any) -> Any:
    @functools.wraps(original)
    async def execute(*, agent: Any, approval_requests: Any, context_wrapper: Any) -> Any:
        takeover = TAKEOVER.get()
        if takeover is not None:
            approval_requests = [_answered_approval(takeover, request) for request in approval_requests]
        return await original(agent=agent, approval_requests=approval_requests, context_wrapper=context_wrapper)

    return execute


def _answered_approval(takeover: Takeover, request: Any) -> Any:
    item = request.request_item
    request_id = item.get("id") if isinstance(item, dict) else getattr(item, "id", None)
    answer = takeover.hosted_approval(str(request_id or ""))
    if answer is None:
        return request
    tool = copy.copy(request.mcp_tool)
    tool.on_approval_request = lambda _request: answer
    answered = copy.copy(request)
    answered.mcp_tool = tool
    return answered


# handoffs and guardrails


def _wrap_get_handoffs(original: Any) -> Any:
    @functools.wraps(original)
    async def get_handoffs(agent: Any, context_wrapper: Any) -> list[Any]:
        handoffs: list[Any] = await original(agent, context_wrapper)
        if TAKEOVER.get() is None and _observer is None:
            return handoffs
        return [safely(_seam_handoff, handoff, agent) or handoff for handoff in handoffs]

    return get_handoffs


def _seam_handoff(handoff: Handoff[Any, Any], agent: Any) -> Handoff[Any, Any]:
    original = handoff.on_invoke_handoff

    async def invoke(context: Any, arguments: str) -> Any:
        def proceed() -> Any:
            return original(context, arguments)

        def call() -> HandoffCall:
            target = handoff_target(handoff)
            return HandoffCall(handoff.tool_name, agent.name, handoff.agent_name, arguments, target)

        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return await takeover.handoff(call(), proceed)
        if observer is None:
            return await proceed()
        return await _watched(lambda: observer.handoff_started(call()), observer.handoff_ended, proceed)

    seam = copy.copy(handoff)
    seam.on_invoke_handoff = invoke
    return seam


def _wrap_guardrail(stage: str) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        async def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            def proceed() -> Any:
                return original(self, *args, **kwargs)

            takeover, observer = TAKEOVER.get(), _observer
            if takeover is not None:
                return await takeover.guardrail(GuardrailCall.of(stage, self, args, kwargs), proceed)
            if observer is None:
                return await proceed()
            return await _watched(
                lambda: observer.guardrail_started(GuardrailCall.of(stage, self, args, kwargs)),
                observer.guardrail_ended,
                proceed,
            )

        return run

    return wrap


# the runner


def _wrap_run(original: Any) -> Any:
    @functools.wraps(original)
    async def run(self: Any, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002 - the SDK's name
        def proceed() -> Any:
            return original(self, starting_agent, input, **kwargs)

        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return await takeover.run(
                RunCall(starting_agent, input, kwargs, stream=False),
                lambda call: original(self, call.agent, call.input, **call.kwargs),
            )
        if observer is None:
            return await proceed()
        token = safely(lambda: observer.run_started(RunCall(starting_agent, input, kwargs, stream=False)))
        safely(observer.run_entered, token)
        try:
            result = await proceed()
        except BaseException as error:
            safely(observer.run_left, token)
            safely(observer.run_ended, token, None, error)
            raise
        safely(observer.run_left, token)
        safely(observer.run_ended, token, result, None)
        return result

    return run


def _wrap_run_streamed(original: Any) -> Any:
    @functools.wraps(original)
    def run_streamed(self: Any, starting_agent: Any, input: Any, **kwargs: Any) -> Any:  # noqa: A002 - the SDK's name
        def proceed() -> Any:
            return original(self, starting_agent, input, **kwargs)

        takeover, observer = TAKEOVER.get(), _observer
        if takeover is not None:
            return takeover.run_streamed(
                RunCall(starting_agent, input, kwargs, stream=True),
                lambda call: original(self, call.agent, call.input, **call.kwargs),
            )
        if observer is None:
            return proceed()
        token = safely(lambda: observer.run_started(RunCall(starting_agent, input, kwargs, stream=True)))
        safely(observer.run_entered, token)
        try:
            # The SDK spawns the run's task in here; the task copies this context.
            result = proceed()
        except BaseException as error:
            safely(observer.run_left, token)
            safely(observer.run_ended, token, None, error)
            raise
        safely(observer.run_left, token)
        safely(_end_with_task, observer, token, result)
        return result

    return run_streamed


def _end_with_task(observer: Observer, token: Any, result: Any) -> None:
    def done(task: Any) -> None:
        safely(_task_ended, observer, token, result, task)

    result.run_loop_task.add_done_callback(done)


def _task_ended(observer: Observer, token: Any, result: Any, task: Any) -> None:
    import asyncio  # noqa: PLC0415 - only streamed runs need it here

    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    observer.run_ended(token, result, error)


def _wrap_decision(*, approved: bool) -> Callable[[Any], Any]:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def decide(self: Any, approval_item: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, approval_item, *args, **kwargs)
            takeover, observer = TAKEOVER.get(), _observer
            if takeover is not None:
                takeover.approval_decided(self, approval_item, approved, kwargs.get("rejection_message"))
            elif observer is not None:
                safely(observer.approval_decided, self, approval_item, approved, kwargs.get("rejection_message"))
            return result

        return decide

    return wrap


def _wrap_tracing(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def create(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A rerun is not a run: its spans would be exported, and recorded, as if it were one.
        takeover = TAKEOVER.get()
        if takeover is None or takeover.traces():
            return original(self, *args, **kwargs)
        given = signature.bind(self, *args, **kwargs)
        given.arguments["disabled"] = True
        return original(*given.args, **given.kwargs)

    return create


# what an answer is made of


def tool_outcome(output: Any, *, sdk_error: bool) -> Any:
    """What the function tool seam gives back to the SDK."""
    result: Any = vars(sys.modules["agents.tool"])["_FunctionToolInvocationResult"]
    return result(output, is_sdk_generated_error=sdk_error)


def handoff_target(handoff: Any) -> Any:
    """The agent that a handoff leads to, where it is known without calling anything; else None."""
    reference = getattr(handoff, "_agent_ref", None)
    return reference() if reference is not None else None


def mark_agent_tool(tool: Any) -> None:
    """Have a function tool taken for an agent used as a tool."""
    tool._is_agent_tool = True  # noqa: SLF001


def mark_executed(context_wrapper: Any, tool_call: Any, tool_name: str) -> None:
    """Note a call as done, as the SDK does before a tool of its own runs."""
    context_wrapper._mark_tool_invocation_executed(tool_call, tool_name=tool_name)  # noqa: SLF001


# installing


class _Seam:
    """One place in the SDK: where the name lives and what is put there."""

    def __init__(
        self, name: str, owners: tuple[tuple[str, str | None, str], ...], wrap: Callable[[Any], Any] | None
    ) -> None:
        self.name = name
        self._owners = owners
        self._wrap = wrap
        self._undo: list[tuple[Any, str, Any]] = []

    def targets(self) -> list[tuple[Any, str]]:
        """Where the name is found in the installed SDK; empty if anywhere it is missing."""
        found: list[tuple[Any, str]] = []
        for module_name, class_name, attribute in self._owners:
            try:
                owner: Any = importlib.import_module(module_name)
            except ImportError:
                return []
            if class_name is not None:
                owner = getattr(owner, class_name, None)
            if owner is None or attribute not in vars(owner):
                return []
            found.append((owner, attribute))
        return found

    def install(self) -> None:
        for owner, attribute in self.targets():
            original = vars(owner)[attribute]
            wrap = self._wrap or functools.partial(_wrap_action, owner)
            setattr(owner, attribute, wrap(original))
            self._undo.append((owner, attribute, original))

    def uninstall(self) -> None:
        while self._undo:
            owner, attribute, original = self._undo.pop()
            setattr(owner, attribute, original)


def _module(name: str, *modules: str) -> tuple[tuple[str, None, str], ...]:
    return tuple((f"agents.{module}", None, name) for module in modules)


def _method(owner: type, *names: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((owner.__module__, owner.__name__, name) for name in names)


def _action(name: str) -> tuple[tuple[str, str, str], ...]:
    return (("agents.run_internal.tool_actions", name, "execute"),)


SEAMS: Final = (
    _Seam("run", _method(AgentRunner, "run"), _wrap_run),
    _Seam("run_streamed", _method(AgentRunner, "run_streamed"), _wrap_run_streamed),
    # Not in agent_runner_helpers: what is there tests the model's class.
    _Seam("model", _module("get_model", "run_internal.run_loop"), _wrap_get_model),
    _Seam("model_check", _module("get_model", "run_internal.agent_runner_helpers"), _wrap_model_check),
    _Seam(
        "function_tool",
        _module("_invoke_function_tool_with_metadata", "tool", "run_internal.tool_execution"),
        _wrap_invoke,
    ),
    _Seam(
        "tool_failure",
        _module("maybe_invoke_function_tool_failure_error_function", "tool", "run_internal.tool_execution"),
        _wrap_failure,
    ),
    _Seam("shell", _action("ShellAction"), None),
    _Seam("local_shell", _action("LocalShellAction"), None),
    _Seam("apply_patch", _action("ApplyPatchAction"), None),
    _Seam("computer", _action("ComputerAction"), None),
    _Seam("custom_tool", _action("CustomToolAction"), None),
    _Seam(
        "computer_factory",
        _module("resolve_computer", "tool", "run_internal.tool_execution", "run_internal.tool_actions"),
        _wrap_resolve_computer,
    ),
    _Seam("mcp_listing", _method(MCPUtil, "_list_tools_with_span"), _wrap_list_tools),
    _Seam(
        "handoffs", _module("get_handoffs", "run_internal.run_loop", "run_internal.turn_resolution"), _wrap_get_handoffs
    ),
    _Seam("input_guardrail", _method(InputGuardrail, "run"), _wrap_guardrail("input")),
    _Seam("output_guardrail", _method(OutputGuardrail, "run"), _wrap_guardrail("output")),
    _Seam("tool_input_guardrail", _method(ToolInputGuardrail, "run"), _wrap_guardrail("tool_input")),
    _Seam("tool_output_guardrail", _method(ToolOutputGuardrail, "run"), _wrap_guardrail("tool_output")),
    _Seam(
        "hosted_approvals",
        _module("execute_mcp_approval_requests", "run_internal.tool_planning"),
        _wrap_hosted_approvals,
    ),
    _Seam("tracing", _method(DefaultTraceProvider, "create_trace", "create_span"), _wrap_tracing),
    _Seam("approve", _method(RunState, "approve"), _wrap_decision(approved=True)),
    _Seam("reject", _method(RunState, "reject"), _wrap_decision(approved=False)),
)

_lock: Final = fresh_lock()
_users = 0


def found_seams() -> dict[str, bool]:
    """Which seams the installed SDK has."""
    return {seam.name: bool(seam.targets()) for seam in SEAMS}


_LOCK: Final = type(_lock)


def _adopt_locks() -> None:
    """The SDK starts traces under locks of its modules: one that is held at a fork would stop the child's next run."""
    for name in ("setup", "traces", "processors"):
        module = sys.modules.get(f"agents.tracing.{name}")
        for value in vars(module).values() if module is not None else ():
            if isinstance(value, _LOCK):
                adopt(value)


def install() -> None:
    """Put the wrappers in place; counted, so a rerun and the recorder can each ask for them."""
    global _users  # noqa: PLW0603 - the SDK is patched once per process
    safely(_adopt_locks)
    with _lock:
        _users += 1
        if _users == 1:
            for seam in SEAMS:
                seam.install()


def uninstall() -> None:
    """The counterpart of `install`; the last one puts the SDK's own functions back."""
    global _users  # noqa: PLW0603
    with _lock:
        if _users == 0:
            return
        _users -= 1
        if _users == 0:
            for seam in reversed(SEAMS):
                seam.uninstall()


# tracing


def registered_processors(provider: Any) -> tuple[Any, ...] | None:
    """The processors of the SDK's own provider; None where they cannot be seen."""
    multi = getattr(provider, "_multi_processor", None)
    found = getattr(multi, "_processors", None)
    return found if isinstance(found, tuple) else None


def tracing_disabled(provider: Any) -> bool:
    """Whether the SDK's tracing is switched off for the whole process."""
    refresh = getattr(provider, "_refresh_disabled_flag", None)
    if callable(refresh):
        refresh()
    return bool(getattr(provider, "_disabled", False))


def env_tracing_disabled() -> bool:
    """What the SDK will make of the environment when it first makes its provider."""
    return os.environ.get("OPENAI_AGENTS_DISABLE_TRACING", "false").lower() in ("true", "1")


def is_vendor_exporter(processor: Any) -> bool:
    """Whether this processor sends traces, content included, to the SDK's vendor."""
    from agents.tracing.processors import BackendSpanExporter  # noqa: PLC0415 - builds an HTTP client module

    return isinstance(getattr(processor, "_exporter", None), BackendSpanExporter)


def existing_provider() -> Any:
    """The SDK's trace provider if one was made already; asking the SDK would make one, exporter and all."""
    return sys.modules["agents.tracing.setup"].GLOBAL_TRACE_PROVIDER


def forget_provider() -> None:
    """Let the SDK make its own provider again when it next needs one."""
    sys.modules["agents.tracing.setup"].GLOBAL_TRACE_PROVIDER = None  # type: ignore[attr-defined]
