"""The errors: one root, as drawn."""

from __future__ import annotations

import re

import pytest

from sealtrace import SealtraceError, errors


def _drawn() -> dict[str, str]:
    """The tree in the module's docstring: each error and what it is drawn under."""
    tree = (errors.__doc__ or "").split("```")[1]
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in tree.strip().splitlines():
        match = re.match(r"([│ ├└─]*)(\w+)", line)
        assert match is not None
        depth = len(match[1]) // 4
        path[depth:] = [match[2]]
        if depth:
            parents[match[2]] = path[depth - 1]
    return parents


def test_the_tree_is_as_drawn() -> None:
    """Each error is a direct subclass of the one it is drawn under, and each is drawn."""
    bases = {name: getattr(errors, name).__base__.__name__ for name in errors.__all__ if name != "SealtraceError"}
    assert bases == _drawn()


def test_one_root_catches_all() -> None:
    """`except SealtraceError` catches each of them, and it is an ordinary Exception."""
    assert all(issubclass(getattr(errors, name), SealtraceError) for name in errors.__all__)
    assert SealtraceError.__base__ is Exception


def test_errors_carry_what_they_are_about() -> None:
    """What went wrong can be read from attributes, without parsing the message."""
    assert errors.SettingsError("no", setting="vault").setting == "vault"
    assert errors.RunNotFound("no", run="trace_1").run == "trace_1"
    assert errors.EventNotFound("no", run="trace_1").run == "trace_1"
    assert errors.VaultDenied("no", key="meta/v1/x").key == "meta/v1/x"
    assert errors.VaultUnavailable("no").key is None


@pytest.mark.parametrize("name", errors.__all__)
def test_messages_are_what_is_shown(name: str) -> None:
    """The text of an error is the message alone, whatever else it carries."""
    extra = {"run": "trace_1"} if issubclass(getattr(errors, name), errors.RunNotFound) else {}
    assert str(getattr(errors, name)("what to do next", **extra)) == "what to do next"
