"""A session longer than the window is carried on by a summary that is paid for and said aloud."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import orjson
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
from bot.chat.history import HISTORY_TOKENS, PURPOSE, RESULTS_FOLDED, recall
from bot.chat.round_record import RoundRecord
from bot.chat.window import FOLDED, estimate_tokens
from bot.cli.headless import PlainJournal
from bot.domain.budget import NO_MODEL
from bot.domain.ids import MessageTs
from bot.domain.session import SUMMARY_REQUEST, Summary
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import PAID, ScriptedProvider, calls, text
from tests.fixtures_rounds import said
from tests.fixtures_turn import ASK, TurnBench, turn_bench
from tools.redactor import Redacted

TOLD = "This thread is long: from now on I read a summary of its oldest 2 turns."
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


async def test_a_short_history_is_unchanged() -> None:
    ask = Summariser(said(0, "never"))
    request = _request(_turn(1, result="x" * 30_000), _turn(2, "short"))

    recalled = await recall(request, 32_000, PlainJournal(), ask)

    assert (recalled.request, recalled.summary, ask.asked) == (request, None, [])
    assert recalled.notices == ()


async def test_a_large_window_is_not_filled_with_old_messages() -> None:
    ask = Summariser(said(0, "in short"))
    request = _request(*(_turn(n) for n in range(40)))

    recalled = await recall(request, 1_000_000, PlainJournal(), ask)

    assert recalled.summary == Summary(38, "in short")
    assert "question 37" in ask.asked[0].messages[0].text
    assert estimate_tokens(recalled.request.messages) <= HISTORY_TOKENS // 4 + 100


@pytest.mark.parametrize("history_tokens", [0, HISTORY_TOKENS])
async def test_a_long_question_does_not_cause_forgetting(history_tokens: int) -> None:
    ask = Summariser(said(0, "never"))
    turns = _request(_turn(1), _turn(2)).messages[:-1]
    pasted = Message(Role.USER, text=LONG * 30)
    request = CompleteRequest("system", (*turns, pasted), max_tokens=500)

    recalled = await recall(request, 1_000_000, PlainJournal(), ask, history_tokens)

    assert (recalled.request, ask.asked) == (request, [])


async def test_the_rest_of_a_turn_without_its_question_is_included() -> None:
    ask = Summariser(said(0, "never"))
    left = Message(Role.ASSISTANT, "the pool")
    request = CompleteRequest("system", (left, *_turn(1, "short"), QUESTION), max_tokens=500)

    recalled = await recall(request, 200_000, PlainJournal(), ask)

    assert recalled.request == request


async def test_folding_of_older_results_is_announced_when_it_starts() -> None:
    ask = Summariser(said(0, "never"))
    turns = [_turn(n, "short", "x" * 30_000) for n in (1, 2, 3)]

    first = await recall(_request(*turns[:2]), 200_000, PlainJournal(), ask)
    then = await recall(_request(*turns), 200_000, PlainJournal(), ask)

    kept = [m.tool_result.content for m in first.request.messages if m.tool_result]
    assert (kept, first.notices) == ([FOLDED, "x" * 30_000], (RESULTS_FOLDED,))
    assert then.notices == ()
    assert then.request.messages[:4] == first.request.messages[:4]


async def test_a_summary_is_made_of_complete_results() -> None:
    ask = Summariser(said(0, "in short"))
    request = _request(*(_turn(n, result="pool exhausted " * 3_000) for n in range(1, 6)))

    recalled = await recall(request, 12_000, PlainJournal(), ask)

    assert "tool core__get_logs: pool exhausted" in ask.asked[0].messages[0].text
    assert FOLDED not in ask.asked[0].messages[0].text
    assert RESULTS_FOLDED not in recalled.notices


async def test_without_a_limit_results_are_unchanged() -> None:
    ask = Summariser(said(0, "never"))
    request = _request(*(_turn(n, "short", "x" * 60_000) for n in range(1, 4)))

    recalled = await recall(request, 1_000_000, PlainJournal(), ask, 0)

    assert (recalled.request, recalled.notices) == (request, ())


async def test_the_oldest_turns_become_a_summary_and_the_newest_stay() -> None:
    ask = Summariser(said(0, "the pool was exhausted"))
    request = _request(*(_turn(n) for n in range(1, 6)), _turn(6, "short"))

    recalled = await recall(request, 12_000, PlainJournal(), ask)

    kept = recalled.request.messages
    assert [m.text for m in kept[:2]] == [SUMMARY_REQUEST, "the pool was exhausted"]
    assert (kept[2].text, kept[-1]) == ("question 5", QUESTION)
    assert recalled.summary == Summary(4, "the pool was exhausted")
    assert recalled.notices == (TOLD.replace("2", "4"),)
    (asked,) = ask.asked
    assert (asked.tools, asked.meta.purpose) == ((), PURPOSE)
    assert "question 1" in asked.messages[0].text


async def test_a_summary_does_not_count_as_a_turn() -> None:
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
async def test_without_a_summary_only_room_is_lost(failed: RoundRecord) -> None:
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


async def test_a_long_thread_is_summarised_once_with_cost_and_notice() -> None:
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
async def test_a_crash_at_any_point_keeps_one_summary_and_one_answer(tick: int) -> None:
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
async def test_without_a_summary_the_question_is_answered(why: str) -> None:
    bench, model = await _after_three()
    model.summary = FAILED[why]

    final = await bench.answer(_ask(4))

    assert final is not None
    assert (final.text, final.evidence) == ("the end", ())
    assert TOLD not in final.notices
    assert next(iter(bench.store.sessions.values())).summary == ""


async def _with_a_long_thread(model: Talker) -> TurnBench:
    """In a thread that a large window has room for."""
    bench = turn_bench(providers=[model])
    for number in range(10, 13):
        await bench.answer(_ask(number))
    return bench


class Chatty(Talker):
    """Answers of 8,000 tokens; a process that asks for a summary may die of it."""

    dies: type[BaseException] | None = None

    async def stream(self, request: CompleteRequest) -> AsyncIterator[StreamChunk]:
        self.requests.append(request)
        if request.meta.purpose == PURPOSE and self.dies:
            raise self.dies
        for chunk in self.summary if request.meta.purpose == PURPOSE else text(LONG * 4):
            yield chunk


@pytest.mark.parametrize(("kept", "summaries", "questions"), [(10, 0, 4), (11, 1, 2)])
async def test_a_turn_continues_with_the_history_of_the_release_that_began_it(
    kept: int, summaries: int, questions: int
) -> None:
    model = Chatty([], max_context_tokens=1_000_000)
    bench, journal = await _with_a_long_thread(model), MemoryJournal(at_once=True)
    model.dies = Crash
    with suppress(Crash):
        await bench.answer(_ask(13), journal)
    (name, opened), placeholder = journal.record
    begun = [(name, orjson.dumps(orjson.loads(opened)[:kept])), placeholder]
    model.requests.clear()
    model.dies = None

    await bench.answer(_ask(13), MemoryJournal(record=begun))

    asked = [m.text for m in model.requests[-1].messages if m.role is Role.USER]
    assert (model.summaries, len(asked)) == (summaries, questions)


async def test_without_a_model_no_one_is_asked_for_a_summary() -> None:
    model = Chatty([], name=NO_MODEL, max_context_tokens=1_000_000)
    bench = await _with_a_long_thread(model)

    await bench.answer(_ask(13))

    assert model.summaries == 0
