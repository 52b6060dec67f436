"""Messages that need a look at the systems, and messages that do not."""

import pytest

from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from bot.chat.evidence_need import needs_evidence

ASKED = Message(Role.USER, "why is checkout slow?")
CALLED = Message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "core__get_logs", "{}"),))
READ = Message(Role.TOOL, tool_result=ToolResult("c1", "core__get_logs", "{}"))
ANSWERED = Message(Role.ASSISTANT, "The database is saturated since 14:02 [E1].")
LOOKED = (ASKED, CALLED, READ, ANSWERED)
GUESSED = (ASKED, ANSWERED)


@pytest.mark.parametrize(
    "text",
    [
        "hi", "Hello Kortex!", "hey there", "good morning all", "thanks", "Thank you so much!", "thx, great",
        "ok", "ok thanks", "perfect, that helps", "never mind", "great job", "👍", "yes", "lgtm 🙏",
        "help", "who are you?", "what can you do?", "which tools do you have?",
        "what is a readiness probe?", "what does OOMKilled mean?", "", "   ",
    ],
)  # fmt: skip
def test_a_message_without_a_question_about_the_systems_needs_no_evidence(text: str) -> None:
    assert not needs_evidence([Message(Role.USER, text)])
    assert not needs_evidence([*LOOKED, Message(Role.USER, text)])


@pytest.mark.parametrize(
    "text",
    [
        "why is checkout slow?", "is everything fine?", "is it the database?", "what changed in payments?",
        "who deployed last week?", "hi, why is checkout slow?", "thanks, and what about payments?",
        "ok so is it fixed now?", "show me the logs", "checkout is down", "checkout", "please look at the cart",
        "what is the error rate?", "what is wrong?", "help, checkout is down", "yes but why?", "x" * 5_000,
        "hello " * 400,
    ],
)  # fmt: skip
def test_a_question_about_the_systems_needs_evidence(text: str) -> None:
    assert needs_evidence([Message(Role.USER, text)])


@pytest.mark.parametrize(
    "text",
    [
        "is it fixed now?", "show me the logs", "what changed in payments?", "and the errors?", "check again",
        "why is payments slow too?", "look at the last hour", "is it the database?",
    ],
)  # fmt: skip
def test_a_new_question_in_a_thread_needs_evidence(text: str) -> None:
    assert needs_evidence([*LOOKED, Message(Role.USER, text)])


@pytest.mark.parametrize(
    "text",
    [
        "summarise that", "tl;dr?", "can you write that up as a status update?", "what do you mean by saturated?",
        "explain E1", "are you sure?", "in plain words please", "say that again in German",
        "it isn't the database, we failed over at 14:02", "we rolled back ten minutes ago",
    ],
)  # fmt: skip
def test_a_question_about_the_previous_answer_needs_no_evidence(text: str) -> None:
    assert not needs_evidence([*GUESSED, Message(Role.USER, text)])
    assert needs_evidence([Message(Role.USER, text)])


def test_a_reference_to_earlier_text_needs_no_evidence_only_after_a_read() -> None:
    asked = Message(Role.USER, "since when?")

    assert not needs_evidence([*LOOKED, asked])
    assert needs_evidence([*GUESSED, asked])


def test_a_conversation_without_a_question_needs_none() -> None:
    assert not needs_evidence([])


def test_later_results_do_not_change_whether_a_question_needs_evidence() -> None:
    assert needs_evidence([ASKED, CALLED, READ])
