"""What each address shows, and what it says when it cannot."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from replay.handmade import Conversation as Talk
from run.halves import RUN, Conversation, spans_of, write_otlp
from sealtrace.errors import (
    ObjectNotFound,
    PayloadExpired,
    RecordDamaged,
    TelemetryError,
    VaultDenied,
    VaultUnavailable,
)
from sealtrace.event import Kind, RunEvent, canonical_run_id, new_record_id
from sealtrace.settings import Settings
from sealtrace.vault import VaultWriter
from sealtrace.vault.stores import LocalStore
from vault.records import header
from viewer.inert import EVIL, Page

from .conftest import Demo

Visit = Callable[..., TestClient]


@pytest.fixture
def client(demo: Demo, visit: Visit) -> TestClient:
    """A viewer of the demo's run."""
    return visit(demo.settings())


def seqs(demo: Demo, kind: Kind) -> list[int]:
    """Numbers of the run's events of a kind."""
    return [event.seq for event in demo.run.events if event.kind is kind]


def found_order(demo: Demo) -> int:
    """Number of the result of the tool that was called first; which of two parallel tools ends first is chance."""
    results = [event for event in demo.run.events if event.kind is Kind.TOOL_RESULT]
    return next(event.seq for event in results if event.payload["tool"] == "find_order")


# the list


def test_the_front_door(client: TestClient) -> None:
    """The root leads to the list."""
    answer = client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")


def test_the_list_of_runs(client: TestClient, demo: Demo) -> None:
    """A run is listed with what is known of it, and leads to its page."""
    found = Page(client.get("/runs").text)
    assert f"/runs/{demo.run.id}" in [link["href"] for link in found.of("a")]
    for word in ("Support desk demo", "Triage", "find_order", "ok", "15"):
        assert word in found.text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("agent=Triage", True),
        ("agent=Nobody", False),
        ("tool=issue_refund", True),
        ("tool=nothing", False),
        ("since=1d", True),
        ("since=2999-01-01", False),
        ("errors=1", False),
        ("service=sealtrace-demo", True),
        ("service=other", False),
        ("q=support", True),
        ("q=refund_policy", True),
        ("q=nothing+of+it", False),
        ("limit=1", True),
        ("limit=99999999999", True),
        ("agent=&tool=&since=&q=", True),
    ],
)
def test_searching(client: TestClient, demo: Demo, query: str, found: bool) -> None:
    """By agent, tool, time, service, error and word; the fields stay filled in."""
    answer = client.get(f"/runs?{query}")
    assert answer.status_code == 200
    assert (demo.run.id in answer.text) is found
    if not found:
        assert "No run fits" in answer.text


def test_searching_the_vault_alone(demo: Demo, visit: Visit) -> None:
    """Without a source the manifests are searched, and services are not offered."""
    client = visit(Settings(vault=demo.vault))
    assert demo.run.id in client.get("/runs?agent=Triage").text
    assert "f-service" not in client.get("/runs").text
    refused = client.get("/runs?service=x")
    assert refused.status_code == 503
    assert "does not know services" in refused.text


@pytest.mark.parametrize("since", ["yesterday", "2w", "-1h", "99999999999999d", EVIL[:60]])
def test_a_time_that_is_none(client: TestClient, since: str) -> None:
    """What is no time is refused with the forms there are, and the page is there to try again."""
    answer = client.get("/runs", params={"since": since})
    assert answer.status_code == 400
    assert "30m, 2h, 7d" in answer.text
    assert 'name="since"' in answer.text


