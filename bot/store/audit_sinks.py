"""How far each sink of the audit log has been served, and which replica serves it now."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.store.columns import from_micros
from bot.store.database import Database
from bot.store.dialect import insert_into, now, seconds_ago
from bot.store.tables import audit, audit_sinks

_NEVER = from_micros(0)
_served = sa.select(audit_sinks.c.seq).where(audit_sinks.c.name == sa.bindparam("sink"))
_NEWER: Final = (
    sa.select(audit.c.seq)
    .where(audit.c.seq > sa.func.coalesce(_served.scalar_subquery(), 0))
    .order_by(audit.c.seq)
    .limit(1)
)


class SinkCursors:
    """One row per sink. Raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def served(self, name: str) -> int:
        """The last row that was delivered; 0 when none was."""

        found = await self._database.scalar(
            sa.select(audit_sinks.c.seq).where(audit_sinks.c.name == name)
        )
        return int(found or 0)

    async def is_behind(self, name: str) -> bool:
        return await self._database.first(_NEWER, {"sink": name}) is not None

    async def claim(self, name: str, lease_s: float) -> int | None:
        async def work(connection: AsyncConnection) -> int | None:
            await connection.execute(
                insert_into(connection, audit_sinks)
                .values(name=name, seq=0, claimed_until=_NEVER)
                .on_conflict_do_nothing(index_elements=["name"])
            )
            won = await connection.execute(
                audit_sinks.update()
                .where(audit_sinks.c.name == name, audit_sinks.c.claimed_until < now())
                .values(claimed_until=seconds_ago(-lease_s))
                .returning(audit_sinks.c.seq)
            )
            row = won.first()
            return None if row is None else int(row.seq)

        return await self._database.transact(work, again=False)

    async def advance(self, name: str, seq: int) -> None:
        """Mark rows up to here as delivered; any replica may claim the sink next."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(
                audit_sinks.update()
                .where(audit_sinks.c.name == name, audit_sinks.c.seq <= seq)
                .values(seq=seq, claimed_until=_NEVER)
            )

        await self._database.transact(work, again=False)
