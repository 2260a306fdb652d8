"""Checks over a run: user-made and the five that come with sealtrace."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import sys

import pytest

import sealtrace
from replay.handmade import Conversation, refund, run_of
from replay.world import again, record, support
from sealtrace.errors import SettingsError
from sealtrace.event import Kind
from sealtrace.replay.builtin import citations, defaults, freshness, identity, schema, tool_scope
from sealtrace.replay.checks import NotApplicable, Remark, Verdict, Violation, find_checks, run_checks


def _messages(result):
    return [violation.message for violation in result.violations]


# the decorator


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (None, Verdict.PASSED),
        (True, Verdict.PASSED),
        ([], Verdict.PASSED),
        (Remark("only half"), Verdict.PASSED),
        (False, Verdict.FAILED),
        ("too much", Verdict.FAILED),
        (Violation("too much", seq=3), Verdict.FAILED),
        (["one", Violation("two")], Verdict.FAILED),
    ],
)
def test_what_a_check_may_return(said, verdict):
    """Each way of saying yes or no is understood."""

    @sealtrace.check
    def says(run):
        return said

    assert says(refund().run()).verdict is verdict


def test_assertions_and_generators():
    """An assertion's message is the violation; a generator yields one after the other."""

    @sealtrace.check(name="total")
    def asserts(run):
        """At most one."""
        assert len(run.events) < 2, "too many events"

    @sealtrace.check
    def yields(run):
        yield "a"
        yield Violation("b", seq=1, path="$.x")

    run = refund().run()
    result = asserts(run)
    assert (result.check, result.verdict, _messages(result)) == ("total", Verdict.FAILED, ["too many events"])
    assert asserts.__doc__ == "At most one."
    assert _messages(yields(run)) == ["a", "b"]
    assert yields(run).to_json()["violations"][1] == {"message": "b", "seq": 1, "path": "$.x"}


def test_a_broken_check_stops_nothing():
    """A check that raises is broken, not passed, and the others are still asked."""

    @sealtrace.check
    def broken(run):
        raise KeyError("x")

    @sealtrace.check
    def nothing(run):
        raise NotApplicable("no refunds")

    results = run_checks(refund().run(), [broken, nothing])
    assert [result.verdict for result in results] == [Verdict.BROKEN, Verdict.NOT_APPLICABLE]
    assert [result.ok for result in results] == [False, True]
    assert results[0].note == "KeyError: 'x'"


def test_a_session_is_as_good_as_a_run(vault_url):
    """A check takes a rerun session and looks at the run it is of."""
    recorded = record(support, vault_url)
    session, _ = again(support, recorded)
    assert session.run is recorded
    for one in defaults():
        assert one(session) == one(recorded)
        assert one(session).ok


