"""Compiled code may name a place in vain, and must not pass over one in which there is something to find."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

_CASES = int(os.environ.get("SEALTRACE_GENERATED_CASES", "1500"))
_SOURCE = Path(__file__).resolve().parents[2] / "fast" / "src" / "sealtrace_fast"
_REQUIRED = os.environ.get("SEALTRACE_REQUIRE_SERVICES") == "1" and not os.environ.get("SEALTRACE_TEST_WITHOUT_EXTRAS")

if not _REQUIRED:
    pytest.importorskip("sealtrace_fast", reason="sealtrace-fast is not built: scripts/setup found no C compiler")

import sealtrace_fast  # noqa: E402 - not everywhere

from redaction.dense import differences, texts  # noqa: E402

_NAMES = sealtrace_fast.names(["mail", "ip"])


def test_nothing_is_passed_over() -> None:
    """In texts full of near matches all that the default engine finds stands where the compiled code says."""
    found = [(text, difference) for text in texts(3, 4 * _CASES) if (difference := differences(text))]
    assert found == []


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("order_1234567 and 0x12345678", []),
        ("on 2024-05-15 at 15:00, or 2024-05-15T10:00", []),
        ("version 1.2.3 at 10:00:00, std::vector", []),
        ("SomeVeryLongNameOfAClass and another_long_name_here", []),
        ("call 555 123 4567 now", [(sealtrace_fast.NUMBER, 5, 17)]),
        ("GB29 NWBK 2024-05-15T", [(sealtrace_fast.NUMBER, 10, 20)]),
        ("from 10.1.2.3:80", [(sealtrace_fast.IPV4, 5, 13)]),
        ("at fe80::1 today", [(sealtrace_fast.IPV6, 3, 10)]),
        ("x dGVzdEBleGFtcGxlLmNvbQ== y", [(sealtrace_fast.ENCODED, 2, 24)]),
    ],
)
def test_what_it_names(text: str, runs: list[tuple[int, int, int]]) -> None:
    """Dates, names and identifiers, which texts of agents are full of, cost no look; what may be something does."""
    assert sealtrace_fast.look(_NAMES, text.encode()) == (runs, [])


def test_named_values() -> None:
    """A value is named by a quoted name that ends with a telling word, whatever signs and numbers are in it."""
    text = '{"e-Mail_2": "a", "mailing": "b", \\"IP\\":\\"c\\", "zip": "", \'clip\': \'d\'}'
    _, named = sealtrace_fast.look(_NAMES, text.encode())
    assert [(text[a:b], text[c:d]) for a, b, c, d in named] == [("e-Mail_2", "a"), ("IP\\", "c"), ("clip", "d")]


def test_wrong_arguments_are_errors() -> None:
    """Nothing but words and bytes is taken."""
    for words in (["Mail"], ["e-mail"], [""], ["a" * 40_000], [1], 1):
        with pytest.raises((ValueError, TypeError)):
            sealtrace_fast.names(words)  # type: ignore[arg-type]
    for names, raw in ((object(), b""), (_NAMES, "text"), (None, b"")):
        with pytest.raises((ValueError, TypeError)):
            sealtrace_fast.look(names, raw)  # type: ignore[arg-type]


def test_it_touches_no_memory_but_its_own(tmp_path: Path) -> None:
    """Under the address and undefined-behaviour sanitizers nothing is read or written out of bounds."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    library = _sanitizer(compiler)
    if library is None:
        assert not _REQUIRED, "no C compiler with sanitizers"
        pytest.skip("no C compiler with sanitizers")
    package = tmp_path / "sealtrace_fast"
    package.mkdir()
    shutil.copy(_SOURCE / "__init__.py", package)
    build = [compiler, "-g", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
             "-fno-sanitize-recover", f"-I{sysconfig.get_paths()['include']}", str(_SOURCE / "_look.c"),
             "-o", str(package / "_look.abi3.so")]  # fmt: skip
    subprocess.run(build, check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": library,
        "PYTHONPATH": os.pathsep.join((str(tmp_path), str(Path(__file__).resolve().parents[1]))),
        "PYTHONMALLOC": "malloc",  # each text ends where its memory does
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's own
    }
    dense = [sys.executable, str(Path(__file__).with_name("dense.py")), str(2 * _CASES), "7"]
    done = subprocess.run(dense, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert str(tmp_path) in done.stdout


def _sanitizer(compiler: str | None) -> str | None:
    if compiler is None or sys.platform != "linux":
        return None
    asked = [compiler, "-print-file-name=libasan.so"]
    name = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return name if Path(name).is_absolute() else None
