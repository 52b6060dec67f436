"""Rows of `alert_threads` and `alerts` as values, and what one report changes of an alert's row."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.alerts import (
    AlertState,
    AlertThread,
    FiledAlert,
    Investigation,
    ListedAlert,
)
from bot.domain.ids import ChannelId
from bot.store.alert_tables import alerts
from bot.store.columns import json_text

LISTED = 10
_AT_ONCE = 400  # keys and groups of a statement, of the 999 variables that an old SQLite takes
_AS_THEY_ARE = (
    "id", "rule", "product", "question", "opened_at", "heard_at", "left_out", "thread_ts", "note_ts",
    "resolved_at", "ends", "is_overflow",
)  # fmt: skip


def change(before: sa.Row[Any] | None, filed: FiledAlert) -> Mapping[str, Any] | None:
    """An alert's row after that report; None for a late report, or one that changes nothing."""
    told = filed.alert
    row = _row(filed)
    if before is None:
        return {**row, "began_at": told.changed_at, "fires": 1, "repeats": 0}
    kept = {each: getattr(before, each) for each in ("key", "began_at", "fires", "repeats")}
    was_firing = before.state == AlertState.FIRING
    if told.is_firing and was_firing:
        # Senders without a memory send another instant each time; older states stay old.
        latest = max(told.changed_at, before.changed_at)
        return {**row, **kept, "repeats": before.repeats + 1, "changed_at": latest}
    if told.is_firing:
        is_later = told.changed_at > before.changed_at
        again = {"began_at": told.changed_at, "fires": before.fires + 1}
        return {**row, **kept, **again} if is_later else None
    # A resolved alert may be reported as resolved later still: an earlier firing is old.
    is_news = (
        told.changed_at >= before.changed_at if was_firing else told.changed_at > before.changed_at
    )
    return {**row, **kept} if is_news else None


def _row(filed: FiledAlert) -> dict[str, Any]:
    alert = filed.alert
    return {
        "key": filed.key,
        "group_key": filed.group_key,
        "source": alert.source,
        "state": alert.state.value,
        "title": alert.title,
        "labels": json_text(dict(alert.labels)),
        "changed_at": alert.changed_at,
    }


async def with_alerts(connection: AsyncConnection, row: sa.Row[Any]) -> AlertThread:
    """The thread with its counts, and the alerts shown by name: firing ones first."""
    mine = alerts.c.thread_id == row.id
    is_on = alerts.c.state == AlertState.FIRING.value
    firing = sa.case((is_on, 1), else_=0)
    counts = (
        await connection.execute(
            sa.select(
                sa.func.count().label("total"),
                sa.func.coalesce(sa.func.sum(firing), 0).label("firing"),
                sa.func.coalesce(sa.func.sum(alerts.c.repeats), 0).label("repeats"),
            ).where(mine)
        )
    ).one()
    first = await connection.execute(
        sa.select(alerts)
        .where(mine)
        .order_by(firing.desc(), alerts.c.began_at, alerts.c.key)
        .limit(LISTED)
    )
    return AlertThread(
        channel=ChannelId(row.channel),
        investigation=Investigation(row.investigation),
        firing=int(counts.firing),
        total=int(counts.total),
        repeats=int(counts.repeats),
        listed=tuple(_listed(each) for each in first),
        **{name: getattr(row, name) for name in _AS_THEY_ARE},
    )


def _listed(row: sa.Row[Any]) -> ListedAlert:
    return ListedAlert(
        row.title, orjson.loads(row.labels), AlertState(row.state), row.began_at, row.fires
    )


async def known_alerts(
    connection: AsyncConnection, live: sa.Select[tuple[str]], found: Sequence[FiledAlert]
) -> Sequence[sa.Row[Any]]:
    """The rows of those threads that are one of these alerts or of one of their groups."""
    rows: list[sa.Row[Any]] = []
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]
        groups = sorted({each.group_key for each in some})
        is_one = alerts.c.key.in_([each.key for each in some])
        same_group = alerts.c.group_key.in_(groups)
        rows += await connection.execute(
            sa.select(alerts).where(alerts.c.thread_id.in_(live), is_one | same_group)
        )
    return rows