def test_checks_are_found_in_modules(tmp_path, monkeypatch):
    """A module's checks are found all together or one by name; anything else is refused with a reason."""
    (tmp_path / "shop_checks.py").write_text(
        "import sealtrace\n\n@sealtrace.check\ndef first(run): ...\n\n@sealtrace.check\ndef second(run): ...\n\nx = 1\n"
    )
    (tmp_path / "no_checks.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [one.name for one in find_checks("shop_checks")] == ["first", "second"]
    assert [one.name for one in find_checks("shop_checks:second")] == ["second"]
    for reference, message in [
        ("shop_checks:x", "is no check"),
        ("shop_checks:none", "is no check"),
        ("no_checks", "has no checks"),
        ("not_there", "cannot import"),
        ("", "names no module"),
    ]:
        with pytest.raises(SettingsError, match=message):
            find_checks(reference)
    for name in ("shop_checks", "no_checks"):
        sys.modules.pop(name, None)


# schema

_OUTPUT_SCHEMA = {
    "name": "Refund",
    "strict": True,
    "schema": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [('{"amount": 3}', Verdict.PASSED), ('{"amount": "3"}', Verdict.FAILED), ("sorry", Verdict.FAILED)],
)
def test_schema_recorded(text, verdict):
    """The answer is held against the schema the model was told to answer in."""
    talk = Conversation()
    talk.request["output_schema"] = _OUTPUT_SCHEMA
    result = schema()(talk.user("Hi").says(text).run())
    assert result.verdict is verdict
    if verdict is Verdict.FAILED:
        assert result.violations[0].seq == 2


def test_schema_given():
    """A schema that is given is used in place of the recorded one, and what it cannot check is said."""
    run = Conversation().user("Hi").says('{"amount": 3, "mail": "x"}').run()
    assert schema()(run).verdict is Verdict.NOT_APPLICABLE
    wanted = {"type": "object", "properties": {"amount": {"maximum": 2}, "mail": {"format": "email"}}}
    result = schema(wanted)(run)
    assert [(one.path, one.message) for one in result.violations] == [("$.amount", "the final output is more than 2")]
    assert result.note == "not looked at: format"
    assert schema({"type": "string"})(run).verdict is Verdict.PASSED


def test_schema_needs_an_output():
    """A run without a final output has nothing to hold against a schema."""
    assert schema({})(run_of(refund().events[:-1])).verdict is Verdict.NOT_APPLICABLE


# identity


def _acting(arguments, *, text="I am customer 4711", actor=None):
    talk = Conversation().user(text).asks(("lookup", arguments)).runs("r").says("ok")
    return run_of([dataclasses.replace(event, actor=actor) for event in talk.events])


@pytest.mark.parametrize(
    ("arguments", "actor", "verdict"),
    [
        ({"customer_id": "4711"}, None, Verdict.PASSED),
        ({"customer_id": 4711}, None, Verdict.PASSED),
        ({"customer_id": "471"}, None, Verdict.FAILED),
        ({"deep": [{"user_id": "9"}]}, None, Verdict.FAILED),
        ({"user_id": ["4711", "9"]}, None, Verdict.FAILED),
        ({"other": "9"}, None, Verdict.NOT_APPLICABLE),
        ({"user_id": "9"}, {"id": "user:9"}, Verdict.PASSED),
        ({"user_id": "user:9"}, {"id": "user:9"}, Verdict.PASSED),
        ({"user_id": "4711"}, {"id": "user:9"}, Verdict.FAILED),
    ],
)
def test_identity(arguments, actor, verdict):
    """Ids in tool arguments are the acting identity's, or where there is none, the user's own."""
    assert identity()(_acting(arguments, actor=actor)).verdict is verdict


def test_identity_names_the_argument():
    """The violation says which event and which argument, not the value."""
    result = identity()(_acting({"who": {"account_id": "secret-9"}}))
    assert (result.violations[0].seq, result.violations[0].path) == (2, "$.arguments.who.account_id")
    assert "secret-9" not in json.dumps(result.to_json())


def test_identity_of_redacted_ids():
    """Pseudonyms are compared with pseudonyms; with a plain id they cannot be, and the result says so."""
    tag, other = "<ACCOUNT:abcdefghijkl>", "<ACCOUNT:bbbbbbbbbbbb>"
    assert identity()(_acting({"account": tag}, text=f"for {tag}")).verdict is Verdict.PASSED
    assert identity()(_acting({"account": other}, text=f"for {tag}")).verdict is Verdict.FAILED
    result = identity()(_acting({"account": tag}, actor={"id": "user:9"}))
    assert (result.verdict, result.note) == (Verdict.PASSED, "1 ids are redacted and could not be compared")


def test_identity_given():
    """Fields and allowed ids can be given."""
    run = _acting({"policy_holder": "9"})
    assert identity(fields=["policy_holder"], expected="9")(run).verdict is Verdict.PASSED
    assert identity(fields=["policy_holder"], expected=["8"])(run).verdict is Verdict.FAILED


# citations


def _answering(answer, *documents, annotations=None):
    talk = Conversation().user("Hi").asks(("search", {"q": "x"}))
    talk.event(Kind.RETRIEVAL, {"query": "x", "documents": list(documents)})
    talk.runs("r").says(answer)
    if annotations:
        event = talk.events[-2]
        event.payload["response"]["output"][0]["content"][0]["annotations"] = annotations
    return talk.run()


_DOC = {"id": "returns", "version": "2026-11-01", "chunks": ["returns#2"]}


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("You have 30 days [returns].", Verdict.PASSED),
        ("You have 30 days [returns#2].", Verdict.PASSED),
        ("You have 30 days.", Verdict.FAILED),
        ("You have 30 days [returns], or 90 [made-up].", Verdict.FAILED),
    ],
)
def test_citations(answer, verdict):
    """An answer cites what was retrieved, and nothing else."""
    assert citations()(_answering(answer, _DOC)).verdict is verdict


def test_citations_by_the_provider():
    """The provider's own annotations and file search results count."""
    run = _answering("You have 30 days.", _DOC, annotations=[{"type": "file_citation", "file_id": "returns"}])
    assert citations()(run).verdict is Verdict.PASSED
    talk = Conversation().user("Hi")
    talk.says("So [f1].")
    talk.events[1].payload["response"]["output"].insert(
        0, {"type": "file_search_call", "results": [{"file_id": "f1", "filename": "a.pdf"}]}
    )
    assert citations()(talk.run()).verdict is Verdict.PASSED


def test_citations_per_claim():
    """Each sentence or paragraph can be asked for a citation of its own."""
    run = _answering("First [returns]. Second.\n\nThird [returns].", _DOC)
    assert _messages(citations(per="sentence")(run)) == ["sentence 2 of 3 cites nothing"]
    assert citations(per="paragraph")(run).verdict is Verdict.PASSED
    assert citations(pattern=re.compile(r"\{(\w+)\}"))(run).verdict is Verdict.FAILED


