"""A conversation is made to fit by folding the oldest results first, and says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from bot.chat.history import FOLDED, estimate_tokens, fit


def _turn(number: int, result_bytes: int) -> list[Message]:
    call = ToolCall(f"c{number}", "core__get_logs", "{}")
    return [
        Message(Role.USER, text=f"question {number}"),
        Message(Role.ASSISTANT, tool_calls=(call,)),
        Message(Role.TOOL, tool_result=ToolResult(call.id, call.name, "x" * result_bytes)),
        Message(Role.ASSISTANT, text=f"answer {number}"),
    ]


def test_what_fits_is_left_alone() -> None:
    messages = _turn(1, 100)

    assert fit(messages, "system", 10_000) == (tuple(messages), None)


def test_the_oldest_result_is_folded_first_and_people_are_told() -> None:
    messages = [*_turn(1, 5000), *_turn(2, 5000), Message(Role.USER, text="now?")]

    kept, note = fit(messages, "", 3000)

    results = [m.tool_result.content for m in kept if m.tool_result]
    assert results == [FOLDED, "x" * 5000]
    assert note == "To fit the model's window, 1 earlier tool results were folded."


def test_when_folding_is_not_enough_whole_old_turns_go() -> None:
    messages = [*_turn(1, 10), *_turn(2, 10), Message(Role.USER, text="q" * 2000)]

    kept, note = fit(messages, "", 900)

    assert [m.text for m in kept if m.role is Role.USER] == ["q" * 2000]
    assert note is not None


@pytest.mark.parametrize("max_tokens", [10, 200, 900, 5000])
@given(sizes=st.lists(st.integers(0, 4000), min_size=1, max_size=6))
def test_every_result_kept_still_has_its_call_and_the_question_stays(
    max_tokens: int, sizes: list[int]
) -> None:
    messages = [m for i, s in enumerate(sizes) for m in _turn(i, s)]
    messages.append(Message(Role.USER, text="the question"))

    kept, _ = fit(messages, "system", max_tokens)

    asked = {c.id for m in kept for c in m.tool_calls}
    answered = {m.tool_result.call_id for m in kept if m.tool_result}
    assert asked == answered
    assert kept[-1].text == "the question"
    assert kept[0].role is Role.USER
    assert estimate_tokens(kept) <= estimate_tokens(messages)