@pytest.mark.parametrize(
    ("named", "address"),
    [
        ("{run}", "/runs/{run}"),
        ("http://elsewhere.test:1/x/runs/{run}?event=5&vault=s3://evil", "/runs/{run}?event=5"),
        ("http://elsewhere.test/traces/{trace}", "/traces/{trace}"),
        ("{trace}", "/runs/{trace}"),
    ],
)
def test_a_run_that_is_named_whole(client: TestClient, demo: Demo, named: str, address: str) -> None:
    """An id or a link in the search leads to its run, and of a link nothing counts but the ids."""
    values = {"run": demo.run.id, "trace": demo.run.trace_id}
    answer = client.get("/runs", params={"q": named.format(**values)})
    assert (answer.status_code, answer.headers["location"]) == (303, address.format(**values))
    end = client.get(answer.headers["location"], follow_redirects=True)
    assert end.status_code == 200
    assert demo.run.id in end.text


def test_an_id_of_ones_own(tmp_path: Path, visit: Visit) -> None:
    """A run that was given an id of another form is found by it, and by nothing like it."""
    made = Conversation(1, run_id=canonical_run_id("order 4711"))
    made.store(LocalStore(tmp_path / "v"))
    client = visit(Settings(vault=(tmp_path / "v").as_uri()))
    answer = client.get("/runs?q=order+4711")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{made.run_id}")
    assert client.get("/runs?q=order+4712").status_code == 200


# a run


def test_the_page_of_a_run(client: TestClient, demo: Demo) -> None:
    """What it was and every event's line; the event in the address is open and its line is marked."""
    for event in demo.run.events:
        answer = client.get(f"/runs/{demo.run.id}?event={event.seq}")
        assert answer.status_code == 200
        found = Page(answer.text)
        listed = {int(link["data-seq"]) for link in found.of("a") if "go" in link.get("class", "").split()}
        assert listed == {event.seq for event in demo.run.events}
        (panel,) = found.of("article")
        assert (panel["data-seq"], panel["data-record"]) == (str(event.seq), event.record_id)
        (here,) = [line for line in found.of("li") if "here" in line.get("class", "").split()]
        assert "line" in here["class"]
        (current,) = [
            link for link in found.of("a") if "go" in link.get("class", "").split() and "aria-current" in link
        ]
        assert current["data-seq"] == str(event.seq)
    for word in ("Support desk demo", "complete", "1,749 in, 140 out", "2 CARD, 2 EMAIL"):
        assert word in found.text


def test_the_panel_alone_is_the_same(client: TestClient, demo: Demo) -> None:
    """The piece that a script asks for is what the page has."""
    for event in demo.run.events:
        whole = client.get(f"/runs/{demo.run.id}?event={event.seq}").text
        piece = client.get(f"/runs/{demo.run.id}/events/{event.seq}").text
        panel = re.search(r"<article.*</article>", piece, re.DOTALL)
        assert panel is not None
        assert panel.group() in whole


def test_arguments_and_result_side_by_side(client: TestClient, demo: Demo) -> None:
    """Call and result are shown together from either, with the exception of the tool that failed."""
    for seq in seqs(demo, Kind.TOOL_CALL) + seqs(demo, Kind.TOOL_RESULT):
        found = Page(client.get(f"/runs/{demo.run.id}/events/{seq}").text)
        assert [part["class"] for part in found.of("section")] == ["half", "half"]
        assert "R-2048" in found.text or "broken item" in found.text
    failed = seqs(demo, Kind.TOOL_RESULT)[-1]
    text = client.get(f"/runs/{demo.run.id}/events/{failed}").text
    assert "gateway refused" in text
    assert "RuntimeError" in text


def test_new_since_the_last_turn(client: TestClient, demo: Demo) -> None:
    """What the model had not been given before is marked; in the first request of all nothing is."""
    marked = []
    for seq in seqs(demo, Kind.GENERATION):
        found = Page(client.get(f"/runs/{demo.run.id}/events/{seq}").text)
        marked.append(sum("is-new" in part.get("class", "").split() for part in found.of("section")))
    assert marked == [0, 2, 5, 2]


