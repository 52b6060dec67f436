"""`bot.ports.Ledger` in the database: what each round cost, dated by the database's clock."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.ports import Spending, SpentBy
from bot.store.dialect import insert_into, now, today
from bot.store.engine import Database
from bot.store.tables import spending as table

_GROUPS = {
    "user": table.c.user_id,
    "channel": table.c.channel,
    "provider": table.c.provider,
    "session": table.c.session_id,
}


class StoredLedger:
    """Spending as rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, spending: Spending) -> None:
        """Insert unless (turn, round, provider) is there."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                insert_into(connection, table)
                .values(
                    turn_id=spending.turn_id,
                    round=spending.round,
                    provider=spending.provider,
                    session_id=spending.session_id,
                    user_id=spending.user,
                    channel=spending.channel,
                    model=spending.model,
                    purpose=spending.purpose,
                    input_uncached=spending.usage.input_uncached,
                    cache_read=spending.usage.cache_read,
                    cache_write=spending.usage.cache_write,
                    output=spending.usage.output,
                    cost_usd_micros=spending.cost_usd_micros,
                    duration_ms=spending.duration_ms,
                    at=now(),
                )
                .on_conflict_do_nothing(index_elements=["turn_id", "round", "provider"])
            )

        await self._database.transact(work)

    async def spent_today(self) -> int:
        """Micro-dollars since midnight UTC; rounds without a price count as nothing here."""

        async def work(connection: AsyncConnection) -> int:
            total = await connection.scalar(
                sa.select(sa.func.sum(table.c.cost_usd_micros)).where(table.c.at >= today())
            )
            return int(total or 0)

        return await self._database.fetch(work)

    async def report(self, day: date | None, by: str) -> Sequence[SpentBy]:
        """Totals of a day, the most expensive first. Raises ValueError for an unknown `by`."""
        if by not in _GROUPS:
            raise ValueError(f"no report by {by}; there are {', '.join(_GROUPS)}")
        name = _GROUPS[by]
        tokens = table.c.input_uncached + table.c.cache_read + table.c.cache_write + table.c.output
        total = sa.func.coalesce(sa.func.sum(table.c.cost_usd_micros), 0)
        priced = sa.func.count(table.c.cost_usd_micros)

        async def work(connection: AsyncConnection) -> Sequence[SpentBy]:
            found = await connection.execute(
                sa.select(name, total, sa.func.count(), priced, sa.func.sum(tokens))
                .where(*_within(day))
                .group_by(name)
                .order_by(total.desc(), name)
            )
            return [
                SpentBy(
                    name=each,
                    usd_micros=int(usd),
                    rounds=rounds,
                    rounds_unpriced=rounds - rounds_priced,
                    tokens=int(used),
                )
                for each, usd, rounds, rounds_priced, used in found
            ]

        return await self._database.fetch(work)


def _within(day: date | None) -> tuple[sa.ColumnElement[bool], ...]:
    if day is None:
        return (table.c.at >= today(),)
    start = datetime.combine(day, time(), tzinfo=UTC)
    return (table.c.at >= start, table.c.at < start + timedelta(days=1))
