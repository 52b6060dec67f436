"""Whether the database takes a change now: a full disk and a read-only replica still answer reads."""

import asyncio
import time
from contextlib import suppress

from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.dialect import Connection
from bot.store.schema import head
from bot.store.tables import schema_served

# Probes come every few seconds and from anybody: one commit serves those of so long.
ASKED_AGAIN_S = 5.0
# A database with many writers before this one is busy, not full: what was known stays.
PATIENCE_S = 1.0


class Writable:
    """Tries a change that changes nothing, and commits it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._at = float("-inf")
        self._refused: StorageUnavailable | None = None

    async def check(self) -> None:
        """Raises StorageUnavailable when the last change tried was refused.

        Needs a schema that serves this version.
        """
        if time.monotonic() - self._at >= ASKED_AGAIN_S:
            self._at = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._try()
        if self._refused is not None:
            raise self._refused

    async def _try(self) -> None:
        try:
            await self._database.transact(_touch, again=False)
            self._refused = None
        except StorageUnavailable as error:
            self._refused = error


async def _touch(connection: Connection) -> None:
    mine = schema_served.c.revision == head()
    await connection.execute(schema_served.update().where(mine).values(revision=head()))
