"""What SessionStore promises, in memory, on SQLite and on PostgreSQL."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.llm.messages import Message, Role, ToolCall, ToolResult
from bot.domain.audit import AuditKind
from bot.domain.ids import ChannelId, MessageTs, Person, Place, SessionId, TeamId, TurnId, UserId
from bot.domain.session import Ask, Session, Summary, TurnState
from bot.domain.turn_events import Evidence
from tests.fixtures_stores import Stores, stores
from tools.redactor import Redacted

__all__ = ["stores"]

NOW = datetime(2026, 4, 7, 14, 31, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1700000000.000100"))
ASKER = Person(TeamId("T1"), UserId("U1"))


def an_ask(ts: str = "1700000000.000100", text: str = "why?", place: Place = PLACE) -> Ask:
    return Ask(place, MessageTs(ts), ASKER, Redacted(text), "incident-checkout")


ASK = an_ask()
EVIDENCE = Evidence(1, "call_1", "core__get_logs", "42 lines, last 30m", True, 12, False, "{}")
SAID = (
    Message(Role.ASSISTANT, "let me look", (ToolCall("call_1", "core__get_logs", '{"a": 1}'),)),
    Message(Role.TOOL, tool_result=ToolResult("call_1", "core__get_logs", '{"lines": []}', True)),
    Message(Role.ASSISTANT, "é 🎉", provider="anthropic", provider_blocks=('{"signature":"x"}',)),
)


async def begin(stores: Stores, ask: Ask = ASK) -> Session:
    return await stores.sessions.begin_turn(ask, "incident-checkout", NOW)


async def finish(
    stores: Stores, ask: Ask = ASK, state: TurnState = TurnState.ANSWERED, said: str = ""
) -> None:
    messages = [Message(Role.ASSISTANT, said)] if said else SAID
    await stores.sessions.finish_turn(ask.turn_id, state, messages, [EVIDENCE], LATER)


async def test_a_place_without_a_session_has_none(stores: Stores) -> None:
    assert await stores.sessions.find(PLACE) is None


async def test_a_session_is_created_and_found(stores: Stores) -> None:
    session = await stores.sessions.begin_turn(ASK, "incident-checkout", NOW)
    assert (session.place, session.name) == (PLACE, "incident-checkout")
    assert (session.created_at, session.active_at) == (NOW, NOW)
    assert await stores.sessions.find(PLACE) == session


async def test_a_session_is_found_by_its_id(stores: Stores) -> None:
    assert await stores.sessions.get(SessionId("session:unknown")) is None
    session = await stores.sessions.begin_turn(ASK, "incident-checkout", NOW)
    assert await stores.sessions.get(session.id) == session


async def test_opening_again_only_updates_its_activity(stores: Stores) -> None:
    first = await stores.sessions.begin_turn(ASK, "incident-checkout", NOW)
    again = await stores.sessions.begin_turn(ASK, "renamed", LATER)
    assert again == replace(first, active_at=LATER)


async def test_activity_never_moves_back(stores: Stores) -> None:
    await stores.sessions.begin_turn(ASK, "n", LATER)
    assert (await stores.sessions.begin_turn(ASK, "n", NOW)).active_at == LATER


async def test_a_session_is_new_only_to_its_first_turn(stores: Stores) -> None:
    later = an_ask("1700000009.000000")
    begun = [await stores.sessions.begin_turn(ask, "n", NOW) for ask in (ASK, ASK, later, ASK)]
    assert [session.is_new for session in begun] == [True, True, False, False]


async def test_another_thread_is_another_session(stores: Stores) -> None:
    first = await stores.sessions.begin_turn(ASK, "n", NOW)
    place = replace(PLACE, thread_ts=MessageTs("1700000001.000100"))
    other = await stores.sessions.begin_turn(an_ask(place=place), "n", NOW)
    assert other.id != first.id


async def test_a_session_opened_twenty_times_at_once_is_one(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stores.sessions.begin_turn(ASK, "n", NOW)) for _ in range(20)]
    assert {task.result() for task in tasks} == {await stores.sessions.find(PLACE)}


async def test_a_turn_runs_until_it_is_finished(stores: Stores) -> None:
    await begin(stores)
    assert await stores.sessions.running_turn(PLACE) == ASK.turn_id
    await finish(stores)
    assert await stores.sessions.running_turn(PLACE) is None


async def test_nothing_runs_in_another_place(stores: Stores) -> None:
    await begin(stores)
    assert await stores.sessions.running_turn(replace(PLACE, thread_ts=MessageTs(""))) is None


async def test_of_two_running_turns_the_older_message_counts(stores: Stores) -> None:
    await begin(stores, an_ask("1700000002.000000"))
    older = an_ask("1700000001.000000")
    await begin(stores, older)
    assert await stores.sessions.running_turn(PLACE) == older.turn_id


async def test_beginning_and_finishing_are_audited_once(stores: Stores) -> None:
    await begin(stores)
    await begin(stores)
    await finish(stores)
    await finish(stores, said="again")
    await begin(stores)
    assert await stores.audit_kinds() == [AuditKind.TURN_STARTED, AuditKind.TURN_ENDED]
    assert await stores.sessions.running_turn(PLACE) is None


async def test_a_turn_begun_twenty_times_at_once_is_one(stores: Stores) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(stores.sessions.begin_turn(ASK, "n", NOW))
    assert await stores.audit_kinds() == [AuditKind.TURN_STARTED]


async def test_history_contains_earlier_turns_oldest_first(stores: Stores) -> None:
    first, second, third = (an_ask(f"170000000{n}.000000", f"q{n}") for n in (1, 2, 3))
    for ask in (first, second, third):
        session = await begin(stores, ask)
    await finish(stores, second, said="a2")
    await finish(stores, first)
    found = await stores.sessions.history(session.id, third.turn_id)
    assert list(found) == [
        Message(Role.USER, "q1"),
        *SAID,
        Message(Role.USER, "q2"),
        Message(Role.ASSISTANT, "a2"),
    ]


async def test_history_excludes_the_turn_itself_later_and_running_ones(stores: Stores) -> None:
    running, this, later = (an_ask(f"170000000{n}.000000") for n in (1, 2, 3))
    for ask in (running, this, later):
        session = await begin(stores, ask)
    await finish(stores, later)
    await finish(stores, this)
    assert list(await stores.sessions.history(session.id, this.turn_id)) == []


@pytest.mark.parametrize("state", [TurnState.ANSWERED, TurnState.STOPPED, TurnState.FAILED])
async def test_history_has_every_finished_turn(stores: Stores, state: TurnState) -> None:
    earlier, this = an_ask("1700000001.000000", "q"), an_ask("1700000002.000000")
    for ask in (earlier, this):
        session = await begin(stores, ask)
    await stores.sessions.finish_turn(earlier.turn_id, state, [], [], LATER)
    assert list(await stores.sessions.history(session.id, this.turn_id)) == [
        Message(Role.USER, "q")
    ]


async def test_history_stays_within_the_session(stores: Stores) -> None:
    elsewhere = replace(PLACE, thread_ts=MessageTs("1600000000.000000"))
    foreign = an_ask("1600000000.000000", place=elsewhere)
    await begin(stores, foreign)
    await finish(stores, foreign)
    session = await begin(stores)
    assert list(await stores.sessions.history(session.id, ASK.turn_id)) == []


async def test_an_unknown_turn_has_no_history_and_finishes_nothing(stores: Stores) -> None:
    session = await begin(stores)
    await finish(stores)
    unknown = TurnId("turn:unknown")
    await stores.sessions.finish_turn(unknown, TurnState.FAILED, [], [], LATER)
    await stores.sessions.set_answer(unknown, MessageTs("1.0"))
    assert list(await stores.sessions.history(session.id, unknown)) == []
    assert len(await stores.audit_kinds()) == 2


async def test_the_turn_of_an_answer_is_found_from_any_thread_of_its_channel(
    stores: Stores,
) -> None:
    await begin(stores)
    ts = MessageTs("1700000000.000200")
    await stores.sessions.set_answer(ASK.turn_id, ts)
    assert await stores.sessions.turn_of_answer(PLACE, ts) == ASK.turn_id
    top = replace(PLACE, thread_ts=MessageTs(""))
    assert await stores.sessions.turn_of_answer(top, ts) == ASK.turn_id


async def test_an_answer_is_not_found_elsewhere(stores: Stores) -> None:
    await begin(stores)
    ts = MessageTs("1700000000.000200")
    await stores.sessions.set_answer(ASK.turn_id, ts)
    other_channel = replace(PLACE, channel=ChannelId("C2"))
    assert await stores.sessions.turn_of_answer(other_channel, ts) is None
    assert await stores.sessions.turn_of_answer(PLACE, MessageTs("1.0")) is None


async def test_evidence_is_found_by_its_number(stores: Stores) -> None:
    await begin(stores)
    await finish(stores)
    assert await stores.sessions.evidence(ASK.turn_id, 1) == EVIDENCE
    assert await stores.sessions.evidence(ASK.turn_id, 2) is None
    assert await stores.sessions.evidence(TurnId("turn:unknown"), 1) is None


async def test_all_results_of_a_turn_are_listed_with_their_arguments(
    stores: Stores,
) -> None:
    second = replace(EVIDENCE, number=2, tool_call_id="call_2")
    await begin(stores)
    await stores.sessions.finish_turn(
        ASK.turn_id, TurnState.ANSWERED, SAID, [second, EVIDENCE], LATER
    )

    assert list(await stores.sessions.consulted(ASK.turn_id)) == [
        (replace(EVIDENCE, content=""), {"a": 1}),
        (replace(second, content=""), {}),
    ]
    assert list(await stores.sessions.consulted(TurnId("turn:unknown"))) == []


async def test_the_notices_of_a_turn_are_kept_in_their_order(stores: Stores) -> None:
    told = ("anthropic was overloaded", "späť \u2028 \x00 \ud800", "")
    await begin(stores)
    await stores.sessions.finish_turn(
        ASK.turn_id, TurnState.ANSWERED, SAID, [], LATER, notices=told
    )

    assert [each[:9] for each in await stores.sessions.notices(ASK.turn_id)] == [
        each[:9] for each in told
    ]
    assert list(await stores.sessions.notices(TurnId("turn:unknown"))) == []


async def test_the_whole_answer_of_a_turn_that_ended_as_lost_is_stored(
    stores: Stores,
) -> None:
    await begin(stores)
    lost = await stores.sessions.finish_turn(ASK.turn_id, TurnState.FAILED, [], [], LATER)
    late = await stores.sessions.finish_turn(
        ASK.turn_id, TurnState.ANSWERED, SAID, [], LATER, answer="späť \u2028 all of it"
    )

    assert (lost, late) == (False, True)
    assert await stores.sessions.answer(ASK.turn_id) == "späť \u2028 all of it"
    assert await stores.sessions.answer(TurnId("turn:unknown")) == ""


async def test_the_arguments_of_a_result_are_found_by_its_call(stores: Stores) -> None:
    await begin(stores)
    await finish(stores)
    assert await stores.sessions.asked(ASK.turn_id, "call_1") == {"a": 1}
    assert await stores.sessions.asked(ASK.turn_id, "call_2") == {}
    assert await stores.sessions.asked(TurnId("turn:unknown"), "call_1") == {}


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\udfff", "🎉\x00"])
async def test_text_that_a_database_cannot_store_is_harmless(stores: Stores, text: str) -> None:
    earlier, this = an_ask("1700000001.000000", text), an_ask("1700000002.000000")
    for ask in (earlier, this):
        session = await begin(stores, ask)
    spoiled = replace(EVIDENCE, content=text, summary=text)
    said = [Message(Role.ASSISTANT, text, (ToolCall("1", "t", text),))]
    await stores.sessions.finish_turn(earlier.turn_id, TurnState.ANSWERED, said, [spoiled], LATER)
    assert len(await stores.sessions.history(session.id, this.turn_id)) == 2
    assert await stores.sessions.evidence(earlier.turn_id, 1) is not None


WEEK = timedelta(hours=168)
BACK = an_ask("1700000900.000100", "and today?")


async def _read(stores: Stores, ask: Ask, at: datetime) -> list[str]:
    session = await stores.sessions.begin_turn(ask, "incident-checkout", at)
    history = await stores.sessions.history(session.id, ask.turn_id, session.summary_ts)
    return [m.text for m in history]


@pytest.mark.parametrize(
    ("silence", "read"),
    [(WEEK, ["why?", "the pool"]), (WEEK + timedelta(seconds=1), [])],
    ids=["a week", "longer"],
)
async def test_a_session_idle_for_too_long_starts_again(
    stores: Stores, silence: timedelta, read: list[str]
) -> None:
    await begin(stores)
    await finish(stores, said="the pool")

    assert await _read(stores, BACK, NOW + silence) == read

    session = await stores.sessions.find(PLACE)
    assert session is not None
    assert (session.resumed_by == BACK.turn_id) == (read == [])


async def test_a_return_delivered_twice_is_one_return(stores: Stores) -> None:
    await begin(stores)
    late = NOW + 2 * WEEK
    first = await stores.sessions.begin_turn(BACK, "n", late)
    assert await stores.sessions.begin_turn(BACK, "n", late + timedelta(seconds=9)) == replace(
        first, active_at=late + timedelta(seconds=9)
    )
    assert first.resumed_by == BACK.turn_id


async def test_a_conversation_restarted_after_a_return_is_remembered(stores: Stores) -> None:
    await begin(stores)
    await finish(stores, said="old")
    late = NOW + 2 * WEEK
    await _read(stores, BACK, late)
    await finish(stores, BACK, said="new")

    third = an_ask("1700000950.000100", "third")
    assert await _read(stores, third, late + timedelta(minutes=1)) == ["and today?", "new"]


async def test_a_summary_replaces_the_oldest_turns_from_the_next_turn_on(stores: Stores) -> None:
    asks = [an_ask(f"17000001{n:02}.000100", f"q{n}") for n in range(5)]
    for ask in asks[:3]:
        await begin(stores, ask)
        await finish(stores, ask, said=f"a{ask.text}")
    assert await _read(stores, asks[3], NOW) == ["q0", "aq0", "q1", "aq1", "q2", "aq2"]
    for _ in range(2):
        await stores.sessions.finish_turn(
            asks[3].turn_id, TurnState.ANSWERED, [], [], LATER, Summary(2, "in short")
        )

    assert await _read(stores, asks[4], NOW) == ["q2", "aq2", "q3"]
    session = await stores.sessions.find(PLACE)
    assert session is not None
    assert (session.summary, session.summary_ts) == ("in short", asks[1].ts)
