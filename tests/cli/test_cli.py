"""The command as a whole: exit codes, errors, what it prints where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from run.halves import RUN, TRACE, Conversation, seal_span, spans_of, write_otlp
from sealtrace import __version__
from sealtrace.cli import run
from sealtrace.vault.stores import LocalStore


@pytest.fixture
def halves(tmp_path: Path) -> list[str]:
    """The options that name both halves of a whole run."""
    made = Conversation(2)
    seal = made.store(LocalStore(tmp_path / "vault"))
    telemetry = write_otlp(tmp_path / "traces.jsonl", [*spans_of(made), seal_span(made, seal)])
    return ["--vault", (tmp_path / "vault").as_uri(), "--telemetry", telemetry]


def test_show_prints_the_tree_and_every_payload(halves: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The whole run on standard output, nothing on standard error, no colour where it is piped."""
    assert run(["show", RUN, *halves]) == 0
    out, err = capsys.readouterr()
    assert "status   complete" in out
    assert "invoke_workflow Support" in out
    assert all(f"#{seq} " in out for seq in range(8))
    assert "\x1b" not in out
    assert err == ""


def test_show_without_payloads_is_the_tree_alone(halves: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`--no-payloads` leaves content out."""
    assert run(["show", RUN, "--no-payloads", *halves]) == 0
    out = capsys.readouterr().out
    assert "invoke_workflow Support" in out
    assert "│ tool:" not in out


def test_show_one_event_whole(halves: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`--event` and a link's `?event=` give the same one event."""
    assert run(["show", RUN, "--event", "2", *halves]) == 0
    by_option = capsys.readouterr().out
    assert run(["show", f"https://viewer.example/traces/{TRACE}?event=2", *halves]) == 0
    by_link = capsys.readouterr().out
    assert by_option == by_link
    assert by_option.startswith("#2 tool_call")
    assert "#3" not in by_option


def test_show_json_is_one_document(halves: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints the run, or with `--event` the event, as JSON and nothing else."""
    assert run(["show", RUN, "--json", *halves]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["id"], document["status"], len(document["events"])) == (RUN, "complete", 8)
    assert run(["show", RUN, "--event", "1", "--json", *halves]) == 0
    event = json.loads(capsys.readouterr().out)
    assert event == document["events"][1]


def test_json_output_acts_on_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes in content are escaped in the JSON."""
    made = Conversation(1)
    made.events[2].payload["arguments"] = "\x1b]52;c;x\x07\u202e"
    made.store(LocalStore(tmp_path / "vault"))
    assert run(["show", RUN, "--json", "--vault", (tmp_path / "vault").as_uri()]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert "\x1b" not in out
    assert json.loads(out)["events"][2]["payload"]["arguments"] == "\x1b]52;c;x\x07\u202e"


@pytest.mark.parametrize("source", ["vault", "telemetry"])
def test_runs_lists_from_either_half(halves: list[str], source: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is there with one half alone, as a table and as JSON."""
    options = halves[:2] if source == "vault" else halves[2:]
    assert run(["runs", *options]) == 0
    assert RUN in capsys.readouterr().out
    assert run(["runs", "--json", *options]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["run_id"], row["trace_id"], row["status"], row["agents"]) == (RUN, TRACE, "ok", ["support"])


def test_runs_puts_the_records_of_one_run_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A resumed run is one row, with the events of all its records and the worst of their ends."""
    store = LocalStore(tmp_path / "vault")
    Conversation(1).store(store)
    Conversation(1, seed=2).store(store, status="error", started_at="2026-12-01T10:00:00.000000Z",
                                  ended_at="2026-12-01T10:00:01.000000Z")  # fmt: skip
    Conversation(1, run_id="trace_" + "cc" * 16).store(store)
    vault = ["--vault", (tmp_path / "vault").as_uri()]
    assert run(["runs", "--json", *vault]) == 0
    rows = {row["run_id"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows[RUN]["events"], rows[RUN]["status"], len(rows)) == (10, "error", 2)
    for filters, expected in (
        (["--limit", "1"], 1),
        (["--errors"], 1),
        (["--agent", "support"], 2),
        (["--agent", "nobody"], 0),
        (["--tool", "lookup"], 2),
        (["--tool", "other"], 0),
    ):
        assert run(["runs", "--json", *filters, *vault]) == 0
        assert len(json.loads(capsys.readouterr().out)) == expected


def test_runs_says_when_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty vault is no error."""
    assert run(["runs", "--vault", (tmp_path / "vault").as_uri()]) == 0
    assert capsys.readouterr().out.strip() == "no runs"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["show", "f" * 32, "--vault", "{vault}"], 3, "no run"),
        (["show", RUN, "--event", "99", "--vault", "{vault}"], 3, "no event 99"),
        (["show", RUN, "--vault", "gopher://x"], 1, "gopher"),
        (["show", RUN], 1, "SEALTRACE_VAULT"),
        (["runs"], 1, "SEALTRACE_TELEMETRY"),
        (["runs", "--telemetry", "otlp+file:///no/such/file"], 1, "no OTLP file"),
        (["show", "https://viewer.example/\x1b[31m", "--vault", "{vault}"], 3, "the link holds no run"),
    ],
)
def test_errors_are_one_line_with_a_code(
    halves: list[str], arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of ours is one plain line on standard error, no traceback, and its documented code."""
    assert run([argument.replace("{vault}", halves[1]) for argument in arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sealtrace: ")
    assert says in err
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["show"], ["show", RUN, "--event", "x"], ["runs", "--limit", "0"], []]
)
def test_a_wrong_command_line_has_a_code_of_its_own(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """64, so that no caller takes a typing error for a divergence (2)."""
    assert run(arguments) == 64
    assert capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Both print and end well; the help names every command."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"sealtrace {__version__}"
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("demo", "runs", "show", "doctor"))


def _command(*arguments: str, **more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "from sealtrace.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **more},
    )


def test_a_reader_that_goes_away_is_no_failure(halves: list[str]) -> None:
    """`sealtrace show … | head` ends quietly."""
    process = _command("show", RUN, "--json", *halves)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert errors == b""


def test_reading_does_not_load_the_agents_sdk(halves: list[str]) -> None:
    """`show` and `runs` start without the SDK, which takes seconds to import and may be absent."""
    code = (
        "import sys; from sealtrace.cli import run; code = run(sys.argv[1:]); "
        "assert code == 0, code; assert 'agents' not in sys.modules and 'boto3' not in sys.modules"
    )
    for arguments in (["show", RUN, *halves], ["runs", *halves]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()


def test_output_survives_a_terminal_that_is_not_utf8(halves: list[str]) -> None:
    """On an ASCII stream everything is still printed, in other signs."""
    process = _command("show", RUN, *halves, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    assert b"invoke_workflow" in out


def test_show_states_its_reason(
    halves: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a reason is required, `--reason` gives it, and without one nothing is shown."""
    monkeypatch.setenv("SEALTRACE_READ_REASON_REQUIRED", "1")
    assert run(["show", RUN, *halves]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "--reason" in err
    assert run(["show", RUN, "--reason", "ticket 4711", *halves]) == 0


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_has_enough_is_no_failure(halves: list[str], more: list[str]) -> None:
    """`sealtrace show RUN | head -1` ends with 0 and says nothing: that nobody reads on is not a fault."""
    command = [sys.executable, "-c", "from sealtrace.cli import main; main()", "show", RUN, *more, *halves]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
