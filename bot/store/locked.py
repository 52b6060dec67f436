"""A lock of PostgreSQL that is held while other things are awaited."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.store.database import TRANSACTION_TIMEOUT_S, Database
from bot.store.dialect import Connection, Work, storage_errors


@asynccontextmanager
async def locked(database: Database, lock: Work[None]) -> AsyncIterator[None]:
    """What `lock` locks in its transaction stays so while the body runs, in a thread of its own.

    Raises StorageUnavailable, also when the body takes longer than a transaction may.
    """
    loop = asyncio.get_running_loop()
    has_it, over = asyncio.Event(), threading.Event()

    async def hold(connection: Connection) -> None:
        await lock(connection)
        loop.call_soon_threadsafe(has_it.set)
        over.wait(TRANSACTION_TIMEOUT_S)

    holding = loop.create_task(database.transact(hold, again=False))
    holding.add_done_callback(lambda _: has_it.set())
    try:
        await has_it.wait()
        if holding.done():
            holding.result()
        with storage_errors():
            async with asyncio.timeout(TRANSACTION_TIMEOUT_S):
                yield
    finally:
        over.set()
        if not has_it.is_set():
            holding.cancel()
        await asyncio.wait({holding})
    holding.result()
