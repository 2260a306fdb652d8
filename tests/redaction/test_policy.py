"""Policies: what they say is what happens, and a wrong one is an error."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sealtrace.errors import RedactionFailed, SettingsError
from sealtrace.keys import Keys
from sealtrace.redaction import CustomDetector, FieldRule, Override, Policy, Redactor, custom
from sealtrace.redaction.paths import PathRules
from sealtrace.redaction.validators import luhn
from sealtrace.settings import load_settings

_KEYS = Keys(b"a key for the tests only")
_MAIL = "jane.roe@corp-mail.example"


def _redactor(**policy: object) -> Redactor:
    return Redactor(Policy.model_validate(policy), _KEYS)


def _file(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_is_read_from_its_file(tmp_path: Path) -> None:
    """Every part of a policy can be written in TOML, and settings give the profile where the file does not."""
    path = _file(
        tmp_path,
        """
        style = "surrogate"
        off = ["IP"]
        [[fields]]
        path = "tool:issue_refund.args.card"
        action = "drop"
        [[detectors]]
        name = "ticket"
        kind = "TICKET"
        pattern = "TCK-[0-9]{6}"
        [[overrides]]
        scope = "agent:Triage"
        profile = "strict"
        """,
    )
    settings = load_settings({"redaction_policy": path, "redaction_profile": "balanced"}, environ={})
    policy = Policy.load(settings)
    assert policy.profile == "balanced"
    assert policy.fields == (FieldRule(path="tool:issue_refund.args.card", action="drop"),)
    assert policy.overrides == (Override(scope="agent:Triage", profile="strict"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('profil = "strict"\n', "line 1: profil"),
        ('style = "tag"\nprofile = "lax"\n', "line 2: profile"),
        (
            '[[fields]]\npath = "a"\naction = "keep"\n[[fields]]\npath = "b"\naction = "hide"\n',
            "line 6: fields.1.action",
        ),
        ('off = ["EMALI"]\n', "EMALI"),
        ('[[detectors]]\nname = "x"\nkind = "X1"\npattern = "(?<=a)b"\n', "line 4: detectors.0.pattern"),
        ('[[detectors]]\nname = "x"\nkind = "X1"\npattern = "a*"\n', "empty string"),
        ('[[detectors]]\nname = "x"\nkind = "X1"\npattern = "(a"\n', "not a regular expression"),
        ("style = \n", "policy.toml"),
    ],
)
def test_a_wrong_policy_is_an_error_that_names_the_line(tmp_path: Path, text: str, says: str) -> None:
    """Never a weaker policy: what cannot be understood stops `instrument()`."""
    with pytest.raises(SettingsError) as caught:
        Policy.from_file(_file(tmp_path, text))
    assert says in str(caught.value)


def test_a_missing_policy_file_is_an_error(tmp_path: Path) -> None:
    """The default policy is no substitute for one that was asked for."""
    with pytest.raises(SettingsError, match="cannot read"):
        Policy.from_file(tmp_path / "none.toml")


def test_rules_by_path() -> None:
    """First match wins; `*` stands for any number of names; a rule comes before the built-in names."""
    redactor = _redactor(
        fields=[
            {"path": "order.email", "action": "keep"},
            {"path": "*.secretish", "action": "drop"},
            {"path": "customer.*.nick", "action": "tag", "kind": "NICK"},
            {"path": "internal_*", "action": "drop"},
        ]
    )
    safe = redactor.redact(
        {
            "order": {"email": _MAIL, "secretish": "x", "deep": [{"secretish": 5}]},
            "customer": {"a": {"b": {"nick": "Zed"}}, "nick": "Zoe"},
            "internal_note": "n",
        }
    ).value
    assert safe["order"] == {"email": _MAIL, "secretish": "<DROPPED>", "deep": [{"secretish": 0}]}
    assert safe["customer"]["a"]["b"]["nick"].startswith("<NICK:")
    assert safe["customer"]["nick"].startswith("<NICK:")
    assert safe["internal_note"] == "<DROPPED>"


def test_rules_for_a_tool_hold_in_its_events_and_in_the_history() -> None:
    """The same call is quoted by later generations, and its output is only told by the call id."""
    redactor = _redactor(
        fields=[
            {"path": "tool:pay.args.memo", "action": "drop"},
            {"path": "tool:pay.result.ref", "action": "tag", "kind": "REF"},
        ]
    )
    memory = redactor.memory()
    event = redactor.redact({"tool": "pay", "arguments": '{"memo": "m1x", "n": 1}'}, tool="pay", memory=memory).value
    assert json.loads(event["arguments"]) == {"memo": "<DROPPED>", "n": 1}
    history = [
        {"type": "function_call", "call_id": "call_1", "name": "pay", "arguments": '{"memo": "m1x"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": '{"ref": "R-77", "memo": "kept"}'},
        {"type": "function_call", "call_id": "call_2", "name": "other", "arguments": '{"memo": "kept"}'},
    ]
    safe = redactor.redact({"input": history}, memory=memory).value["input"]
    assert json.loads(safe[0]["arguments"]) == {"memo": "<DROPPED>"}
    assert json.loads(safe[1]["output"])["ref"].startswith("<REF:")
    assert json.loads(safe[2]["arguments"]) == {"memo": "kept"}


@pytest.mark.parametrize(
    ("rule", "paths", "others"),
    [
        ("ssn", ["ssn", "a.ssn", "a.b.ssn"], ["ssn.a", "xssn", ""]),
        ("*", ["a", "a.b", ""], []),
        ("a.*", ["a.b", "x.a.b.c"], ["a", "b", "b.c"]),
        ("a.*.z", ["a.z", "a.b.z", "a.b.c.z", "x.a.z"], ["a", "z", "a.z.b", "b.z"]),
        ("a.*.b.*.z", ["a.b.z", "a.x.b.y.y.z", "a.b.b.z.z"], ["a.z.b", "b.a.z"]),
        ("*_note", ["my_note", "x._note"], ["note", "my_note.x"]),
        ("?b*d", ["abd", "abcd", "x.abbdd"], ["bd", "abc", "a.bd"]),
        ("t.args.x", ["t.args.x", "t.arguments.x"], ["t.arg.x", "t.x"]),
        ("t.result", ["t.result", "t.output", "t.content"], ["t.results"]),
    ],
)
def test_which_paths_a_rule_is_for(rule: str, paths: list[str], others: list[str]) -> None:
    """Names alone, with stars in them, and any number of them."""
    rules = PathRules([FieldRule(path=rule, action="tag")], frozenset())
    assert [path for path in paths if rules.match(tuple(path.split("."))) is None] == []
    assert [path for path in others if rules.match(tuple(path.split("."))) is not None] == []


@pytest.mark.parametrize(
    ("rule", "unit"), [("*.a.*.ssn", "."), ("*.a.*.ssn", "a."), ("*a*a*a*b", "a"), ("*?a?*b", "a")]
)
def test_a_name_of_any_length_is_matched_in_steps_that_grow_with_it(rule: str, unit: str) -> None:
    """Eight times the name, some eight times the work: no name that a tool makes up can stall the agent."""

    def steps(size: int) -> int:
        rules = PathRules([FieldRule(path=rule, action="tag")], frozenset())
        count = 0

        def line(*_: object) -> object:
            nonlocal count
            count += 1
            return line

        before = sys.gettrace()
        sys.settrace(line)
        try:
            assert rules.match(("x", unit * size + "y")) is None
        finally:
            sys.settrace(before)
        return count

    assert steps(1600) < 12 * steps(200)


def test_overrides_by_tool_and_agent() -> None:
    """What is different is different only there."""
    redactor = _redactor(
        overrides=[
            {"scope": "tool:whois", "off": ["IP"]},
            {"scope": "agent:Directory", "field_names": False},
        ]
    )
    payload = {"host": "193.99.144.80", "last_name": "Quux"}
    assert redactor.redact(payload, tool="whois").value["host"] == "193.99.144.80"
    assert redactor.redact(payload, tool="dig").value["host"].startswith("<IP:")
    assert redactor.redact(payload, agent="Directory").value["last_name"] == "Quux"
    assert redactor.redact(payload, agent="Sales").value["last_name"].startswith("<NAME:")


def test_kinds_and_detectors_can_be_switched_off() -> None:
    """By kind, also for kinds that one detector tells apart, and by detector."""
    text = f"mail {_MAIL}, card 4111 1111 1111 1111, host 193.99.144.80"
    assert "4111" in _redactor(off=["CARD"]).redact(text).value
    assert _MAIL in _redactor(off=["email"]).redact(text).value
    assert "<IP:" in _redactor(off=["CARD", "email"]).redact(text).value


def test_surrogates_have_the_shape_of_what_they_replace() -> None:
    """Structured outputs still parse, equal values stay equal, and a surrogate is never redacted again."""
    redactor = _redactor(style="surrogate")
    payload = {
        "email": _MAIL, "text": f"{_MAIL} paid with 4111 1111 1111 1111 from 193.99.144.80",
        "card_number": 4111111111111111,
        "ssn": "219-09-9999", "phone": "+49 30 901820",
    }  # fmt: skip
    safe = redactor.redact(payload).value
    mail, _, rest = safe["text"].partition(" paid with ")
    card, _, host = rest.partition(" from ")
    assert mail == safe["email"]
    assert mail.endswith("@redacted.invalid")
    assert luhn(card)
    assert luhn(str(safe["card_number"]))
    assert host.startswith(("192.0.2.", "198.51.100.", "203.0.113."))
    assert safe["ssn"].startswith("000-")
    assert "-555-01" in safe["phone"]
    assert redactor.redact(safe).counts == {}


@pytest.mark.parametrize("engine", ["re2", "regex"])
def test_a_detector_of_ones_own(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs under an engine with a time bound and replaces its `value` group."""
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    real = custom._module
    monkeypatch.setattr(custom, "_module", lambda name: real(name) if name == engine else None)
    redactor = _redactor(
        detectors=[{"name": "ticket", "kind": "TICKET", "pattern": "tck (?P<value>[0-9]{6})", "ignore_case": True}]
    )
    safe = redactor.redact(["see TCK 123456 now", "é TCK 654321", "tck 12", "𝐣\ud83d TCK 654321"]).value
    assert [text.partition("<TICKET:")[0] for text in safe] == ["see TCK ", "é TCK ", "tck 12", "𝐣\ud83d TCK "]


def test_without_a_time_bound_a_users_pattern_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that cannot be interrupted could stall the agent."""
    monkeypatch.setattr(custom, "_module", lambda name: None)
    with pytest.raises(SettingsError, match=r"sealtrace\[fast\]"):
        _redactor(detectors=[CustomDetector(name="t", kind="T1", pattern="t[0-9]+").model_dump()])


def test_a_pattern_that_takes_too_long_drops_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evil pattern is stopped by the clock and ends in RedactionFailed."""
    pytest.importorskip("regex", reason="regex is not installed")
    real = custom._module
    monkeypatch.setattr(custom, "_module", lambda name: real(name) if name == "regex" else None)
    redactor = _redactor(detectors=[{"name": "evil", "kind": "EVIL", "pattern": "(?:a|aa)+(?:b|bb)+(?:a|aa)+c"}])
    with pytest.raises(RedactionFailed, match="evil took too long"):
        redactor.redact("a" * 2000 + "b" * 2000 + "a" * 2000)
