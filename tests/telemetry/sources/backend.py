"""A loopback HTTP server that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

Answer: TypeAlias = tuple[int, str, bytes]
"""Status, content type, body."""


class FakeBackend:
    """What a test sees of the server.

    Attributes:
        address: host:port.
        asked: Path and query of every request, in order.
        headers: The headers of the last request.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: dict[str, str] = {}


@contextlib.contextmanager
def serving(answer: Callable[[str, dict[str, str]], Answer]) -> Iterator[FakeBackend]:
    """Serve until the block ends; `answer` gets the path and the query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            backend.asked.append((parts.path, query))
            backend.headers = dict(self.headers.items())
            status, kind, body = answer(parts.path, query)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status in (301, 302):
                self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    backend = FakeBackend(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield backend
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
