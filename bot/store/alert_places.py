"""The thread of an alert, by stored rows; and new threads, within their limits."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.alerts import AlertLimits, AlertRule, FiledAlert, Investigation
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ALERTS
from bot.store.alert_rows import known_alerts
from bot.store.alert_tables import alert_threads as threads
from bot.store.allowance import COUNTED
from bot.store.dialect import insert_into, now, seconds_ago, today
from bot.store.ledger_tables import spending

HOUR_S: Final = 3_600.0
# Silent for this long means over, with or without a reported end.
STALE_S: Final = 7 * 24 * HOUR_S
_LIVE: Final = 2_000  # threads of one rule that alerts may still belong to


@dataclass(slots=True)
class Filing:
    """One request: alerts by the thread that they were found to belong to."""

    connection: AsyncConnection
    limits: AlertLimits
    by_thread: dict[str, list[tuple[FiledAlert, sa.Row[Any] | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    opened: list[AuditEvent] = field(default_factory=list)


async def placed(filing: Filing, rule: AlertRule, found: Sequence[FiledAlert]) -> None:
    """Each to the thread it has, its group has, or one that may be joined; else to a new one."""
    live = await _live(filing.connection, rule)
    rows = await known_alerts(filing.connection, _live_ids(rule), found)
    order = {row.id: number for number, row in enumerate(live)}
    places = _Places(rule, filing)
    for row in live:
        places.may_be_joined(row)
    # The newest last, so that an alert of two threads is the later one's.
    for row in sorted(rows, key=lambda row: order[row.thread_id]):
        places.knows(row, live[order[row.thread_id]])
    # Known alerts first: an alert that is new goes where another of its group is.
    for each in sorted(found, key=lambda each: places.row_of(each) is None):
        before, thread = places.of(each)
        if not thread:
            if not each.alert.is_firing:
                continue  # the end of an alert that was never shown here
            thread = await places.opened(each.product)
        places.takes(each, thread)
        filing.by_thread[thread].append((each, before))


class _Places:
    """Where the alerts of one rule go, by stored rows and this request.

    A product "" of a key means the overflow thread, which takes every product.
    """

    def __init__(self, rule: AlertRule, filing: Filing) -> None:
        self._rule = rule
        self._filing = filing
        self._rows: dict[tuple[str, str | None], sa.Row[Any]] = {}
        self._groups: dict[tuple[str, str | None], str] = {}
        self._joined: dict[str, str] = {}
        self._overflow = ""

    def may_be_joined(self, thread: sa.Row[Any]) -> None:
        if thread.is_new and not thread.is_overflow:
            self._joined[thread.product] = thread.id

    def knows(self, row: sa.Row[Any], thread: sa.Row[Any]) -> None:
        product = None if thread.is_overflow else thread.product
        self._rows[row.key, product] = row
        self._groups[row.group_key, product] = row.thread_id

    def row_of(self, filed: FiledAlert) -> sa.Row[Any] | None:
        keys, products = (filed.key, filed.former_key), (filed.product, None)
        found = (self._rows.get((key, product)) for key in keys for product in products)
        return next((row for row in found if row is not None), None)

    def of(self, filed: FiledAlert) -> tuple[sa.Row[Any] | None, str]:
        row = self.row_of(filed)
        if row is not None:
            return row, row.thread_id
        product, group = filed.product, filed.group_key
        of_group = self._groups.get((group, product)) or self._groups.get((group, None))
        return None, of_group or self._joined.get(product, "")

    def takes(self, filed: FiledAlert, thread: str) -> None:
        self._groups.setdefault((filed.group_key, filed.product), thread)

    async def opened(self, product: str) -> str:
        if not self._overflow:
            thread, is_overflow = await _opened(self._filing, self._rule, product)
            if not is_overflow:
                self._joined[product] = thread
                return thread
            self._overflow = thread
        return self._overflow


def _of(rule: AlertRule) -> sa.ColumnElement[bool]:
    return sa.and_(
        threads.c.rule == rule.name,
        threads.c.channel == rule.channel,
        threads.c.heard_at > seconds_ago(STALE_S),
    )


def _live_ids(rule: AlertRule) -> sa.Select[tuple[str]]:
    is_on = threads.c.resolved_at.is_(None) | (threads.c.resolved_at > seconds_ago(rule.rejoin_s))
    return (
        sa.select(threads.c.id)
        .where(_of(rule), is_on)
        .order_by(threads.c.opened_at.desc(), threads.c.id)
        .limit(_LIVE)
    )


async def _live(connection: AsyncConnection, rule: AlertRule) -> Sequence[sa.Row[Any]]:
    is_new = (threads.c.opened_at > seconds_ago(rule.join_s)).label("is_new")
    found = await connection.execute(
        sa.select(threads.c.id, threads.c.product, threads.c.is_overflow, is_new)
        .where(threads.c.id.in_(_live_ids(rule)))
        .order_by(threads.c.opened_at, threads.c.id)
    )
    return found.all()


async def _opened(filing: Filing, rule: AlertRule, product: str) -> tuple[str, bool]:
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
            return str(there), True
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
    return thread, is_overflow


async def _left_out(connection: AsyncConnection, limits: AlertLimits) -> str:
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
    return "today's budget for alerts is spent"
