"""`sealtrace serve`: the page behind the link."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SettingsError
from ..settings import Settings, load_settings
from ._options import Reason, Telemetry, Vault

if TYPE_CHECKING:
    from uvicorn import Config

__all__ = ["serve"]


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.", min=0, max=65535)] = 8765,
    vault: Vault = None,
    telemetry: Telemetry = None,
    reason: Reason = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name this server may be asked for by, besides loopback's; may be given again."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM file with the certificate.", show_default=False)] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM file with its key.", show_default=False)] = None,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Serve other machines without TLS, behind a proxy that has it, say.")
    ] = False,
) -> None:
    """Serve the viewer: runs as pages, read with your own credentials.

    On loopback anybody on this machine may read. For other machines a token is needed
    (SEALTRACE_VIEWER_TOKEN), and TLS unless --insecure-http says otherwise.
    """
    settings = load_settings({"vault": vault, "telemetry": telemetry, "read_reason": reason})
    if not settings.vault and not settings.telemetry:
        raise SettingsError(
            "nothing to show: set SEALTRACE_VAULT or SEALTRACE_TELEMETRY, or pass --vault or --telemetry",
            setting="vault",
        )
    if (tls_cert is None) is not (tls_key is None):
        raise SettingsError("a certificate needs its key: give both --tls-cert and --tls-key")
    _refuse_open_doors(settings, host, tls=tls_cert is not None, insecure=insecure_http)
    config = _config(settings, host, port, allow_host or [], (tls_cert, tls_key))
    _run(config, "https" if tls_cert is not None else "http")


def _refuse_open_doors(settings: Settings, host: str, *, tls: bool, insecure: bool) -> None:
    """Other machines come in with a token and by TLS.

    Raises:
        SettingsError: They would not.
    """
    from ..viewer.safety import is_loopback

    if is_loopback(host):
        return
    if settings.viewer_token is None:
        raise SettingsError(
            f"{host} can be reached from other machines: set SEALTRACE_VIEWER_TOKEN to a long random text, which they"
            " will have to show, or serve 127.0.0.1",
            setting="viewer_token",
        )
    if not tls and not insecure:
        raise SettingsError(
            f"{host} can be reached from other machines, and without TLS token and payloads could be read on the way:"
            " give --tls-cert and --tls-key, or --insecure-http where a proxy has TLS"
        )


def _config(settings: Settings, host: str, port: int, names: list[str], tls: tuple[Path | None, Path | None]) -> Config:
    from uvicorn import Config

    from ..viewer.app import create_app

    certificate, key = tls
    token = settings.viewer_token.get_secret_value() if settings.viewer_token is not None else None
    allowed = [*names, *([host] if host not in ("0.0.0.0", "::") else [])]  # noqa: S104 - compared, not bound
    app: Any = create_app(
        settings, token=token, allowed_hosts=allowed, scheme="https" if certificate is not None else "http"
    )
    config = Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        # Forwarded headers would let a visitor say who they are and under which name they came.
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=100,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:
        raise SettingsError(f"the certificate and its key cannot be used ({error.strerror or error})") from None
    return config


def _run(config: Config, scheme: str) -> None:
    from uvicorn import Server

    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        opened = socket.create_server((config.host, config.port), family=family)
    except OSError as error:
        place = f"{config.host}, port {config.port}"
        raise SettingsError(f"cannot listen on {place} ({error.strerror}): choose another with --port") from None
    with opened:
        address, port = opened.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        sys.stdout.write(f"sealtrace viewer: {scheme}://{shown}:{port}/runs (stop with Ctrl-C)\n")
        sys.stdout.flush()
        Server(config).run(sockets=[opened])
