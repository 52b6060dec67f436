"""Which replicas are alive: lease rows by the database's clock, and a lock that a dead one lets go.

A beat may come late because a process has much to do; its connection stays, and with it the lock of a
process. PostgreSQL only: on SQLite one process owns the file.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.dialect import INSERT, ago, now, seconds_ago, storage_errors
from bot.store.tables import replicas
from bot.store.tickets import HELD, workflow_status

# A process with a connection is slow, not dead, unless it is silent for so many leases. Then it is
# frozen, and must learn that other replicas continue its work.
STOOD_STILL_LEASES = 3
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

_CLOSE_S = 1.0
_BEATEN: Final = "beaten"  # of a connection that was beaten on: whether it has the lock


async def is_gone(connection: AsyncConnection, replica: str) -> bool:
    """Whether the process has no connection left; runs inside a transaction.

    Behind a pooler that lends connections by transaction a lock may outlive its process; then only
    its silence shows its end.
    """
    if connection.dialect.name != "postgresql":
        return True
    free = sa.select(sa.func.pg_try_advisory_xact_lock(_number(replica)))
    return bool(await connection.scalar(free))


async def renew(connection: AsyncConnection, replica: str, version: str | None) -> None:
    await connection.execute(_renewal(connection.dialect.name), {"id": replica, "version": version})


@cache
def _renewal(dialect: str) -> sa.Insert:
    given: dict[str, Any] = {name: sa.bindparam(name) for name in ("id", "version")}
    beat = INSERT[dialect](replicas).values(beat=now(), started_at=now(), **given)
    return beat.on_conflict_do_update(index_elements=["id"], set_={"beat": now()})


class Presence:
    """One process's lease and lock, on a connection of its own, so that a beat never waits for
    turns.
    """

    def __init__(
        self, database: Database, replica: str, version: str | None, timeout_s: float
    ) -> None:
        self._database = database
        self._replica = replica
        self._version = version
        self._timeout_s = timeout_s
        self._own: Database | None = None

    @property
    def most_silent_leases(self) -> int:
        """For how many leases a frozen process keeps its work: no longer than one without a lock."""
        return STOOD_STILL_LEASES if self._database.keeps_sessions else 1

    async def beat(self) -> bool:
        """Renew the lease. False when the lock had been let go since the last beat, or never held.

        Behind PgBouncer there is no lock, and the answer is always False. Raises StorageUnavailable.
        """
        try:
            with storage_errors():
                async with asyncio.timeout(self._timeout_s):
                    if self._own is None:
                        self._own = await self._database.another(1)
                    return await self._own.transact(self._beat, again=False)
        except BaseException:
            await self.close()
            raise

    async def _beat(self, connection: AsyncConnection) -> bool:
        if not self._database.keeps_sessions:  # the pooler would lend the lock to other processes
            await renew(connection, self._replica, self._version)
            return False
        # Forgotten with the connection, as the lock is; that outlives the transaction.
        known = connection.info
        kept = _BEATEN in known
        if not known.get(_BEATEN):
            # False as long as the server keeps a lost connection of ours, which is as good.
            mine = sa.select(sa.func.pg_try_advisory_lock(_number(self._replica)))
            known[_BEATEN] = bool(await connection.scalar(mine))
        await renew(connection, self._replica, self._version)
        return kept

    async def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            with suppress(StorageUnavailable), storage_errors():
                async with asyncio.timeout(_CLOSE_S):
                    await own.close()


def _number(replica: str) -> sa.ColumnElement[Any]:
    return sa.func.hashtextextended(replica, 0)


class Replicas:
    """One row per running process. Every method raises StorageUnavailable.

    `version` is that of the steps which this process knows.
    """

    def __init__(self, database: Database, version: str | None = None) -> None:
        self._database = database
        self.version = version

    def presence(self, replica: str, timeout_s: float) -> Presence:
        """One's own beats and lock. A beat fails after `timeout_s`."""
        return Presence(self._database, replica, self.version, timeout_s)

    async def beat(self, replica: str) -> float | None:
        """Renew the lease. Seconds since the last beat, None without a row.

        A replica that was frozen must not judge other replicas: their rows may be old because
        everything was frozen.
        """

        async def work(connection: AsyncConnection) -> float | None:
            before = await connection.execute(
                sa.select(replicas.c.beat, now()).where(replicas.c.id == replica)
            )
            row = before.first()
            await renew(connection, replica, self.version)
            return None if row is None else (row[1] - row[0]).total_seconds()

        return await self._database.transact(work)

    async def versions(self, lease_s: float) -> Sequence[str | None]:
        """What the replicas that are alive know; None for one that does not say."""

        return await self._database.scalars(
            sa.select(replicas.c.version).where(replicas.c.beat >= seconds_ago(lease_s)).distinct()
        )

    async def silent(self, lease_s: float) -> Sequence[str]:
        """Replicas that have not beaten for longer than the lease, longest silent first."""

        return await self._database.scalars(_SILENT, {"lease_us": round(lease_s * 1e6)})

    async def claim(self, replica: str, lease_s: float) -> datetime | None:
        """Renew a dead replica's lease in its place; the beat, or None when it lives. One winner.

        Dead means: silent past its lease with a lost connection, or silent so long that it must be
        frozen.
        """

        async def work(connection: AsyncConnection) -> datetime | None:
            gone = await is_gone(connection, replica)
            bound_s = lease_s if gone else STOOD_STILL_LEASES * lease_s
            return await _rewritten(connection, replica, replicas.c.beat < seconds_ago(bound_s))

        return await self._database.transact(work, again=False)

    async def end_transactions(self, replica: str) -> int:
        """End the open transactions of a frozen process; the number of connections that it lost.

        Frozen between two messages of one statement it is no idle transaction to PostgreSQL, which
        would keep its locks, the audit log's among them, until the process dies. The name that
        each process gives its connections identifies them.
        """

        async def work(connection: AsyncConnection) -> int:
            if connection.dialect.name != "postgresql":
                return 0
            ended = await connection.execute(_END_TRANSACTIONS, {"replica": replica})
            return len(ended.all())

        return await self._database.transact(work)

    async def claim_again(self, replica: str, claimed: datetime) -> datetime | None:
        """The same for who claimed it; None when it has beaten itself since, or is another's."""

        async def work(connection: AsyncConnection) -> datetime | None:
            return await _rewritten(connection, replica, replicas.c.beat == claimed)

        return await self._database.transact(work, again=False)

    async def bury(self, replica: str, claimed: datetime) -> bool:
        """Remove the row of a dead replica without remaining work, unless it has beaten since."""

        gone = await self._database.execute(
            replicas.delete().where(replicas.c.id == replica, replicas.c.beat == claimed)
        )
        return gone == 1

    async def give_up(self, replica: str) -> None:
        """End this replica's lease at once, so that others take over its work."""

        await self._database.execute(
            replicas.update().where(replicas.c.id == replica).values(beat=_LONG_AGO)
        )

    async def forget(self, replica: str) -> bool:
        """Remove this replica's row, at the end. False without a row, or while work is still its
        own.

        The engine may have taken work from its queue at the last moment: without a row no replica
        would ever take that over.
        """
        workflows = workflow_status(self._database.dialect).c
        held = sa.exists().where(workflows.executor_id == replica, workflows.status == HELD)

        mine = replicas.delete().where(replicas.c.id == replica, ~held)
        return await self._database.execute(mine) == 1


