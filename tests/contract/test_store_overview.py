"""What goes on now, as it is on record: on both databases, by the database's clock."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.overview import RecentConversation, RunningQuestion
from bot.domain.session import Ask, TurnState
from bot.store.database import Database
from bot.store.overview import StoredOverview
from bot.store.proposals import StoredProposals
from bot.store.sessions import StoredSessions
from tests.fixtures_database import database, database_url
from tests.fixtures_stores import stand_in_line
from tests.slack_ingress import order_of_its_own
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

NOW = datetime.now(UTC).replace(microsecond=0)


def ask(ts: str, channel: str = "C1", user: str = "U1") -> Ask:
    place = Place(TeamId("T1"), ChannelId(channel), MessageTs("1.1"))
    return Ask(place, MessageTs(ts), Person(TeamId("T1"), UserId(user)), Redacted("why?"))


async def begun(database: Database, asked: Ask, at: datetime = NOW) -> None:
    sessions = StoredSessions(database)
    await sessions.begin_turn(asked, "incident", at)


async def test_running_turns_come_before_waiting_ones(database: Database) -> None:
    first, second, over = ask("1.1"), ask("2.2"), ask("3.3", "C2")
    await begun(database, first)
    await begun(database, over)
    await StoredSessions(database).finish_turn(over.turn_id, TurnState.ANSWERED, [], [], NOW)
    for each in (first, second):
        await stand_in_line(database, each)

    overview = StoredOverview(database)
    assert await overview.under_way(10) == [
        RunningQuestion(first.place, first.ts, UserId("U1"), NOW),
        RunningQuestion(second.place, second.ts, None, None),
    ]
    assert len(await overview.under_way(1)) == 1


async def test_only_undecided_proposals_are_open(database: Database) -> None:
    store = StoredProposals(database)
    for name, minutes in (("p_late", 90), ("p_soon", 60), ("p_past", -1)):
        expires = NOW + timedelta(minutes=minutes)
        row = order_of_its_own(name, created_at=NOW - timedelta(minutes=5), expires_at=expires)
        created = AuditEvent(AuditKind.PROPOSAL_CREATED, "U1", key=name)
        await store.create(row, created)

    found = await StoredOverview(database).open_proposals(10)
    assert [row.id for row in found] == ["p_soon", "p_late"]


async def test_conversations_are_listed_newest_first_with_the_last_asker(
    database: Database,
) -> None:
    later = NOW + timedelta(minutes=5)
    await begun(database, ask("1.1", "C1"))
    await begun(database, ask("2.2", "C2"), later)
    await begun(database, ask("3.3", "C1", "U2"), NOW)

    assert await StoredOverview(database).talks(10) == [
        RecentConversation(ask("2.2", "C2").place, later, 1, UserId("U1")),
        RecentConversation(ask("1.1", "C1").place, NOW, 2, UserId("U2")),
    ]


@pytest.mark.parametrize("what", ["under_way", "open_proposals", "talks"])
async def test_an_empty_database_has_none(database: Database, what: str) -> None:
    assert await getattr(StoredOverview(database), what)(10) == []
