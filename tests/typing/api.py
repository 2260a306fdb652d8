"""What a user's type checker sees; checked by mypy and pyright in strict mode, never run."""

from __future__ import annotations

from typing import Any, assert_type

from agents import Agent, Runner

import sealtrace


def record(agent: Agent[Any]) -> None:
    """Recording."""
    sealtrace.instrument(vault="file:///var/lib/agents/vault", segment_seconds=5.0)
    Runner.run_sync(agent, "hello")
    assert_type(sealtrace.flush(timeout=1.0), bool)
    sealtrace.uninstrument()


def read() -> None:
    """Reading."""
    run = sealtrace.load("trace_4bf92f3577b34da6a3ce929d0e0e4736", telemetry="jaeger://127.0.0.1:16686")
    assert_type(run, sealtrace.Run)
    assert_type(run.id, str)
    assert_type(run.trace_id, str | None)
    assert_type(run.status, sealtrace.RunStatus)
    for event in run.events:
        assert_type(event, sealtrace.RunEvent)
        assert_type(event.kind, sealtrace.Kind)
        assert_type(event.status, sealtrace.EventStatus)
    assert_type(run.event(3), sealtrace.RunEvent)


def again(agent: Agent[Any], run: sealtrace.Run) -> None:
    """Rerunning."""
    try:
        with sealtrace.rerun(run) as session:
            Runner.run_sync(agent, "hello")
        print(session.report, session.receipt)
    except sealtrace.ReplayDiverged as divergence:
        print(divergence)
    except sealtrace.SealtraceError as error:
        print(error)
