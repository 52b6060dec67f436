"""`bot.ports.ledger.Ledger` in the database: reservations and costs of rounds, by the database's
clock.

Also the days with a sent budget alert.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, fields
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.messages import Usage
from bot.domain.budget import BudgetLimits, Refusal
from bot.ports.ledger import DatedEntry, LedgerEntry, Reservation, SpentBy, Today
from bot.store import allowance
from bot.store.columns import Instant
from bot.store.database import Database
from bot.store.dialect import INSERT, insert_into, lock_budget, now, seconds_ago, today
from bot.store.ledger_tables import budget_alerts, reservations, spent_days
from bot.store.ledger_tables import spending as table
from bot.store.step_rows import write_with_step
from bot.store.tenant_filter import TenantScope, of_tenant

_GROUPS = {
    "user": table.c.user_id,
    "channel": table.c.channel,
    "provider": table.c.provider,
    "session": table.c.session_id,
}
_PAGE = 500
_DEAD_S = 2 * 86_400.0
# What has a column of its name.
_AS_THEY_ARE = tuple(f.name for f in fields(LedgerEntry) if f.name not in {"user", "usage"})
_TOKENS = tuple(f.name for f in fields(Usage))
_KEY = sa.tuple_(table.c.at, table.c.turn_id, table.c.round, table.c.provider)

CLAIM_S = 120.0  # a claim by a dead replica expires after this


class StoredLedger:
    """Spending and reservations as rows. `scope` limits the rows read, not the reservations."""

    def __init__(self, database: Database, scope: TenantScope = None) -> None:
        self._database = database
        self._scope = scope

    async def reserve(self, wanted: Reservation, limits: BudgetLimits) -> Refusal | None:
        """One after the other over all replicas: each sees what those before it hold."""

        async def work(connection: AsyncConnection) -> Refusal | None:
            await lock_budget(connection)
            used = await allowance.used(connection, wanted)
            refusal = allowance.exceeded(used, wanted, limits)
            if refusal is None:
                await connection.execute(_reserving(connection.dialect.name), _held(wanted))
            return refusal

        return await self._database.transact(work)

    async def release(self, reservation: str) -> None:
        """Delete the reservation: nothing is held under that id any more."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(_RELEASE, {"reservation": reservation})

        await write_with_step(self._database, work)

    async def forget_dead(self) -> None:
        """Delete what processes held that died so long ago that no limit counts it."""

        await self._database.execute(
            reservations.delete().where(reservations.c.at < seconds_ago(_DEAD_S))
        )

    async def record(self, entry: LedgerEntry, reservation: str = "") -> None:
        """Insert unless (turn, round, provider) is there; the reservation goes in its place."""

        async def work(connection: AsyncConnection) -> None:
            held_at = None
            if reservation:
                released = await connection.execute(_RELEASE, {"reservation": reservation})
                held_at = released.scalar()
            values = _row(entry) | {"held_at": held_at}
            await connection.execute(_recording(connection.dialect.name), values)

        await write_with_step(self._database, work)

    async def today(self) -> Today:
        """Sums since midnight UTC; home's include every workspace, because its limit covers them
        all.
        """
        asked = _TODAY if not self._scope else _today_of(self._scope)

        [(known, used, held_now, at)] = await self._database.rows(asked)
        return Today(int(known), int(used), int(held_now), at)

    async def entries(self, since: datetime, until: datetime) -> AsyncIterator[DatedEntry]:
        """In pages, so that a year of rounds needs no more memory than an hour."""
        after: sa.ColumnElement[bool] = sa.true()
        while True:

            async def page(
                connection: AsyncConnection, beyond: sa.ColumnElement[bool] = after
            ) -> Sequence[sa.Row[Any]]:
                found = await connection.execute(
                    sa.select(table)
                    .where(table.c.at >= since, table.c.at < until, beyond)
                    .order_by(table.c.at, table.c.turn_id, table.c.round, table.c.provider)
                    .limit(_PAGE)
                )
                return found.all()

            rows = await self._database.fetch(page)
            for row in rows:
                yield _dated(row)
            if len(rows) < _PAGE:
                return
            last = rows[-1]
            after = (
                sa.tuple_(
                    sa.literal(last.at, table.c.at.type), last.turn_id, last.round, last.provider
                )
                < _KEY
            )

    async def report(self, day: date | None, by: str) -> Sequence[SpentBy]:
        if by not in _GROUPS:
            raise ValueError(f"no report by {by}; there are {', '.join(_GROUPS)}")
        # Not the column: SQLite would read all spending in the order of the column's index.
        name = sa.func.coalesce(_GROUPS[by], "")
        tokens = table.c.input_uncached + table.c.cache_read + table.c.cache_write + table.c.output
        total = sa.func.coalesce(sa.func.sum(table.c.cost_usd_micros), 0)
        priced = sa.func.count(table.c.cost_usd_micros)

        found = await self._database.rows(
            sa.select(name, total, sa.func.count(), priced, sa.func.sum(tokens))
            .where(*_within(day), of_tenant(table.c.tenant, self._scope))
            .group_by(name)
            .order_by(total.desc(), name)
        )
        return [
            SpentBy(
                name=each,
                usd_micros=int(usd),
                rounds=rounds,
                rounds_unpriced=rounds - rounds_priced,
                tokens=int(used),
            )
            for each, usd, rounds, rounds_priced, used in found
        ]


