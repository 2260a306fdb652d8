"""What redaction promises of any payload."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealtrace.errors import RedactionFailed
from sealtrace.event import Shared, resolve_shared
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor
from sealtrace.redaction.tags import is_surrogate_number

_KEYS = Keys(b"a key for the tests only")
_CARD = "4111111111111111"
_MAIL = "jane.roe@corp-mail.example"

_PIECES = [
    _MAIL, "4111 1111 1111 1111", "+46 8 928 571 38", "phone ", "call me at ", "(415) 333-4444", "219-09-9999", "é",
    "’", "\u200b", "%40", "\\u0040", "&#64;", "\n", " ", "{", "}", "[", "]", '"', "'", ":", ",", "=",
    "<EMAIL:abcdefghijkl>",
    "<", ">", "token", "password", "secret is ",
    "1234", "12", "-", "ghp_" + "a1B2c3D4e5" * 4,
    "eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.c2ln",
    "https://u:pa55word@h/", "192.168.1.1", "::1", "2001:4860::8888", "-----BEGIN RSA PRIVATE KEY-----", "A" * 70,
    "am9obiBkb2UgPGphbmUucm9lQGNvcnAtbWFpbC5leGFtcGxlPg==", "DE89 3704 0044 0532 0130 00", "\ud800", "\x00",
]  # fmt: skip
_NAMES = ["email", "phone", "name", "password", "api_key", "note", "type", "id", "role", "arguments", "address", "dob",
          "list", "call_id", "output", "card", _MAIL, "tokens", "amount"]  # fmt: skip

texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_PIECES), max_size=7).map("".join))
numbers = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([int(_CARD), 4155551234, 0])
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.one_of(st.sampled_from(_NAMES), st.text(max_size=12))
    return st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(names, inner, max_size=4),
        inner.map(json.dumps),
        inner.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
    )


def _anything(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.one_of(st.text(max_size=5), st.integers())
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3))


payloads = st.recursive(leaves, _nested, max_leaves=12)
policies = st.sampled_from(
    [Policy(profile=profile, style=style) for profile in ("strict", "balanced") for style in ("tag", "surrogate")]
)
_MADE: dict[Policy, Redactor] = {}
_CASES = int(os.environ.get("SEALTRACE_PROPERTY_CASES", "80"))


def _redactor(policy: Policy | None = None, **options: Any) -> Redactor:
    return Redactor(policy or Policy(), _KEYS, **options)


def _made(policy: Policy) -> Redactor:
    if policy not in _MADE:
        _MADE[policy] = _redactor(policy, timeout=60)
    return _MADE[policy]


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()]
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return type(value)


@settings(max_examples=_CASES, deadline=None)
@given(policies, payloads)
def test_redacting_twice_is_redacting_once(policy: Policy, payload: Any) -> None:
    """A redacted payload has nothing left to redact, for the same redactor and for a new one."""
    once = _made(policy).redact(payload).value
    again = _redactor(policy, timeout=60).redact(once)
    assert again.value == once
    assert again.counts == {}


@settings(max_examples=_CASES, deadline=None)
@given(policies, payloads)
def test_types_stay_and_json_stays_json(policy: Policy, payload: Any) -> None:
    """Every leaf keeps its type, every container its size, and JSON in a string stays JSON of the same shape."""
    safe = _made(policy).redact(payload).value
    assert _shape(safe) == _shape(payload)
    json.loads(json.dumps(safe))


@settings(max_examples=_CASES, deadline=None)
@given(policies, st.one_of(st.lists(leaves, max_size=4), st.dictionaries(st.sampled_from(_NAMES), leaves, max_size=5)))
def test_json_in_a_string_stays_json(policy: Policy, inner: Any) -> None:
    """A string that holds a JSON document holds one of the same shape afterwards."""
    safe = _made(policy).redact({"output": json.dumps(inner)}).value["output"]
    assert _shape(json.loads(safe)) == _shape(inner)


@settings(max_examples=_CASES, deadline=None)
@given(policies, payloads)
def test_the_result_depends_on_the_payload_alone(policy: Policy, payload: Any) -> None:
    """What a redactor saw before changes nothing, and the payload itself is never touched."""
    before = json.dumps(payload)
    first = _made(policy).redact(payload)
    fresh = _redactor(policy, timeout=60).redact(payload)
    assert (first.value, first.counts) == (fresh.value, fresh.counts)
    assert json.dumps(payload) == before


@settings(max_examples=_CASES, deadline=None)
@given(st.recursive(st.one_of(leaves, st.binary(), st.just(object()), st.sets(st.integers())), _anything, max_leaves=8))
def test_nothing_but_redaction_failed_leaves(payload: Any) -> None:
    """Whatever it is given, redaction returns or says that it failed; any other exception fails this test."""
    with contextlib.suppress(RedactionFailed):
        assert _made(Policy()).redact(payload).counts is not None


def test_two_processes_with_one_key_agree() -> None:
    """Hash seeds and process state do not enter: pseudonyms and the ruleset hash are the same elsewhere."""
    program = (
        "import json,sys; from sealtrace.keys import Keys; from sealtrace.redaction import Policy, Redactor\n"
        "r = Redactor(Policy(), Keys(b'a key for the tests only'))\n"
        "payload = {'a': 'mail jane.roe@corp-mail.example or 4111 1111 1111 1111', 'phone': 5}\n"
        "print(json.dumps([r.ruleset_hash, r.redact(payload).value]))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "77")
    }
    here = _redactor()
    mine = [here.ruleset_hash, here.redact({"a": f"mail {_MAIL} or 4111 1111 1111 1111", "phone": 5}).value]
    assert [json.loads(line) for line in said] == [mine]


def test_another_key_gives_other_pseudonyms_and_the_same_ruleset() -> None:
    """Tags are keyed; the ruleset hash is not."""
    other = Redactor(Policy(), Keys(b"another key for the tests"))
    assert other.redact(_MAIL).value != _redactor().redact(_MAIL).value
    assert other.ruleset_hash == _redactor().ruleset_hash


def test_the_ruleset_hash_tells_policies_apart() -> None:
    """A policy that finds less has another hash."""
    hashes = {
        _redactor(policy).ruleset_hash
        for policy in (
            Policy(),
            Policy(profile="balanced"),
            Policy(off=frozenset({"EMAIL"})),
            Policy(style="surrogate"),
        )
    }
    assert len(hashes) == 4


def test_a_value_found_by_its_field_is_found_in_text_of_the_same_run() -> None:
    """Also in text that came before it in the payload, in another payload, and in other letters' case."""
    redactor = _redactor()
    memory = redactor.memory()
    first = redactor.redact({"note": "Ask Rosalind Quux.", "guest": {"last_name": "Quux"}}, memory=memory)
    tag = first.value["guest"]["last_name"]
    assert first.value["note"] == f"Ask Rosalind {tag}."
    assert redactor.redact("QUUX agreed; Quuxes did not.", memory=memory).value == f"{tag} agreed; Quuxes did not."
    assert redactor.redact("Quux").value == "Quux", "another run knows nothing of it"


