"""History of any shape becomes a conversation that every vendor accepts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from adapters.llm.transcript import AssistantTurn, ResultsTurn, UserTurn, turns

LOGS = ToolCall("toolu_1", "core__get_logs", "{}")
METRICS = ToolCall("toolu_2", "core__get_metrics", "{}")


def asked(text: str) -> Message:
    return Message(Role.USER, text)


def called(*calls: ToolCall, text: str = "") -> Message:
    return Message(Role.ASSISTANT, text, tool_calls=calls)


def answered(call: ToolCall, content: str) -> Message:
    return Message(Role.TOOL, tool_result=ToolResult(call.id, call.name, content))


def test_results_follow_their_calls_in_call_order() -> None:
    found = turns(
        [asked("Why?"), called(LOGS, METRICS), answered(METRICS, "2"), answered(LOGS, "1")]
    )
    assert isinstance(found[2], ResultsTurn)
    assert [result.content for result in found[2].results] == ["1", "2"]


def test_a_call_without_a_result_is_answered_with_an_error() -> None:
    found = turns([asked("Why?"), called(LOGS), asked("Still there?")])
    assert isinstance(found[2], ResultsTurn)
    assert found[2].results[0].is_error
    assert found[3] == UserTurn("Still there?")


def test_a_result_without_its_call_is_dropped() -> None:
    assert turns([asked("Why?"), answered(LOGS, "1")]) == [UserTurn("Why?")]


def test_a_cut_conversation_still_starts_with_the_user() -> None:
    found = turns([called(text="Because."), asked("Sure?")])
    assert isinstance(found[0], UserTurn)
    assert isinstance(found[1], AssistantTurn)


def test_blank_messages_are_dropped() -> None:
    assert turns([asked(" \n"), asked("Why?"), called(text="  ")]) == [UserTurn("Why?")]


def test_an_id_used_twice_is_made_unique_and_results_stay_with_their_calls() -> None:
    first, second = ToolCall("0", "core__get_logs", "{}"), ToolCall("0", "core__get_metrics", "{}")
    found = turns(
        [asked("?"), called(first), answered(first, "1"), called(second), answered(second, "2")]
    )
    results = [result for turn in found if isinstance(turn, ResultsTurn) for result in turn.results]
    assert [result.content for result in results] == ["1", "2"]
    assert results[0].call_id == "0"
    assert results[1].call_id != "0"


IDS = st.text(max_size=50) | st.sampled_from(["0", "call_1", "functions.get_logs:0", "x" * 41])
CALLS = st.builds(ToolCall, IDS, st.just("core__get_logs"), st.just("{}"))
MESSAGES = st.lists(
    st.one_of(
        st.builds(asked, st.text(max_size=5)),
        st.builds(lambda calls, text: called(*calls, text=text), st.lists(CALLS), st.text()),
        st.builds(answered, CALLS, st.just("1")),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_every_call_is_answered_once_right_after_it_under_a_valid_unique_id(
    messages: list[Message],
) -> None:
    found = turns(messages)
    after = [*found[1:], None]
    pairs = [
        (turn.calls, following.results if isinstance(following, ResultsTurn) else ())
        for turn, following in zip(found, after, strict=False)
        if isinstance(turn, AssistantTurn)
    ]
    ids = [call.id for calls, _ in pairs for call in calls]
    assert all(
        [call.id for call in calls] == [result.call_id for result in results]
        for calls, results in pairs
    )
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", call_id) for call_id in ids)
    assert sum(isinstance(turn, ResultsTurn) for turn in found) == sum(
        bool(calls) for calls, _ in pairs
    )


@given(MESSAGES, MESSAGES)
def test_the_past_is_unchanged_as_a_conversation_grows(
    past: list[Message], more: list[Message]
) -> None:
    whole_past = [asked("Why?"), *past, asked("And?")]
    before = turns(whole_past)
    assert turns([*whole_past, called(text="So."), *more])[: len(before)] == before
