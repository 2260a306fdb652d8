"""Our place in the SDK's tracing: taken, kept, given back."""

from __future__ import annotations

from typing import Any

import agents
import pytest
from agents import Agent, add_trace_processor, set_trace_processors
from agents.tracing import TracingProcessor, get_trace_provider
from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

import sealtrace
from sealtrace.agents_sdk import compat, current, seams

from .conftest import model, run, say


class Watcher(TracingProcessor):
    """Somebody else's processor."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.seen.append("trace")

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None:
        self.seen.append(span.span_data.type)

    def on_span_end(self, span: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


def processors() -> tuple[Any, ...]:
    """What is registered with the SDK now."""
    provider: Any = get_trace_provider()
    found = seams.registered_processors(getattr(provider, "inner", provider))
    assert found is not None
    return found


def agent(name: str = "A") -> Agent[Any]:
    """An agent that says one thing."""
    return Agent(name=name, model=model([say("x")]))


def test_the_vendor_exporter_is_gone_and_comes_back(vendor, vault_url):
    """`instrument` removes the SDK's exporter; `uninstrument` puts the very same one back."""
    before = processors()
    assert any(map(seams.is_vendor_exporter, before))
    sealtrace.instrument(vault=vault_url)
    assert not any(map(seams.is_vendor_exporter, processors()))
    sealtrace.uninstrument()
    assert processors() == before


def test_without_a_provider_none_is_made_with_the_vendor_exporter(vault_url):
    """Instrumenting first means the SDK never builds its exporter at all."""
    sealtrace.instrument(vault=vault_url)
    run(agent(), "hi")
    assert [type(item).__name__ for item in processors()] == ["SealtraceProcessor"]


def test_the_vendor_exporter_can_be_kept(vendor, vault_url):
    """The opt-out is explicit, and `compat.check` still says that content leaves."""
    sealtrace.instrument(vault=vault_url, keep_openai_exporter=True)
    assert any(map(seams.is_vendor_exporter, processors()))
    assert compat.check().vendor_exporter is True


def test_other_processors_keep_working(vault_url):
    """Somebody else's processor sees the run before, during and after us."""
    set_trace_processors([])
    watcher = Watcher()
    add_trace_processor(watcher)
    sealtrace.instrument(vault=vault_url)
    run(agent(), "hi")
    assert watcher.seen[:3] == ["trace", "task", "agent"]
    sealtrace.uninstrument()
    assert processors() == (watcher,)
    run(agent(), "hi")
    assert watcher.seen.count("trace") == 2


def test_being_replaced_is_noticed_at_the_next_run(vault_url, records, caplog):
    """A later `set_trace_processors` by another vendor removes us; we come back and say so once."""
    sealtrace.instrument(vault=vault_url)
    watcher = Watcher()
    set_trace_processors([watcher])
    run(agent("First"), "hi")
    run(agent("Second"), "hi")
    assert len(records()) == 2
    assert watcher.seen.count("trace") == 2
    assert len([item for item in caplog.records if "replaced the SDK's trace processors" in item.getMessage()]) == 1


def test_a_replaced_provider_is_wrapped_again(vault_url, records, caplog):
    """Another library's provider is kept, with us around it."""
    from agents.tracing.provider import DefaultTraceProvider

    sealtrace.instrument(vault=vault_url)
    theirs = DefaultTraceProvider()
    agents.set_trace_provider(theirs)
    run(agent(), "hi")
    assert len(records()) == 1
    provider: Any = get_trace_provider()
    assert provider.inner is theirs


def test_instrumenting_twice_is_instrumenting_once(vault_url, records):
    """A second call changes nothing; one `uninstrument` ends it."""
    original = agents.run.AgentRunner.run
    sealtrace.instrument(vault=vault_url)
    first = current()
    sealtrace.instrument(vault="file:///nowhere")
    assert current() is first
    run(agent(), "hi")
    assert len(records()) == 1
    sealtrace.uninstrument()
    sealtrace.uninstrument()
    assert agents.run.AgentRunner.run is original


def test_uninstrument_restores_every_seam(vault_url):
    """After it, each name in the SDK is the SDK's own function again."""
    before = {(owner.__name__, name): vars(owner)[name] for seam in seams.SEAMS for owner, name in seam.targets()}
    sealtrace.instrument(vault=vault_url)
    changed = {(owner.__name__, name): vars(owner)[name] for seam in seams.SEAMS for owner, name in seam.targets()}
    assert all(changed[key] is not before[key] for key in before)
    sealtrace.uninstrument()
    after = {(owner.__name__, name): vars(owner)[name] for seam in seams.SEAMS for owner, name in seam.targets()}
    assert after == before


def test_the_installed_sdk_has_every_seam():
    """On a supported version the self-check finds everything, or a record could not be rerun."""
    report = compat.check()
    assert [name for name, found in report.seams.items() if not found] == []
    assert report.fidelity == "full"


def test_a_missing_seam_is_said_and_recording_goes_on(vault_url, records, caplog, monkeypatch):
    """Without one private name the record says `fidelity: trace`, and the run is still there."""
    import agents.run_internal.tool_actions as actions

    monkeypatch.delattr(actions.ShellAction, "execute")
    sealtrace.instrument(vault=vault_url)
    run(agent(), "hi")
    (record,) = records()
    assert record.header is not None
    assert record.header.fidelity == "trace"
    assert len([item for item in caplog.records if "shell" in item.getMessage()]) == 1


def test_a_vendor_exporter_registered_later_is_warned_about(vault_url, caplog):
    """Content that starts to leave after `instrument` is not passed over in silence."""
    sealtrace.instrument(vault=vault_url)
    exporter = BackendSpanExporter("sk-none", endpoint="http://127.0.0.1:9/none", max_retries=0)
    processor = BatchTraceProcessor(exporter, schedule_delay=3600)
    add_trace_processor(processor)
    try:
        run(agent(), "hi")
        assert any("content leaves the process" in item.getMessage() for item in caplog.records)
    finally:
        sealtrace.uninstrument()
        set_trace_processors([])


def test_wrong_settings_instrument_nothing(vault_url):
    """An unknown setting names itself and leaves the SDK untouched."""
    original = agents.run.AgentRunner.run
    with pytest.raises(sealtrace.SealtraceError, match="no_such_setting"):
        sealtrace.instrument(vault=vault_url, no_such_setting=1)
    assert agents.run.AgentRunner.run is original


def test_the_otel_instrumentor_never_raises(monkeypatch, caplog):
    """An exception there would stop every other instrumentor; a bad environment is logged instead."""
    from sealtrace.agents_sdk import SealtraceInstrumentor

    monkeypatch.setenv("SEALTRACE_QUEUE_EVENTS", "not a number")
    instrumentor = SealtraceInstrumentor()
    instrumentor.instrument(skip_dep_check=True)
    assert current() is None
    assert any("queue_events" in item.getMessage() for item in caplog.records)
    instrumentor.uninstrument()


def test_the_otel_instrumentor_records_with_the_environment_alone(monkeypatch, vault_url, records):
    """`opentelemetry-instrument` passes no arguments: SEALTRACE_VAULT is enough."""
    from sealtrace.agents_sdk import SealtraceInstrumentor

    monkeypatch.setenv("SEALTRACE_VAULT", vault_url)
    instrumentor = SealtraceInstrumentor()
    instrumentor.instrument(skip_dep_check=True)
    try:
        run(agent(), "hi")
        assert len(records()) == 1
    finally:
        instrumentor.uninstrument()
    assert current() is None