def test_where_things_came_from(client: TestClient, demo: Demo) -> None:
    """Each tool result in a request leads to the event that made it; that leads to the request that was told."""
    second = seqs(demo, Kind.GENERATION)[2]
    text = client.get(f"/runs/{demo.run.id}/events/{second}").text
    sources = [int(number) for number in re.findall(r">came from event (\d+)<", text)]
    assert sorted(sources) == [3, *sorted(seqs(demo, Kind.TOOL_RESULT)[:2])]
    for source in sources[1:]:
        origin = client.get(f"/runs/{demo.run.id}/events/{source}").text
        assert f">told to the model in event {second}<" in origin


def test_json_of_an_event(client: TestClient, demo: Demo) -> None:
    """The JSON is the event as the library gives it."""
    for event in demo.run.events:
        answer = client.get(f"/runs/{demo.run.id}/events/{event.seq}.json")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == json.loads(json.dumps(event.to_json()))


def test_the_json_view(client: TestClient, demo: Demo) -> None:
    """The payload as it is stored, as text on the page."""
    found = Page(client.get(f"/runs/{demo.run.id}?event=5&view=json").text)
    assert '"arguments": "{\\"order_id\\":\\"R-2048\\"}"' in found.text


def test_lines_narrowed_down(client: TestClient, demo: Demo) -> None:
    """With words in the address, only lines that hold them are shown, and the ways lead through those."""
    found = Page(client.get(f"/runs/{demo.run.id}?q=execute_tool").text)
    lines = [line for line in found.of("li") if "line" in line.get("class", "").split()]
    assert len(lines) == 3
    steps = [link["href"] for link in found.of("a") if "step" in link.get("class", "").split()]
    assert steps == [f"/runs/{demo.run.id}?event={found_order(demo)}&q=execute_tool"]
    nothing = client.get(f"/runs/{demo.run.id}?q=nothing+such")
    assert nothing.status_code == 200
    assert "No line holds these words" in nothing.text


def test_the_trace_leads_to_the_run(client: TestClient, demo: Demo) -> None:
    """A trace id, in either case, leads to the run in it, with the event it was given."""
    trace = str(demo.run.trace_id)
    for given, query in ((trace, ""), (trace.upper(), "?event=3")):
        answer = client.get(f"/traces/{given}{query}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{demo.run.id}{query}")


def test_two_records_with_the_same_numbers(tmp_path: Path, visit: Visit) -> None:
    """In a resumed run the record is part of each address, and opens its own event."""
    one, other = Conversation(2), Conversation(3)
    store = LocalStore(tmp_path / "v")
    one.store(store)
    other.store(store)
    client = visit(Settings(), store=store)
    for made in (one, other):
        page = Page(client.get(f"/runs/{RUN}?event=2&record={made.record_id}").text)
        (panel,) = page.of("article")
        assert panel["data-record"] == made.record_id
        found = client.get(f"/runs/{RUN}/events/2.json?record={made.record_id}").json()
        assert found["payload"]["arguments"] == made.events[2].payload["arguments"]
    assert all("record=" in link["href"] for link in page.of("a") if "go" in link.get("class", "").split())


def test_a_long_run_comes_in_pieces(tmp_path: Path, visit: Visit) -> None:
    """Of thousands of lines the piece around the event is sent; links lead to the others, each line once."""
    made = Conversation(700)
    made.store(LocalStore(tmp_path / "v"))
    settings = Settings(vault=(tmp_path / "v").as_uri(), telemetry=write_otlp(tmp_path / "t.jsonl", spans_of(made)))
    client = visit(settings)
    page = Page(client.get(f"/runs/{RUN}?event=1500").text)
    shown = [int(link["data-seq"]) for link in page.of("a") if "go" in link.get("class", "").split()]
    assert 1500 in shown
    assert len(shown) <= 300
    waiting = [part for part in page.of("p") if part.get("class") == "waiting"]
    for part in waiting:
        piece = Page(client.get(f"/runs/{RUN}/lines?line={part['data-line']}").text)
        lines = [line for line in piece.of("li") if "line" in line.get("class", "").split()]
        assert len(lines) == int(part["data-count"])
        assert [line for line in lines if "here" in line["class"].split()] == []
        shown += [int(link["data-seq"]) for link in piece.of("a") if "go" in link.get("class", "").split()]
    assert sorted(shown) == [event.seq for event in made.events]
    by_link = Page(client.get(f"/runs/{RUN}?line=0").text)
    assert any(link.get("data-seq") == "0" for link in by_link.of("a"))