def test_citations_without_documents():
    """With nothing retrieved a citation is invented, and no citation is fine."""
    assert citations()(refund().run()).verdict is Verdict.NOT_APPLICABLE
    assert citations()(Conversation().user("Hi").says("See [x].").run()).verdict is Verdict.FAILED


# freshness


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("2026-11-15", Verdict.PASSED),
        ("2026-11-15T00:00:00Z", Verdict.PASSED),
        ("2026-10-01", Verdict.FAILED),
        ("v3", Verdict.FAILED),
        ("2027-01-01", Verdict.FAILED),
    ],
)
def test_freshness_by_age(version, verdict):
    """A document is dated, not older than allowed, and not from the future."""
    run = _answering("x", {"id": "returns", "version": version})
    assert freshness(max_age=dt.timedelta(days=30))(run).verdict is verdict


def test_freshness_by_version():
    """A document that is named is in the version that counts."""
    run = _answering("x", {"id": "returns", "version": "v3"})
    assert freshness()(run).verdict is Verdict.PASSED
    assert freshness(current={"returns": "v3", "other": "v1"})(run).verdict is Verdict.PASSED
    assert _messages(freshness(current={"returns": "v4"})(run)) == ["document 'returns' is version v3, not v4"]


def test_freshness_without_arguments():
    """One document in two versions is wrong in any run; nothing retrieved is nothing to check."""
    run = _answering("x", {"id": "returns", "version": "v3"}, {"id": "returns", "version": "v4"})
    assert _messages(freshness()(run)) == ["document 'returns' was used in versions v3 and v4"]
    assert freshness()(refund().run()).verdict is Verdict.NOT_APPLICABLE


# tool scope


def _calling(name, arguments, *, offered=("lookup",), parameters=None):
    talk = Conversation().user("Hi")
    talk.request["tools"] = [
        {"type": "function", "name": name, "parameters": parameters or {"type": "object"}} for name in offered
    ]
    return talk.asks((name, arguments)).runs("r").says("ok")


def test_scope_of_what_was_offered():
    """Without rules a tool has to have been offered in its turn, with arguments that fit."""
    schema_ = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    assert tool_scope()(_calling("lookup", {"id": 1}, parameters=schema_).run()).verdict is Verdict.PASSED
    result = tool_scope()(_calling("lookup", {"id": "1"}, parameters=schema_).run())
    assert (result.violations[0].path, _messages(result)) == (
        "$.arguments.id",
        ["an argument of lookup is not integer"],
    )
    result = tool_scope()(_calling("issue_refund", {}).run())
    assert _messages(result) == ["issue_refund was not among the tools offered in that turn"]


def test_scope_of_refused_approvals():
    """A call that ran although its approval was refused is out of scope."""
    talk = _calling("lookup", {})
    call_id = talk.events[2].call_id
    talk.event(Kind.APPROVAL, {"tool": "lookup", "approved": False}, call_id=call_id)
    assert _messages(tool_scope()(talk.run())) == ["lookup ran although its approval was refused"]


@pytest.mark.parametrize(
    ("rule", "value", "fits"),
    [
        (5, 5, True),
        (5, 6, False),
        ({"a", "b"}, "a", True),
        ({"a", "b"}, "c", False),
        (range(100), 99, True),
        (range(100), 100, False),
        (re.compile(r"\d+"), "12", True),
        (re.compile(r"\d+"), "12x", False),
        (lambda amount: amount < 3, 2, True),
        (lambda amount: amount < 3, 3, False),
        ("ab", "a", False),
    ],
)
def test_scope_by_rules(rule, value, fits):
    """Rules for arguments: a value, a collection, a pattern, a function."""
    run = _calling("lookup", {"x": value}).run()
    result = tool_scope({"lookup": {"x": rule}})(run)
    assert result.verdict is (Verdict.PASSED if fits else Verdict.FAILED)


def test_scope_by_names_and_authority():
    """A list of tools allows just those; a tool that needs a scope needs it in the authority in force."""
    talk = _calling("lookup", {})
    run = talk.run()
    assert tool_scope(["lookup"])(run).verdict is Verdict.PASSED
    assert _messages(tool_scope(["other"])(run)) == ["lookup may not be called"]
    assert tool_scope(["lookup"], scopes={"lookup": "read"})(run).verdict is Verdict.FAILED
    acting = run_of([dataclasses.replace(event, actor={"id": "u", "scopes": ["read"]}) for event in talk.events])
    assert tool_scope(["lookup"], scopes={"lookup": "read"})(acting).verdict is Verdict.PASSED
    assert tool_scope([])(Conversation().user("Hi").says("ok").run()).verdict is Verdict.NOT_APPLICABLE


def test_defaults_pass_on_a_good_run():
    """The five without arguments find nothing wrong with a run that is right."""
    talk = _calling("lookup", {})
    results = run_checks(talk.run(), defaults())
    assert [result.check for result in results] == ["schema", "identity", "citations", "freshness", "tool_scope"]
    assert all(result.ok for result in results)
