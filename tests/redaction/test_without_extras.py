"""With nothing installed but sealtrace itself, the default engine does all the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from redaction.evasions import CASES
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor


def _without(program: str, *arguments: str) -> Any:
    """What a program prints, as JSON, in a process that cannot import what extras install."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    whole = "import redaction.without_extras, json, sys\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", whole, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_default_engine_finds_the_same() -> None:
    """Every spelling of the evasion suite comes to the same, under the same ruleset; nothing of an extra is loaded."""
    values, digest, loaded = _without(
        """
        from redaction.evasions import CASES
        from redaction.without_extras import HIDDEN
        from sealtrace.keys import Keys
        from sealtrace.redaction import Policy, Redactor
        redactor = Redactor(Policy(), Keys(b"a key for the tests only"), timeout=60)
        values = [redactor.redact(text + " " * 5000).value for _, text, _ in CASES]
        print(json.dumps([values, redactor.ruleset_hash, sorted(HIDDEN & set(sys.modules))]))
        """
    )
    here = Redactor(Policy(), Keys(b"a key for the tests only"), timeout=60)
    assert loaded == []
    assert digest == here.ruleset_hash
    assert values == [here.redact(text + " " * 5000).value for _, text, _ in CASES]


@pytest.mark.parametrize(
    ("policy", "extra"),
    [
        ('engine = "hyperscan"', "fast"),
        ('[[detectors]]\nname = "ticket"\nkind = "TICKET"\npattern = "TCK-[0-9]+"', "fast"),
        ('also = ["kingfisher"]', "secrets"),
        ('also = ["presidio"]', "presidio"),
    ],
)
def test_what_needs_an_extra_is_refused_where_it_is_asked_for(tmp_path: Path, policy: str, extra: str) -> None:
    """`instrument()` says which extra to install; nothing weaker runs in its place, nor anything at all."""
    path = tmp_path / "policy.toml"
    path.write_text(policy, encoding="utf-8")
    message, setting, running = _without(
        """
        import sealtrace
        from sealtrace import agents_sdk
        try:
            sealtrace.instrument(vault=sys.argv[1], redaction_policy=sys.argv[2])
        except sealtrace.SealtraceError as error:
            print(json.dumps([str(error), error.setting, agents_sdk._runtime is not None]))
        """,
        (tmp_path / "vault").as_uri(),
        str(path),
    )
    assert f"sealtrace[{extra}]" in message
    assert setting == "redaction_policy"
    assert not running
    assert not (tmp_path / "vault").exists()


def test_a_policy_for_one_tool_is_refused_as_early(tmp_path: Path) -> None:
    """An engine that only an override would need is missed at once, not when the tool is first called."""
    path = tmp_path / "policy.toml"
    path.write_text('also = ["kingfisher"]\n[[overrides]]\nscope = "tool:x"\noff = ["IP"]\n', encoding="utf-8")
    (message,) = _without(
        """
        from sealtrace.errors import SettingsError
        from sealtrace.keys import Keys
        from sealtrace.redaction import Policy, Redactor
        from pathlib import Path
        try:
            Redactor(Policy.from_file(Path(sys.argv[1])), Keys())
        except SettingsError as error:
            print(json.dumps([str(error)]))
        """,
        str(path),
    )
    assert "sealtrace[secrets]" in message
