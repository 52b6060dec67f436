"""The database's backlog: proposals without a worker, rows that no sink has taken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.ports.proposals import WatchKind
from bot.store.audit_sinks import SinkCursors
from bot.store.database import NOTHING, Database
from bot.store.dialect import now
from bot.store.tables import IS_UNDER_WAY, audit, proposals, watches


@dataclass(frozen=True, slots=True)
class Behind:
    """What a sink of the audit log has not taken: how many rows, and for how long the oldest has waited."""

    rows: int = 0
    seconds: float = 0.0


UNDER_WAY = "under_way"  # decided, and its order neither sent nor looked after
EXPIRED = "expired"  # expired, and not closed yet


class StoredLevels:
    """Reads only. Every method raises StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cursors = SinkCursors(database)

    async def touch(self) -> None:
        """A transaction that changes nothing: as long as any other waits, it waits."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(NOTHING)

        await self._database.transact(work, again=False)

    async def stuck_s(self) -> Mapping[str, float]:
        """By the database's clock."""
        watched = sa.exists().where(
            watches.c.proposal_id == proposals.c.id, watches.c.kind == WatchKind.PROGRESS.value
        )
        decided = sa.select(sa.func.min(proposals.c.decided_at)).where(
            sa.text(IS_UNDER_WAY), ~watched
        )
        expired = sa.select(sa.func.min(proposals.c.expires_at)).where(
            sa.text("state = 'pending'"), proposals.c.expires_at < now()
        )

        async def work(connection: AsyncConnection) -> Mapping[str, float]:
            at: datetime = (await connection.execute(sa.select(now()))).scalar_one()
            since = {
                UNDER_WAY: await connection.scalar(decided),
                EXPIRED: await connection.scalar(expired),
            }
            return {
                state: max(0.0, (at - each).total_seconds()) if each else 0.0
                for state, each in since.items()
            }

        return await self._database.fetch(work)

    async def behind(self, sinks: Sequence[str]) -> Mapping[str, Behind]:
        """Of each of these, by the database's clock."""

        last = int(await self._database.scalar(sa.select(sa.func.max(audit.c.seq))) or 0)
        return {name: await self._behind(last, await self._cursors.served(name)) for name in sinks}

    async def _behind(self, newest: int, served: int) -> Behind:
        if newest <= served:
            return Behind()
        oldest = sa.select(audit.c.at, now()).where(audit.c.seq > served)

        [(at, now_at)] = await self._database.rows(oldest.order_by(audit.c.seq).limit(1))
        return Behind(newest - served, max(0.0, (now_at - at).total_seconds()))
