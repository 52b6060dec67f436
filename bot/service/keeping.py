"""The part of a start that sees whether the database is itself, and closes a copy."""

from collections.abc import Callable, Coroutine

import structlog

from bot.engine.records import EngineRecords
from bot.store.database import Database
from bot.store.restore_guard import CopyInDoubt, RestoreGuard, Standing
from bot.store.restored import close_restored

log = structlog.stdlib.get_logger(__name__)

_DOUBT = (
    "the database may be an older copy of itself: {why}, and {open} of its proposals could still be "
    "sent. Nothing was started. If it was restored from a copy, say so: `kortex restored`; they end "
    "as unknown and nothing is sent. If it is the database itself: `kortex restored --moved`."
)


def settling(
    origin: RestoreGuard, database: Database, records: EngineRecords, lease_s: float
) -> Callable[[], Coroutine[None, None, None]]:
    """What to do before anything of that database is resumed.

    It raises CopyInDoubt, StorageUnavailable.
    """

    async def settle() -> None:
        async with origin.alone():
            standing = await origin.judge()
            if standing is Standing.ITSELF:
                await origin.settle()
                return
            if await origin.is_served(lease_s):
                await _beside_others(origin, standing)
                return
            if standing is Standing.COPY:
                ended = await records.end_unfinished()
                closed = await close_restored(database)
                log.warning(
                    "database_restored",
                    workflows=ended,
                    proposals=closed.proposals,
                    turns=closed.turns,
                )
            elif open_ := await origin.at_stake():
                raise CopyInDoubt(_DOUBT.format(why=origin.why_in_doubt, open=open_))
            await origin.settle()

    return settle


async def _beside_others(origin: RestoreGuard, standing: Standing) -> None:
    """Those that run were there before: a standby took over under them, or nobody knows."""
    if standing is Standing.COPY:
        raise CopyInDoubt(
            "the database was restored from a copy while other replicas ran on it. Nothing was "
            "started. Stop all of them, then start one: it closes what the copy had open."
        )
    await origin.settle()
