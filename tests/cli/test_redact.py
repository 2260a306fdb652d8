"""`sealtrace redact` and `sealtrace policy test`, as processes with pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