def test_a_late_request_can_be_read_from_its_beginning(tmp_path: Path, visit: Visit) -> None:
    """Of a long conversation the end is shown, with how much was not read, and a way to all of it."""
    made = Conversation(400)
    made.store(LocalStore(tmp_path / "v"))
    spans = write_otlp(tmp_path / "t.jsonl", spans_of(made))
    client = visit(Settings(vault=(tmp_path / "v").as_uri(), telemetry=spans))
    seq = [event.seq for event in made.events if event.kind is Kind.GENERATION][-1]
    text = client.get(f"/runs/{RUN}/events/{seq}").text
    assert "were not read" in text
    whole = f"/runs/{RUN}?event={seq}&view=whole"
    assert whole.replace("&", "&amp;") in text
    from_the_start = client.get(whole).text
    assert "were not read" not in from_the_start
    assert made.events[0].payload["input"][0].value["content"] in from_the_start
    assert made.events[0].payload["input"][0].value["content"] not in text


# what is recorded is text


def _evil_run(folder: Path) -> None:
    """A record that only who may write to the vault could make: every value of every kind is an attack."""
    from sealtrace.event import resolve_shared

    talk = Talk(agent=EVIL, instructions=EVIL).user(EVIL)
    talk.asks((EVIL, {EVIL: EVIL})).runs(EVIL).guardrail(EVIL, tripped=True, info={EVIL: EVIL})
    for kind in (Kind.CUSTOM, Kind.ERROR, Kind.APPROVAL, Kind.RETRIEVAL, Kind.MCP_TOOLS, Kind.CHECKPOINT):
        talk.event(kind, {EVIL: [EVIL, {EVIL: EVIL}], "name": EVIL, "tool": EVIL}, call_id=EVIL, error_type=EVIL)
    talk.hands_off(EVIL).says(EVIL)
    writer = VaultWriter(LocalStore(folder), Settings(), ruleset_hash=EVIL)
    record = {"run_id": RUN, "record_id": new_record_id()}
    events: list[RunEvent] = [
        dataclasses.replace(event, payload=resolve_shared(event.payload), **record) for event in talk.events
    ]
    for event in events:
        writer.append(event)
    changes: dict[str, Any] = {"workflow_name": EVIL, "agents": (EVIL,), "tools": (EVIL,), "status": "ok"}
    writer.seal(header(RUN, events[0].record_id, event_count=len(events), **changes))


def test_recorded_text_is_nothing_but_text(tmp_path: Path, visit: Visit) -> None:
    """No page gets an element, an attribute or an address from what was recorded, in any view of any event."""
    _evil_run(tmp_path / "v")
    client = visit(Settings(vault=(tmp_path / "v").as_uri()))
    run = f"/runs/{RUN}"
    paths = ["/runs", f"{run}?q=script", f"{run}/lines?line=0", f"/compare?a={RUN}&b={RUN}"]
    page = Page(client.get(run).text)
    count = len([link for link in page.of("a") if "go" in link.get("class", "").split()])
    assert count >= 10
    paths += [f"{run}?event={seq}&view={view}" for seq in range(count) for view in ("text", "json", "whole")]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        found = Page(answer.text)
        names = {name for _, attributes in found.elements for name in attributes}
        assert not {name for name in names if name.startswith("on")} | (names & {"style", "srcdoc"}), path
        assert {element for element, _ in found.elements}.isdisjoint(
            {"iframe", "object", "embed", "img", "base", "style"}
        )
        assert [script.get("src") for script in found.of("script")] in ([], ["/static/viewer.js"])
        for _, attributes in found.elements:
            for name in ("href", "src", "action"):
                assert attributes.get(name, "/")[0] in "/#?", path
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", answer.text), path
    assert "<script>alert(1)</script>" in Page(client.get(f"{run}?event=0").text).text


