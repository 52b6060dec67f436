"""Lease rows: which replicas are alive, by the database's clock."""

from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from bot.store.connection import Connection
from bot.store.dialect import insert_into, now, seconds_ago
from bot.store.engine import Database
from bot.store.tables import replicas

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Replicas:
    """One row per running process. Every method raises StorageUnavailable.

    `version` is that of the steps which this process knows.
    """

    def __init__(self, database: Database, version: str | None = None) -> None:
        self._database = database
        self.version = version

    async def beat(self, replica: str) -> float | None:
        """Renew the lease. Seconds since the last beat, None when there was no row.

        Who overslept must not judge others: their rows may be old because everything stood still.
        """

        async def work(connection: Connection) -> float | None:
            before = await connection.execute(
                sa.select(replicas.c.beat, now()).where(replicas.c.id == replica)
            )
            row = before.first()
            await connection.execute(
                insert_into(connection, replicas)
                .values(id=replica, beat=now(), started_at=now(), version=self.version)
                .on_conflict_do_update(index_elements=["id"], set_={"beat": now()})
            )
            return None if row is None else (row[1] - row[0]).total_seconds()

        return await self._database.transact(work)

    async def versions(self, lease_s: float) -> Sequence[str | None]:
        """What the replicas that are alive know; None for one that does not say."""

        async def work(connection: Connection) -> Sequence[str | None]:
            found = await connection.scalars(
                sa.select(replicas.c.version)
                .where(replicas.c.beat >= seconds_ago(lease_s))
                .distinct()
            )
            return found.all()

        return await self._database.fetch(work)

    async def stale(self, lease_s: float) -> Sequence[str]:
        """Replicas that have not beaten for longer than the lease, longest silent first."""

        async def work(connection: Connection) -> Sequence[str]:
            found = await connection.scalars(
                sa.select(replicas.c.id)
                .where(replicas.c.beat < seconds_ago(lease_s))
                .order_by(replicas.c.beat)
            )
            return found.all()

        return await self._database.fetch(work)

    async def claim(self, replica: str, lease_s: float) -> bool:
        """Renew a stale lease in a dead replica's place; True for one of those who try at once."""

        async def work(connection: Connection) -> bool:
            won = await connection.execute(
                replicas.update()
                .where(replicas.c.id == replica, replicas.c.beat < seconds_ago(lease_s))
                .values(beat=now())
            )
            return won.rowcount == 1

        return await self._database.transact(work)

    async def give_up(self, replica: str) -> None:
        """Let one's own lease run out at once, for others to take over what is left."""

        async def work(connection: Connection) -> None:
            await connection.execute(
                replicas.update().where(replicas.c.id == replica).values(beat=_LONG_AGO)
            )

        await self._database.transact(work)

    async def forget(self, replica: str, lease_s: float = 0) -> bool:
        """Remove a row: one's own at the end, a dead one's when nothing of it is left.

        With a lease, only while it is still stale: a replica that woke up keeps its row.
        """

        async def work(connection: Connection) -> bool:
            gone = await connection.execute(
                replicas.delete().where(
                    replicas.c.id == replica, replicas.c.beat <= seconds_ago(lease_s)
                )
            )
            return gone.rowcount == 1

        return await self._database.transact(work)
