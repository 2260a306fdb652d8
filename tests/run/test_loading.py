"""Loading a run by id or link, and what the run then says of itself."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path

import pytest

from run.halves import RUN, TRACE, Conversation, seal_span, span, spans_of, write_otlp
from sealtrace import RunStatus, load
from sealtrace.errors import EventNotFound, RunNotFound, SettingsError, TelemetryError, VaultDenied, VaultError
from sealtrace.event import EventStatus
from sealtrace.run import Run
from sealtrace.settings import Settings
from sealtrace.telemetry.sources.otlp import OTLPFileSource
from sealtrace.vault import audit_lines
from sealtrace.vault.stores import LocalStore


@dataclasses.dataclass(frozen=True)
class Halves:
    """A run in a vault and in an OTLP file."""

    run: Conversation
    vault: str
    telemetry: str


@pytest.fixture
def halves(tmp_path: Path) -> Halves:
    """Both halves of a whole run."""
    run = Conversation(2)
    seal = run.store(LocalStore(tmp_path / "vault"))
    telemetry = write_otlp(tmp_path / "traces.jsonl", [*spans_of(run), seal_span(run, seal)])
    return Halves(run, (tmp_path / "vault").as_uri(), telemetry)


@pytest.mark.parametrize(
    "name",
    [
        RUN,
        RUN.removeprefix("trace_"),
        TRACE,
        f"https://evil.example/runs/{RUN}",
        f"https://jaeger.example/trace/{TRACE}",
        f"/traces/{TRACE}?event=1",
    ],
)
def test_every_way_to_name_a_run_finds_it(halves: Halves, name: str) -> None:
    """Run id, trace id and links open the same whole run."""
    run = load(name, vault=halves.vault, telemetry=halves.telemetry)
    assert (run.id, run.trace_id, run.status) == (RUN, TRACE, RunStatus.COMPLETE)
    assert [event.seq for event in run.events] == list(range(len(halves.run.events)))
    assert run.linked_event == (1 if "event=1" in name else None)


def test_the_vault_alone_opens(halves: Halves) -> None:
    """Without a telemetry source a whole record is complete, by its run id and by its trace id."""
    for name in (RUN, TRACE):
        run = load(name, vault=halves.vault)
        assert run.status is RunStatus.COMPLETE
        assert {event.status for event in run.events} == {EventStatus.RECORDED}
        assert run.spans == ()


def test_the_spans_alone_open(halves: Halves) -> None:
    """Without a vault the metadata is there, and no payload."""
    for name in (RUN, TRACE):
        run = load(name, telemetry=halves.telemetry)
        assert run.status is RunStatus.SPANS_ONLY
        assert run.agents == ("support",)
        assert run.usage["input_tokens"] == 20
        assert all(event.payload is None for event in run.events)
        assert run.events


def test_the_environment_names_both_places(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    """`vault` and `telemetry` may be left out where the settings name them."""
    monkeypatch.setenv("SEALTRACE_VAULT", halves.vault)
    monkeypatch.setenv("SEALTRACE_TELEMETRY", halves.telemetry)
    assert {event.status for event in load(RUN).events} == {EventStatus.JOINED}


def test_given_settings_take_the_place_of_the_environment(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller with settings of its own is not surprised by the process's environment."""
    monkeypatch.setenv("SEALTRACE_TELEMETRY", "otlp+file:///nowhere/at/all")
    run = load(RUN, settings=Settings(vault=halves.vault))
    assert run.status is RunStatus.COMPLETE


def test_an_unknown_run_is_not_found_and_what_was_searched_is_said(halves: Halves) -> None:
    """The message names the id and both places."""
    with pytest.raises(RunNotFound) as caught:
        load("f" * 32, vault=halves.vault, telemetry=halves.telemetry)
    for part in ("f" * 32, halves.vault, halves.telemetry.removeprefix("otlp+file://")):
        assert part in str(caught.value)
    assert caught.value.run == "f" * 32


def test_with_nowhere_to_look_the_settings_are_at_fault() -> None:
    """Neither a vault nor a source: say which to set."""
    with pytest.raises(SettingsError, match="SEALTRACE_VAULT"):
        load(RUN)


