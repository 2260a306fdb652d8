"""One HTTP server on the loopback interface that keeps every byte it is sent."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from . import wire
from .items import Failure, Reply, Step

INGEST_PATH: Final = "/vendor/traces/ingest"
OTLP_SIGNALS: Final = ("traces", "metrics", "logs")

Responder = Callable[[dict[str, Any]], Step]


@dataclass(frozen=True)
class Request:
    """A request as it came in; `body` is what was compressed, uncompressed."""

    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def everything(self) -> bytes:
        """Path, headers and body: all that left the client."""
        lines = [self.path, *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class LoopbackServer:
    """Speaks Responses and Chat Completions, takes trace ingests and OTLP.

    `/v1/responses` and `/v1/chat/completions` answer from the script, whichever is asked first;
    `INGEST_PATH` is where the SDK's own exporter may be pointed; `/otlp/v1/*` is a collector.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.sent: list[bytes] = []
        """What the model endpoints answered."""
        self._script: list[Step] = []
        self._responder: Responder | None = None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def play(self, steps: Iterable[Step] | Responder) -> None:
        """Answer the model requests that follow with these steps, or with what the function says."""
        with self._lock:
            if callable(steps):
                self._responder, self._script = steps, []
            else:
                self._responder, self._script = None, list(steps)

    @property
    def unplayed(self) -> int:
        """Steps of the script that nobody asked for."""
        return len(self._script)

    def forget(self) -> None:
        """Drop what was recorded so far."""
        with self._lock:
            self.requests.clear()
            self.sent.clear()

    def received(self, *suffixes: str) -> list[Request]:
        """Requests whose path, without its query, ends in one of these."""
        with self._lock:
            return [request for request in self.requests if request.path.split("?")[0].endswith(suffixes)]

    @property
    def model_requests(self) -> list[Request]:
        """What the model endpoints were asked."""
        return self.received("/responses", "/chat/completions")

    @property
    def ingested(self) -> list[Request]:
        """What the vendor's trace endpoint was sent."""
        return self.received(INGEST_PATH)

    def otlp(self, signal: str) -> list[bytes]:
        """Raw OTLP protobuf bodies of one signal: `traces`, `metrics` or `logs`."""
        return [request.body for request in self.received(f"/otlp/v1/{signal}")]

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, body: dict[str, Any]) -> Step:
        with self._lock:
            if self._responder is None:
                return self._script.pop(0) if self._script else Failure("the script is exhausted", 418)
            responder = self._responder
        return responder(body)


def _handler_for(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            with server._lock:
                server.requests.append(Request(self.path, tuple(self.headers.items()), body))
            path = self.path.split("?")[0]
            if path.endswith("/responses"):
                self._model(json.loads(body), chat=False)
            elif path.endswith("/chat/completions"):
                self._model(json.loads(body), chat=True)
            elif path.startswith("/otlp/"):
                self._send(200, b"", "application/x-protobuf")
            elif path == INGEST_PATH:
                self._send(204, b"", "application/json")
            else:
                self._send(404, b"{}", "application/json")

        def _model(self, body: dict[str, Any], *, chat: bool) -> None:
            step = server._take(body)
            if isinstance(step, Failure):
                error = {"error": {"message": step.message, "type": "server_error", "code": None, "param": None}}
                self._answer(step.status, json.dumps(error).encode(), "application/json", step.headers)
            elif body.get("stream"):
                events = (wire.completion_chunks if chat else wire.response_events)(body, step)
                self._answer(200, wire.sse(events, named=not chat), "text/event-stream")
            else:
                document = (wire.completion if chat else wire.response)(body, step)
                self._answer(200, json.dumps(document).encode(), "application/json")

        def _answer(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
            with server._lock:
                server.sent.append(body)
            self._send(status, body, kind, headers)

        def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"x-request-id": "req_loopback", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


__all__ = ["INGEST_PATH", "OTLP_SIGNALS", "LoopbackServer", "Reply", "Request"]