def test_a_short_value_is_found_before_its_field_too() -> None:
    """Four letters are no reason to look only at what comes later."""
    safe = _redactor().redact({"note": "Quux", "notes": ["quux!", "Quu"], "guest": {"last_name": "Quux"}}).value
    tag = safe["guest"]["last_name"]
    assert safe == {"note": tag, "notes": [f"{tag}!", "Quu"], "guest": {"last_name": tag}}


def test_a_surrogate_number_is_known_whatever_its_key_says() -> None:
    """A key that was changed may say something else of its value the second time."""
    redactor = _redactor(Policy(style="surrogate"))
    payload = {"debitcard": {"aio_YywMBAFFqNp8a7N3lw8YOxJAbZuv and Telefon": 854, "n": 4111111111111111}}
    once = redactor.redact(payload).value
    assert redactor.redact(once).counts == {}
    assert redactor.redact({"phone": once["debitcard"]["n"], "card": list(once["debitcard"].values())}).counts == {}


def test_the_memory_is_bounded() -> None:
    """However many values a run has, memory does not grow without end."""
    redactor = _redactor()
    memory = redactor.memory()
    for number in range(3000):
        redactor.redact({"last_name": f"Family{number:05d}"}, memory=memory)
    assert len(memory) <= 1000


def test_numbers_stay_numbers_and_equality_survives() -> None:
    """A sensitive number becomes a surrogate of its type, equal for equal values."""
    safe = _redactor().redact([{"phone": 4155551234}, {"mobile": 4155551234}, {"salary": 5, "pin": 2.5}]).value
    assert is_surrogate_number(safe[0]["phone"])
    assert safe[0]["phone"] == safe[1]["mobile"]
    assert safe[2]["salary"] == 5
    assert type(safe[2]["pin"]) is float
    assert is_surrogate_number(safe[2]["pin"])