def test_words_in_the_address_are_text(client: TestClient, demo: Demo) -> None:
    """What a link puts into the search fields comes back as text."""
    for path in ("/runs", f"/runs/{demo.run.id}", "/compare"):
        answer = client.get(
            path, params={name: EVIL.replace("\ud800", "") for name in ("q", "agent", "tool", "a", "b", "ignore")}
        )
        assert answer.status_code < 500
        assert len(Page(answer.text).of("script")) == 1
        assert "<img" not in answer.text


# what cannot be shown


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/runs/xyz", 400, "32 hex digits"),
        ("/runs/trace_XYZ", 400, "32 hex digits"),
        (f"/runs/trace_{'0' * 31}", 400, "32 hex digits"),
        (f"/runs/trace_{'0' * 33}", 400, "32 hex digits"),
        (f"/runs/{'A' * 32}", 400, "32 hex digits"),
        (f"/runs/trace_{'0' * 32}", 404, "no run"),
        (f"/traces/{'0' * 32}", 404, "no run"),
        ("/traces/xyz", 400, "32 hex digits"),
        ("/runs/{run}?event=99", 404, "0 to 14"),
        ("/runs/{run}?event=-1", 400, "number"),
        ("/runs/{run}?event=1e3", 400, "number"),
        ("/runs/{run}?event=", 400, "number"),
        ("/runs/{run}?event=9999999999", 400, "number"),
        ("/runs/{run}?line=x", 400, "number"),
        ("/runs/{run}?event=1&record=x", 400, "record id"),
        (f"/runs/{{run}}?event=1&record={'0' * 32}", 404, "no event 1"),
        ("/runs/{run}/events/x", 400, "number"),
        ("/runs/{run}/events/99", 404, "0 to 14"),
        ("/runs/{run}?vault=s3://evil/x", 400, "vault"),
        ("/runs/{run}?bucket=evil", 400, "bucket"),
        ("/runs/{run}?Endpoint_URL=http://evil.test", 400, "endpoint_url"),
        ("/runs/{run}?telemetry=jaeger://evil.test", 400, "telemetry"),
        ("/traces/{trace}?vault=file:///etc", 400, "vault"),
        ("/compare?a={run}&b={run}&vault=file:///etc", 400, "vault"),
        ("/compare?a={run}&b=nothing", 404, "no run"),
        ("/reruns/../../etc/passwd", 404, "page"),
        ("/nothing", 404, "/runs/"),
        ("/static/nothing.js", 404, "no such"),
    ],
)
def test_refusals(client: TestClient, demo: Demo, path: str, status: int, says: str) -> None:
    """The right status and a page that says what to do; never a traceback."""
    answer = client.get(path.format(run=demo.run.id, trace=demo.run.trace_id))
    assert answer.status_code == status
    found = Page(answer.text)
    assert says in found.text
    assert found.of("h1")
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(("path", "status"), [("99", 404), ("x", 400)])
def test_a_program_gets_its_refusal_as_json(client: TestClient, demo: Demo, path: str, status: int) -> None:
    """Under `.json` the refusal is JSON, too."""
    answer = client.get(f"/runs/{demo.run.id}/events/{path}.json")
    assert (answer.status_code, answer.json()["status"]) == (status, status)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (VaultDenied("no AWS credentials; set up boto3's default chain"), 403),
        (VaultUnavailable("the bucket does not answer"), 503),
        (RecordDamaged("the bytes are not the ones that were stored"), 502),
    ],
)
def test_a_vault_that_does_not_give(demo: Demo, visit: Visit, error: Exception, status: int) -> None:
    """Missing credentials, an outage and damage have statuses of their own, and the error says what to do."""

    class Broken(LocalStore):
        def list(self, prefix: str) -> Any:
            raise error

    client = visit(Settings(), store=Broken(demo.folder))
    for path in ("/runs", f"/runs/{demo.run.id}", f"/traces/{demo.run.trace_id}", f"/runs/{demo.run.id}/events/1"):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert str(error).replace("'", "&#x27;") in answer.text
    assert client.get(f"/runs/{demo.run.id}/events/1.json").json()["error"] == str(error)