_SILENT: Final = (
    sa.select(replicas.c.id).where(replicas.c.beat < ago("lease_us")).order_by(replicas.c.beat)
)


# The holder of `Presence`'s lock identifies the process; a bigint's halves are `classid` and
# `objid` (https://www.postgresql.org/docs/current/view-pg-locks.html).
_END_TRANSACTIONS: Final = sa.text(
    """
    SELECT pg_terminate_backend(theirs.pid)
    FROM pg_stat_activity AS present
    JOIN pg_locks AS held ON held.pid = present.pid AND held.locktype = 'advisory'
    JOIN pg_stat_activity AS theirs ON theirs.application_name = present.application_name
    WHERE held.granted AND held.objsubid = 1
      AND (held.classid::bigint << 32) | held.objid::bigint = hashtextextended(:replica, 0)
      AND present.application_name LIKE 'kortex-%'
      AND theirs.datname = current_database() AND theirs.usename = current_user
      AND theirs.xact_start IS NOT NULL AND theirs.pid <> pg_backend_pid()
    """
)


async def _rewritten(
    connection: AsyncConnection, replica: str, where: sa.ColumnElement[bool]
) -> datetime | None:
    found = await connection.scalars(
        sa.update(replicas)
        .where(replicas.c.id == replica, where)
        .values(beat=now())
        .returning(replicas.c.beat)
    )
    return found.one_or_none()
