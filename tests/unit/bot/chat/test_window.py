"""A conversation is made to fit by folding the oldest results first, and says so."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from bot.chat.window import FOLDED, TOO_LARGE, estimate_tokens, fit, newest_note, turns_of


def _turn(number: int, result_bytes: int) -> list[Message]:
    call = ToolCall(f"c{number}", "core__get_logs", "{}")
    return [
        Message(Role.USER, text=f"question {number}"),
        Message(Role.ASSISTANT, tool_calls=(call,)),
        Message(Role.TOOL, tool_result=ToolResult(call.id, call.name, "x" * result_bytes)),
        Message(Role.ASSISTANT, text=f"answer {number}"),
    ]


def test_a_conversation_that_fits_is_unchanged() -> None:
    messages = _turn(1, 100)

    assert fit(messages, "system", 10_000) == (tuple(messages), None)


def test_the_oldest_result_is_folded_first_with_a_notice() -> None:
    messages = [*_turn(1, 5000), *_turn(2, 5000), Message(Role.USER, text="now?")]

    kept, note = fit(messages, "", 3000)

    results = [m.tool_result.content for m in kept if m.tool_result]
    assert results == [FOLDED, "x" * 5000]
    assert note == "To fit the model's window, 1 earlier tool results were folded."


def test_when_folding_is_not_enough_complete_old_turns_are_dropped() -> None:
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


def test_within_a_turn_read_results_are_folded_before_new_ones() -> None:
    now = [m for n in (1, 2) for m in _turn(n, 3000)[1:3]]
    messages = [Message(Role.USER, text="now?"), *now]

    kept, note = fit(messages, "", 2000)

    assert [m.tool_result.content for m in kept if m.tool_result] == [FOLDED, "x" * 3000]
    assert note == "To fit the model's window, 1 earlier tool results were folded."


def test_a_new_result_too_large_for_the_window_is_reported() -> None:
    messages = [Message(Role.USER, text="now?"), *_turn(1, 60_000)[1:3]]

    kept, note = fit(messages, "", 4000)

    assert [m.tool_result.content for m in kept if m.tool_result] == [TOO_LARGE]
    assert note == "To fit the model's window, 1 results were too large to read."


@given(
    sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=6),
    room=st.integers(1000, 20_000),
)
@example(sizes=[93, 0, 0, 1925], room=1188)  # where rounding text and system apart lost a token
def test_a_conversation_with_any_results_fits(sizes: list[int], room: int) -> None:
    messages = [m for i, s in enumerate(sizes) for m in _turn(i, s)]
    messages += [Message(Role.USER, text="now?"), *_turn(9, sizes[0])[1:3]]

    kept, note = fit(messages, "system", room)

    assert estimate_tokens(kept, "system") <= room
    assert (note is None) == (list(kept) == messages)


def test_only_the_last_notice_about_folding_stays() -> None:
    notes = ["a", "To fit the model's window, x.", "b", "To fit the model's window, y."]

    assert newest_note(notes) == ["a", "b", "To fit the model's window, y."]


def test_turns_are_separated_before_every_question() -> None:
    first, second = _turn(1, 1), _turn(2, 1)

    assert turns_of([*first, *second]) == [tuple(first), tuple(second)]


@pytest.mark.parametrize("letter", ["\u65e5", "\ud800"])
def test_three_byte_characters_fit_too(letter: str) -> None:
    messages = [*_turn(1, 10), Message(Role.USER, text=letter)]
    messages[2] = Message(Role.TOOL, tool_result=ToolResult("c1", "core__get_logs", letter * 2_000))

    kept, note = fit(messages, "", 1_000)

    assert (kept[2].tool_result or ToolResult("", "", "")).content == FOLDED
    assert note is not None
