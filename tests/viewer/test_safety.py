"""Who gets an answer, and what a browser may do with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from sealtrace.viewer.safety import POLICY, is_loopback

from .conftest import Demo

Visit = Callable[..., TestClient]


@pytest.fixture
def client(demo: Demo, visit: Visit) -> TestClient:
    """A viewer of the demo's run."""
    return visit(demo.settings())


PATHS = (
    *("/", "/runs", "/runs/{run}", "/runs/{run}/events/3", "/runs/{run}/events/3.json", "/runs/{run}/lines"),
    *("/traces/{trace}", "/compare", "/reruns", "/healthz", "/static/viewer.css", "/static/viewer.js", "/nothing"),
)


def _filled(path: str, demo: Demo) -> str:
    return path.format(run=demo.run.id, trace=demo.run.trace_id)


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_guarded(client: TestClient, demo: Demo, path: str) -> None:
    """Pages, files, redirects and refusals alike: nothing inline, nothing from elsewhere, nothing kept, no frame."""
    answer = client.get(_filled(path, demo))
    headers = answer.headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    assert "set-cookie" not in headers


def test_the_policy_allows_nothing_inline() -> None:
    """No source but the page's own origin, and no HTML made by script."""
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert {rules[name] for name in ("script-src", "style-src", "img-src", "connect-src", "form-action")} == {"'self'"}
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", ["evil.test", "evil.test:8765", "127.0.0.1.evil.test", "10.0.0.7", "0x7f.1"])
def test_a_foreign_name_gets_nothing(client: TestClient, demo: Demo, path: str, host: str) -> None:
    """Whatever is asked for under a name that is not this server's, the answer is 421 and says what to do."""
    answer = client.get(_filled(path, demo), headers={"Host": host})
    assert answer.status_code == 421
    assert "--allow-host" in answer.text
    assert demo.run.id not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "[::1]:8765", "127.0.0.1", "viewer.internal:443"])
def test_its_own_names_are_answered(demo: Demo, visit: Visit, host: str) -> None:
    """Loopback's names and those it was started with, with any port."""
    client = visit(demo.settings(), allowed_hosts=["Viewer.internal"])
    assert client.get("/runs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["", "a b", "localhost:x", "me@localhost", "localhost/x", "localhost?x", "[::1"])
def test_a_host_that_is_none(client: TestClient, host: str) -> None:
    """A Host header that is no host is nobody's name."""
    assert client.get("/runs", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_done_here(client: TestClient, demo: Demo, path: str, method: str) -> None:
    """No other method is known, anywhere."""
    assert client.request(method, _filled(path, demo)).status_code == 405


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/nothing"])
def test_pages_take_no_form(client: TestClient, demo: Demo, path: str) -> None:
    """A page that is only read refuses a POST even from itself."""
    answer = client.post(_filled(path, demo), headers={"Origin": "http://127.0.0.1:8765"})
    assert answer.status_code == 405


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://evil.test", "https://127.0.0.1", "http://127.0.0.1", "http://127.0.0.1:8766", "http://localhost:8765"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/reason", "/login", "/logout"])
def test_a_form_from_elsewhere(client: TestClient, path: str, origin: str | None) -> None:
    """A form that another origin sent, or none that says which, is refused before it is read."""
    answer = client.post(path, headers={"Origin": origin} if origin else {}, data={"csrf": "x"})
    assert answer.status_code == 403
    assert "another page" in answer.text


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "navigate", "document", 200),
        ("same-site", "navigate", "document", 200),
        ("none", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("cross-site", "cors", "empty", 403),
        ("cross-site", "no-cors", "script", 403),
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "object", 403),
        ("same-site", "no-cors", "style", 403),
        ("same-site", "cors", "empty", 403),
        ("cross-site", "websocket", "empty", 403),
    ],
)
def test_another_site_may_link_and_nothing_more(
    client: TestClient, demo: Demo, site: str, mode: str, dest: str, status: int
) -> None:
    """A link in Jaeger opens a run; a script, a picture, a frame or a fetch of another site gets nothing."""
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    answer = client.get(f"/runs/{demo.run.id}", headers=headers)
    assert answer.status_code == status
    assert (demo.run.id in answer.text) is (status == 200)


def test_a_web_socket_is_closed(client: TestClient) -> None:
    """There is nothing to be had by web socket."""
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/runs"):
        pass


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static/",
        "/static/viewer.css/x",
        "/static/%00",
        "/static/C:%5Cwindows",
        "/runs/../../etc/passwd",
        "/runs/..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_path_leads_out(client: TestClient, path: str) -> None:
    """Two files are served by name, and no other path is a file's."""
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert "import" not in answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    ("host", "is_it"),
    [
        *[(name, True) for name in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")],
        *[(name, False) for name in ("0.0.0.0", "::", "10.0.0.1", "example.test", "", "localhost.evil.test")],
    ],
)
def test_what_loopback_is(host: str, is_it: bool) -> None:
    """Only addresses that no other machine can reach."""
    assert is_loopback(host) is is_it
