"""One frozen settings object: arguments win over `SEALTRACE_*`, which win over the toml file.

The file is `[tool.sealtrace]` of the nearest `pyproject.toml`, or the file that `SEALTRACE_CONFIG`
names. Every setting has one name: the argument `segment_seconds` is `SEALTRACE_SEGMENT_SECONDS` and
`segment_seconds` in the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from .errors import SettingsError

__all__ = ["Retention", "Settings", "load_settings"]

_PREFIX: Final = "SEALTRACE_"


class Retention(BaseModel):
    """Days after which payloads may be deleted, by what they are.

    Expiry is the store's: "deletable after N days", never "gone at". Kinds with the same days share
    a class, that is, an object prefix.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    io: int = Field(default=30, ge=1, description="what went into and came out of the run: input, output")
    content: int = Field(default=7, ge=1, description="generations, tool payloads, retrieval and the rest")
    meta: int = Field(default=400, ge=1, description="envelopes, configuration, digests, manifests")


def _listed(value: Any) -> Any:
    """A list as the environment writes it: separated by commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class Settings(BaseModel):
    """Everything that can be set.

    Attributes are documented by their `description`; `sealtrace doctor` prints the ones in force.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    vault: str | None = Field(default=None, description="`file:///path` or `s3://bucket/prefix`; none: spans only")
    telemetry: str | None = Field(
        None, description="where spans can be read: `otlp+file:///path`, `jaeger://host:port`, `tempo://host:port`"
    )
    telemetry_headers: SecretStr | None = Field(
        None, description="HTTP headers for that source: `Authorization=Bearer …,X-Scope-OrgID=…`"
    )
    key: SecretStr | None = Field(
        default=None,
        description="secret for pseudonyms and digests, 16 bytes or more; or `kms:` and its KMS ciphertext",
    )
    enabled: bool = Field(default=True, description="off: `instrument()` does nothing")
    reports: Path | None = Field(
        default=None,
        description="directory of kept reports of reruns; `rerun --keep` writes there, the viewer reads it",
    )

    # capture
    keep_openai_exporter: bool = Field(default=False, description="leave the SDK's own exporter to its vendor in place")
    record_when_tracing_disabled: bool = Field(default=False, description="record also where the SDK's tracing is off")
    trace_metadata_keys: tuple[str, ...] = Field(
        default=(), description="trace metadata keys that may become span attributes"
    )
    raw_group_id: bool = Field(
        default=False, description="write `group_id` to spans as it is instead of as a keyed tag"
    )
    replay_url: str | None = Field(
        default=None, description="base URL of the viewer; sets `sealtrace.replay.url` on spans"
    )
    feature_flags: tuple[str, ...] = Field(default=(), description="`name=value` pairs stored in every event's config")
    genai_metrics: bool = Field(
        default=True, description="record the GenAI metrics; off where another instrumentation does"
    )

    # recorder
    queue_events: int = Field(default=10_000, ge=10, description="events that may wait in memory")
    queue_bytes: int = Field(default=64 * 1024 * 1024, ge=65_536, description="payload bytes that may wait in memory")
    exit_timeout: float = Field(default=5.0, gt=0, description="seconds the exit handler may take to store what waits")

    # redaction
    redaction_profile: Literal["strict", "balanced"] = Field(
        "strict", description="how readily a value is taken for a secret"
    )
    redaction_policy: Path | None = Field(default=None, description="a policy file (toml)")
    redaction_timeout: float = Field(
        5.0, gt=0, description="seconds one payload may take to redact before it is dropped"
    )
    max_string_bytes: int = Field(
        default=262_144, ge=1024, description="a longer string is dropped and only its digest kept"
    )

    # vault
    retention: Retention = Field(default=Retention(), description="days per class")
    segment_bytes: int = Field(
        default=1_048_576, ge=65_536, description="a segment is stored when it has this many bytes"
    )
    segment_seconds: float = Field(default=30.0, gt=0, description="or is this old")
    read_audit: bool = Field(default=False, description="keep a line in the vault of every read of payloads")
    read_reason_required: bool = Field(default=False, description="payloads are read only for a stated reason")
    read_reason: str | None = Field(default=None, description="why this process reads payloads; `--reason` wins")
    previous_keys: Annotated[tuple[SecretStr, ...], BeforeValidator(_listed)] = Field(
        default=(), description="earlier values of `key`, with which spools and records can still be read"
    )
    signing_key: Path | None = Field(
        default=None, description="signs manifests: a PEM file with an Ed25519 private key, or `kms:KEY`"
    )
    verify_keys: Path | None = Field(
        default=None, description="PEM file with the public keys (Ed25519, P-256) whose signatures count"
    )
    envelope_key: str | None = Field(
        default=None,
        description="encrypt payloads under a key per record, wrapped by this: `kms:KEY` or `file:/path`; none: not",
    )
    previous_envelope_keys: tuple[str, ...] = Field(
        default=(), description="earlier envelope keys, with which records can still be read"
    )
    spool: Path | None = Field(
        default=None, description="directory for what waits for the vault, encrypted under `key`; none: memory only"
    )
    spool_bytes: int = Field(
        default=67_108_864, ge=65_536, description="bytes that may wait for the vault before payloads are dropped"
    )
    spool_total_bytes: int = Field(
        default=1_073_741_824,
        ge=65_536,
        description="bytes that all processes, dead ones too, may have in `spool`; beyond, records wait in memory",
    )
    endpoint_url: str | None = Field(default=None, description="S3 endpoint, for anything but AWS")
    region: str | None = Field(default=None, description="S3 region")
    kms_key_id: str | None = Field(default=None, description="encrypt objects with this KMS key (SSE-KMS)")
    addressing_style: Literal["auto", "path", "virtual"] = Field(default="auto", description="S3 bucket addressing")
    expected_bucket_owner: str | None = Field(default=None, description="AWS account id that must own the bucket")
    version_days: int = Field(
        default=1, ge=1, description="days a bucket with versions keeps what has expired or was written over"
    )
    ca_bundle: Path | None = Field(default=None, description="CA certificates for the S3 endpoint")
    connect_timeout: float = Field(default=3.0, gt=0, description="seconds")
    read_timeout: float = Field(default=10.0, gt=0, description="seconds")
    max_attempts: int = Field(default=3, ge=1, le=10, description="tries per request")

    # viewer
    viewer_token: SecretStr | None = Field(
        default=None,
        description="what visitors of `sealtrace serve` have to show, 16 characters or more; none: nothing",
    )
    prices: Path | None = Field(
        default=None, description="toml file with what models cost, for the viewer's cost column; none: no such column"
    )


