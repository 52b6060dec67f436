"""Which sessions there are beside one, on SQLite and on PostgreSQL."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.actions.propose import created
from bot.cli.headless import TEAM as HEADLESS
from bot.domain.ids import (
    API,
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    TeamId,
    UserId,
    session_at,
)
from bot.domain.session import Ask
from bot.store.database import Database
from bot.store.dossiers import Dossiers, OtherSessions
from bot.store.proposals import StoredProposals
from bot.store.sessions import StoredSessions
from tests.fixtures_database import database, database_url
from tests.golden.slack_views import proposal
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

LATELY = timedelta(hours=24)


def at(thread: str, channel: str = "C1") -> Place:
    return Place(TeamId("T1"), ChannelId(channel), MessageTs(thread))


async def asked(database: Database, place: Place, minutes_ago: int = 0) -> None:
    person = Person(TeamId("T1"), UserId("U1"))
    ask = Ask(place, place.thread_ts, person, Redacted("slow?"), f"incident-{place.channel}")
    when = await database.now() - timedelta(minutes=minutes_ago)
    await StoredSessions(database).begin_turn(ask, ask.channel_name, when)


async def proposed(database: Database, place: Place) -> None:
    row = proposal(id=ProposalId(f"p_{place.thread_ts}"), session_id=session_at(place), place=place)
    await StoredProposals(database).create(row, created(row))


async def test_threads_with_proposals_come_first_and_all_are_counted(database: Database) -> None:
    for minutes_ago in (1, 2, 3, 4):
        await asked(database, at(f"{minutes_ago}.1"), minutes_ago)
    await asked(database, at("9.1", "C2"))
    await asked(database, at("8.1"), 25 * 60)
    await proposed(database, at("3.1"))

    found = await Dossiers(database).recent(at("1.1"), LATELY, 2)

    assert list(found.sessions) == [session_at(at("3.1")), session_at(at("2.1"))]
    assert found.total == 3


async def test_other_threads_of_a_name_and_those_with_proposals_are_counted(
    database: Database,
) -> None:
    for minutes_ago in (1, 2, 3, 4):
        await asked(database, at(f"{minutes_ago}.1"), minutes_ago)
    await asked(database, at("9.1", "C2"))
    for thread in ("1.1", "3.1", "4.1"):
        await proposed(database, at(thread))
    dossiers, newest = Dossiers(database), session_at(at("1.1"))

    named = await dossiers.others(newest, "incident-C1", 1)
    every = await dossiers.others(newest, None, 9)

    assert named == OtherSessions(3, 2, [session_at(at("3.1"))])
    assert every == OtherSessions(4, 2, [session_at(at("3.1")), session_at(at("4.1"))])
    assert await dossiers.others(newest, "nothing", 9) == OtherSessions(0, 0, [])


async def test_the_newest_incident_is_one_with_a_proposal_and_not_the_newest_chat(
    database: Database,
) -> None:
    for minutes_ago in (1, 2, 3):
        await asked(database, at(f"{minutes_ago}.1"), minutes_ago)
    await asked(database, at("8.1"), 25 * 60)
    dossiers = Dossiers(database)
    before = await dossiers.incident(None)
    for thread in ("3.1", "8.1"):
        await proposed(database, at(thread))

    assert before == session_at(at("1.1"))
    assert await dossiers.incident(None) == session_at(at("3.1"))
    assert await dossiers.incident("incident-C1") == session_at(at("3.1"))
    assert await dossiers.incident("nothing") is None


@pytest.mark.parametrize("team", [API, HEADLESS])
async def test_a_session_without_a_thread_is_no_incident_to_post_in(
    database: Database, team: str
) -> None:
    dossiers, newest = Dossiers(database), replace(at("5.1"), team=TeamId(team))
    await asked(database, newest)
    alone = await dossiers.incident("incident-C1", besides=[API, HEADLESS])
    await asked(database, at("2.1"), 2)

    assert alone is None
    assert await dossiers.incident("incident-C1", besides=[API, HEADLESS]) == session_at(at("2.1"))
    assert await dossiers.incident("incident-C1") == session_at(newest)
