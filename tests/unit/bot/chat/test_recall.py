"""A session longer than the window is carried on by a summary that is paid for and said aloud."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.messages import (
    CompleteRequest,
    ErrorChunk,
    ErrorKind,
    Message,
    Role,
    StreamChunk,
    ToolCall,
    ToolResult,
)
from bot.chat.history import PURPOSE, recall
from bot.chat.round_record import RoundRecord
from bot.commands.headless import PlainJournal
from bot.domain.ids import MessageTs
from bot.domain.session import SUMMARY_REQUEST, Summary
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import PAID, ScriptedProvider, calls, text
from tests.fixtures_rounds import said
from tests.fixtures_turn import ASK, TurnBench, turn_bench
from tools.redactor import Redacted

LONG = "It was the database pool, again. " * 150  # some 2,000 tokens
QUESTION = Message(Role.USER, text="and now?")


def _turn(number: int, words: str = LONG, result: str = "") -> list[Message]:
    call = ToolCall(f"c{number}", "core__get_logs", "{}")
    return [
        Message(Role.USER, text=Redacted(f"question {number}")),
        Message(Role.ASSISTANT, tool_calls=(call,)),
        Message(Role.TOOL, tool_result=ToolResult(call.id, call.name, result or "{}")),
        Message(Role.ASSISTANT, text=f"{number}: {words}"),
    ]


def _request(*turns: list[Message]) -> CompleteRequest:
    messages = [m for turn in turns for m in turn]
    return CompleteRequest("system", (*messages, QUESTION), max_tokens=500)


class Summariser:
    """Answers with one record and keeps what it was asked."""

    def __init__(self, record: RoundRecord) -> None:
        self.record = record
        self.asked: list[CompleteRequest] = []

    async def __call__(self, request: CompleteRequest) -> RoundRecord:
        self.asked.append(request)
        return self.record


async def test_what_fits_is_remembered_as_it_was() -> None:
    ask = Summariser(said(0, "never"))
    request = _request(_turn(1, result="x" * 60_000), _turn(2, "short"))

    recalled = await recall(request, 32_000, PlainJournal(), ask)

    assert (recalled.request, recalled.summary, ask.asked) == (request, None, [])


async def test_the_oldest_turns_become_a_summary_and_the_newest_stay() -> None:
    ask = Summariser(said(0, "the pool was exhausted"))
    request = _request(*(_turn(n) for n in range(1, 6)), _turn(6, "short"))

    recalled = await recall(request, 12_000, PlainJournal(), ask)

    kept = recalled.request.messages
    assert [m.text for m in kept[:2]] == [SUMMARY_REQUEST, "the pool was exhausted"]
    assert (kept[2].text, kept[-1]) == ("question 5", QUESTION)
    assert recalled.summary == Summary(4, "the pool was exhausted")
    assert recalled.notices == ("The oldest 4 turns were summarised to fit the model's window.",)
    (asked,) = ask.asked
    assert (asked.tools, asked.meta.purpose) == ((), PURPOSE)
    assert "question 1" in asked.messages[0].text


async def test_a_summary_of_a_summary_counts_it_as_no_turn() -> None:
    ask = Summariser(said(0, "newer"))
    summary = [Message(Role.USER, SUMMARY_REQUEST), Message(Role.ASSISTANT, LONG)]

    recalled = await recall(
        _request(summary, _turn(1, LONG * 2), _turn(2, "x")), 12_000, PlainJournal(), ask
    )

    assert recalled.summary == Summary(1, "newer")


@pytest.mark.parametrize(
    "failed",
    [
        said(0, "", error=ErrorKind.AUTH, provider=""),
        said(0, "half", stopped=True),
        said(0, "evidence", provider="triage"),
        said(0, "  "),
    ],
    ids=["down", "stopped", "no model", "empty"],
)
async def test_without_a_summary_nothing_is_lost_but_the_room(failed: RoundRecord) -> None:
    request = _request(*(_turn(n) for n in range(1, 6)))

    recalled = await recall(request, 12_000, PlainJournal(), Summariser(failed))

    assert (recalled.request, recalled.summary) == (request, None)
    assert recalled.aside == (failed,)


@given(words=st.lists(st.integers(0, 20_000), max_size=6), window=st.integers(4000, 30_000))
async def test_a_conversation_stays_well_formed(words: list[int], window: int) -> None:
    ask = Summariser(said(0, "summary"))
    request = _request(*(_turn(n, "w" * size) for n, size in enumerate(words)))

    recalled = await recall(request, window, PlainJournal(), ask)

    kept = recalled.request.messages
    called = [c.id for m in kept for c in m.tool_calls]
    assert called == [m.tool_result.call_id for m in kept if m.tool_result]
    assert (kept[0].role, kept[-1]) == (Role.USER, QUESTION)


def _ask(number: int):  # type: ignore[no-untyped-def]
    return replace(
        ASK, ts=MessageTs(f"17000000{number:02}.000100"), text=Redacted(f"question {number}")
    )


class Talker(ScriptedProvider):
    """Long answers, a summary where one is asked for, and a short answer to the fourth question."""

    summary: list[StreamChunk] = text("in short")

    async def stream(self, request: CompleteRequest) -> AsyncIterator[StreamChunk]:
        self.requests.append(request)
        words = text("the end" if request.messages[-1].text == "question 4" else LONG)
        for chunk in self.summary if request.meta.purpose == PURPOSE else words:
            yield chunk

    @property
    def summaries(self) -> int:
        return len([r for r in self.requests if r.meta.purpose == PURPOSE])


async def _after_three() -> tuple[TurnBench, Talker]:
    model = Talker([], price=PAID, max_context_tokens=15_000)
    bench = turn_bench(providers=[model])
    for number in (1, 2, 3):
        await bench.answer(_ask(number))
    assert model.summaries == 0
    return bench, model


TOLD = "The oldest 2 turns were summarised to fit the model's window."


async def test_a_long_thread_is_summarised_once_paid_and_told() -> None:
    bench, model = await _after_three()

    fourth = await bench.answer(_ask(4))
    asked = model.requests[-1].messages
    fifth = await bench.answer(_ask(5))

    assert fourth is not None
    assert fifth is not None
    assert (fourth.text, TOLD in fourth.notices) == ("the end", True)
    assert fourth.cost_usd_micros == 2 * 450
    assert [m.text for m in asked if m.role is Role.USER] == [
        SUMMARY_REQUEST, "question 3", "question 4",
    ]  # fmt: skip
    assert asked[1].text == "in short"
    assert model.requests[-1].messages[:3] == asked[:3]
    purposes = [s.purpose for _, s in bench.ledger.inner.rows.values()]
    assert (purposes.count(PURPOSE), model.summaries) == (1, 1)
    assert TOLD not in fifth.notices


@pytest.mark.parametrize("tick", range(12))
async def test_a_crash_anywhere_keeps_one_summary_and_one_answer(tick: int) -> None:
    bench, model = await _after_three()
    journal = MemoryJournal(Fuse(tick))
    with suppress(Crash):
        await bench.answer(_ask(4), journal)
    once = model.summaries

    final = await bench.answer(_ask(4), journal.resumed())

    assert final is not None
    assert (final.text, TOLD in final.notices) == ("the end", True)
    assert model.summaries - once <= 1
    (session,) = bench.store.sessions.values()
    assert (session.summary, session.summary_ts) == ("in short", _ask(2).ts)


FAILED: dict[str, list[StreamChunk]] = {
    "down": [ErrorChunk(ErrorKind.REFUSED, "no")],
    "tools": calls(("c", "core__echo", "{}")),
}


@pytest.mark.parametrize("why", list(FAILED))
async def test_without_a_summary_the_question_is_answered_all_the_same(why: str) -> None:
    bench, model = await _after_three()
    model.summary = FAILED[why]

    final = await bench.answer(_ask(4))

    assert final is not None
    assert (final.text, final.evidence) == ("the end", ())
    assert TOLD not in final.notices
    assert next(iter(bench.store.sessions.values())).summary == ""
