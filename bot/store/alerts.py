"""`bot.ports.alerts.AlertStore` in the database: which incident an alert belongs to, decided by rows.

One request is filed at a time, over all replicas, so that two of them cannot open a thread each.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.alerts import (
    AlertLimits,
    AlertState,
    AlertThread,
    FiledAlert,
    Investigation,
)
from bot.domain.ids import MessageTs, Place
from bot.ports.alerts import AlertClaim
from bot.store.alert_places import Filing, placed
from bot.store.alert_rows import change, with_alerts
from bot.store.alert_tables import alert_threads as threads
from bot.store.alert_tables import alerts
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import MOST, insert_into, lock_alerts, now, seconds_ago

_DIFFERS = sa.text("shown < wanted")


class StoredAlerts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def file(self, found: Sequence[FiledAlert], limits: AlertLimits) -> None:
        """In one transaction, with the audit row of each thread that it opens."""

        async def work(connection: AsyncConnection) -> None:
            await lock_alerts(connection)
            filing = Filing(connection, limits)
            by_rule: defaultdict[str, list[FiledAlert]] = defaultdict(list)
            for each in found:
                by_rule[each.rule.name].append(each)
            for alike in by_rule.values():
                await placed(filing, alike[0].rule, alike)
            for thread, told in filing.by_thread.items():
                await _kept(connection, thread, told)
            for event in filing.opened:
                await append_audit(connection, event)

        await self._database.transact(work)

    async def due(self, limit: int) -> Sequence[str]:
        """Longest waiting first."""

        return await self._database.scalars(DUE, {"most": limit})

    async def claim(self, thread: str, for_s: float) -> AlertClaim | None:
        """One UPDATE: the winner shows them."""

        async def work(connection: AsyncConnection) -> AlertClaim | None:
            won = await connection.execute(
                threads.update()
                .where(threads.c.id == thread, _DIFFERS, _is_free())
                .values(due_at=seconds_ago(-for_s), tries=threads.c.tries + 1)
                .returning(threads)
            )
            row = won.first()
            if row is None:
                return None
            found = await with_alerts(connection, row)
            return AlertClaim(found, row.wanted, row.tries, row.due_at)

        return await self._database.transact(work)

    async def opened(self, thread: str, ts: MessageTs) -> MessageTs:
        """The first one stays."""

        async def work(connection: AsyncConnection) -> MessageTs:
            this = threads.c.id == thread
            await connection.execute(
                threads.update().where(this, threads.c.thread_ts.is_(None)).values(thread_ts=ts)
            )
            kept = await connection.scalar(sa.select(threads.c.thread_ts).where(this))
            return MessageTs(kept or ts)

        return await self._database.transact(work)

    async def lost(self, thread: str, ts: MessageTs) -> None:
        """Unless it has another by now."""
        gone = sa.and_(threads.c.id == thread, threads.c.thread_ts == ts)
        await self._update(threads.update().where(gone).values(thread_ts=None, note_ts=None))

    async def noted(self, thread: str, ts: MessageTs) -> None:
        """The first one stays."""
        unknown = threads.c.note_ts.is_(None)
        await self._update(
            threads.update().where(threads.c.id == thread, unknown).values(note_ts=ts)
        )

    async def begun(self, thread: str) -> None:
        """No change if it is no longer due."""
        due = threads.c.investigation == Investigation.DUE.value
        await self._update(
            threads.update()
            .where(threads.c.id == thread, due)
            .values(investigation=Investigation.BEGUN.value)
        )

    async def showed(self, claim: AlertClaim, again_s: float) -> None:
        """Unless another has it by now, who shows them as well."""
        await self._update(
            _claimed(claim).values(shown=claim.wanted, tries=0, due_at=seconds_ago(-again_s))
        )

    async def failed(self, claim: AlertClaim, again_s: float) -> None:
        """Free from then on."""
        await self._update(_claimed(claim).values(due_at=seconds_ago(-again_s)))

    async def at(self, place: Place) -> AlertThread | None:
        """By the channel and the thread; the installation has one workspace."""

        async def work(connection: AsyncConnection) -> AlertThread | None:
            here = sa.and_(
                threads.c.channel == place.channel, threads.c.thread_ts == place.thread_ts
            )
            row = (await connection.execute(sa.select(threads).where(here).limit(1))).first()
            return None if row is None else await with_alerts(connection, row)

        return await self._database.fetch(work)

    async def _update(self, statement: sa.Update) -> None:
        await self._database.execute(statement)


def _is_free() -> sa.ColumnElement[bool]:
    return threads.c.due_at.is_(None) | (threads.c.due_at <= seconds_ago(0))


DUE: Final = (
    sa.select(threads.c.id)
    .where(_DIFFERS, _is_free())
    .order_by(threads.c.due_at, threads.c.opened_at, threads.c.id)
    .limit(MOST)
)


def _claimed(claim: AlertClaim) -> sa.Update:
    return threads.update().where(threads.c.id == claim.thread.id, threads.c.due_at == claim.until)


async def _kept(
    connection: AsyncConnection, thread: str, told: Sequence[tuple[FiledAlert, sa.Row[Any] | None]]
) -> None:
    changed = [each for each in (change(before, filed) for filed, before in told) if each]
    if not changed:
        return
    rows: list[Mapping[str, Any]] = [{**each, "thread_id": thread} for each in changed]
    insert = insert_into(connection, alerts)
    columns = {name: insert.excluded[name] for name in rows[0] if name not in {"thread_id", "key"}}
    await connection.execute(
        insert.on_conflict_do_update(index_elements=["thread_id", "key"], set_=columns), rows
    )
    is_on = sa.exists().where(
        alerts.c.thread_id == thread, alerts.c.state == AlertState.FIRING.value
    )
    ends_now = sa.and_(threads.c.resolved_at.is_(None), ~is_on)
    await connection.execute(
        threads.update()
        .where(threads.c.id == thread)
        .values(
            heard_at=now(),
            wanted=threads.c.wanted + 1,
            ends=threads.c.ends + sa.case((ends_now, 1), else_=0),
            resolved_at=sa.case(
                (is_on, sa.null()), else_=sa.func.coalesce(threads.c.resolved_at, now())
            ),
        )
    )
