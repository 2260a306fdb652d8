"""The token, the reason, and the forms that ask for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from sealtrace.errors import SettingsError
from sealtrace.vault import audit_lines
from sealtrace.vault.stores import LocalStore
from sealtrace.viewer.app import create_app
from sealtrace.viewer.visits import Visits

from .conftest import HOST, Demo

Visit = Callable[..., TestClient]

TOKEN = "a-token-that-nobody-guesses"
ORIGIN = {"Origin": HOST}


def fields(answer: httpx.Response) -> dict[str, str]:
    """The hidden fields of the form on a page."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', answer.text))


def send(client: TestClient, path: str, answer: httpx.Response, **more: str) -> Any:
    """Send the form on a page back, filled in."""
    return client.post(path, data={**fields(answer), **more}, headers=ORIGIN)


# the token


def test_without_the_token_nothing_is_shown(demo: Demo, visit: Visit) -> None:
    """Every page but the health check and the style sheet asks for the token, a program's as JSON."""
    client = visit(demo.settings(), token=TOKEN)
    run = demo.run
    for path in ("/runs", f"/runs/{run.id}", f"/traces/{run.trace_id}", "/compare", "/reruns", f"/runs/{run.id}/lines"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert run.id not in answer.text.replace(path, "")
    answer = client.get(f"/runs/{run.id}/events/3.json")
    assert (answer.status_code, answer.json()["status"]) == (401, 401)
    assert client.get("/healthz").status_code == 200


def test_a_program_shows_the_token(demo: Demo, visit: Visit) -> None:
    """`Authorization: Bearer` is enough for one request, and a wrong one is not."""
    client = visit(demo.settings(), token=TOKEN)
    path = f"/runs/{demo.run.id}/events/0.json"
    assert client.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).json()["kind"] == "input"
    for wrong in (
        f"Bearer {TOKEN}x",
        f"Basic {TOKEN}",
        "Bearer",
        TOKEN,
        "Bearer \udce9".encode("latin-1", "replace").decode(),
    ):
        assert client.get(path, headers={"Authorization": wrong}).status_code == 401


def test_a_person_shows_the_token_once(demo: Demo, visit: Visit) -> None:
    """The form lets a visitor in and leads back to where they wanted to go; the cookie is out of reach of scripts."""
    client = visit(demo.settings(), token=TOKEN)
    asked = client.get(f"/runs/{demo.run.id}?event=5")
    done = send(client, "/login", asked, token=TOKEN)
    assert (done.status_code, done.headers["location"]) == (303, f"/runs/{demo.run.id}?event=5")
    cookie = done.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert client.get(done.headers["location"]).status_code == 200


def test_the_cookie_from_before_lets_nobody_in(demo: Demo, visit: Visit) -> None:
    """Who is let in gets a new number: one that somebody planted before is worth nothing."""
    client = visit(demo.settings(), token=TOKEN)
    asked = client.get("/runs")
    planted = client.cookies["sealtrace"]
    assert send(client, "/login", asked, token=TOKEN).status_code == 303
    assert client.cookies["sealtrace"] != planted
    client.cookies.set("sealtrace", planted)
    other = visit(demo.settings(), token=TOKEN)
    other.cookies.set("sealtrace", "0" * 64)
    assert other.get("/runs").status_code == 401


def test_a_wrong_token_and_too_many(demo: Demo, visit: Visit) -> None:
    """A wrong token is refused; after ten in a minute not even the right one is looked at."""
    client = visit(demo.settings(), token=TOKEN)
    asked = client.get("/runs")
    for _ in range(10):
        assert send(client, "/login", asked, token="guess").status_code == 401
    assert send(client, "/login", asked, token=TOKEN).status_code == 429


@pytest.mark.parametrize("path", ["/login", "/reason", "/logout"])
def test_a_form_needs_its_visit(demo: Demo, visit: Visit, path: str) -> None:
    """Without the page's own field, with another visit's, or without a cookie, no form is taken."""
    settings = demo.settings(read_reason_required=True)
    client, other = visit(settings, token=TOKEN), visit(settings, token=TOKEN)
    asked, foreign = client.get("/runs"), other.get("/runs")
    for csrf in ("", "x", fields(foreign)["csrf"]):
        answer = client.post(path, data={"csrf": csrf, "token": TOKEN, "reason": "x"}, headers=ORIGIN)
        assert answer.status_code == 403
    client.cookies.clear()
    assert send(client, path, asked, token=TOKEN, reason="x").status_code == 403


def test_a_visitor_can_leave(demo: Demo, visit: Visit) -> None:
    """After the way out the cookie opens nothing."""
    client = visit(demo.settings(), token=TOKEN)
    send(client, "/login", client.get("/runs"), token=TOKEN)
    assert 'href="/visit"' in client.get("/runs").text
    page = client.get("/visit")
    assert page.status_code == 200
    assert send(client, "/logout", page).status_code == 303
    assert client.get("/runs").status_code == 401


def test_under_tls_the_cookie_is_bound_to_the_host(demo: Demo, visit: Visit) -> None:
    """By TLS the cookie is Secure and cannot be set by another host of the domain."""
    client = visit(demo.settings(), token=TOKEN, scheme="https", base_url="https://127.0.0.1:8765")
    cookie = client.get("/runs").headers["set-cookie"]
    assert cookie.startswith("__Host-sealtrace=")
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert client.get("/runs").headers["strict-transport-security"]


