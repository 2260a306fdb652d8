"""What kind of thing made two runs part, in causal order.

The order is that of an agent's turn: what was asked, what it knew, how it was set up, what the model
made of it, what a tool did, what the code decided, what was allowed. The earlier one explains the later.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Cause"]


class Cause(StrEnum):
    """Why, in causal order."""

    INPUT = "INPUT"
    """Another input: the user's words, or history the run began with."""
    EVIDENCE = "EVIDENCE"
    """Other facts in front of the model: retrieved documents, a tool output from before."""
    CONFIG = "CONFIG"
    """Another set-up: instructions, tools, handoffs, output schema, settings, model."""
    MODEL = "MODEL"
    """The same request, answered otherwise."""
    TOOL = "TOOL"
    """The same call, with another result."""
    LOGIC = "LOGIC"
    """The same answers, followed by something else: the code changed."""
    POLICY = "POLICY"
    """Another verdict: a guardrail, an approval, the authority in force."""

    @property
    def rank(self) -> int:
        """Its place in the causal order, from 0."""
        return list(Cause).index(self)
