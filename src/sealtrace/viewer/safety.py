"""What a browser may do here, and who may ask.

A page of another site must not be able to read a run through the reader's browser: not by a name that
it lets point at this machine (DNS rebinding: the Host header), not by a frame, a script or a picture
(fetch metadata, the policies), not by a form it sends (Origin).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import problem

__all__ = ["POLICY", "Gate", "is_loopback"]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The content security policy of every page: nothing inline, nothing from elsewhere, no HTML from script."""

_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # To no other origin; with `no-referrer` a browser would also hide the Origin of the page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
_SAFE: Final = frozenset({"GET", "HEAD"})
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach a server bound to it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Gate:
    """Stands before the whole application.

    Args:
        app: The application.
        hosts: Names and addresses it may be asked for by, besides loopback's.
        scheme: `http` or `https`, as browsers see it.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), *, scheme: str = "http") -> None:
        self._app = app
        self._hosts = frozenset(name.lower().strip("[]") for name in (*_LOOPBACK, *hosts))
        self._scheme = scheme
        # Plain HTTP may be the last step behind a proxy to which the browser speaks TLS.
        self._schemes = ("https",) if scheme == "https" else ("http", "https")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on and add the headers."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if self._scheme == "https":
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], headers)
        if refusal is None:
            await self._app(scope, receive, guarded)
            return
        await problem(*refusal)(scope, receive, guarded)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Status and reason why a request is not passed on; None if it is."""
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            return 400, "The request names no host, or several."
        name = _name(hosts[0])
        if name is None or name not in self._hosts:
            return 421, (
                "This server answers under other names only; a page elsewhere may have pointed its own name at this"
                " machine. If the name is yours, start the server with --allow-host and it."
            )
        if method not in _SAFE:
            if method != "POST":
                return 405, f"{method[:20]} is not done here."
            if headers.get("origin") not in [f"{scheme}://{hosts[0]}" for scheme in self._schemes]:
                return 403, "The form was sent by another page than this server's. Open the page here and try again."
        return self._elsewhere(method, headers)

    @staticmethod
    def _elsewhere(method: str, headers: Headers) -> tuple[int, str] | None:
        site = headers.get("sec-fetch-site", "none")
        if site in ("none", "same-origin"):
            return None
        link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if link and method in _SAFE:
            return None
        return 403, "Another site may link to a run, and nothing more. Open the link itself."


def _name(host: str) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises where it is no port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or parts.username is not None or parts.password is not None:
        return None
    return (parts.hostname or "").lower() or None