def test_a_link_from_elsewhere_brings_the_cookie_after_all(demo: Demo, visit: Visit) -> None:
    """A strict cookie stays behind when a link of another site is followed: the page asks once more from itself."""
    client = visit(demo.settings(), token=TOKEN)
    crossing = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    answer = client.get(f"/runs/{demo.run.id}?event=2", headers=crossing)
    assert '<meta http-equiv="refresh" content="0">' in answer.text
    assert f'href="/runs/{demo.run.id}?event=2"' in answer.text
    assert "set-cookie" not in answer.headers
    again = client.get(f"/runs/{demo.run.id}?event=2", headers={**crossing, "Sec-Fetch-Site": "same-origin"})
    assert 'name="token"' in again.text


def test_a_short_token_is_none(demo: Demo) -> None:
    """A token that can be guessed is refused when the server starts."""
    with pytest.raises(SettingsError, match="16 characters"):
        create_app(demo.settings(), token="short")


def test_a_form_is_no_bigger_than_a_form(demo: Demo, visit: Visit) -> None:
    """A body that is longer than any form is not read."""
    client = visit(demo.settings(), token=TOKEN)
    asked = client.get("/runs")
    assert send(client, "/login", asked, token=TOKEN, more="x" * 100_000).status_code == 403


@pytest.mark.parametrize("back", ["https://evil.test/", "//evil.test/", "/\\evil.test", "/runs\r\nX: 1", "/logout", ""])
def test_a_form_leads_to_pages_of_ours_only(demo: Demo, visit: Visit, back: str) -> None:
    """Where a form leads afterwards is on this server, whatever the form says."""
    client = visit(demo.settings(), token=TOKEN)
    asked = client.get("/runs")
    done = client.post("/login", data={**fields(asked), "back": back, "token": TOKEN}, headers=ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/runs")


# the reason


def test_payloads_wait_for_a_reason(demo: Demo, visit: Visit) -> None:
    """Where a reason is required, the run opens without payloads and asks; with one, they are shown and noted."""
    client = visit(demo.settings(read_reason_required=True, read_audit=True))
    store = LocalStore(demo.folder)
    before = len(audit_lines(store))
    run, seq = demo.run, next(event.seq for event in demo.run.events if event.kind == "tool_result")
    page = client.get(f"/runs/{run.id}?event={seq}")
    assert page.status_code == 200
    assert "execute_tool find_order" in page.text
    assert "Why do you read this run?" in page.text
    assert client.get(f"/runs/{run.id}/events/{seq}.json").status_code == 403
    assert client.get(f"/compare?a={run.id}&b={run.id}").status_code == 403
    assert client.get(f"/runs/{run.id}/export").status_code == 403
    assert len(audit_lines(store)) == before
    done = send(client, "/reason", page, reason="ticket 4711")
    assert (done.status_code, done.headers["location"]) == (303, f"/runs/{run.id}?event={seq}")
    shown = client.get(f"/runs/{run.id}/events/{seq}.json")
    assert shown.json()["payload"] == run.event(seq).payload
    line = audit_lines(store)[-1]
    assert (line.what, line.reason, line.about["run_id"], line.about["seq"]) == ("read", "ticket 4711", run.id, seq)


def test_a_blank_reason_is_none(demo: Demo, visit: Visit) -> None:
    """White space is no reason."""
    client = visit(demo.settings(read_reason_required=True))
    page = client.get(f"/runs/{demo.run.id}")
    assert send(client, "/reason", page, reason="  ").status_code == 400
    assert "Why do you read" in client.get(f"/runs/{demo.run.id}").text


def test_a_reason_is_the_visitors_own(demo: Demo, visit: Visit) -> None:
    """What one visitor said lets no other read, though the server has the run open."""
    settings = demo.settings(read_reason_required=True)
    app = create_app(settings)
    with TestClient(app, base_url=HOST) as one, TestClient(app, base_url=HOST) as other:
        page = one.get(f"/runs/{demo.run.id}")
        one.post("/reason", data={**fields(page), "reason": "x"}, headers=ORIGIN)
        assert "Why do you read" not in one.get(f"/runs/{demo.run.id}").text
        assert "Why do you read" in other.get(f"/runs/{demo.run.id}").text


def test_a_reason_of_the_settings_is_enough(demo: Demo, visit: Visit) -> None:
    """With `read_reason` set nobody is asked."""
    client = visit(demo.settings(read_reason_required=True, read_reason="on call"))
    assert "Why do you read" not in client.get(f"/runs/{demo.run.id}").text
    assert "set-cookie" not in client.get("/runs").headers


def test_behind_a_proxy_with_tls(demo: Demo, visit: Visit) -> None:
    """A form whose origin is https is taken behind a proxy with TLS; under TLS of our own one from http is not."""
    client = visit(demo.settings(), token=TOKEN)
    asked = client.get("/runs")
    sent = {**fields(asked), "token": TOKEN}
    assert client.post("/login", data=sent, headers={"Origin": HOST.replace("http", "https")}).status_code == 303
    own = visit(demo.settings(), token=TOKEN, scheme="https", base_url="https://127.0.0.1:8765")
    sent = {**fields(own.get("/runs")), "token": TOKEN}
    assert own.post("/login", data=sent, headers={"Origin": HOST}).status_code == 403


def test_a_visit_ends(demo: Demo) -> None:
    """After twelve hours a visitor is asked again, and of a thousand the one that came first is forgotten."""
    now = [0.0]
    visits = Visits(TOKEN, clock=lambda: now[0])

    def known(identifier: str) -> bool:
        headers = [(b"cookie", f"{visits.cookie}={identifier}".encode())]
        return visits.of(Request({"type": "http", "headers": headers})).admitted

    stranger = visits.of(Request({"type": "http", "headers": []}))
    assert not stranger.admitted
    first = visits.admit(stranger)
    assert known(first.id)
    now[0] = 12 * 3600 - 1
    assert known(first.id)
    now[0] = 12 * 3600 + 1
    assert not known(first.id)
    first = visits.admit(stranger)
    for _ in range(1_000):
        visits.admit(stranger)
    assert not known(first.id)
