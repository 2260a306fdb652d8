"""A server whose page is the content itself: what a careless viewer would be, or an attacker's site."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Naive:
    """The server, on loopback.

    Attributes:
        content: What its page shows, as it is.
        port: Where it listens.
        asked: Paths it was asked for, in order.
    """

    def __init__(self) -> None:
        self.content = "plain"
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                page = f"<!doctype html><title>x</title><main>{outer.content}"
                self.send_response(200 if self.path == "/" else 204)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page.encode("utf-8", "replace"))

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port

    @contextlib.contextmanager
    def running(self) -> Iterator[Naive]:
        """Until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
