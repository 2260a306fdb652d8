"""What the server remembers of a visitor: whether they showed the token, and why they read.

The cookie is a random number; what belongs to it stays here, in memory, and is forgotten with the
process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["CSRF", "Visit", "Visits"]

CSRF: Final = "csrf"
"""Name of the form field without which nothing is changed."""

_KNOWN: Final = 1_000
_LASTS: Final = 12 * 3600.0
_ID: Final = re.compile(r"[0-9a-f]{64}\Z")
_FAILURES: Final = 10
_WINDOW: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Visit:
    """A visitor.

    Attributes:
        id: What their cookie says, or will.
        fresh: They brought no cookie.
        admitted: They showed the token, or none is asked for.
        reason: Why they read payloads.
    """

    id: str
    fresh: bool
    admitted: bool
    reason: str | None


@dataclasses.dataclass(slots=True)
class _Known:
    since: float
    admitted: bool = False
    reason: str | None = None


class Visits:
    """All visitors.

    Args:
        token: What they have to show; None where anybody who can reach the server may read.
        secure: Whether they come by TLS.
        clock: The monotonic clock.
    """

    def __init__(self, token: str | None, *, secure: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token
        self._secure = secure
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._failures: list[float] = []
        self._lock = threading.Lock()
        self.cookie = "__Host-sealtrace" if secure else "sealtrace"

    @property
    def guarded(self) -> bool:
        """Whether a token has to be shown."""
        return self._token is not None

    def of(self, request: Request) -> Visit:
        """Who sent a request."""
        given = request.cookies.get(self.cookie, "")
        fresh = not _ID.match(given)
        known = None if fresh else self._lookup(given)
        admitted = self._token is None or (known is not None and known.admitted) or self._bears(request)
        return Visit(secrets.token_hex(32) if fresh else given, fresh, admitted, known.reason if known else None)

    def _lookup(self, identifier: str) -> _Known | None:
        with self._lock:
            known = self._known.get(identifier)
            if known is not None and self._clock() - known.since > _LASTS:
                del self._known[identifier]
                return None
            return known

    def _bears(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.fits(given.strip())

    def fits(self, given: str) -> bool:
        """Whether this is the token."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def too_many(self) -> bool:
        """Whether so many wrong tokens came in the last minute that none is looked at now."""
        with self._lock:
            now = self._clock()
            self._failures = [at for at in self._failures if now - at < _WINDOW]
            return len(self._failures) >= _FAILURES

    def failed(self) -> None:
        """A wrong token came."""
        with self._lock:
            self._failures.append(self._clock())

    def csrf(self, visit: Visit) -> str:
        """What a form sent by this visitor must hold."""
        return hmac.new(self._secret, visit.id.encode(), hashlib.sha256).hexdigest()

    def sent_by(self, visit: Visit, given: str) -> bool:
        """Whether a form is one that this visitor was given."""
        return not visit.fresh and hmac.compare_digest(given.encode(), self.csrf(visit).encode())

    def admit(self, visit: Visit) -> Visit:
        """Remember that they showed the token, under a new number: the old one may be known to others."""
        renewed = dataclasses.replace(visit, id=secrets.token_hex(32), admitted=True)
        self._remember(renewed.id, admitted=True, reason=visit.reason)
        self.forget(visit)
        return renewed

    def give_reason(self, visit: Visit, reason: str) -> None:
        """Remember why they read."""
        known = self._lookup(visit.id)
        self._remember(visit.id, admitted=known is not None and known.admitted, reason=reason)

    def _remember(self, identifier: str, *, admitted: bool, reason: str | None) -> None:
        with self._lock:
            self._known[identifier] = _Known(self._clock(), admitted, reason)
            self._known.move_to_end(identifier)
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)

    def forget(self, visit: Visit) -> None:
        """Let a visitor go."""
        with self._lock:
            self._known.pop(visit.id, None)

    def mark(self, response: Response, visit: Visit) -> Response:
        """Give the visitor their cookie; no script can read it and no other site can send it."""
        response.set_cookie(
            self.cookie, visit.id, max_age=int(_LASTS), path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return response
