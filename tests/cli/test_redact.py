"""`sealtrace redact` and `sealtrace policy test`, as processes with pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_MAIL = "jane.roe@corp-mail.example"


def _sealtrace(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SEALTRACE_KEY": "a key for the tests only"}
    done = subprocess.run(
        [sys.executable, "-c", "from sealtrace.cli import main; main()", *arguments],
        input=given.encode(), capture_output=True, env=environment, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_text_comes_out_redacted() -> None:
    """Text stays text to the last character; counts go to standard error."""
    done = _sealtrace("redact", "--counts", given=f"é {_MAIL}\r\nline two\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("é <EMAIL:")
    assert done.stdout.endswith(">\r\nline two\n")
    assert json.loads(done.stderr) == {"EMAIL": 1}


def test_each_line_of_jsonl_is_redacted_by_itself() -> None:
    """What one line gives away by a field is not replaced in another, and equal values have equal tags."""
    lines = [{"last_name": "Quux", "m": _MAIL}, {"note": "Quux wrote"}, f"mail {_MAIL}", 5, None]
    done = _sealtrace("redact", "--jsonl", given="".join(json.dumps(line) + "\n" for line in lines))
    assert done.returncode == 0, done.stderr
    safe = [json.loads(line) for line in done.stdout.splitlines()]
    assert safe[0]["last_name"].startswith("<NAME:")
    assert safe[1:] == [{"note": "Quux wrote"}, f"mail {safe[0]['m']}", 5, None]


def test_a_line_that_is_not_json_ends_it() -> None:
    """It is not passed through and not guessed at: exit code 1 and the line's number."""
    done = _sealtrace("redact", "--jsonl", given=f'1\n{{"a": {_MAIL}\n3\n')
    assert done.returncode == 1
    assert "line 2" in done.stderr
    assert done.stdout == "1\n"


def test_profile_and_policy(tmp_path: Path) -> None:
    """Options choose the profile and the policy; a wrong policy is one line that names the line."""
    key = "AIzaSyA" + "b1C2d3E4" * 4
    assert "<SECRET:" in _sealtrace("redact", "--profile", "strict", given=key).stdout
    assert _sealtrace("redact", "--profile", "balanced", given=key).stdout == key
    path = tmp_path / "p.toml"
    path.write_text('off = ["EMAIL"]\n', encoding="utf-8")
    assert _MAIL in _sealtrace("redact", "--policy", str(path), given=_MAIL).stdout
    path.write_text('profile = "strict"\nofff = []\n', encoding="utf-8")
    done = _sealtrace("policy", "test", str(path))
    assert done.returncode == 1
    assert "line 2" in done.stderr


def test_policy_test_counts_and_never_quotes(tmp_path: Path) -> None:
    """It says how many of each kind, for a policy alone and for a policy on a file."""
    path = tmp_path / "p.toml"
    path.write_text('off = ["IP"]\n', encoding="utf-8")
    alone = json.loads(_sealtrace("policy", "test", str(path), "--json").stdout)
    assert alone["kinds"]["IP"] == "let through"
    assert {kind for kind, state in alone["kinds"].items() if state == "found"} == set(alone["kinds"]) - {"IP"}
    sample = tmp_path / "sample.txt"
    sample.write_text(f"{_MAIL} from 193.99.144.80", encoding="utf-8")
    done = _sealtrace("policy", "test", str(sample), "--policy", str(path))
    assert done.returncode == 0, done.stderr
    assert "EMAIL            1" in done.stdout
    assert "jane" not in done.stdout


def _piped(given: bytes, *arguments: str) -> tuple[int, bytes, bytes]:
    environment = {**os.environ, "SEALTRACE_KEY": "a key for the tests only"}
    command = [sys.executable, "-c", "from sealtrace.cli import main; main()", "redact", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("given", "begins", "ends"),
    [
        (b'\xef\xbb\xbf{"last_name": "Quux"}\r\n', b'\xef\xbb\xbf{"last_name": "<NAME:', b'>"}\r\n'),
        (b'{"a": "\xff\xfe jane.roe@corp-mail.example"}\n', b'{"a": "\xff\xfe <EMAIL:', b'>"}\n'),
        (b'{"a": "\\ud83d jane.roe@corp-mail.example \xc3\xa9"}\n', b'{"a": "\\ud83d <EMAIL:', b' \\u00e9"}\n'),
        (b'{"a": 1, "a": "jane.roe@corp-mail.example", "n": 1e999}\n', b'{"a": 1, "a": "<EMAIL:', b"}\n"),
        (b'\r\n\n {"a":1,\r"b":  2}\t\r\n', b"\r\n\n {", b'{"a":1,\r"b":  2}\t\r\n'),
        (b'"mail jane.roe@corp-mail.example"', b'"mail <EMAIL:', b'>"'),
        (b"4111111111111111\nnull\n", b"9090", b"\nnull\n"),
        (b"", b"", b""),
    ],
)
def test_odd_lines_keep_their_manner(given: bytes, begins: bytes, ends: bytes) -> None:
    """Marks, line ends, spacing, broken UTF-8, names that occur twice: what is not found comes out as it went in."""
    code, out, errors = _piped(given, "--jsonl")
    assert (code, errors) == (0, b"")
    assert out.startswith(begins)
    assert out.endswith(ends)
    assert b"jane" not in out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b'1\n{"a": NaN}\n', b"line 2 is not JSON"),
        (b"1\n" + b"[" * 100_000 + b"]" * 100_000, b"line 2 is nested too deeply"),
        (b"1\n" + b"[" * 100 + b"]" * 100, b"line 2: the payload is nested too deeply"),
        (b"1\n{'a': 'jane.roe@corp-mail.example'}\n", b"line 2 is not JSON"),
        (b"1\n\x00\xff\n", b"line 2 is not JSON"),
    ],
)
def test_what_is_no_json_ends_it_with_the_line(given: bytes, said: bytes) -> None:
    """One line on standard error, no traceback, and nothing of the line."""
    code, out, errors = _piped(given, "--jsonl")
    assert (code, out) == (1, b"1\n")
    assert said in errors
    assert errors.count(b"\n") == 1
    assert b"jane" not in errors


def test_text_of_any_bytes_comes_out_as_it_went_in() -> None:
    """What holds nothing is the same to the last byte, whatever it is."""
    for given in (bytes(range(256)) * 20, b"\xc3\x28 \x80\x00\r", b'{"a": 1}\r\n'):
        assert _piped(given) == (0, given, b"")


def test_utf_16_is_refused() -> None:
    """No detector would find anything in it, and it would look as if nothing were there."""
    code, out, errors = _piped("jane.roe@corp-mail.example".encode("utf-16"))
    assert (code, out) == (1, b"")
    assert b"UTF-8" in errors


def test_whoever_reads_may_go_and_the_disk_may_be_full() -> None:
    """The first is no failure, the second is one line."""
    environment = {**os.environ, "SEALTRACE_KEY": "a key for the tests only"}
    command = [sys.executable, "-c", "from sealtrace.cli import main; main()", "redact", "--jsonl"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"1\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"1\n", "each line is written when it is done"
        process.stdout.close()
        process.stdin.write(b"2\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, input=b"1\n", stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1


def test_a_sample_that_cannot_be_read(tmp_path: Path) -> None:
    """A directory, and text in which nothing could be found."""
    wide = tmp_path / "wide.txt"
    wide.write_bytes(_MAIL.encode("utf-16"))
    for sample in (tmp_path, wide, tmp_path / "missing.txt"):
        done = _sealtrace("policy", "test", str(sample))
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
