"""What `sealtrace doctor` looks at; each check gives rows, none changes anything that stays."""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import SealtraceError, VaultDenied
from ..settings import Settings

if TYPE_CHECKING:
    from ..vault import S3Store

__all__ = ["Level", "Row", "capture_rows", "import_row", "other_processors", "others_rows", "place_rows", "span_rows"]

_CONTENT_SWITCHES: Final = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": ("false", "0", "no_content"),
    "TRACELOOP_TRACE_CONTENT": ("false", "0"),
}
"""Environment variables by which other instrumentations are told to put content on spans."""

_LOG_SWITCHES: Final = ("OPENAI_AGENTS_DONT_LOG_MODEL_DATA", "OPENAI_AGENTS_DONT_LOG_TOOL_DATA")
_OURS: Final = "SealtraceProcessor"


class Level(StrEnum):
    """How bad a row is."""

    OK = "ok"
    NOTE = "note"
    """Good to know; nothing leaks and everything is recorded."""
    BAD = "bad"
    """Content leaks, or runs are not recorded as they are meant to be."""


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One finding: what was looked at, how it stands, and what to do."""

    what: str
    level: Level
    text: str


# the SDK and our place in it


def capture_rows(settings: Settings) -> Iterator[Row]:
    """The SDK, its seams, whether tracing is on, and who else listens; while instrumented."""
    from ..agents_sdk import compat

    report = compat.check()
    yield Row("Agents SDK", Level.OK, f"openai-agents {report.sdk_version}")
    missing = [name for name, found in report.seams.items() if not found]
    if missing:
        text = f"{', '.join(missing)}: not in this SDK version; runs are recorded from traces alone and cannot be rerun"
        yield Row("seams", Level.BAD, text)
    else:
        yield Row("seams", Level.OK, f"all {len(report.seams)} found: {', '.join(report.seams)}")
    yield _tracing(report.tracing_disabled, settings)
    yield _vendor(report.vendor_exporter, settings)
    yield from _processors(report.processors)


def _tracing(disabled: bool, settings: Settings) -> Row:
    if not disabled:
        return Row("SDK tracing", Level.OK, "on")
    if settings.record_when_tracing_disabled:
        text = "off, as Zero Data Retention wants it; runs are recorded all the same, as set, without SDK spans"
        return Row("SDK tracing", Level.OK, text)
    text = "off, so nothing is recorded; set SEALTRACE_RECORD_WHEN_TRACING_DISABLED=1 to record all the same"
    return Row("SDK tracing", Level.BAD, text)


def _vendor(registered: bool | None, settings: Settings) -> Row:
    what = "SDK's exporter to its vendor"
    if settings.keep_openai_exporter:
        return Row(what, Level.BAD, "kept, as set: prompts and tool data leave the process; unset keep_openai_exporter")
    if registered is None:
        return Row(what, Level.BAD, "cannot be seen in this SDK version; check by hand that it is not registered")
    if registered:
        text = "registered: content leaves the process; call sealtrace.instrument() after whatever adds it"
        return Row(what, Level.BAD, text)
    return Row(what, Level.OK, "not registered")


def _processors(names: tuple[str, ...] | None) -> Iterator[Row]:
    if names is None:
        yield Row("trace processors", Level.NOTE, "cannot be seen in this SDK version")
        return
    others = other_processors(names)
    if others:
        text = f"{', '.join(others)}: gets every span with its content; remove it or make sure of what it sends"
        yield Row("other trace processors", Level.BAD, text)
    else:
        yield Row("other trace processors", Level.OK, "none")


def other_processors(names: tuple[str, ...]) -> list[str]:
    """The trace processors that are not ours."""
    return [name for name in names if name != _OURS]


# where things go


def place_rows(settings: Settings) -> Iterator[Row]:
    """Where payloads go and how long they stay."""
    if settings.vault is None:
        text = "none set: runs leave spans only; set SEALTRACE_VAULT to file:///path or s3://bucket/prefix"
        yield Row("payloads", Level.BAD, text)
    else:
        yield _vault(settings.vault, settings)
        yield from _spool(settings)
        days = settings.retention
        yield Row("retention", Level.OK, f"days: io {days.io}, content {days.content}, meta {days.meta}")


def _vault(url: str, settings: Settings) -> Row:
    from ..vault import S3Store, open_store

    try:
        store = open_store(url, settings)
        if not isinstance(store, S3Store):
            return _folder(store.url, Path(store.url.removeprefix("file://")))
        lists = _lists(store)
        store.try_put("io/v1/trial")
    except SealtraceError as error:
        return Row("payloads", Level.BAD, f"{url}: {error}")
    rest = "these credentials may list too, which a writer need not" if lists else "and no listing, as for a writer"
    return Row("payloads", Level.OK, f"{store.url}: takes puts, {rest}")


def _lists(store: S3Store) -> bool:
    try:
        next(iter(store.list("meta/v1/")), None)
    except VaultDenied as error:
        if error.reason != "AccessDenied":
            raise
        return False
    return True


def _folder(url: str, root: Path) -> Row:
    there = next((item for item in (root, *root.parents) if item.exists()), root)
    if not os.access(there, os.W_OK | os.X_OK):
        return Row("payloads", Level.BAD, f"{url}: {there} cannot be written by this user")
    state = "can be written" if there == root else f"will be made in {there}"
    return Row("payloads", Level.OK, f"{url}: {state}")


def _spool(settings: Settings) -> Iterator[Row]:
    """What waits for the vault, here and in processes that run or ran, and why."""
    from ..vault import troubles, waiting

    if settings.spool is None:
        text = "none: what the vault does not take waits in memory only, and is lost with the process"
        yield Row("spool", Level.NOTE, f"{text}; set SEALTRACE_SPOOL to a directory")
        return
    folder = _folder(f"file://{settings.spool}", settings.spool)
    text = "outlives its process" if settings.key is not None else "is lost with its process, since no key is set"
    yield Row("spool", folder.level, f"{folder.text}; what waits there {text}")
    if not settings.spool.is_dir():
        return
    for found in troubles(settings.spool):
        text = f"process {found.pid} has stored nothing since {found.since} ({found.reason}): {found.message}"
        yield Row("storing", Level.BAD, text)
    records, size = waiting(settings.spool)
    if records:
        text = f"{records} records of processes that ended wait, {size} B; `sealtrace spool drain` stores them"
        yield Row("waiting", Level.NOTE, text)
    for process, used in _running(settings.spool).items():
        if used >= settings.spool_bytes:
            text = f"{process} has {used} B of {settings.spool_bytes}: new payloads are dropped; raise spool_bytes"
            yield Row("waiting", Level.BAD, text)


def _running(spool: Path) -> dict[str, int]:
    return {
        folder.name: sum(path.stat().st_size for path in folder.glob("*.spool"))
        for folder in spool.iterdir()
        if folder.is_dir()
    }


def span_rows(settings: Settings, *, application: bool) -> Iterator[Row]:
    """Where spans go, and where they can be read.

    Args:
        settings: The settings in force.
        application: Whether the application was imported, so that its tracer provider should be there.
    """
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    provider: Any = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        exporters = _exporters(provider)
        service = provider.resource.attributes.get("service.name")
        level = Level.OK if exporters else Level.BAD
        yield Row("spans", level, f"service {service}: {', '.join(exporters) or 'no exporter, so they go nowhere'}")
    elif application:
        text = "the application sets up no OpenTelemetry tracer provider: spans go nowhere, payloads are still recorded"
        yield Row("spans", Level.BAD, text)
    else:
        told = [f"{name}={os.environ[name]}" for name in _EXPORT_SWITCHES if os.environ.get(name)]
        text = "the application's tracer provider; name it with --import to see where that sends them"
        yield Row("spans", Level.NOTE, f"{text} ({', '.join(told)})" if told else text)
    yield _source(settings)


_EXPORT_SWITCHES: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def _exporters(provider: Any) -> list[str]:
    processors: Any = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", ())
    return [
        f"{type(processor).__name__}({type(exporter).__name__})"
        if (exporter := getattr(processor, "span_exporter", None)) is not None
        else type(processor).__name__
        for processor in processors
    ]


def _source(settings: Settings) -> Row:
    from ..telemetry.sources import open_source

    if settings.telemetry is None:
        return Row("reading spans", Level.NOTE, "no source set; `show` reads payloads alone; set SEALTRACE_TELEMETRY")
    try:
        return Row("reading spans", Level.OK, f"from {open_source(settings.telemetry, settings).name}")
    except SealtraceError as error:
        return Row("reading spans", Level.BAD, str(error))


# who else might carry content away


def others_rows() -> Iterator[Row]:
    """Other instrumentations and logs that carry content."""
    for name, harmless in _CONTENT_SWITCHES.items():
        value = os.environ.get(name, "")
        if value and value.lower() not in harmless:
            text = f"{name}={value} tells instrumentations to put content on spans; unset it"
            yield Row("content switch", Level.BAD, text)
    for name in _LOG_SWITCHES:
        if os.environ.get(name, "1").lower() not in ("1", "true"):
            text = f"{name} is off: the SDK's debug log holds prompts and tool data; unset it"
            yield Row("SDK debug log", Level.BAD, text)
    for point in entry_points(group="opentelemetry_instrumentor"):
        if point.dist is None or point.dist.name == "sealtrace" or "openai" not in point.dist.name:
            continue
        text = (
            f"{point.dist.name} puts content on spans under opentelemetry-instrument if told to; "
            f"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS={point.name} stops it"
        )
        yield Row("other instrumentation", Level.NOTE, text)


def import_row(module: str) -> Row:
    """Import the application, so that what it registers can be seen."""
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - whatever the application's import raises is the finding
        return Row("application", Level.BAD, f"importing {module} failed: {type(error).__name__}: {error}")
    return Row("application", Level.OK, f"{module} imported")
