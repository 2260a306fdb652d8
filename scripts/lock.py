"""Write the files in locks/ from pyproject.toml, or check offline that they still belong to it.

    python3 scripts/lock.py            resolve anew: newest versions that pyproject.toml allows (after scripts/setup)
    python3 scripts/lock.py --check    exit 1 if pyproject.toml asks for something the locks were not made from

uv.lock is not used because it writes the address of a package index into every entry; these files hold
names, versions and hashes only, so they work with whatever index or mirror the machine is set up for.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
LOCKS: Final = ROOT / "locks"

VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    "dev": (),
    "oldest": ("openai-agents==0.22.0",),
}
"""Each lock, and what it is held to beyond pyproject.toml."""

UV: Final = "uv==0.13.9"


def inputs(project: dict[str, Any], pins: tuple[str, ...]) -> str:
    """Digest of everything that decides what a lock must contain."""
    table = project["project"]
    asked = {
        "build": project["build-system"]["requires"],
        "python": table["requires-python"],
        "dependencies": table["dependencies"],
        "extras": table.get("optional-dependencies", {}),
        "groups": project["dependency-groups"],
        "pins": pins,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def compile_lock(name: str, pins: tuple[str, ...], project: dict[str, Any]) -> None:
    """Resolve one lock for every platform and Python that pyproject.toml allows."""
    asked = [*project["build-system"]["requires"], "editables>=0.5", *pins]
    body = _uv_compile("pyproject.toml", "--group", "dev", "--universal", "-", lines=asked)
    _write(name, inputs(project, pins), body)


def stale(project: dict[str, Any]) -> list[str]:
    """Names of locks that were not made from this pyproject.toml."""
    return [name for name, pins in VARIANTS.items() if _recorded(name) != inputs(project, pins)]


def _uv_compile(*arguments: str, lines: list[str]) -> str:
    command = [
        *(_uv(), "pip", "compile", "--quiet", "--python-version", "3.11", "--no-header", "--no-annotate"),
        *("--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", *arguments),
    ]
    done = subprocess.run(command, cwd=ROOT, input="\n".join(lines), text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout


def _uv() -> str:
    own = ROOT / ".tools" / "bin" / "uv"
    return str(own) if own.is_file() else "uv"


def _write(name: str, digest: str, body: str) -> None:
    (LOCKS / f"{name}.txt").write_text(f"# Written by scripts/lock.py; inputs: {digest}\n{body}", encoding="utf-8")


def _recorded(name: str) -> str:
    path = LOCKS / f"{name}.txt"
    return path.read_text(encoding="utf-8").partition("\n")[0].rpartition(" ")[2] if path.is_file() else ""


def main(arguments: list[str]) -> int:
    """Run as a command; see the module's docstring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if arguments == ["--check"]:
        names = stale(project)
        if names:
            print(f"pyproject.toml changed, the locks {', '.join(names)} did not: run python3 scripts/lock.py")
        return 1 if names else 0
    LOCKS.mkdir(exist_ok=True)
    _write("uv", UV, _uv_compile("-", "--universal", lines=[UV]))
    for name, pins in VARIANTS.items():
        compile_lock(name, pins, project)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