def test_what_a_rerun_needs_is_left_alone() -> None:
    """Ids, types, roles, tool names and numbers pass; arguments stay JSON with the same keys."""
    call = {
        "type": "function_call", "id": "fc_68a1f0c2e4d88191a0b3c4d5e6f70812",
        "call_id": "call_Zq3N8s5T1vXyB2cD4eF6gH7i",
        "name": "update_address", "status": "completed",
        "arguments": '{"order_id": "W2611340", "email": "jane.roe@corp-mail.example", "count": 3}',
    }  # fmt: skip
    response = {"response_id": "resp_68a1f0c2e4d88191a0b3c4d5e6f70812", "output": [call], "usage": {"input_tokens": 17}}
    safe = _redactor().redact(response).value
    arguments = json.loads(safe["output"][0].pop("arguments"))
    assert arguments.pop("email").startswith("<EMAIL:")
    assert arguments == {"order_id": "W2611340", "count": 3}
    del call["arguments"]
    assert safe["output"][0] == call
    assert safe["response_id"] == response["response_id"]
    assert safe["usage"] == response["usage"]


def test_a_secret_in_a_structural_place_is_found() -> None:
    """Structural names are exempt from field rules, not from detectors."""
    assert _redactor().redact({"name": f"tool {_MAIL}"}).value["name"].startswith("tool <EMAIL:")


def test_keys_are_redacted_and_stay_distinct() -> None:
    """Keys are content too; two that become one keep both values."""
    safe = _redactor().redact({_MAIL: 1, _MAIL.upper(): 2, "z": 3}).value
    assert list(safe.values()) == [1, 2, 3]
    assert all("jane" not in key.lower() for key in safe)


def test_a_key_that_was_redacted_means_what_it_meant() -> None:
    """A surrogate in a key does not make the key's value sensitive the second time."""
    redactor = _redactor(Policy(style="surrogate"))
    once = redactor.redact({"host, ssn, 6 0 1 1 8 9 4 5 5 9 6 1 4 8 1 3": "x y"})
    assert once.counts == {"CARD": 1}
    assert redactor.redact(once.value).counts == {}


def test_schemas_of_sensitive_fields_are_not_values() -> None:
    """A tool's parameter schema names `email` without holding one."""
    schema = {
        "properties": {"email": {"type": "string"}, "phone": {"anyOf": [{"type": "string"}]}},
        "required": ["email"],
    }
    assert _redactor().redact({"parameters": schema}).value == {"parameters": schema}


def test_a_shared_value_is_redacted_once_and_counted_once() -> None:
    """However many generations quote a message, the work is done when it is first seen."""
    redactor = _redactor()
    shared = Shared({"role": "user", "content": f"I am {_MAIL}"})
    first = redactor.redact({"input": [shared, shared]})
    second = redactor.redact({"input": [shared]})
    assert first.counts == {"EMAIL": 1}
    assert second.counts == {}
    assert shared.redactions == {"EMAIL": 1}
    assert _MAIL not in json.dumps(resolve_shared(second.value))


