"""What an answer rests on: the user's words, the documents that were retrieved, what it cites."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from ..event import Kind, RunEvent
from ..run import Run
from .shape import JSON, at, is_array, is_object, items, objects

__all__ = ["Retrieved", "answer_text", "cited_ids", "retrieved", "texts_in", "user_texts"]


@dataclasses.dataclass(frozen=True, slots=True)
class Retrieved:
    """A document the run had in front of it.

    Attributes:
        id: The document's id.
        version: Its version or date, where the retrieval says one.
        aliases: What else it may be cited by: chunk ids, a file name.
        event: The event it came with.
    """

    id: str
    version: str | None
    aliases: frozenset[str]
    event: RunEvent

    @property
    def names(self) -> frozenset[str]:
        """All it may be cited by."""
        return self.aliases | {self.id}


def retrieved(run: Run) -> list[Retrieved]:
    """Documents from `sealtrace.retrieval` and from the provider's file search."""
    return [document for event in run.events for document in _of_event(event)]


def _of_event(event: RunEvent) -> Iterator[Retrieved]:
    if event.kind is Kind.RETRIEVAL:
        for document in objects(at(event.payload, "documents")):
            chunks = frozenset(str(chunk) for chunk in items(document.get("chunks")))
            version = document.get("version")
            yield Retrieved(str(document.get("id")), None if version is None else str(version), chunks, event)
    elif event.kind is Kind.GENERATION:
        for call in objects(at(event.payload, "response", "output")):
            if call.get("type") != "file_search_call":
                continue
            for result in objects(call.get("results")):
                name = result.get("filename")
                version = at(result, "attributes", "version") or at(result, "attributes", "date")
                aliases = frozenset({str(name)}) if name else frozenset[str]()
                yield Retrieved(str(result.get("file_id")), None if version is None else str(version), aliases, event)


def answer_text(payload: JSON) -> str:
    """The text of the answer in a generation's payload."""
    parts = [
        part
        for message in objects(at(payload, "response", "output"))
        if message.get("type") == "message"
        for part in objects(message.get("content"))
    ]
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def cited_ids(text: str, answer: RunEvent | None, pattern: re.Pattern[str]) -> list[str]:
    """What a text cites: marks in the text, and the provider's own annotations of the answer."""
    marks = [match.group(1) if pattern.groups else match.group() for match in pattern.finditer(text)]
    annotations = [
        annotation
        for message in objects(at(answer.payload, "response", "output") if answer is not None else None)
        for part in objects(message.get("content"))
        for annotation in objects(part.get("annotations"))
    ]
    ids = [annotation.get("file_id") or annotation.get("filename") for annotation in annotations]
    return [*marks, *(str(found) for found in ids if found)]


def user_texts(run: Run) -> list[str]:
    """All that came into the run from outside: inputs, and the history it began with."""
    texts: list[str] = []
    for event in run.events:
        if event.kind is Kind.INPUT and "/" not in event.frame:
            texts += texts_in(at(event.payload, "input"))
        elif event.kind is Kind.GENERATION and event.ordinal == 0 and "/" not in event.frame:
            history = objects(at(event.payload, "request", "input"))
            texts += [text for item in history if item.get("role") == "user" for text in texts_in(item.get("content"))]
    return texts


def texts_in(value: JSON) -> Iterator[str]:
    """Every string in a value, numbers as their text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif is_array(value):
        for item in value:
            yield from texts_in(item)
    elif is_object(value):
        for item in value.values():
            yield from texts_in(item)
