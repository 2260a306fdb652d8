"""What the walk remembers to be fast: it is bounded, and never changes an answer."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from sealtrace.errors import RedactionFailed
from sealtrace.keys import Keys
from sealtrace.redaction import Policy, Redactor, familiar
from sealtrace.redaction.memory import RunMemory
from sealtrace.redaction.normaliser import fold
from sealtrace.redaction.uses import PLAIN, STRUCTURAL_USE, Names, use_of

_KEYS = Keys(b"a key for the tests only")


def _names(*names: str) -> Names:
    known = Names(telling=True, persons=True)
    for name in names:
        known.add(name, use_of(name))
    return known


def test_the_shape_of_a_mapping_says_what_each_name_is_good_for() -> None:
    """In the order of the mapping; only for mappings all of whose names are known."""
    known = _names("note", "id", "email", "name")
    shape = known.shape_of({"note": 1, "email": 2, "id": 3})
    assert shape is not None
    assert shape.uses[0] is PLAIN
    assert shape.uses[1].kind == "EMAIL"
    assert shape.uses[2] is STRUCTURAL_USE
    assert known.shape(("note", "email", "id")) is shape
    assert known.shape(("email", "note", "id")) is None
    assert known.shape_of({"note": 1, "other": 2}) is None
    person = known.shape_of({"name": "x", "email": "y"})
    assert person is not None
    assert person.person
    assert not shape.person


def test_shapes_are_bounded() -> None:
    """Names come from tools and models: neither many nor long nor wide mappings are kept for ever."""
    names = [f"field {number} {'x' * 100}" for number in range(3000)]
    known = _names(*names)
    draw = random.Random(1)
    for _ in range(2000):
        known.shape_of(dict.fromkeys(draw.sample(names, 40)))
    assert sum(sum(map(len, shape)) for shape in known._shapes) <= 1_000_000
    assert known.shape_of(dict.fromkeys(names[:65])) is None
    short = _names(*map(str, range(200)))
    for number in range(20_000):
        short.shape_of({str(number % 200): 1, str(number // 200): 2})
    assert len(short._shapes) <= 4096


def test_a_name_that_only_looks_like_text_is_not_remembered() -> None:
    """It could say one thing now and another later."""

    class Name(str):
        __slots__ = ()

    assert _names("note").shape_of({Name("note"): 1}) is None


@pytest.mark.parametrize("payload", [{"note": b"x"}, {"note": (1,)}, [{"note": "x"}, {"note": {1}}], [1.5, b"x"]])
def test_what_is_no_json_is_refused_in_mappings_of_a_known_shape_too(payload: Any) -> None:
    """Names met before do not vouch for values."""
    redactor = Redactor(Policy(), _KEYS)
    redactor.redact([{"note": "x"}, {"note": "y"}])
    redactor.redact([{"note": "x"}, {"note": "y"}])
    with pytest.raises(RedactionFailed, match="not plain JSON"):
        redactor.redact(payload)


def test_depth_is_counted_alike_for_names_new_and_known() -> None:
    """The limit holds however the walk went."""
    redactor = Redactor(Policy(), _KEYS)

    def nested(levels: int) -> Any:
        value: Any = "x"
        for level in range(levels):
            value = {"note": value} if level % 2 else [value]
        return value

    for _ in range(3):
        assert redactor.redact(nested(65)).value == nested(65)
        with pytest.raises(RedactionFailed, match="too deeply"):
            redactor.redact(nested(66))


def test_runs_that_are_not_ascii_are_found_in_every_place_of_a_long_text() -> None:
    """Also across the blocks that are passed over where they are plain."""
    draw = random.Random(2)
    for _ in range(200):
        text = "".join(draw.choice(["a" * draw.randint(1, 400), "４５" * draw.randint(1, 150)]) for _ in range(6))
        steps = fold(text)
        plain = steps[-1].text if steps else text
        assert plain == text.replace("４", "4").replace("５", "5")
        for run in re.finditer("[45]+", plain):
            start, end = steps[0].span(*run.span())
            assert set(text[start:end]) <= {"４", "５"}


def test_a_text_met_again_is_searched_for_what_the_run_remembers() -> None:
    """Its words are known by then; a value that begins with one of them is found, in whatever case."""
    text = "Nothing about anybody. " * 60 + "Ask QUUX-Vale, or (Zeta)!"
    for _ in range(4):
        memory = RunMemory()
        memory.remember("Somebody", "[no]")
        assert memory.replacements([text]) == {}
        memory.remember("quux-vale", "[0]")
        memory.remember("(zeta)", "[1]")
        safe, count = memory.replacements([text])[text]
        assert safe.endswith("Ask [0], or [1]!")
        assert count == 2


def test_words_of_long_texts_are_bounded() -> None:
    """A recorder lives long and sees many texts."""
    for number in range(300):
        for _ in range(2):
            familiar.words_of(f"{number} " * 1000)
    assert sum(map(len, familiar._KNOWN)) <= 500_000
    assert familiar.words_of("x" * 60_000) is None
    assert familiar.words_of("x" * 60_000) is None