def _within(day: date | None) -> tuple[sa.ColumnElement[bool], ...]:
    if day is None:
        return (table.c.at >= today(),)
    start = datetime.combine(day, time(), tzinfo=UTC)
    return (table.c.at >= start, table.c.at < start + timedelta(days=1))


def _today_of(scope: TenantScope) -> sa.Select[Any]:
    spent = sa.func.coalesce(sa.func.sum(spent_days.c.cost_usd_micros), 0)
    counted = sa.func.coalesce(sa.func.sum(spent_days.c.counted_usd_micros), 0)
    held = (
        sa.select(sa.func.coalesce(sa.func.sum(reservations.c.usd_micros), 0))
        .where(reservations.c.at >= today(), of_tenant(reservations.c.tenant, scope))
        .scalar_subquery()
    )
    return sa.select(spent, counted, held, now()).where(
        allowance.since_midnight(), of_tenant(spent_days.c.tenant, scope)
    )


_TODAY: Final = _today_of(None)
_RELEASE: Final = (
    reservations.delete()
    .where(reservations.c.id == sa.bindparam("reservation"))
    .returning(reservations.c.at)
)


@cache
def _reserving(dialect: str) -> sa.Executable:
    """Made once, which takes longer than to run it."""
    amounts = ("usd_micros", "tokens")
    names = ("id", "session_id", "turn_id", "user_id", "channel_id", "tenant", *amounts)
    insert = INSERT[dialect](reservations).values({name: sa.bindparam(name) for name in names})
    anew = {name: insert.excluded[name] for name in (*amounts, "at")}
    insert = insert.values(at=now())
    return insert.on_conflict_do_update(index_elements=["id"], set_=anew)


def _held(wanted: Reservation) -> dict[str, object]:
    values = asdict(wanted)
    return values | {"user_id": values.pop("user")}


@cache
def _recording(dialect: str) -> sa.Executable:
    """Made once: it is written after every round."""
    names = (*_AS_THEY_ARE, *_TOKENS, "user_id")
    insert = INSERT[dialect](table).values({name: sa.bindparam(name) for name in names})
    at = sa.func.coalesce(sa.bindparam("held_at", type_=Instant()), now())
    return insert.values(at=at).on_conflict_do_nothing(
        index_elements=["turn_id", "round", "provider"]
    )


def _row(entry: LedgerEntry) -> dict[str, object]:
    own = {name: getattr(entry, name) for name in _AS_THEY_ARE}
    tokens = {name: getattr(entry.usage, name) for name in _TOKENS}
    return {**own, **tokens, "user_id": entry.user}


def _dated(row: sa.Row[Any]) -> DatedEntry:
    own = {name: getattr(row, name) for name in _AS_THEY_ARE}
    usage = Usage(**{name: getattr(row, name) for name in _TOKENS})
    return DatedEntry(row.at, LedgerEntry(**own, user=row.user_id, usage=usage))


class StoredAlertDays:
    """One row a day, claimed by compare-and-set on the database's clock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, day: str) -> bool:
        """Insert, or take over a claim that has run out."""

        async def work(connection: AsyncConnection) -> bool:
            insert = insert_into(connection, budget_alerts).values(
                day=day, claimed_at=now(), told=False
            )
            won = await connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["day"],
                    set_={"claimed_at": insert.excluded.claimed_at},
                    where=sa.and_(
                        ~budget_alerts.c.told, budget_alerts.c.claimed_at < seconds_ago(CLAIM_S)
                    ),
                ).returning(budget_alerts.c.day)
            )
            return won.first() is not None

        return await self._database.transact(work)

    async def told(self, day: str) -> None:
        """Mark the day's alert as sent."""

        await self._database.execute(
            budget_alerts.update().where(budget_alerts.c.day == day).values(told=True)
        )
