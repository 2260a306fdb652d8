"""Golden runs as pytest tests, in a user's project of its own process."""

from __future__ import annotations

import json

import pytest

from replay.shop_project import RUN_ID, Project, record


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The project with a recorded run and its golden; the vault is gone again."""
    source = tmp_path_factory.mktemp("shop") / "source"
    record(source)
    made = Project(source, source.with_name("with_golden"))
    done = made.sealtrace(
        *("golden", "add", RUN_ID, "--name", "refund", "--entry", "shop:triage", "--reason", "the good path"),
        *("--vault", (made.directory / "vault").as_uri()),
    )
    assert done.returncode == 0, done.stderr
    (made.directory / "effects.txt").write_text("")
    (made.directory / "vault").rename(source.with_name("elsewhere"))
    return made.directory


@pytest.fixture
def project(recorded, tmp_path):
    """A copy to change."""
    return Project(recorded, tmp_path / "project")


def test_unchanged_code_passes(project):
    """With nothing changed the golden passes, without vault, key, model or side effect."""
    done = project.pytest("--sealtrace", "-v")
    assert done.returncode == 0, done.stdout
    assert "tests/golden/refund.json::refund PASSED" in done.stdout
    assert project.effects == []


def test_without_the_option_nothing_is_collected(project):
    """Goldens are collected only when asked for."""
    assert project.pytest().returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_changed_prompt_fails_with_the_path(project):
    """A changed prompt fails, with path, both texts and class, and without a traceback into sealtrace."""
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    done = project.pytest("--sealtrace")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    for part in ("$.request.instructions", '"TRIAGE: route."', '"TRIAGE v2: route."', "CONFIG", "SIMULATION"):
        assert part in done.stdout
    assert "Traceback" not in done.stdout
    assert project.effects == []


def test_code_that_fails_is_named(project):
    """Where the code itself raises, the report says what."""
    project.change("async def desk(text):", "async def desk(text):\n    raise KeyError('no desk')\n")
    golden = json.loads(project.golden.read_text())
    golden["entry"] = "shop:desk"
    project.golden.write_text(json.dumps(golden))
    done = project.pytest("--sealtrace")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "the code raised KeyError" in done.stdout


def test_code_that_cannot_be_imported_is_named(project):
    """A golden whose code is gone fails with one sentence."""
    project.change("triage = Agent(", "sorter = Agent(")
    project.change("Runner.run(triage", "Runner.run(sorter")
    done = project.pytest("--sealtrace")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "shop has no triage" in done.stdout


def test_edited_golden_fails(project):
    """An edit of the golden by hand is a failure, not a new truth."""
    project.golden.write_text(project.golden.read_text().replace("TRIAGE: route.", "TRIAGE v2: route."))
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    done = project.pytest("--sealtrace")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "edited by hand" in done.stdout


def test_accept_with_a_reason(project):
    """An accepted change passes from then on, and the golden says what changed and why."""
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    project.change("Look an order up.", "Find an order.")
    assert project.pytest("--sealtrace", "--sealtrace-accept", "--reason", "new tone").returncode == 0
    history = json.loads(project.golden.read_text())["history"]
    assert [(change["action"], change["reason"]) for change in history] == [
        ("added", "the good path"),
        ("accepted", "new tone"),
    ]
    assert history[1]["what"] == [
        "event 2 generation $.request.instructions",
        "event 2 generation $.request.tools[0].description",
    ]
    assert project.pytest("--sealtrace").returncode == 0
    assert project.effects == []


def test_accept_of_nothing_changes_nothing(project):
    """Accepting when nothing differs leaves the file byte for byte."""
    before = project.golden.read_bytes()
    assert project.pytest("--sealtrace", "--sealtrace-accept", "--sealtrace-reason", "x").returncode == 0
    assert project.golden.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--sealtrace", "--sealtrace-accept", "--reason", "x"], {"CI": "true"}, "CI is set"),
        (["--sealtrace", "--sealtrace-accept"], {}, "needs --reason"),
        (["--sealtrace-accept", "--reason", "x"], {}, "needs --sealtrace"),
    ],
)
def test_accept_is_refused(project, arguments, environment, message):
    """In CI, or without a reason, nothing is accepted and nothing runs."""
    project.change("TRIAGE: route.", "TRIAGE v2: route.")
    before = project.golden.read_bytes()
    done = project.pytest(*arguments, **environment)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stderr
    assert project.golden.read_bytes() == before


def test_marker_and_fixture(project):
    """A test of the user's own opens a golden by marker or name; a divergence there shows the report."""
    (project.directory / "tests" / "test_own.py").write_text(
        "import asyncio\nimport pytest\nimport sealtrace\nimport shop\nfrom agents import Runner\n\n"
        "@pytest.mark.sealtrace('refund')\ndef test_same(sealtrace_golden):\n"
        "    golden = sealtrace_golden()\n"
        "    with sealtrace.rerun(golden.run) as session:\n"
        "        asyncio.run(Runner.run(shop.triage, golden.input))\n"
        "    assert session.report.exit_code == 0\n\n"
        "def test_other(sealtrace_golden):\n"
        "    with sealtrace.rerun(sealtrace_golden('refund').run):\n"
        "        asyncio.run(Runner.run(shop.triage, 'something else'))\n"
    )
    done = project.pytest("-v", "--strict-markers", PYTHONPATH=str(project.directory))
    assert "test_own.py::test_same PASSED" in done.stdout
    assert "test_own.py::test_other FAILED" in done.stdout
    assert "class: INPUT" in done.stdout
    assert '"something else"' in done.stdout
    selected = project.pytest("--sealtrace", "-m", "sealtrace", "-q", PYTHONPATH=str(project.directory))
    assert "2 passed, 1 deselected" in selected.stdout


def test_checks_are_put_to_goldens(project):
    """Checks named in pytest's settings are put to each golden; one that fails fails the test."""
    (project.directory / "shop_checks.py").write_text(
        "import sealtrace\n\n@sealtrace.check\ndef cheap(run):\n    yield 'costs too much'\n\n"
        "@sealtrace.check\ndef fine(run):\n    return True\n"
    )
    (project.directory / "pytest.ini").write_text("[pytest]\nsealtrace_checks =\n    shop_checks:fine\n")
    assert project.pytest("--sealtrace").returncode == 0
    (project.directory / "pytest.ini").write_text("[pytest]\nsealtrace_checks = shop_checks\n")
    done = project.pytest("--sealtrace")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "failed         cheap" in done.stdout
    assert "costs too much" in done.stdout


def test_another_plugins_reason_is_left_alone(project):
    """A project whose own plugin has `--reason` keeps it; ours has a longer name as well."""
    (project.directory / "other_plugin.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--reason', default='')\n"
    )
    done = project.pytest(
        *("-p", "other_plugin", "--sealtrace", "--reason", "theirs"), PYTHONPATH=str(project.directory)
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_the_plugin_imports_nothing_of_the_sdk(project):
    """The plugin costs a project that does not use it nothing: neither the SDK nor boto3 is imported."""
    code = "import sys, sealtrace.pytest_plugin; print([n for n in ('agents', 'boto3', 'rich') if n in sys.modules])"
    done = project._run(["-c", code], {})
    assert done.stdout.strip() in ("[]", "['rich']"), done.stderr
