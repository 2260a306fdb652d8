"""What is refused, with which status, and that the page says what to do."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .bucket import Bucket
from .chromium import REBOUND, Browser
from .naive import Naive
from .runs import Shelf
from .serving import Viewer, serving


@pytest.fixture(scope="module")
def client(viewer: Viewer) -> Iterator[httpx.Client]:
    """Asks the viewer without a browser."""
    with httpx.Client(base_url=viewer.url, timeout=30) as out:
        yield out


@pytest.fixture
def site() -> Iterator[Naive]:
    """Another site; the browser finds it at `REBOUND`."""
    with Naive().running() as running:
        yield running


class Trap:
    """A server that nothing may ever connect to.

    Attributes:
        address: Where it listens.
        callers: How many came.
        heard: What they said.
    """

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._socket.getsockname())
        self.callers = 0
        self.heard = b""
        self._closing = False
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            caller, _ = self._socket.accept()
            with caller:
                if self._closing:
                    return
                self.callers += 1
                caller.settimeout(1)
                with contextlib.suppress(OSError):
                    self.heard += caller.recv(1000)

    def close(self) -> None:
        """Stop listening, when the last caller has had time to speak."""
        if self._closing:
            return
        self._closing = True
        host, port = self.address.split(":")
        socket.create_connection((host, int(port))).close()
        self._thread.join()
        self._socket.close()


@pytest.fixture
def trap() -> Iterator[Trap]:
    """One of them."""
    made = Trap()
    yield made
    made.close()


def helpful(answer: httpx.Response, *words: str) -> None:
    """The answer is a page of the viewer's own, guarded like every other, that says what to do and nothing more."""
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<h1>" in answer.text
    assert 'role="alert"' in answer.text
    assert "Traceback" not in answer.text
    for word in words:
        assert word in answer.text


# another name for this machine


@pytest.mark.parametrize("host", ["evil.test", "evil.test:{port}", "127.0.0.1.evil.test", "169.254.169.254", "0.0.0.0"])
@pytest.mark.parametrize(
    "path", ["/runs", "/runs/{run}", "/runs/{run}/events/0.json", "/static/viewer.css", "/healthz"]
)
def test_a_foreign_host_is_misdirected(
    client: httpx.Client, viewer: Viewer, shelved: Shelf, host: str, path: str
) -> None:
    """Under a name that is not the viewer's nothing is answered, not even a style sheet."""
    where = path.format(run=shelved.whole)
    answer = client.get(where, headers={"Host": host.format(port=viewer.port)})
    assert answer.status_code == 421
    helpful(answer, "--allow-host")
    assert shelved.whole not in answer.text


@pytest.mark.parametrize("host", ["", "a b", "127.0.0.1:x", "user@127.0.0.1", "127.0.0.1/evil", "[::1", "127.0.0.1#x"])
def test_a_broken_host_is_refused(client: httpx.Client, host: str) -> None:
    """What is no host is none of the viewer's."""
    answer = client.get("/runs", headers={"Host": host})
    assert answer.status_code in (400, 421)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:{port}", "LOCALHOST", "[::1]:{port}"])
def test_names_of_this_machine_are_answered(client: httpx.Client, viewer: Viewer, host: str) -> None:
    """Under loopback's own names the viewer answers."""
    assert client.get("/runs", headers={"Host": host.format(port=viewer.port)}).status_code == 200


def test_a_rebound_name_shows_nothing(browser: Browser, viewer: Viewer, shelved: Shelf) -> None:
    """In the browser, a foreign name that leads to the viewer ends at a page that says so."""
    address = f"http://{REBOUND}:{viewer.port}/runs/{shelved.whole}"
    browser.open(address)
    assert (address, 421) in browser.listen()
    assert "Not under this name" in browser.text
    assert shelved.whole not in browser.text
    browser.trouble(status=421)


# another site


