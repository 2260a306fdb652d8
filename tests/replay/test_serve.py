"""From the record back to what the SDK expects."""

from __future__ import annotations

import agents
import openai
import pytest

from sealtrace.replay.serve import RecordedError, model_response, recorded_error, stream_events


class Own(Exception):
    """An exception of the user's."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")


@pytest.mark.parametrize(
    ("name", "caught"),
    [
        ("ValueError", ValueError),
        ("TimeoutError", TimeoutError),
        ("OSError", OSError),
        ("MaxTurnsExceeded", agents.MaxTurnsExceeded),
        ("ModelBehaviorError", agents.ModelBehaviorError),
        ("RateLimitError", openai.RateLimitError),
        ("APITimeoutError", openai.APITimeoutError),
        ("Own", Own),
        ("SomethingUnheardOf", RecordedError),
        ("KeyboardInterrupt", RecordedError),
        ("print", RecordedError),
    ],
)
def test_a_recorded_failure_is_caught_by_the_class_it_had(name: str, caught: type[BaseException]) -> None:
    """Also by classes whose constructors want what was never recorded; text and name are the recorded ones."""
    error = recorded_error({"type": name, "message": "it broke"}, {"Own": Own})
    assert isinstance(error, caught)
    assert isinstance(error, RecordedError)
    assert isinstance(error, Exception)
    assert not isinstance(error, KeyboardInterrupt)
    assert (str(error) if name != "KeyError" else "it broke", error.recorded_type) == ("it broke", name)
    assert type(error).__name__ == name


ANSWER = {
    "output": [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "x",
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
        },
        {
            "id": "msg_2",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "refusal", "refusal": "No."}],
        },
        {"id": "fc_1", "call_id": "call_1", "type": "function_call", "name": "f", "arguments": '{"a": 1}'},
        {"type": "apply_patch_call", "id": "ap_1", "call_id": "call_2", "status": "completed", "operation": {"x": 1}},
        {"type": "of_the_future", "id": "zz", "anything": [1, 2]},
    ],
    "usage": {"requests": 1, "input_tokens": 5, "output_tokens": 3, "total_tokens": 8, "cached_tokens": 2},
    "response_id": "resp_1",
    "request_id": "req_1",
}


def test_items_have_the_fields_they_had_and_no_other() -> None:
    """What goes into the next request is what went into the recorded one."""
    answer = model_response(ANSWER, failed_attempts=2)
    dumped = [
        item if isinstance(item, dict) else item.model_dump(mode="json", exclude_unset=True) for item in answer.output
    ]
    assert dumped == ANSWER["output"]
    assert (answer.usage.requests, answer.usage.total_tokens, answer.usage.input_tokens_details.cached_tokens) == (
        3,
        8,
        2,
    )
    assert (answer.response_id, answer.request_id) == ("resp_1", "req_1")


def test_a_stream_is_well_formed_and_ends_with_the_answer() -> None:
    """Numbered from 0; each item announced, told and done; one end, which holds all items."""
    events = list(stream_events(ANSWER, "gpt-5"))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done") == 6
    assert kinds.count("response.completed") == 1
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == "Hello."
    assert {"response.refusal.delta", "response.function_call_arguments.done"} <= set(kinds)
    end = events[-1].response
    assert (len(end.output), end.id, end.usage.total_tokens) == (6, "resp_1", 8)
