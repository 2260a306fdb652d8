"""A golden in a fresh environment: only the built wheel, no network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replay.shop_project import RUN_ID, Project, environment, record

ROOT = Path(__file__).parents[1]


def _uv() -> str:
    found = shutil.which("uv") or shutil.which("uv", path=ROOT / ".tools" / "bin")
    if found is None:
        pytest.skip("uv is not installed: it makes the fresh environment")
    return found


def _or_skip(what: str, command: list[str | Path], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        pytest.skip(f"{what} does not work offline here: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a new environment with the wheel and pytest, from the local package cache."""
    uv, home = _uv(), tmp_path_factory.mktemp("fresh")
    _or_skip("building the wheel", [uv, "build", "--quiet", "--wheel", "--offline", "--out-dir", home, ROOT], home)
    _or_skip("a new environment", [uv, "venv", "--quiet", "--offline", "--python", sys.executable, home / "venv"], home)
    python = home / "venv" / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--offline", "--python", python, *home.glob("*.whl"), "pytest"]
    _or_skip("installing from the cache", install, home)
    return python


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a golden whose vault is gone."""
    source = tmp_path_factory.mktemp("shop") / "source"
    record(source)
    made = Project(source, source.with_name("project"))
    vault = (made.directory / "vault").as_uri()
    added = made.sealtrace(
        *("golden", "add", RUN_ID, "--name", "refund", "--entry", "shop:triage", "--reason", "kept", "--vault", vault)
    )
    assert added.returncode == 0, added.stderr
    shutil.rmtree(made.directory / "vault")
    return made


def _without_network() -> list[str]:
    """Words before a command that take the network away, where the system lets us."""
    words = ["unshare", "--map-root-user", "--net"]
    try:
        works = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        works = False
    return words if works else []


def test_a_golden_needs_nothing_but_the_wheel(fresh: Path, project: Project) -> None:
    """In a fresh environment, by the installed plugin and without network: it passes, fails on a changed prompt."""
    command = [*_without_network(), str(fresh), "-m", "pytest", "--sealtrace", "-v", "-p", "no:cacheprovider"]
    plugins = environment()
    del plugins["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=project.directory, env=plugins, capture_output=True, text=True, check=False, timeout=300
        )

    passed = run()
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "tests/golden/refund.json::refund PASSED" in passed.stdout
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    failed = run()
    assert failed.returncode == pytest.ExitCode.TESTS_FAILED
    assert "$.request.instructions" in failed.stdout
    assert project.effects == []
