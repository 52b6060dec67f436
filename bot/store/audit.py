"""The append-only trail: gapless numbers, one writer at a time, in the writer's transaction.

The chain over the rows (`prev`, `mac`, `key_id`) is computed where `_append` reads the newest row.
"""

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent
from bot.store import json_text
from bot.store.columns import clean
from bot.store.dialect import lock_audit, now
from bot.store.engine import Database
from bot.store.tables import audit


async def append_audit(connection: AsyncConnection, event: AuditEvent) -> None:
    """Write one row in the caller's transaction; a repeated `key` is one row.

    The last statement of its transaction: the trail's lock is held until the end, and one taken
    after every row lock cannot deadlock.
    """
    await lock_audit(connection)
    if not (event.key and await _is_written(connection, event.key)):
        await _append(connection, event)


async def _is_written(connection: AsyncConnection, key: str) -> bool:
    found = await connection.scalar(sa.select(audit.c.seq).where(audit.c.key == key))
    return found is not None


async def _append(connection: AsyncConnection, event: AuditEvent) -> None:
    # A statement of its own after the lock: under READ COMMITTED it sees the row before.
    newest = await connection.execute(sa.select(sa.func.max(audit.c.seq), now()))
    seq, at = newest.one()
    await connection.execute(
        audit.insert().values(
            seq=(seq or 0) + 1,
            at=at,
            kind=event.kind.value,
            actor=event.actor,
            session_id=event.session_id,
            body=json_text.dumps(dict(event.body)),
            key=clean(event.key) or None,
        )
    )


class StoredAudit:
    """`bot.ports.AuditLog` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, event: AuditEvent) -> None:
        """Write one row; a repeated `key` is one row. Raises StorageUnavailable.

        Only an event with a key is tried again when the connection is lost: another might be
        written twice.
        """

        async def work(connection: AsyncConnection) -> None:
            await append_audit(connection, event)

        if event.key:
            await self._database.transact(work)
            return
        async with self._database.write() as connection:
            await work(connection)