def test_another_site_gets_nothing_but_a_link(browser: Browser, viewer: Viewer, shelved: Shelf, site: Naive) -> None:
    """A page of another site can frame, embed, fetch and post to no run; a link to one opens it."""
    run = viewer.run(shelved.whole)
    site.content = f"""
      <iframe name=frame src="{run}"></iframe>
      <script src="{run}/events/0.json"></script>
      <img src="{run}">
      <link rel=stylesheet href="{viewer.url}/static/viewer.css">
      <object data="{run}"></object>
      <form id=form method=post action="{viewer.url}/reason"><input name=reason value=x></form>
      <a id=link href="{run}">link</a>
      <script>
        window.seen = [];
        const tell = (what) => (answer) => window.seen.push(what + ": " + answer);
        const get = (mode) => fetch("{run}/events/0.json", {{ mode, credentials: "include" }})
          .then((answer) => answer.text().then((text) => answer.type + " " + text.length), () => "refused");
        const tried = ["cors", "no-cors"].map((mode) => get(mode).then(tell(mode)));
        Promise.all(tried).then(() => {{ window.done = true; }});
      </script>"""
    browser.open(f"http://{REBOUND}:{site.port}/")
    browser.until(lambda: browser.script("return window.done === true"), "the page has not tried all")
    assert sorted(browser.script("return window.seen")) in (
        ["cors: refused", "no-cors: opaque 0"],
        ["cors: refused", "no-cors: refused"],
    )
    assert browser.script("return document.querySelector('object').contentDocument") is None
    browser.script("document.querySelector('#form').submit()")
    browser.until(lambda: "Not with these credentials" in browser.text, "the form was not sent")
    answered = [(url, status) for url, status in browser.listen() if url.startswith(viewer.url)]
    assert (f"{viewer.url}/reason", 403) in answered
    refused = {url for url, status in answered if status == 403}
    assert {run, f"{run}/events/0.json", f"{viewer.url}/reason"} <= refused
    shown = [url for url, status in answered if status != 403]
    assert set(shown) <= {
        f"{viewer.url}/static/{name}" for name in ("viewer.css", "differences.css", "viewer.js", "icon.svg")
    }
    browser.open(f"http://{REBOUND}:{site.port}/")
    browser.one("#link").click()
    browser.one("#panel")
    browser.forget()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_form_of_another_page_is_refused(client: httpx.Client, viewer: Viewer, headers: dict[str, str]) -> None:
    """A POST is taken from the viewer's own pages only."""
    given = {name: value.format(port=viewer.port) for name, value in headers.items()}
    answer = client.post("/reason", data={"reason": "x"}, headers=given)
    assert answer.status_code == 403
    helpful(answer)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_nothing_else_can_be_done(client: httpx.Client, shelved: Shelf, method: str) -> None:
    """No method but GET, HEAD and the few forms' POST is known."""
    assert client.request(method, f"/runs/{shelved.whole}").status_code == 405


@pytest.mark.parametrize("path", ["/runs", "/compare", "/static/viewer.css", "/runs/{run}", "/"])
def test_a_post_without_a_form_there_is_refused(
    client: httpx.Client, viewer: Viewer, shelved: Shelf, path: str
) -> None:
    """Where there is no form there is no POST."""
    answer = client.post(path.format(run=shelved.whole), headers={"Origin": viewer.url})
    assert answer.status_code in (404, 405)


