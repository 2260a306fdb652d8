"""Settings: arguments over environment over file, and errors that name the culprit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sealtrace.errors import SettingsError
from sealtrace.settings import Settings, load_settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pyproject.toml in the folder above the current one."""
    inner = tmp_path / "src" / "app"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    path = tmp_path / "pyproject.toml"
    path.write_text('[tool.sealtrace]\nvault = "file:///from-file"\nsegment_seconds = 3\n', encoding="utf-8")
    return path


def test_nothing_set_is_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no argument, variable or file, every setting has its default."""
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}) == Settings()


@pytest.mark.usefixtures("file")
def test_arguments_win_over_the_environment_and_that_over_the_file() -> None:
    """Each source gives way to the one above it, setting by setting."""
    environ = {"SEALTRACE_VAULT": "file:///from-environment"}
    assert load_settings(environ={}).vault == "file:///from-file"
    assert load_settings(environ=environ).vault == "file:///from-environment"
    both = load_settings({"vault": "file:///from-argument"}, environ=environ)
    assert (both.vault, both.segment_seconds) == ("file:///from-argument", 3.0)


def test_none_and_empty_are_not_given(file: Path) -> None:
    """An argument of None and an empty variable leave the next source in force."""
    assert file.exists()
    assert load_settings({"vault": None}, environ={"SEALTRACE_VAULT": ""}).vault == "file:///from-file"


def test_sealtrace_config_names_the_file(file: Path, tmp_path: Path) -> None:
    """SEALTRACE_CONFIG is read in place of pyproject.toml, its settings at the top level."""
    assert file.exists()
    own = tmp_path / "own.toml"
    own.write_text('vault = "file:///own"\n[retention]\ncontent = 2\n', encoding="utf-8")
    settings = load_settings(environ={"SEALTRACE_CONFIG": str(own)})
    assert (settings.vault, settings.segment_seconds, settings.retention.content) == ("file:///own", 30.0, 2)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("enabled", "0", False),
        ("raw_group_id", "true", True),
        ("queue_events", "50", 50),
        ("exit_timeout", "1.5", 1.5),
        ("trace_metadata_keys", "tenant, region,", ("tenant", "region")),
        ("ca_bundle", "/etc/ca.pem", Path("/etc/ca.pem")),
        ("addressing_style", "path", "path"),
    ],
)
def test_environment_variables_are_read_by_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: object
) -> None:
    """Each setting can be set by its variable, which is its name in capitals after SEALTRACE_."""
    monkeypatch.chdir(tmp_path)
    assert getattr(load_settings(environ={f"SEALTRACE_{name.upper()}": text}), name) == expected


def test_retention_by_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days per class are given as `class=days`, the others keep their defaults."""
    monkeypatch.chdir(tmp_path)
    retention = load_settings(environ={"SEALTRACE_RETENTION": "io=3,meta=90"}).retention
    assert (retention.io, retention.content, retention.meta) == (3, 7, 90)


@pytest.mark.parametrize(
    ("arguments", "environ", "culprit", "origin"),
    [
        ({"valut": "file:///x"}, {}, "valut", "argument"),
        ({"queue_events": 1}, {}, "queue_events", "argument"),
        ({}, {"SEALTRACE_QUEUE_EVENTS": "many"}, "queue_events", "environment"),
        ({}, {"SEALTRACE_REDACTION_PROFILE": "lax"}, "redaction_profile", "environment"),
        ({}, {"SEALTRACE_RETENTION": "io=0"}, "retention", "environment"),
    ],
)
def test_an_error_names_the_setting_and_where_it_came_from(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
    environ: dict[str, str],
    culprit: str,
    origin: str,
) -> None:
    """Unknown or out of range: the message says which setting and whether argument or environment gave it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=origin) as caught:
        load_settings(arguments, environ=environ)
    assert caught.value.setting == culprit
    assert culprit in str(caught.value)


@pytest.mark.usefixtures("file")
def test_an_error_in_the_file_names_the_file(file: Path) -> None:
    """A wrong setting in a file is reported with the file's path."""
    file.write_text("[tool.sealtrace]\nvalut = 1\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"valut.*pyproject\.toml"):
        load_settings(environ={})


@pytest.mark.parametrize("content", [None, "this is not toml"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: str | None) -> None:
    """A named file that is missing or broken is an error that names it, never silently no settings."""
    path = tmp_path / "own.toml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"own\.toml"):
        load_settings(environ={"SEALTRACE_CONFIG": str(path)})


def test_secrets_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the text of the settings nor an error about another setting shows the key."""
    monkeypatch.chdir(tmp_path)
    secret = "a very secret secret of ours"
    settings = load_settings({"key": secret}, environ={})
    assert secret not in repr(settings)
    assert secret not in str(settings)
    assert settings.key is not None
    assert settings.key.get_secret_value() == secret
    with pytest.raises(SettingsError) as caught:
        load_settings({"key": secret, "queue_events": 1}, environ={})
    assert secret not in str(caught.value)


def test_settings_cannot_be_changed() -> None:
    """Settings are frozen: what was read at the start holds until `uninstrument`."""
    with pytest.raises(ValueError, match="frozen"):
        Settings().vault = "file:///elsewhere"  # type: ignore[misc]
