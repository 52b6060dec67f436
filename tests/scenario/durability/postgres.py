"""Forced waits inside PostgreSQL: locks that the test holds, who waits for them, lost connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store import tables
from tests.fixtures_database import kill_other_connections
from tests.held_connection import writing
from tests.scenario.durability.world import Asked, World

_QUEUED = sa.text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@asynccontextmanager
async def no_inserts(world: World, table: str) -> AsyncIterator[AsyncConnection]:
    """Until the context ends every INSERT into that table waits; reading goes on."""
    async with writing(world.database) as connection:
        await connection.execute(sa.text(f"LOCK TABLE {table} IN SHARE MODE"))
        yield connection


@asynccontextmanager
async def no_decisions(world: World, asked: Asked) -> AsyncIterator[AsyncConnection]:
    """Until the context ends every change of the thread's proposal waits, in the order of arrival.

    They are judged one after the other against what this transaction leaves.
    """
    mine = tables.proposals.c.thread_ts == asked.thread
    async with writing(world.database) as connection:
        await connection.execute(sa.select(tables.proposals.c.id).where(mine).with_for_update())
        yield connection


async def queued(world: World, count: int) -> None:
    """Until that many of the replicas' connections wait for locks. Raises TimeoutError."""

    async def look() -> bool:
        ((waiting,),) = await world.rows(_QUEUED)  # type: ignore[arg-type]
        return bool(waiting >= count)

    await world.until(look)


async def expire(connection: AsyncConnection, asked: Asked, *, in_s: float = 0.0) -> None:
    """Move the end of the thread's proposal to so long from now."""
    await connection.execute(
        tables.proposals.update()
        .where(tables.proposals.c.thread_ts == asked.thread)
        .values(expires_at=datetime.now(UTC) + timedelta(seconds=in_s))
    )


async def cut_connections(world: World) -> None:
    """The server ends every connection of the replicas."""
    await asyncio.to_thread(kill_other_connections, world.database_url)
    await world.database.now()  # the test's own are opened again