def test_a_source_that_does_not_answer(demo: Demo, visit: Visit) -> None:
    """Without a vault, a source that is down is a bad gateway; with one, the run opens and says so."""

    class Down:
        name = "jaeger://down"

        def trace(self, trace_id: str) -> Any:
            raise TelemetryError("jaeger://down does not answer")

        run = trace

        def runs(self, query: Any, limit: int) -> Any:
            raise TelemetryError("jaeger://down does not answer")

    alone = visit(Settings(), source=Down())
    for path in ("/runs", f"/runs/{demo.run.id}"):
        answer = alone.get(path)
        assert answer.status_code == 502
        assert "does not answer" in answer.text
    both = visit(Settings(vault=demo.vault), source=Down())
    answer = both.get(f"/runs/{demo.run.id}")
    assert answer.status_code == 200
    assert "does not answer" in answer.text


def test_a_page_that_breaks_quotes_nothing(
    demo: Demo, visit: Visit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error of ours becomes a page without a traceback and a log line without what the error says."""

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("My espresso machine arrived")

    monkeypatch.setattr("sealtrace.viewer.pages.run_body", broken)
    answer = visit(demo.settings()).get(f"/runs/{demo.run.id}")
    assert answer.status_code == 500
    assert "espresso" not in answer.text + caplog.text
    assert "ZeroDivisionError at" in caplog.text
    assert "test_pages.py" in caplog.text


# runs that are not whole


def test_an_expired_payload_is_said_to_be(tmp_path: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run past its time opens with its lines; each event says why it has no payload, and as JSON has none."""
    past = time.time_ns() - 60 * 86_400 * 10**9
    with monkeypatch.context() as patch:
        patch.setattr("sealtrace.vault.writer.time.time_ns", lambda: past)
        Conversation(2).store(LocalStore(tmp_path / "v"))
    client = visit(Settings(vault=(tmp_path / "v").as_uri()))
    answer = client.get(f"/runs/{RUN}?event=1")
    assert answer.status_code == 200
    assert "metadata only" in answer.text
    assert "past its retention" in answer.text
    found = client.get(f"/runs/{RUN}/events/1.json").json()
    assert (found["status"], found["payload"]) == ("payload expired", None)


def test_a_denied_payload_is_said_to_be(demo: Demo, visit: Visit) -> None:
    """Who may read metadata alone sees the run, and of each event that its payload is not for them."""

    class Guarded(LocalStore):
        def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
            if not key.startswith("meta/"):
                raise VaultDenied(f"{key}: refused", key=key)
            return super().get(key, start=start, length=length)

    client = visit(Settings(telemetry=demo.telemetry), store=Guarded(demo.folder))
    answer = client.get(f"/runs/{demo.run.id}?event=5")
    assert answer.status_code == 200
    assert "payload denied" in answer.text
    assert "Your credentials may not read the payload" in answer.text
    assert "R-2048" not in answer.text


def test_a_run_of_spans_alone(demo: Demo, visit: Visit) -> None:
    """A run whose payloads are nowhere opens from its spans."""
    client = visit(Settings(telemetry=demo.telemetry))
    answer = client.get(f"/runs/{demo.run.id}")
    assert answer.status_code == 200
    assert "spans only" in answer.text
    assert "execute_tool find_order" in answer.text


def test_a_link_into_an_event_that_only_the_vault_has(demo: Demo, visit: Visit) -> None:
    """Without a source, the same link opens the same event."""
    client = visit(Settings(vault=demo.vault))
    answer = client.get(f"/runs/{demo.run.id}?event={found_order(demo)}")
    assert "Aurora 3" in answer.text
    assert "tool_call find_order" in answer.text


# the rest


def test_comparing_and_exporting(client: TestClient, demo: Demo) -> None:
    """From a run's page lead ways to the comparison and to the file; both are there."""
    page = Page(client.get(f"/runs/{demo.run.id}").text)
    addresses = [link["href"] for link in page.of("a")]
    compare = next(address for address in addresses if address.startswith("/compare?a="))
    form = Page(client.get(compare).text)
    assert demo.run.id in [field.get("value") for field in form.of("input")]
    same = client.get(f"/compare?a={demo.run.id}&b={demo.run.trace_id}")
    assert same.status_code == 200
    assert "SAME" in same.text
    export = client.get(next(address for address in addresses if address.endswith("/export")))
    assert export.headers["content-disposition"] == f'attachment; filename="{demo.run.id}.html"'
    assert "Aurora 3" in export.text


def test_an_encrypted_record(tmp_path: Path, visit: Visit) -> None:
    """With the key a payload is shown, without it it is denied, and when the record's key is gone, erased."""
    secret = tmp_path / "key"
    secret.write_text("0f" * 32, encoding="ascii")
    settings = Settings(envelope_key=f"file:{secret}", vault=(tmp_path / "v").as_uri())
    store = LocalStore(tmp_path / "v")
    made = Conversation(2)
    made.store(store, settings)
    plain = made.events[2].payload["arguments"]
    assert json.loads(plain)["order_id"] in visit(settings).get(f"/runs/{RUN}?event=2").text
    keyless = visit(Settings(vault=settings.vault)).get(f"/runs/{RUN}?event=2")
    assert keyless.status_code == 200
    assert "payload denied" in keyless.text
    for item in list(store.list("keys/")):
        store.delete(item.key)
    erased = visit(settings).get(f"/runs/{RUN}?event=2")
    assert erased.status_code == 200
    assert "payload erased" in erased.text


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (VaultDenied("the key may not be used"), 403, "may not read this: the key may not be used"),
        (ObjectNotFound("it was deleted"), 404, "not there any more: it was deleted"),
        (PayloadExpired("it expired just now"), 410, "it expired just now"),
        (RecordDamaged("the bytes are not the ones that were stored"), 502, "not the ones that were stored"),
        (VaultUnavailable("the bucket does not answer"), 503, "does not answer"),
    ],
)
def test_a_payload_that_cannot_be_read_when_it_is_opened(
    demo: Demo, visit: Visit, error: Exception, status: int, says: str
) -> None:
    """The run is shown, the event says why its payload is not, and a program gets the status."""

    class Failing(LocalStore):
        def get(self, key: str, *, start: int | None = None, length: int | None = None) -> bytes:
            if length is not None and length > 1:
                raise error
            return super().get(key, start=start, length=length)

    client = visit(Settings(telemetry=demo.telemetry), store=Failing(demo.folder))
    answer = client.get(f"/runs/{demo.run.id}?event=5")
    assert answer.status_code == 200
    assert says in Page(answer.text).text
    assert "execute_tool find_order" in answer.text
    assert client.get(f"/runs/{demo.run.id}/events/5.json").status_code == status


def test_runs_a_day_apart_are_said_to_be(tmp_path: Path, visit: Visit) -> None:
    """Between the parts of a resumed run stands how long it waited."""
    store = LocalStore(tmp_path / "v")
    for hours, made in ((0, Conversation(1)), (30, Conversation(1)), (300, Conversation(1))):
        later = dt.timedelta(hours=hours)
        made.events = [
            dataclasses.replace(event, ts=(dt.datetime.fromisoformat(event.ts) + later).isoformat())
            for event in made.events
        ]
        started = (dt.datetime(2026, 12, 1, 9, 30, tzinfo=dt.UTC) + later).isoformat()
        made.store(store, started_at=started, ended_at=started)
    text = visit(Settings(), store=store).get(f"/runs/{RUN}").text
    assert "30.0 h later" in text
    assert "11.2 days later" in text
