"""One small HTTP client for trace backends: GET, bounded, no redirects."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlencode, urlsplit

from ...errors import SettingsError, TelemetryError
from ...settings import Settings

__all__ = ["Backend", "days_of"]

_TIMEOUT: Final = 15.0
_MAX_ANSWER: Final = 256 * 1024 * 1024
_DAYS: Final = 30


class Backend:
    """A trace backend's HTTP side.

    Args:
        url: `jaeger://host:port/base?days=30`; `jaeger+https://` for TLS. `days` is how far back to search.
        settings: For `telemetry_headers`.

    Attributes:
        name: The address without query, for messages.
        days: How many days back a search goes.

    Raises:
        SettingsError: The URL or the headers cannot be used.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        parts, transport = _checked(url)
        backend = parts.scheme.partition("+")[0]
        self.name = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.days = days_of(parts.query)
        self._base = f"{transport or 'http'}://{parts.netloc}{parts.path.rstrip('/')}"
        self._setting = f"check that {backend} answers at {self._base}"
        self._headers = _headers(settings)
        self._opener = _opener()

    def get(self, path: str, query: Mapping[str, Any], *, accept: str) -> tuple[bytes, str] | None:
        """The body of the answer and its content type; None for a 404.

        Raises:
            TelemetryError: No answer, or one that says no.
        """
        url = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        request = urllib.request.Request(url, headers={"Accept": accept, **self._headers})  # noqa: S310 - http or https, see _checked
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                body = answer.read(_MAX_ANSWER + 1)
                kind = answer.headers.get_content_type()
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                raise TelemetryError(self._refused(error.code)) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise TelemetryError(f"{self.name} did not answer ({reason}); {self._setting}") from None
        if len(body) > _MAX_ANSWER:
            raise TelemetryError(f"{self.name} sent more than {_MAX_ANSWER} bytes; ask for less")
        return body, kind

    def _refused(self, code: int) -> str:
        if code in (401, 403):
            return f"{self.name} refused the credentials (HTTP {code}); set SEALTRACE_TELEMETRY_HEADERS"
        return f"{self.name} answered with HTTP {code}; {self._setting}"


def _opener() -> urllib.request.OpenerDirector:
    """As `build_opener` makes it, but for redirects: following one would hand on the credentials."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _checked(url: str) -> tuple[SplitResult, str]:
    scheme = url.partition("://")[0]
    transport = scheme.partition("+")[2]
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable or transport not in ("", "http", "https"):
        raise SettingsError(
            f"the telemetry URL {scheme}://… needs a host and a port, for example jaeger://127.0.0.1:16686",
            setting="telemetry",
        )
    if parts.username is not None or parts.password is not None:
        raise SettingsError(
            "credentials do not belong in the telemetry URL; set SEALTRACE_TELEMETRY_HEADERS", setting="telemetry"
        )
    return parts, transport


def days_of(query: str) -> int:
    """How far back to search, from a telemetry URL's query: `days=90`.

    Raises:
        SettingsError: It is no number of days.
    """
    given = parse_qs(query).get("days", [str(_DAYS)])[-1]
    if not given.isdecimal() or not 0 < int(given) <= 3650:
        raise SettingsError("`days` of the telemetry URL must be a whole number from 1 to 3650", setting="telemetry")
    return int(given)


def _headers(settings: Settings) -> dict[str, str]:
    if settings.telemetry_headers is None:
        return {}
    out: dict[str, str] = {}
    for pair in settings.telemetry_headers.get_secret_value().split(","):
        name, separator, value = pair.partition("=")
        if not separator or not name.strip() or not value.strip().isprintable():
            raise SettingsError("write headers as Name=value,Other=value", setting="telemetry_headers")
        out[name.strip()] = value.strip()
    return out
