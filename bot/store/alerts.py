"""`bot.ports.alerts.AlertStore` in the database: which incident an alert belongs to, decided by rows.

One request is filed at a time, over all replicas, so that two of them cannot open a thread each.
"""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from pydantic import JsonValue

from bot.domain.alerts import (
    AlertLimits,
    AlertRule,
    AlertState,
    AlertThread,
    FiledAlert,
    Investigation,
)
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ALERTS, MessageTs, Place
from bot.ports.alerts import AlertClaim
from bot.store.alert_rows import change, known_alerts, with_alerts
from bot.store.alert_tables import alert_threads as threads
from bot.store.alert_tables import alerts
from bot.store.allowance import COUNTED
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import Connection, insert_into, lock_alerts, now, seconds_ago, today
from bot.store.tables import spending

HOUR_S: Final = 3_600.0
# What nobody told of for so long is over, whether its end was told or not.
STALE_S: Final = 7 * 24 * HOUR_S
_LIVE: Final = 50  # threads of one rule and product that alerts may still belong to
_DIFFERS = sa.text("shown < wanted")


@dataclass(slots=True)
class _Filing:
    """One request: alerts by the thread that they were found to belong to."""

    connection: Connection
    limits: AlertLimits
    by_thread: dict[str, list[tuple[FiledAlert, sa.Row[Any] | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    opened: list[AuditEvent] = field(default_factory=list)


class StoredAlerts:
    """Threads and alerts as rows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def file(self, found: Sequence[FiledAlert], limits: AlertLimits) -> None:
        """In one transaction, with the audit row of each thread that it opens."""

        async def work(connection: Connection) -> None:
            await lock_alerts(connection)
            filing = _Filing(connection, limits)
            lanes: defaultdict[tuple[str, str], list[FiledAlert]] = defaultdict(list)
            for each in found:
                lanes[each.rule.name, each.product].append(each)
            for (_, product), alike in lanes.items():
                await _placed(filing, alike[0].rule, product, alike)
            for thread, told in filing.by_thread.items():
                await _kept(connection, thread, told)
            for event in filing.opened:
                await append_audit(connection, event)

        await self._database.transact(work)

    async def due(self, limit: int) -> Sequence[str]:
        """Longest waiting first."""

        async def work(connection: Connection) -> Sequence[str]:
            found = await connection.scalars(
                sa.select(threads.c.id)
                .where(_DIFFERS, _is_free())
                .order_by(threads.c.due_at, threads.c.opened_at, threads.c.id)
                .limit(limit)
            )
            return list(found)

        return await self._database.fetch(work)

    async def claim(self, thread: str, for_s: float) -> AlertClaim | None:
        """One UPDATE: whoever wins it shows them."""

        async def work(connection: Connection) -> AlertClaim | None:
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

        async def work(connection: Connection) -> MessageTs:
            this = threads.c.id == thread
            await connection.execute(
                threads.update().where(this, threads.c.thread_ts.is_(None)).values(thread_ts=ts)
            )
            kept = await connection.scalar(sa.select(threads.c.thread_ts).where(this))
            return MessageTs(kept or ts)

        return await self._database.transact(work)

    async def noted(self, thread: str, ts: MessageTs) -> None:
        """The first one stays."""
        unknown = threads.c.note_ts.is_(None)
        await self._update(
            threads.update().where(threads.c.id == thread, unknown).values(note_ts=ts)
        )

    async def begun(self, thread: str) -> None:
        """What is not due any more stays as it is."""
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

        async def work(connection: Connection) -> AlertThread | None:
            here = sa.and_(
                threads.c.channel == place.channel, threads.c.thread_ts == place.thread_ts
            )
            row = (await connection.execute(sa.select(threads).where(here).limit(1))).first()
            return None if row is None else await with_alerts(connection, row)

        return await self._database.fetch(work)

    async def _update(self, statement: sa.Update) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(statement)

        await self._database.transact(work)


def _is_free() -> sa.ColumnElement[bool]:
    return threads.c.due_at.is_(None) | (threads.c.due_at <= seconds_ago(0))


def _claimed(claim: AlertClaim) -> sa.Update:
    return threads.update().where(threads.c.id == claim.thread.id, threads.c.due_at == claim.until)


async def _placed(
    filing: _Filing, rule: AlertRule, product: str, found: Sequence[FiledAlert]
) -> None:
    """Each to the thread it has, its group has, or one that may be joined; else to a new one."""
    live = await _live(filing.connection, rule, product)
    rows = await known_alerts(filing.connection, [row.id for row in live], found)
    by_key = {row.key: row for row in rows}
    by_group = {row.group_key: row.thread_id for row in rows}
    joined = await _joined(filing.connection, rule, product)
    for each in found:
        before = by_key.get(each.key)
        thread = before.thread_id if before is not None else by_group.get(each.group_key, joined)
        if not thread:
            if not each.alert.is_firing:
                continue  # the end of what nobody here was told of
            thread = joined = await _opened(filing, rule, product)
        by_group.setdefault(each.group_key, thread)
        filing.by_thread[thread].append((each, before))


def _of(rule: AlertRule) -> sa.ColumnElement[bool]:
    return sa.and_(
        threads.c.rule == rule.name,
        threads.c.channel == rule.channel,
        threads.c.heard_at > seconds_ago(STALE_S),
    )


async def _live(connection: Connection, rule: AlertRule, product: str) -> Sequence[sa.Row[Any]]:
    """Newest last, so that an alert of two threads is the later one's."""
    is_on = threads.c.resolved_at.is_(None) | (threads.c.resolved_at > seconds_ago(rule.rejoin_s))
    found = await connection.execute(
        sa.select(threads.c.id)
        .where(_of(rule), is_on, (threads.c.product == product) | threads.c.is_overflow)
        .order_by(threads.c.opened_at.desc(), threads.c.id)
        .limit(_LIVE)
    )
    return [*reversed(found.all())]


async def _joined(connection: Connection, rule: AlertRule, product: str) -> str:
    """The thread that was opened for the same so lately that others join it."""
    found = await connection.scalar(
        sa.select(threads.c.id)
        .where(
            _of(rule),
            threads.c.product == product,
            threads.c.is_overflow.is_(False),
            threads.c.opened_at > seconds_ago(rule.join_s),
        )
        .order_by(threads.c.opened_at.desc())
        .limit(1)
    )
    return str(found or "")


async def _opened(filing: _Filing, rule: AlertRule, product: str) -> str:
    """A new thread, on record; or, where there are too many, the one for what is too much."""
    connection = filing.connection
    this_hour = threads.c.opened_at > seconds_ago(HOUR_S)
    count = sa.select(sa.func.count()).select_from(threads)
    so_many = await connection.scalar(count.where(this_hour, threads.c.is_overflow.is_(False)))
    is_overflow = int(so_many or 0) >= filing.limits.threads_per_hour
    if is_overflow:
        there = await connection.scalar(
            sa.select(threads.c.id).where(_of(rule), this_hour, threads.c.is_overflow).limit(1)
        )
        if there:
            return str(there)
    thread = uuid.uuid4().hex
    left_out = await _left_out(connection, filing.limits)
    due = Investigation.LEFT_OUT if left_out else Investigation.DUE
    told: dict[str, JsonValue] = {
        "rule": rule.name,
        "product": "" if is_overflow else product,
        "channel": rule.channel,
        "left_out": left_out,
    }
    await connection.execute(
        insert_into(connection, threads).values(
            id=thread,
            **told,
            question=rule.question,
            opened_at=now(),
            heard_at=now(),
            ends=0,
            is_overflow=is_overflow,
            investigation=due.value,
            wanted=0,
            shown=0,
            tries=0,
        )
    )
    about = {**told, "thread": thread, "overflow": is_overflow}
    filing.opened.append(
        AuditEvent(AuditKind.ALERT_OPENED, ALERTS, about, key=f"alert:{thread}:opened")
    )
    return thread


async def _left_out(connection: Connection, limits: AlertLimits) -> str:
    """Which limit is in the way of one more investigation, in words; empty: none."""
    begun = sa.and_(
        threads.c.opened_at > seconds_ago(HOUR_S),
        threads.c.investigation != Investigation.LEFT_OUT.value,
    )
    count = sa.select(sa.func.count()).select_from(threads).where(begun)
    if int(await connection.scalar(count) or 0) >= limits.investigations_per_hour:
        return f"alerts may start {limits.investigations_per_hour} investigations an hour"
    if not limits.daily_usd_micros:
        return ""
    spent = sa.select(sa.func.coalesce(sa.func.sum(COUNTED), 0)).where(
        spending.c.user_id == ALERTS, spending.c.at >= today()
    )
    if int(await connection.scalar(spent) or 0) < limits.daily_usd_micros:
        return ""
    return "what alerts may spend today is spent"


async def _kept(
    connection: Connection, thread: str, told: Sequence[tuple[FiledAlert, sa.Row[Any] | None]]
) -> None:
    """The alerts' rows as they are now, and the thread's after them."""
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
