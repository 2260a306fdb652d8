"""What a model call cost, where the reader's own list says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sealtrace
from sealtrace.errors import SettingsError
from sealtrace.event import Kind, RunEvent
from sealtrace.run import Node
from sealtrace.settings import Settings
from sealtrace.viewer.prices import Prices
from viewer.inert import Page

from .conftest import Demo

LIST = """
["gpt-x"]
input = 2.0
output = 10

["gpt-x-mini"]
input = 0.25
cached = 0.025
output = 2.0
"""


def listed(tmp_path: Path, text: str = LIST) -> Path:
    """The list as a file."""
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return path


def call(model: str | None, tokens: tuple[int, int] | None, cached: int = 0, kind: str = "model") -> Node:
    """The line of a model call."""
    event = RunEvent(run_id="trace_" + "0" * 32, record_id="0" * 32, seq=0, ts="", kind=Kind.GENERATION, model=model)
    return Node(kind, "chat", [event], tokens=tokens, cached=cached)


@pytest.mark.parametrize(
    ("node", "cost"),
    [
        (call("gpt-x", (1_000_000, 0)), 2.0),
        (call("gpt-x", (0, 1_000_000)), 10.0),
        (call("gpt-x", (1_000_000, 0), cached=500_000), 2.0),
        (call("gpt-x-mini", (1_000_000, 0), cached=1_000_000), 0.025),
        (call("gpt-x-mini", (1_000_000, 0), cached=9_000_000), 0.025),
        (call("gpt-x-mini-2026-08-07", (0, 1_000_000), kind="generation"), 2.0),
        (call("gpt-x-2026-08-07", (0, 1_000_000)), 10.0),
        (call("gpt-xy", (1, 1)), None),
        (call("gpt-x", None), None),
        (call(None, (1, 1)), None),
        (call("gpt-x", (1, 1), kind="agent"), None),
    ],
)
def test_what_a_call_cost(tmp_path: Path, node: Node, cost: float | None) -> None:
    """By tokens of either kind, those from the cache apart, under the longest name that fits; else not known."""
    assert Prices.from_file(listed(tmp_path)).of(node) == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "€0.00"),
        (1234.5, "€1,234.50"),
        (0.5, "€0.50"),
        (0.0123456, "€0.012"),
        (0.00004567, "€0.000046"),
        (0.1, "€0.10"),
    ],
)
def test_amounts(tmp_path: Path, amount: float, said: str) -> None:
    """A small amount keeps two figures that say something."""
    assert Prices.from_file(listed(tmp_path, 'currency = "€"')).said(amount) == said


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "currency = 3",
        'currency = "much too long"',
        "gpt = 3",
        "[gpt]\ninput = 1",
        "[gpt]\ninput = 1\noutput = -1",
        "[gpt]\ninput = 1\noutput = inf",
        "[gpt]\ninput = 1\noutput = nan",
        '[gpt]\ninput = 1\noutput = "2"',
        "[gpt]\ninput = 1\noutput = true",
        "[gpt]\ninput = 1\noutput = 2\nextra = 3",
    ],
)
def test_a_list_that_is_none(tmp_path: Path, text: str) -> None:
    """A price that is none is refused when the server starts, with the file's name."""
    with pytest.raises(SettingsError, match=r"prices\.toml"):
        Prices.from_file(listed(tmp_path, text))
    with pytest.raises(SettingsError, match="cannot read"):
        Prices.from_file(tmp_path / "nothing.toml")


def test_the_cost_column(demo: Demo, visit: Callable[..., TestClient], tmp_path: Path) -> None:
    """With a list, each model call has its cost and the run their sum; without one there is no such column."""
    path = listed(tmp_path, "[ScriptedModel]\ninput = 1000\noutput = 10000")
    page = Page(visit(demo.settings(prices=path)).get(f"/runs/{demo.run.id}").text)
    assert len([part for part in page.of("span") if part.get("class") == "cost"]) > 4
    assert "$0.43" in page.text  # 188 tokens in, 24 out
    assert "$3.15" in page.text  # 1,749 in, 140 out
    without = visit(demo.settings()).get(f"/runs/{demo.run.id}").text
    assert "cost" not in without
    other = visit(demo.settings(prices=listed(tmp_path))).get(f"/runs/{demo.run.id}")
    assert "not known" in Page(other.text).text


def test_the_same_without_spans(demo: Demo, visit: Callable[..., TestClient], tmp_path: Path) -> None:
    """From payloads alone the sum is the same."""
    path = listed(tmp_path, "[ScriptedModel]\ninput = 1000\noutput = 10000")
    page = visit(Settings(vault=demo.vault, prices=path)).get(f"/runs/{demo.run.id}")
    assert "$3.15" in page.text


def test_tokens_from_the_cache_are_on_the_line(demo: Demo) -> None:
    """The demo's model has no cache; where a usage has cached tokens, the line has them."""
    run = sealtrace.load(demo.run.id, vault=demo.vault)
    event = next(event for event in run.events if event.kind is Kind.GENERATION)
    event.payload["response"]["usage"]["cached_tokens"] = 7

    def nodes(found: list[Node]) -> list[Node]:
        return [node for one in found for node in (one, *nodes(one.children))]

    assert [node.cached for node in nodes(run.tree()) if event in node.events] == [7]
