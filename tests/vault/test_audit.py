"""The audit: every read and every erasure says who, what and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from sealtrace.errors import SettingsError, VaultUnavailable
from sealtrace.settings import Settings
from sealtrace.vault import Audit, VaultReader, audit_lines
from vault.records import RUN, Conversation, local
from vault.test_writer import Unsteady


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> InMemoryLogRecordExporter:
    """What goes to OpenTelemetry's logs."""
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("sealtrace.vault.audit.get_logger", provider.get_logger)
    return exporter


def test_a_read_is_noted_once_in_both_places(tmp_path: Path, logs: InMemoryLogRecordExporter) -> None:
    """Reading payloads leaves one line and one log record, however many payloads; envelopes leave none."""
    store, run = local(tmp_path), Conversation(3)
    run.store(store)
    settings = Settings(read_audit=True)
    audit = Audit.of_reads(store, settings, reason="ticket 42", who="ada")
    (record,) = VaultReader(store, audit=audit).records(RUN)
    record.envelopes()
    assert audit_lines(store) == []
    record.events()
    record.payload(1)
    (line,) = audit_lines(store)
    assert (line.what, line.who, line.reason) == ("read", "ada", "ticket 42")
    assert line.about == {"run_id": RUN, "record_id": run.record_id}
    (emitted,) = logs.get_finished_logs()
    attributes: Any = emitted.log_record.attributes
    assert attributes["sealtrace.audit.who"] == "ada"
    assert attributes["sealtrace.run.id"] == RUN
    assert emitted.log_record.event_name == "sealtrace.audit.read"


def test_without_the_setting_only_the_log_record_is_kept(tmp_path: Path, logs: InMemoryLogRecordExporter) -> None:
    """A reader who may not put still leaves a log record."""
    store = local(tmp_path)
    Conversation(1).store(store)
    audit = Audit.of_reads(store, Settings(), reason=None)
    VaultReader(store, audit=audit).records(RUN)[0].events()
    assert audit_lines(store) == []
    assert len(logs.get_finished_logs()) == 1


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_required_reason_is_required(tmp_path: Path, reason: str | None) -> None:
    """Where settings ask for a reason there is no reading without one."""
    with pytest.raises(SettingsError, match="reason"):
        Audit.of_reads(local(tmp_path), Settings(read_reason_required=True), reason=reason)


def test_what_cannot_be_noted_is_not_read(tmp_path: Path) -> None:
    """If the line cannot be stored the payloads are not handed out."""
    store = Unsteady(tmp_path / "vault")
    Conversation(1).store(store)
    store.refusal = VaultUnavailable("away")
    audit = Audit.of_reads(store, Settings(read_audit=True), reason="x")
    (record,) = VaultReader(store, audit=audit).records(RUN)
    for read in (record.events, lambda: record.payload(0)):
        with pytest.raises(VaultUnavailable):
            read()


def test_damaged_lines_do_not_hide_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A line somebody spoiled is reported, and the rest is still listed."""
    store = local(tmp_path)
    Audit(store, who="ada").write("erase", {})
    store.put("meta/v1/audit/2026-12-01/000000-x-0000.json", b'{"what":1', sha256=b"")
    assert [line.what for line in audit_lines(store)] == ["erase"]
    assert "cannot read an audit line" in caplog.text