def test_a_shared_value_is_not_marked_safe_when_redaction_fails() -> None:
    """A failure leaves it raw and says so, so that nothing stores it by mistake."""
    shared = Shared(f"I am {_MAIL}")
    with pytest.raises(RedactionFailed):
        _redactor().redact([shared, object()])
    assert not shared.is_redacted
    assert shared.redacted is None


def test_too_little_time_drops_the_payload() -> None:
    """A budget that is over ends in RedactionFailed, never in a payload half done."""
    with pytest.raises(RedactionFailed, match="took too long"):
        _redactor(timeout=1e-9).redact({"a": ["text " * 10] * 10})


def test_an_engine_that_raises_drops_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an engine raises becomes RedactionFailed, and its message does not quote the text."""
    for error in (ValueError(_MAIL), MemoryError(), RecursionError(), AssertionError(_MAIL)):
        redactor = _redactor()

        def broken(*_: Any, error: BaseException = error) -> Any:
            raise error

        monkeypatch.setattr(redactor._base.scanner._engine, "find", broken)
        with pytest.raises(RedactionFailed) as caught:
            redactor.redact({"note": f"mail {_MAIL}"})
        assert _MAIL not in str(caught.value)


def test_a_string_too_long_is_dropped_whole() -> None:
    """Beyond the cap only a keyed marker is left."""
    safe = _redactor(max_string_bytes=2000).redact({"log": "word " * 1000})
    assert safe.value["log"].startswith("<OVERSIZE:")
    assert safe.counts == {"OVERSIZE": 1}


@pytest.mark.parametrize(
    "payload",
    [
        {"image_url": "data:image/png;base64," + "iVBORw0KGgo" * 40},
        {"content": "look: ![x](data:image/png;base64," + "iVBORw0KGgo" * 40 + ") done"},
        {"result": "aGVsbG8g" * 300},
        {"type": "input_file", "file_data": "JVBERi0xLjQKJ" * 20},
    ],
)
def test_media_becomes_a_marker(payload: Any) -> None:
    """Images, audio and files are not kept unless the policy says so; equal ones have equal markers."""
    safe = json.dumps(_redactor().redact(payload).value)
    assert "<MEDIA:" in safe
    kept = json.dumps(_redactor(Policy(media="keep")).redact(payload).value)
    assert "<MEDIA:" not in kept


def test_what_is_remembered_of_values_is_bounded() -> None:
    """A recorder that lives for months keeps no images."""
    redactor = _redactor(max_string_bytes=2000)
    tracemalloc.start()
    try:
        for number in range(200):
            redactor.redact(
                [
                    {"image_url": f"data:image/png;base64,{number:04d}" + "iVBORw0KGgo" * 10_000},
                    {"password": f"{number:04d}" + "x y " * 20_000},
                    {"log": f"{number:04d}" + "word " * 20_000},
                ]
            )
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10_000_000


def _near_misses(size: int) -> str:
    pattern = (
        "a@b 4111-1111-1111-1112 ghp_abc eyJhbGci. sk-sk- token= key: password secret -----BEGIN 1.2.3. ::1: curl -u x "
    )
    return (pattern * (size // len(pattern) + 1))[:size]


@pytest.mark.parametrize(
    "unit", [_near_misses(1000), "1 ", "a-", "sk-", "a@", "0.", "::", "key=", '":', "%41", "&#64;", "<" * 7]
)
def test_work_grows_with_the_text_and_no_faster(unit: str) -> None:
    """Eight times as many near misses take no more than some ten times as many calls; the bench measures the time."""
    redactor = _redactor(timeout=120, max_string_bytes=10_000_000)
    redactor.redact(unit * 10)

    def calls(size: int) -> int:
        text = "x " + unit * (size // len(unit))
        count = 0

        def counted(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal count
            count += event in {"call", "c_call"}

        sys.setprofile(counted)
        try:
            redactor.redact(text)
        finally:
            sys.setprofile(None)
        return count

    assert calls(64_000) < 12 * max(calls(8_000), 500)
