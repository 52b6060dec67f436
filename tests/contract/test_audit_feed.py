"""Every row reaches every sink, in order, whatever fails in between; replicas share the work."""

import asyncio
from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from adapters.errors import Unreachable
from bot.audit import feed as audit_feed
from bot.audit.feed import EventFeed
from bot.domain.audit import AuditEvent, AuditKind, TrailEntry
from bot.store.audit import StoredAudit
from bot.store.audit_reading import StoredTrail
from bot.store.audit_sinks import SinkCursors
from bot.store.database import Database
from bot.store.tables import audit_sinks
from tests.fixtures_database import database, database_url, other

__all__ = ["database", "database_url", "other"]


class Collector:
    """A sink that may be away."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.away = False

    async def __call__(self, entries: Sequence[TrailEntry]) -> None:
        if self.away:
            raise Unreachable("gone")
        self.seen += [each.seq for each in entries]


def feed(database: Database, sink: Collector) -> EventFeed:
    return EventFeed(StoredTrail(database), SinkCursors(database), {"http": sink})


async def write(database: Database, count: int) -> None:
    for n in range(count):
        await StoredAudit(database).append(AuditEvent(AuditKind.TOOL_CALL, "U1", {"n": n}))


async def lapse(database: Database) -> None:
    """What waiting for the claim to run out would do."""
    async with database.write() as connection:
        await connection.execute(sa.update(audit_sinks).values(claimed_until=audit_feed_epoch()))


def audit_feed_epoch() -> sa.ColumnElement[int]:
    return sa.type_coerce(sa.literal(0), sa.BigInteger())


async def test_every_row_once_and_in_order(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_feed, "BATCH_ROWS", 3)
    collector = Collector()
    await write(database, 7)
    await feed(database, collector).run()
    await write(database, 2)
    await feed(database, collector).run()
    await feed(database, collector).run()
    assert collector.seen == list(range(1, 10))


async def test_a_sink_that_is_away_misses_nothing(database: Database) -> None:
    collector = Collector()
    collector.away = True
    await write(database, 2)
    await feed(database, collector).run()
    collector.away = False
    await feed(database, collector).run()
    assert collector.seen == []  # it is not asked for a while
    await lapse(database)
    await feed(database, collector).run()
    assert collector.seen == [1, 2]


async def test_replicas_do_not_repeat_each_other(database: Database, other: Database) -> None:
    collector = Collector()
    await write(database, 5)
    async with asyncio.TaskGroup() as group:
        for n in range(6):
            group.create_task(feed((database, other)[n % 2], collector).run())
    assert collector.seen == [1, 2, 3, 4, 5]