def test_a_telemetry_source_that_fails_does_not_hide_the_payloads(halves: Halves, tmp_path: Path) -> None:
    """The run opens from the vault, and says that its spans could not be had."""
    run = load(RUN, vault=halves.vault, telemetry=f"otlp+{(tmp_path / 'none.jsonl').as_uri()}")
    assert {event.status for event in run.events} == {EventStatus.RECORDED}
    assert run.status is RunStatus.PARTIAL
    assert [finding.code for finding in run.findings] == ["unreachable"]


def test_if_no_place_answers_the_first_failure_is_raised(tmp_path: Path) -> None:
    """A failure is not taken for an unknown run."""
    with pytest.raises(TelemetryError):
        load(RUN, vault=(tmp_path / "empty").as_uri(), telemetry=f"otlp+{(tmp_path / 'none.jsonl').as_uri()}")


def test_a_vault_that_fails_does_not_hide_the_spans(halves: Halves, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run opens from its spans, and says that the vault could not be read."""
    monkeypatch.setattr(LocalStore, "list", _refuse)
    run = load(RUN, vault=halves.vault, telemetry=halves.telemetry)
    assert run.status is RunStatus.SPANS_ONLY
    assert "unreachable" in [finding.code for finding in run.findings]


def _refuse(*_: object) -> object:
    raise VaultError("the disk is on fire")


def test_no_span_at_all_leaves_the_payload_half_whole(halves: Halves, tmp_path: Path) -> None:
    """A run that was sampled out is not partial: its record is all there."""
    telemetry = write_otlp(tmp_path / "other.jsonl", [span("ab" * 8, None, "GET /", trace_id="ef" * 16)])
    run = load(RUN, vault=halves.vault, telemetry=telemetry)
    assert run.status is RunStatus.PAYLOADS_ONLY
    assert {event.status for event in run.events} == {EventStatus.SPAN_MISSING}


def test_some_spans_missing_makes_it_partial(tmp_path: Path) -> None:
    """A collector that lost some of the spans is a loss."""
    made = Conversation(2)
    made.store(LocalStore(tmp_path / "vault"))
    telemetry = write_otlp(tmp_path / "traces.jsonl", spans_of(made, without=frozenset({2})))
    assert load(RUN, vault=(tmp_path / "vault").as_uri(), telemetry=telemetry).status is RunStatus.PARTIAL


def test_a_witness_that_disagrees_makes_it_damaged(tmp_path: Path) -> None:
    """A record that is not the one the collector saw is worse than a partial one."""
    made = Conversation(1)
    seal = made.store(LocalStore(tmp_path / "vault"))
    lie = seal_span(made, seal, **{"sealtrace.run.merkle_root": "0" * 64})
    telemetry = write_otlp(tmp_path / "traces.jsonl", [*spans_of(made), lie])
    assert load(RUN, vault=(tmp_path / "vault").as_uri(), telemetry=telemetry).status is RunStatus.DAMAGED


def test_an_event_is_found_by_number_and_record(tmp_path: Path) -> None:
    """A number that two records have means the older one, unless the record is named."""
    store = LocalStore(tmp_path / "vault")
    first, second = Conversation(1, seed=1), Conversation(1, seed=2)
    first.store(store, started_at="2026-12-01T09:00:00.000000Z")
    second.store(store, started_at="2026-12-01T10:00:00.000000Z")
    run = load(RUN, vault=(tmp_path / "vault").as_uri())
    assert run.event(1).record_id == first.record_id
    assert run.event(1, second.record_id).record_id == second.record_id
    assert [event.record_id for event in run.events] == [first.record_id] * 5 + [second.record_id] * 5
    with pytest.raises(EventNotFound, match="10 events"):
        run.event(99)


def test_totals_come_from_the_manifests(halves: Halves) -> None:
    """Agents, tools, tokens and outcome are those of the header."""
    run = load(RUN, vault=halves.vault)
    assert (run.agents, run.tools, run.outcome, run.workflow) == (("support",), ("lookup",), "ok", "Support")
    assert run.usage == {"requests": 2, "input_tokens": 1000, "output_tokens": 200, "total_tokens": 1200}
    assert run.duration_ms is None
    assert run.started_at == "2026-12-01T09:30:00.000000Z"


def test_the_json_form_holds_all_of_it(halves: Halves) -> None:
    """One JSON document with events, payloads, spans, records and findings."""
    run = load(RUN, vault=halves.vault, telemetry=halves.telemetry)
    document = json.loads(json.dumps(run.to_json()))
    assert document["status"] == "complete"
    assert [event["payload"] for event in document["events"]] == [event.payload for event in run.events]
    assert len(document["spans"]) == len(run.spans)
    assert document["records"][0]["header"]["run_id"] == RUN


def test_reading_changes_nothing(halves: Halves) -> None:
    """Loading leaves every file of the vault as it was, none more, none less."""
    before = _listing(halves)
    run = load(RUN, vault=halves.vault, telemetry=halves.telemetry)
    run.tree()
    assert isinstance(run, Run)
    assert _listing(halves) == before


def _listing(halves: Halves) -> list[tuple[str, int, int]]:
    root = Path(halves.vault.removeprefix("file://"))
    return [(str(path), path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode)) for path in sorted(root.rglob("*"))]


def test_numbers_that_json_lacks_become_text(halves: Halves, tmp_path: Path) -> None:
    """A foreign span with an infinite float does not make the JSON form invalid."""
    odd = span("ab" * 8, None, "GET /", attributes={"ratio": 1.5})
    telemetry = write_otlp(tmp_path / "odd.jsonl", [*spans_of(halves.run), odd])
    path = tmp_path / "odd.jsonl"
    path.write_text(path.read_text().replace('{"stringValue": 1.5}', '{"doubleValue": "Infinity"}'))
    run = load(RUN, telemetry=telemetry)
    text = json.dumps(run.to_json(), allow_nan=False)
    assert '"ratio": "inf"' in text


def test_a_source_that_cannot_search_is_asked_for_the_traces_the_manifests_name(
    halves: Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search by attribute may be off, slow or limited in time; the manifests know the trace ids."""
    monkeypatch.setattr(OTLPFileSource, "run", lambda self, run_id: [])
    assert load(RUN, vault=halves.vault, telemetry=halves.telemetry).status is RunStatus.COMPLETE


def test_reading_payloads_leaves_an_audit_line_where_set(halves: Halves) -> None:
    """Who read which record, and why, is kept in the vault once for each record."""
    chosen = Settings(vault=halves.vault, read_audit=True)
    load(RUN, settings=chosen, reason="ticket 4711", who="auditor")
    store = LocalStore(Path(halves.vault.removeprefix("file://")))
    (line,) = audit_lines(store)
    assert (line.what, line.who, line.reason) == ("read", "auditor", "ticket 4711")
    assert line.about == {"run_id": RUN, "record_id": halves.run.record_id}


def test_a_required_reason_is_required(halves: Halves) -> None:
    """Without a reason nothing is read; the argument and the setting both give one."""
    strict = Settings(vault=halves.vault, read_reason_required=True)
    with pytest.raises(SettingsError, match="reason"):
        load(RUN, settings=strict)
    assert load(RUN, settings=strict, reason="ticket 4711").status is RunStatus.COMPLETE
    stated = strict.model_copy(update={"read_reason": "weekly review"})
    assert load(RUN, settings=stated).status is RunStatus.COMPLETE


def test_payloads_are_not_read_where_the_audit_line_cannot_be_kept(
    halves: Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line, no payload: the envelopes are shown, each saying that its payload was denied."""
    monkeypatch.setattr(LocalStore, "put", _deny)
    run = load(RUN, settings=Settings(vault=halves.vault, read_audit=True), reason="ticket 4711")
    assert {event.status for event in run.events} == {EventStatus.PAYLOAD_DENIED}
    assert all(event.payload is None for event in run.events)
    assert run.status is RunStatus.METADATA_ONLY


def _deny(*_: object, **__: object) -> None:
    raise VaultDenied("this role may not put")
