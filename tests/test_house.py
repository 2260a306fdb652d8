"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sealtrace"
MODULES = sorted(PACKAGE.rglob("*.py"))

SHAPELESS = {"utils", "util", "helpers", "helper", "common", "misc"}
LONGEST = {"agents_sdk/seams.py": 800}
"""Lines a module may have, 400 where not said: the SDK's private names may stand in one module only."""

MAY_USE_THE_SDK = ("agents_sdk/", "replay/", "cli/demo.py", "cli/_demo_agent.py", "cli/_probe.py")
WRITE_SIDE = (
    *("agents_sdk/", "redaction/", "event.py", "keys.py", "pipeline.py", "record.py", "recorder.py", "settings.py"),
    *("vault/writer.py", "vault/segment.py", "vault/openrecord.py", "vault/spool.py", "vault/stores/"),
    *("telemetry/spans.py", "telemetry/gates.py", "telemetry/metadata.py", "telemetry/metrics.py"),
)
READ_SIDE = ("sealtrace.run", "sealtrace.replay", "sealtrace.viewer", "sealtrace.cli", "sealtrace.telemetry.sources")
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        *(("pypi", "org"), ("pythonhosted", "org"), ("registry", "npmjs"), ("crates", "io"), ("proxy", "golang")),
        *(("repo", "maven"), ("repo1", "maven"), ("deb", "debian"), ("anaconda", "org"), ("index", "docker")),
    )
)


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _imports(path: Path) -> Iterator[str]:
    """Full names of what a module imports, also inside functions and under TYPE_CHECKING."""
    package = ("sealtrace", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _under(name: str, parents: tuple[str, ...]) -> bool:
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """What git tracks; a source archive has no such list."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_modules_say_what_they_are_for() -> None:
    """No module is named after nothing in particular."""
    assert [_name(path) for path in MODULES if path.stem.strip("_") in SHAPELESS] == []


def test_modules_stay_short() -> None:
    """A module is at most 400 lines long."""
    lengths = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LONGEST.get(name, 400)} == {}


def test_only_the_capture_and_the_replay_know_the_sdk() -> None:
    """Nothing else imports the Agents SDK, so the read side works where it is not installed."""
    users = {_name(path) for path in MODULES if any(_under(name, ("agents",)) for name in _imports(path))}
    assert {name for name in users if not name.startswith(MAY_USE_THE_SDK)} == set()


def test_only_the_seams_touch_private_names_of_the_sdk() -> None:
    """A private module or name of the Agents SDK is imported in one module only."""
    private = re.compile(r"agents\.(?:.*\.)?(?:_(?!_)|run_internal\b)")
    users = {_name(path) for path in MODULES if any(private.match(name) for name in _imports(path))}
    assert users <= {"agents_sdk/seams.py"}


def test_the_write_side_does_not_know_the_read_side() -> None:
    """Data goes one way: nothing that records imports what reads."""
    found = {
        f"{_name(path)} imports {name}"
        for path in MODULES
        if _name(path).startswith(WRITE_SIDE)
        for name in _imports(path)
        if _under(name, READ_SIDE)
    }
    assert found == set()


def test_reading_does_not_import_the_sdk() -> None:
    """Loading a run imports neither the Agents SDK nor the vendor's client, which take seconds."""
    code = "import sys, sealtrace; sealtrace.load; print(sorted({'agents', 'openai'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_tracked_file_names_a_package_registry(tracked: list[Path]) -> None:
    """Which index packages come from is the machine's affair."""
    naming = [
        str(path.relative_to(ROOT))
        for path in tracked
        if any(host in path.read_bytes().decode("utf-8", "replace") for host in REGISTRIES)
    ]
    assert naming == []


def test_locks_belong_to_the_project_file() -> None:
    """pyproject.toml did not change without the locks."""
    command = [sys.executable, str(ROOT / "scripts" / "lock.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_compiled_part_is_of_the_same_version() -> None:
    """sealtrace[fast] asks for the sealtrace-fast that was made with it, and for no other."""
    whole, part = (
        tomllib.loads((ROOT / name / "pyproject.toml").read_text("utf-8"))["project"] for name in (".", "fast")
    )
    assert part["version"] == whole["version"]
    assert f"sealtrace-fast=={part['version']}" in whole["optional-dependencies"]["fast"]
    assert (ROOT / "fast" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_every_setting_is_documented() -> None:
    """Each setting says what it is for, and docs/settings.md says it too."""
    from sealtrace.settings import Retention, Settings

    fields = {**Settings.model_fields, **Retention.model_fields}
    assert [name for name, field in fields.items() if not field.description] == []
    command = [sys.executable, str(ROOT / "scripts" / "describe_settings.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == done.stdout, f"run {command[1]}"


def test_links_between_documents_lead_somewhere(tracked: list[Path]) -> None:
    """Each relative link of a Markdown file names a file or folder that is there."""
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in tracked
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)\s#]+)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert dead == []


def test_the_index_leads_to_every_document() -> None:
    """No page of the documentation is lost."""
    linked = set(re.findall(r"\]\(([^)\s#/]+)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
    assert {path.name for path in (ROOT / "docs").iterdir() if path.is_file()} - {"index.md"} <= linked


def test_the_readme_names_commands_that_exist() -> None:
    """The two set-up commands can be run, and each `sealtrace` command it shows is one."""
    from sealtrace.cli import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    shown = set(re.findall(r"^sealtrace (\w+)", text, re.MULTILINE)) | set(re.findall(r" {2,}sealtrace (\w+)", text))
    assert len(shown) >= 6
    assert shown <= known
    for script in re.findall(r"^(scripts/\w+)$", text, re.MULTILINE):
        assert os.access(ROOT / script, os.X_OK), script


def test_public_modules_say_what_is_public() -> None:
    """Each module that is not private has `__all__`."""

    def has_all(path: Path) -> bool:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)

    public = [path for path in MODULES if not path.stem.startswith("_")]
    without = [_name(path) for path in public if not has_all(path)]
    assert without == []