def test_the_policy_would_hold_what_got_through(browser: Browser, viewer: Viewer, shelved: Shelf, trap: Trap) -> None:
    """Were markup ever made of content, no script of it would run, no style apply, and nothing leave the origin."""
    browser.open(viewer.run(shelved.whole))
    tried = browser.driver.execute_async_script(
        """
        const [elsewhere, done] = arguments, out = {};
        const attempt = (name, act) => { try { act(); out[name] = "done"; } catch (error) { out[name] = error.name; } };
        const add = (tag, values) => {
          const made = Object.assign(document.createElement(tag), values);
          made.className = "pwned";
          document.body.append(made);
          return made;
        };
        attempt("markup", () => { document.body.innerHTML = "<p>"; });
        attempt("script", () => { const made = document.createElement("script"); made.text = "window.pwned = 1"; });
        add("p", {}).setAttribute("style", "position: fixed");
        out.style = getComputedStyle(document.querySelector("p.pwned")).position;
        attempt("handler", () => { add("p", {}).setAttribute("onclick", "window.pwned = 1"); });
        for (const made of document.querySelectorAll(".pwned")) made.click();
        add("img", { src: elsewhere + "/i.png" });
        add("iframe", { src: elsewhere });
        add("link", { rel: "stylesheet", href: elsewhere + "/s.css" });
        add("form", { action: elsewhere, method: "post" }).submit();
        fetch(elsewhere).catch(() => setTimeout(() => {  // later: the driver's own calls may use eval
          attempt("eval", () => { window.eval("window.pwned = 1"); });
          out.pwned = window.pwned ?? null;
          done(out);
        }, 200));
        """,
        f"http://{trap.address}",
    )
    refused = dict.fromkeys(("markup", "script", "handler"), "TypeError")
    assert tried == {**refused, "eval": "EvalError", "style": "static", "pwned": None}
    assert browser.path == f"/runs/{shelved.whole}"
    browser.forget()
    trap.close()
    assert trap.heard == b""  # a browser may connect ahead of a request that it then does not make


# addresses


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/static/....//....//etc/passwd",
        "/static//etc/passwd",
        "/static/%00",
        "/static/viewer.css%00.html",
        "/static/..\\..\\html.py",
        "/static/",
        "/runs/../../etc/passwd",
        "/runs/..%2f..%2fmeta",
        "/reruns/..%2f..%2fetc%2fpasswd",
        "/reruns/.",
        "/nothing/here",
    ],
)
def test_no_path_leads_out(client: httpx.Client, path: str) -> None:
    """Whatever climbs out of its folder, or into one, is not there."""
    answer = _raw(client, path)
    assert answer.split(b" ", 2)[1] in (b"400", b"404")
    assert b"root:" not in answer
    assert b"Traceback" not in answer


def _raw(client: httpx.Client, path: str) -> bytes:
    """An answer to exactly this path, which a client would tidy."""
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    with socket.create_connection((host, port), timeout=30) as wire:
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: wire.recv(65_536), b""))


@pytest.mark.parametrize(
    "path",
    [
        "/runs/x",
        "/runs/trace_xyz",
        "/runs/trace_" + "g" * 32,
        "/runs/" + "a" * 5000,
        "/runs/s3:%2f%2fevil%2fprefix",
        "/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/runs/%ff%fe",
        "/runs/trace_" + "a" * 31 + "%0a",
        "/traces/x",
        "/traces/" + "z" * 32,
        "/runs/{run}/events/x.json",
        "/runs/{run}/events/-1.json",
        "/runs/{run}/events/99999999999999999999.json",
        "/runs/{run}/events/1e3.json",
    ],
)
def test_malformed_ids_are_told_to_be(client: httpx.Client, shelved: Shelf, path: str) -> None:
    """What is no id is answered with 400 or 404, and is not repeated as markup."""
    answer = client.get(path.format(run=shelved.whole))
    assert answer.status_code in (400, 404)
    assert "<script>alert" not in answer.text
    assert "Traceback" not in answer.text
    if not path.endswith(".json"):
        helpful(answer)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/runs/trace_" + "0" * 32, "another vault"),
        ("/traces/" + "0" * 32, "another vault"),
        ("/runs/{run}?event=9999", "15 events, 0 to 14"),
    ],
)
def test_unknown_ids_are_not_found(client: httpx.Client, shelved: Shelf, path: str, words: str) -> None:
    """A well-formed id that nobody knows is 404, and the page says what may be the cause, or what there is."""
    answer = client.get(path.format(run=shelved.whole))
    assert answer.status_code == 404
    helpful(answer, words)