def load_settings(arguments: Mapping[str, Any] | None = None, *, environ: Mapping[str, str] | None = None) -> Settings:
    """Put the settings together.

    Args:
        arguments: What the caller passed; None values count as not passed.
        environ: The environment, `os.environ` by default.

    Raises:
        SettingsError: A name is unknown or a value out of range; the message says which and where
            it came from.
    """
    env = os.environ if environ is None else environ
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for source, values in (_from_file(env), ("environment", _from_environ(env)), ("argument", _given(arguments))):
        for name, value in values.items():
            merged[name] = value
            origin[name] = source
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        where = ".".join(str(part) for part in first["loc"])
        what = "no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise SettingsError(f"setting {where!r} (from {origin.get(name, '?')}): {what}", setting=name) from None


def _given(arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (arguments or {}).items() if value is not None}


def _from_environ(env: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, field in Settings.model_fields.items():
        raw = env.get(_PREFIX + name.upper())
        if not raw:
            continue
        if name == "retention":
            out[name] = dict(part.split("=", 1) for part in raw.split(",") if "=" in part)
        elif field.annotation == tuple[str, ...]:
            out[name] = tuple(part.strip() for part in raw.split(",") if part.strip())
        else:
            out[name] = raw
    return out


def _from_file(env: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    named = env.get(_PREFIX + "CONFIG")
    if named:
        path = Path(named)
        return str(path), _read_toml(path)
    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            table = _read_toml(path).get("tool", {}).get("sealtrace", {})
            return str(path), dict(table)
    return "file", {}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read the settings file {path}: {error}", setting="config") from error
