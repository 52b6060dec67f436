"""`bot.chat.budget_alert.AlertDays` in the database."""

import sqlalchemy as sa

from bot.store.connection import Connection
from bot.store.database import Database
from bot.store.dialect import insert_into, now, seconds_ago
from bot.store.tables import budget_alerts as table

CLAIM_S = 120.0  # a replica that died while telling is not waited for longer


class StoredAlertDays:
    """One row a day, claimed by compare-and-set on the database's clock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, day: str) -> bool:
        """Insert, or take over a claim that has run out."""

        async def work(connection: Connection) -> bool:
            insert = insert_into(connection, table).values(day=day, claimed_at=now(), told=False)
            won = await connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["day"],
                    set_={"claimed_at": insert.excluded.claimed_at},
                    where=sa.and_(~table.c.told, table.c.claimed_at < seconds_ago(CLAIM_S)),
                ).returning(table.c.day)
            )
            return won.first() is not None

        return await self._database.transact(work)

    async def told(self, day: str) -> None:
        """Keep that the day was told of, so that no replica tells it again."""

        async def work(connection: Connection) -> None:
            await connection.execute(table.update().where(table.c.day == day).values(told=True))

        await self._database.transact(work)
