"""Queries of the workflow engine's tables use their indexes."""

from contextlib import suppress

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from bot.store.accepted import HalfStarted
from bot.store.address import addressed
from bot.store.database import Database
from bot.store.stranded import StrandedProposals, StrandedTurns
from bot.store.tickets import Superseded, Tickets
from tests.fixtures_database import postgres_url
from tests.statements import noted

__all__ = ["postgres_url"]

# What is left to a planner that may not read whole tables: it does where there is no other way.
ONLY_BY_INDEX = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_indexonlyscan")


@pytest.fixture
async def asked(postgres_url: str) -> list[tuple[str, tuple[object, ...]]]:
    """Each statement about a workflow that a turn, and what looks after turns, makes."""
    database = await Database.open(postgres_url)
    tickets = Tickets(database)
    with noted() as statements:
        await HalfStarted(database).accepted()
        await HalfStarted(database).drop_tickets([])
        await tickets.is_started("turn:1")
        with suppress(Superseded):
            await tickets.try_enter("turn:1", "T1:C1:1", "1.0", "me")
        await tickets.blocked("me")
        await tickets.count_death("turn:1")
        await tickets.drop_dead(["turn:1"])
        await tickets.is_placed("turn:1")
        await tickets.leave("turn:1", "me")
        await StrandedTurns(database).find(10)
        await StrandedProposals(database).find(10)
    await database.close()
    about = statements.of("psycopg").items()
    return [(text, given) for text, given in about if "dbos.workflow_status" in text]


async def test_no_statement_reads_every_workflow(
    postgres_url: str, asked: list[tuple[str, tuple[object, ...]]]
) -> None:
    engine = create_async_engine(addressed(postgres_url))
    plans = []
    async with engine.connect() as connection:
        for setting in ONLY_BY_INDEX:
            await connection.exec_driver_sql(f"SET {setting} = off")
        for text, given in asked:
            plan = await connection.exec_driver_sql(f"EXPLAIN {text}", given)
            plans.append((text, "\n".join(plan.scalars())))
    await engine.dispose()

    assert len(plans) == 12
    assert [each for each in plans if "Seq Scan on workflow_status" in each[1]] == []
