"""One vote per person and answer, changeable, counted by provider; in memory and on both databases."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from adapters.llm.messages import Message, Role
from bot.domain.audit import AuditKind
from bot.domain.feedback import Judged, Vote
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, TurnId, UserId
from bot.domain.session import Ask, TurnState
from bot.store.database import Database
from bot.store.feedback import StoredFeedback
from bot.store.retention import StoredRetention
from bot.store.sessions import StoredSessions
from tests.fixtures_database import database, database_url
from tests.fixtures_stores import Stores, stores
from tools.redactor import Redacted

__all__ = ["database", "database_url", "stores"]

ANNA, BEN = (Person(TeamId("T1"), UserId(each)) for each in ("U0ANNA", "U0BEN"))
UP, DOWN = Vote.UP, Vote.DOWN
PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))


async def answered(stores: Stores, ts: str = "1.1", provider: str = "anthropic") -> TurnId:
    now = datetime.now(UTC)
    ask = Ask(PLACE, MessageTs(ts), ANNA, Redacted("why?"), "incident")
    await stores.sessions.begin_turn(ask, "incident", now)
    said = [Message(Role.ASSISTANT, text="because", provider=provider)]
    await stores.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, said, [], now)
    await stores.sessions.set_answer(ask.turn_id, MessageTs("9.9"))
    return ask.turn_id


async def given(stores: Stores) -> int:
    return (await stores.audit_kinds()).count(AuditKind.FEEDBACK_GIVEN)


async def test_a_vote_counts_once_and_may_be_changed(stores: Stores) -> None:
    turn = await answered(stores)

    assert await stores.feedback.vote(turn, ANNA, UP, "k1") is True
    assert await stores.feedback.vote(turn, ANNA, UP, "k2") is False
    assert await stores.feedback.vote(turn, BEN, DOWN, "k3") is True
    assert await stores.feedback.vote(turn, BEN, UP, "k4") is True

    assert await stores.feedback.judged(1) == [Judged("anthropic", 1, 1, 2, 0)]
    assert await given(stores) == 3


async def test_one_of_two_presses_at_once_counts(stores: Stores) -> None:
    turn = await answered(stores)
    async with asyncio.TaskGroup() as both:
        votes = [both.create_task(stores.feedback.vote(turn, ANNA, DOWN, k)) for k in ("a", "b")]

    assert sorted(str(vote.result()) for vote in votes) == ["False", "True"]
    assert await given(stores) == 1


async def test_an_unknown_or_running_turn_cannot_be_rated(stores: Stores) -> None:
    now = datetime.now(UTC)
    ask = Ask(PLACE, MessageTs("3.3"), ANNA, Redacted("why?"), "incident")
    await stores.sessions.begin_turn(ask, "incident", now)

    assert await stores.feedback.vote(ask.turn_id, ANNA, UP, "k1") is None
    assert await stores.feedback.vote(TurnId("turn:T1:C1:8.8"), ANNA, UP, "k2") is None
    assert await given(stores) == 0


async def test_a_reason_is_stored_only_with_a_vote(stores: Stores) -> None:
    turn = await answered(stores)
    await stores.feedback.vote(turn, ANNA, DOWN, "k1")
    assert await stores.feedback.explain(turn, ANNA, Redacted("wrong service"), "k1:why")
    assert not await stores.feedback.explain(turn, BEN, Redacted("never voted"), "k2:why")

    (told,) = await stores.feedback.reasons(10)
    assert (told.reason, told.provider, told.by, told.place) == (
        "wrong service",
        "anthropic",
        ANNA.user,
        PLACE,
    )
    assert (told.asked, told.answer_ts) == ("why?", "9.9")

    await stores.feedback.vote(turn, ANNA, UP, "k3")
    assert not await stores.feedback.explain(turn, ANNA, Redacted("too late"), "k4:why")
    assert await stores.feedback.reasons(10) == []


async def test_votes_are_counted_by_provider_and_filtered_by_the_turns_time(
    stores: Stores,
) -> None:
    first = await answered(stores)
    second = await answered(stores, "2.2", "triage")
    await answered(stores, "4.4", "triage")
    await stores.feedback.vote(second, BEN, DOWN, "k1")
    await stores.feedback.vote(first, BEN, UP, "k2")
    now = datetime.now(UTC)

    assert await stores.feedback.judged(7) == [
        Judged("anthropic", 7, 1, 1, 0),
        Judged("triage", 7, 2, 0, 1),
    ]
    hour = timedelta(hours=1)
    assert [o.turn for o in await stores.feedback.between(now - hour, now)] == [first, second]
    assert await stores.feedback.between(now - 2 * hour, now - hour) == []


@pytest.mark.parametrize("retain", [True, False])
async def test_reasons_are_deleted_with_the_messages_and_votes_stay(
    database: Database, retain: bool
) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=9)
    sessions = StoredSessions(database)
    feedback = StoredFeedback(database, retain=retain)
    ask = Ask(PLACE, MessageTs("1.1"), ANNA, Redacted("why?"), "incident")
    await sessions.begin_turn(ask, "incident", long_ago)
    await sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], [], long_ago)
    await feedback.vote(ask.turn_id, ANNA, DOWN, "k1")
    kept = await feedback.explain(ask.turn_id, ANNA, Redacted("wrong"), "k1:why")

    assert (kept, feedback.keeps_reasons) == (retain, retain)
    assert len(await feedback.reasons(10)) == int(retain)

    await StoredRetention(database).drop_messages(86_400)

    assert await feedback.reasons(10) == []
    (judged,) = await feedback.judged(30)
    assert (judged.provider, judged.down) == ("", 1)
