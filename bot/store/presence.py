"""That a process is there: a lock of its own connection, which the database frees when it dies.

A beat may come late because a process has much to do; its connection stays. PostgreSQL only: on
SQLite one process owns the file.
"""

import asyncio
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.dialect import Connection, insert_into, now, storage_errors
from bot.store.tables import replicas

_CLOSE_S = 1.0


async def is_gone(connection: Connection, replica: str) -> bool:
    """Whether no connection of that process is left; asked inside a transaction.

    Behind a pooler that lends connections by transaction a lock may outlive its process, whose end
    is then only known by its silence.
    """
    if connection.dialect.name != "postgresql":
        return True
    free = sa.select(sa.func.pg_try_advisory_xact_lock(_number(replica)))
    return bool(await connection.scalar(free))


async def renew(connection: Connection, replica: str, version: str | None) -> None:
    """Write its beat."""
    await connection.execute(
        insert_into(connection, replicas)
        .values(id=replica, beat=now(), started_at=now(), version=version)
        .on_conflict_do_update(index_elements=["id"], set_={"beat": now()})
    )


class Presence:
    """One process's lease and lock, on a connection of its own: a beat waits for nobody's turns."""

    def __init__(
        self, database: Database, replica: str, version: str | None, timeout_s: float
    ) -> None:
        self._database = database
        self._replica = replica
        self._version = version
        self._timeout_s = timeout_s
        self._connection: AsyncConnection | None = None
        self._locked = False

    async def beat(self) -> bool:
        """Renew the lease. False when the lock had been let go since the last beat, or never held.

        Raises StorageUnavailable.
        """
        kept = self._connection is not None
        try:
            with storage_errors():
                async with asyncio.timeout(self._timeout_s):
                    await self._beat()
        except BaseException:
            await self.close()
            raise
        return kept

    async def _beat(self) -> None:
        if self._connection is None:
            self._connection = await self._database.connect()
        if not self._locked:
            # False as long as the server keeps a lost connection of ours, which is as good.
            mine = sa.select(sa.func.pg_try_advisory_lock(_number(self._replica)))
            self._locked = bool(await self._connection.scalar(mine))
        await renew(self._connection, self._replica, self._version)

    async def close(self) -> None:
        """Let the lock go."""
        connection, self._connection, self._locked = self._connection, None, False
        if connection is not None:
            with suppress(StorageUnavailable), storage_errors():
                async with asyncio.timeout(_CLOSE_S):
                    await connection.invalidate()  # back in the pool it would keep the lock
                    await connection.close()


def _number(replica: str) -> sa.ColumnElement[Any]:
    return sa.func.hashtextextended(replica, 0)
