"""Due work goes to one caller, on both databases, by the database's clock."""

import asyncio

from bot.domain.ids import ProposalId
from bot.ports.proposals import Watch, WatchKind
from bot.store.database import Database
from bot.store.watches import StoredWatches
from tests.fixtures_database import database, database_url, other

__all__ = ["database", "database_url", "other"]

FIRST, SECOND = ProposalId("p_1"), ProposalId("p_2")
PROGRESS, EFFECT = WatchKind.PROGRESS, WatchKind.EFFECT


async def test_only_due_work_is_claimed_once_per_interval(database: Database) -> None:
    watches = StoredWatches(database)
    await watches.begin(FIRST, PROGRESS, 0, 3600)
    await watches.begin(SECOND, PROGRESS, 3600, 7200)

    assert await watches.claim(10, 60) == [Watch(FIRST, PROGRESS, is_last=False)]
    assert await watches.claim(10, 60) == []


async def test_a_second_begin_changes_nothing_and_an_end_is_final(database: Database) -> None:
    watches = StoredWatches(database)
    await watches.begin(FIRST, PROGRESS, 0, 0)
    await watches.begin(FIRST, PROGRESS, 3600, 3600)
    await watches.begin(FIRST, EFFECT, 0, 3600)

    first = await watches.claim(10, 0)
    await watches.end(Watch(FIRST, PROGRESS, is_last=True))

    assert {(w.kind, w.is_last) for w in first} == {(PROGRESS, True), (EFFECT, False)}
    assert [w.kind for w in await watches.claim(10, 60)] == [EFFECT]


async def test_only_one_of_two_replicas_claims_the_work(
    database: Database, other: Database
) -> None:
    await StoredWatches(database).begin(FIRST, PROGRESS, 0, 3600)

    async with asyncio.TaskGroup() as both:
        looks = [both.create_task(StoredWatches(each).claim(10, 60)) for each in (database, other)]

    assert sorted(len(look.result()) for look in looks) == [0, 1]
