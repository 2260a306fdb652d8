"""The doctor: what it lets pass and what it does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sealtrace.cli import run
from sealtrace.cli._checks import Level


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module of this test's own that `--import` finds; it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    made: list[str] = []

    def write(source: str) -> str:
        name = f"app_of_{tmp_path.name}".replace("-", "_").replace("[", "_").replace("]", "_")
        (tmp_path / f"{name}.py").write_text(source)
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and level and text by row."""
    code = run(["doctor", "--json", *arguments])
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is (code == 0)
    return code, {row["what"]: (row["level"], row["text"]) for row in document["rows"]}


def test_a_sound_setup_passes(
    vault_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a vault and a key nothing is bad: the seams are there, the probe is recorded, no exporter listens."""
    monkeypatch.setenv("SEALTRACE_KEY", "k" * 32)
    code, found = rows(capsys, "--vault", vault_url)
    assert code == 0
    assert found["SDK's exporter to its vendor"] == (Level.OK, "not registered")
    assert found["other trace processors"] == (Level.OK, "none")
    assert found["seams"][0] == Level.OK
    assert found["key"][0] == Level.OK
    assert "no content in the spans; record complete" in found["probe run"][1]


def test_the_doctor_leaves_no_trace(vault_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The probe goes to a temporary folder: the vault is not even made."""
    rows(capsys, "--vault", vault_url)
    assert not Path(vault_url.removeprefix("file://")).exists()
    from sealtrace.agents_sdk import current

    assert current() is None


def test_without_a_vault_payloads_are_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    """Spans alone are not what was asked for."""
    code, found = rows(capsys)
    assert code == 1
    assert found["payloads"][0] == Level.BAD


@pytest.mark.parametrize(
    ("variable", "value", "row"),
    [
        ("SEALTRACE_KEEP_OPENAI_EXPORTER", "1", "SDK's exporter to its vendor"),
        ("SEALTRACE_ENABLED", "0", "recording"),
        ("OPENAI_AGENTS_DONT_LOG_MODEL_DATA", "0", "SDK debug log"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true", "content switch"),
        ("OPENAI_AGENTS_DISABLE_TRACING", "1", "SDK tracing"),
        ("SEALTRACE_TELEMETRY", "carrier-pigeon://loft", "reading spans"),
    ],
)
def test_what_leaks_or_cannot_record_is_bad(
    variable: str,
    value: str,
    row: str,
    vault_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each way content may leave, or runs may go unrecorded, has its row and the exit code 1."""
    monkeypatch.setenv(variable, value)
    code, found = rows(capsys, "--vault", vault_url)
    assert code == 1
    assert found[row][0] == Level.BAD


def test_tracing_off_is_fine_where_it_is_recorded_all_the_same(
    vault_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under Zero Data Retention rules tracing is off, and recording without it is a setting."""
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    monkeypatch.setenv("SEALTRACE_RECORD_WHEN_TRACING_DISABLED", "1")
    code, found = rows(capsys, "--vault", vault_url)
    assert found["SDK tracing"][0] == Level.OK
    assert found["probe run"][0] != Level.BAD
    assert code == 0


def test_another_trace_processor_of_the_application_is_bad(
    application: Any, vault_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever else listens gets content; and the probe is not sent through it."""
    name = application(
        "from agents import add_trace_processor\n"
        "from agents.tracing import TracingProcessor\n"
        "class Spy(TracingProcessor):\n"
        "    def on_trace_start(self, trace): raise SystemExit('the probe reached a processor of others')\n"
        "    def on_trace_end(self, trace): pass\n"
        "    def on_span_start(self, span): pass\n"
        "    def on_span_end(self, span): pass\n"
        "    def shutdown(self): pass\n"
        "    def force_flush(self): pass\n"
        "add_trace_processor(Spy())\n"
    )
    code, found = rows(capsys, "--import", name, "--vault", vault_url)
    assert code == 1
    assert found["other trace processors"][0] == Level.BAD
    assert "Spy" in found["other trace processors"][1]
    assert "not made" in found["probe run"][1]


def test_an_application_that_records_is_looked_at_as_it_is(
    application: Any, vault_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An application that keeps the vendor's exporter is found out, whatever the environment says."""
    name = application(f"import sealtrace\nsealtrace.instrument(vault={vault_url!r}, keep_openai_exporter=True)\n")
    code, found = rows(capsys, "--import", name, "--vault", vault_url)
    assert code == 1
    assert found["SDK's exporter to its vendor"][0] == Level.BAD
    assert "already" in found["probe run"][1]


def test_an_application_that_cannot_be_imported_is_bad(
    application: Any, vault_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The doctor says why, in a line."""
    code, found = rows(capsys, "--import", application("raise ValueError('no database')"), "--vault", vault_url)
    assert code == 1
    assert found["application"] == (
        Level.BAD,
        "importing " + found["application"][1].split()[1] + " failed: ValueError: no database",
    )


def test_a_vault_that_cannot_be_written_is_bad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in the place of the folder is found before the first run is lost."""
    (tmp_path / "vault").write_text("not a folder")
    code, found = rows(capsys, "--vault", (tmp_path / "vault").as_uri())
    assert code == 1
    assert found["payloads"][0] == Level.BAD


def test_secrets_among_the_settings_are_not_printed(
    vault_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key is named by its id and otherwise masked."""
    monkeypatch.setenv("SEALTRACE_KEY", "correct horse battery staple")
    for extra in ([], ["--json"]):
        run(["doctor", "--vault", vault_url, *extra])
        assert "horse" not in capsys.readouterr().out


def test_a_bucket_that_does_not_answer_is_bad(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody listens at the endpoint: found before the first run is lost."""
    for name, value in {
        "SEALTRACE_ENDPOINT_URL": "http://127.0.0.1:9",
        "SEALTRACE_MAX_ATTEMPTS": "1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    code, found = rows(capsys, "--vault", "s3://payloads/agents")
    assert code == 1
    assert found["payloads"][0] == Level.BAD


@pytest.mark.parametrize(
    ("exporter", "level", "says"),
    [
        ("provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))", "ok", "ConsoleSpanExporter"),
        ("", "bad", "go nowhere"),
    ],
)
def test_the_applications_exporters_are_named(
    application: Any, vault_url: str, exporter: str, level: str, says: str
) -> None:
    """Where spans go is seen in the application's own provider, in a process of its own."""
    name = application(
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor\n"
        f"provider = TracerProvider()\n{exporter}\ntrace.set_tracer_provider(provider)\n"
    )
    code = "import sys; from sealtrace.cli import run; sys.exit(run(sys.argv[1:]))"
    arguments = ["doctor", "--json", "--import", name, "--vault", vault_url]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, timeout=120, check=False)
    document = json.loads(done.stdout)
    (row,) = [row for row in document["rows"] if row["what"] == "spans"]
    assert row["level"] == level
    assert says in row["text"]
    assert done.returncode == (0 if level == "ok" else 1)
