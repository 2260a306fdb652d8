"""What only the application knows: on whose authority it acts, and what it retrieved."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Sequence
from typing import Any

from .._guard import safely
from ..event import Kind
from .codec import Snapshot
from .emitter import Emitter
from .frames import ACTOR

__all__ = ["Document", "authority", "retrieval"]


@contextlib.contextmanager
def authority(
    actor: str,
    *,
    scopes: Sequence[str] = (),
    policy: str | None = None,
    policy_version: str | None = None,
) -> Generator[None]:
    """Say on whose authority the runs inside act.

    What is given here is stored with each event's envelope, which outlives the payload, so give
    ids, not names: `user:4711`, not an email address. Values that do not look like identifiers are
    replaced by a keyed tag.

    Args:
        actor: The acting identity.
        scopes: What it may do.
        policy: Name of the policy that decided so.
        policy_version: Its version.
    """
    facts: dict[str, Any] = {"id": actor, "scopes": list(scopes), "policy": policy, "policy_version": policy_version}
    token = ACTOR.set({name: value for name, value in facts.items() if value})
    try:
        yield
    finally:
        ACTOR.reset(token)


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A retrieved document.

    Attributes:
        id: The document's id.
        version: Its version, date or digest, as the store has it.
        chunks: Ids of the chunks that were used.
        text: What was handed to the model, if it is to be kept.
    """

    id: str
    version: str | None = None
    chunks: tuple[str, ...] = ()
    text: str | None = None


def retrieval(query: str, documents: Sequence[Document], *, access: str | None = None) -> None:
    """Record a retrieval that the SDK does not see, inside a tool for example.

    Outside a recorded run it does nothing. It never raises.

    Args:
        query: What was asked for.
        documents: What came back and was used.
        access: The result of the access check, for example `allowed` or `filtered:3`.
    """
    safely(_retrieval, query, documents, access)


def _retrieval(query: str, documents: Sequence[Document], access: str | None) -> None:
    from . import current  # noqa: PLC0415 - the package builds the runtime that this asks for

    runtime, here = current(), Emitter.here()
    if runtime is None or here is None:
        return
    snapshot = Snapshot()
    payload: dict[str, Any] = {
        "query": snapshot.take(query),
        "documents": [
            {name: value for name, value in snapshot.take(document).items() if value} for document in documents
        ],
    }
    if access is not None:
        payload["access"] = snapshot.take(access)
    runtime.capture.at_once(
        Kind.RETRIEVAL,
        *here,
        payload,
        snapshot=snapshot,
        digest={"query": payload["query"], "documents": payload["documents"]},
    )