@pytest.mark.parametrize(
    "query", ["event=x", "event=-1", "event=1&event=2", "record=../../x", "view=%3Cb%3E", "event=1&record=zz", "line=x"]
)
def test_odd_parameters_do_no_harm(client: httpx.Client, shelved: Shelf, query: str) -> None:
    """A parameter that means nothing gives a page or a plain refusal, never a failure."""
    answer = client.get(f"/runs/{shelved.whole}?{query}")
    assert answer.status_code in (200, 400, 404)
    assert "<b>" not in answer.text
    assert "Traceback" not in answer.text


# a foreign bucket in a link


@pytest.mark.parametrize(
    "link",
    [
        "/runs/{run}?vault=s3://evil-bucket/x",
        "/runs/{run}?vault=http://{trap}/&endpoint_url=http://{trap}/",
        "/runs/{run}?telemetry=jaeger://{trap}",
        "/traces/{trace}?source=tempo://{trap}",
        "/compare?a=http://{trap}/runs/{run}&b=http://{trap}/runs/{again}",
        "/compare?a=s3://{trap}/runs/{run}&b={again}",
        "/runs?q=http://{trap}/runs/{run}",
        "/runs?telemetry=jaeger://{trap}&vault=s3://evil/x",
        "/runs/http:%2F%2F{trap}%2Fruns%2F{run}",
        "/runs/s3:%2F%2F{trap}%2F{run}",
        "//{trap}/runs/{run}",
    ],
)
def test_a_link_names_no_place(client: httpx.Client, shelved: Shelf, trap: Trap, link: str) -> None:
    """A bucket, an endpoint or a host in a link is passed over or refused; nothing of it is ever asked."""
    path = link.format(run=shelved.whole, again=shelved.again, trace="cd" * 16, trap=trap.address)
    answer = _raw(client, path)
    assert int(answer.split(b" ", 2)[1]) in (200, 303, 400, 404, 409)
    assert b"\r\nlocation: http" not in answer.lower()
    assert b"\r\nlocation: //" not in answer.lower()
    assert trap.callers == 0


# credentials


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    """An S3 server with an empty bucket."""
    with Bucket().running() as running:
        yield running


@pytest.mark.parametrize(
    ("access", "status", "words"),
    [("", 403, "no AWS credentials"), ("nobody", 403, "InvalidAccessKeyId")],
)
def test_missing_and_wrong_credentials(
    browser: Browser, bucket: Bucket, shelved: Shelf, folder: Path, access: str, status: int, words: str
) -> None:
    """Without credentials, or with ones the bucket does not know, the page says so with a status of its own."""
    bucket.reader("meta")
    env = {**bucket.environment(access, access), "HOME": str(folder)}
    with serving(folder, bucket.vault, env=env) as viewer:
        for path in ("/runs", f"/runs/{shelved.whole}", f"/runs/{shelved.whole}/events/0.json"):
            answer = httpx.get(f"{viewer.url}{path}", timeout=30)
            assert answer.status_code == status, path
            assert words in answer.text
            assert "Traceback" not in answer.text
        browser.open(viewer.run(shelved.whole))
        assert browser.one("[role=alert]").text
        assert browser.trouble(status=status) == []


@pytest.mark.parametrize("gone", ["telemetry", "vault"])
def test_a_place_that_does_not_answer(viewer: Viewer, folder: Path, gone: str) -> None:
    """Where neither half can be reached, the page says which could not, and the status that it is not the reader."""
    address = "127.0.0.1:1"
    env = {"SEALTRACE_ENDPOINT_URL": f"http://{address}", "SEALTRACE_MAX_ATTEMPTS": "1", "AWS_ACCESS_KEY_ID": "x",
           "AWS_SECRET_ACCESS_KEY": "x", "SEALTRACE_REGION": "us-east-1"}  # fmt: skip
    places = (None, f"jaeger://{address}") if gone == "telemetry" else ("s3://vault-bucket/x", None)
    with serving(folder, *places, env=env) as lost:
        for path in ("/runs", "/runs/trace_" + "0" * 32):
            answer = httpx.get(f"{lost.url}{path}", timeout=60)
            assert answer.status_code in (502, 503)
            helpful(answer)
