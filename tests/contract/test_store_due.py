"""One statement tells which of the clock's jobs have rows to look at, on both databases."""

from collections.abc import Awaitable, Callable, Collection

import pytest
import sqlalchemy as sa

from bot.domain.ids import ProposalId
from bot.domain.session import TurnState
from bot.ports.proposals import WatchKind
from bot.store.alerts import StoredAlerts
from bot.store.columns import Instant
from bot.store.database import Database
from bot.store.dialect import seconds_ago
from bot.store.due import ALERTS, CARDS, DELIVERY, EXPIRY, THREADS, WATCHES, Due
from bot.store.proposals import StoredProposals
from bot.store.tables import proposals
from bot.store.undelivered import StoredUndelivered
from bot.store.watches import StoredWatches
from tests.contract.test_store_alerts import LIMITS, alert
from tests.contract.test_store_proposals import CREATED, a_proposal
from tests.contract.test_store_stranded_turns import Rows
from tests.fixtures_database import database, database_url
from tests.fixtures_turn import ASK
from tests.golden.slack_views import finished
from tests.held_connection import writing

__all__ = ["database", "database_url"]


async def card(database: Database) -> None:
    await StoredProposals(database).create(a_proposal(), CREATED)


async def expired(database: Database) -> None:
    await card(database)
    async with writing(database) as connection:
        past = sa.type_coerce(seconds_ago(1), Instant())
        await connection.execute(proposals.update().values(expires_at=past))


async def watch(database: Database) -> None:
    await StoredWatches(database).begin(ProposalId("p_1"), WatchKind.PROGRESS, 0, 3600)


async def fired(database: Database) -> None:
    await StoredAlerts(database).file([alert()], LIMITS)


async def held_back(database: Database) -> None:
    await StoredUndelivered(database).keep(ASK, finished(text="the end"))


async def accepted(database: Database) -> None:
    await Rows(database).ticket()


async def runs(database: Database) -> None:
    await Rows(database).running()


async def is_carried_on(database: Database) -> None:
    await Rows(database).workflow("turn:1", "PENDING", "another version")


async def waits_in_the_queue(database: Database) -> None:
    await Rows(database).workflow("turn:1", "ENQUEUED")


async def is_delayed(database: Database) -> None:
    await Rows(database).workflow("turn:1", "DELAYED")


@pytest.mark.parametrize(
    ("there_is", "due"),
    [
        (card, {CARDS}),
        (expired, {CARDS, EXPIRY}),
        (watch, {WATCHES}),
        (fired, {ALERTS}),
        (held_back, {DELIVERY}),
        (accepted, {THREADS}),
        (runs, {THREADS}),
        (is_carried_on, {THREADS}),
        (waits_in_the_queue, {THREADS}),
        (is_delayed, {THREADS}),
    ],
)
async def test_a_row_prompts_the_job_that_looks_after_it_and_no_other(
    database: Database, there_is: Callable[[Database], Awaitable[None]], due: Collection[str]
) -> None:
    assert await Due(database).look() == []

    await there_is(database)

    assert set(await Due(database).look()) == due


async def test_what_is_over_or_due_later_prompts_none(database: Database) -> None:
    await Rows(database).workflow("turn:1", "SUCCESS")
    await Rows(database).row(TurnState.ANSWERED)
    await StoredWatches(database).begin(ProposalId("p_1"), WatchKind.PROGRESS, 3600, 7200)
    await held_back(database)
    await StoredUndelivered(database).claim(10, 3600.0)

    assert await Due(database).look() == []
