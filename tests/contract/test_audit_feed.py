"""Every row reaches every sink, in order, through any failure; replicas share the work.

A sink that is far behind catches up without delaying other work.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from adapters.audit.http import AuditHttp
from adapters.errors import Unreachable
from adapters.http.transport import Route
from bot.audit import feed as audit_feed
from bot.audit.feed import EventFeed, Sink
from bot.audit.share import SHARE
from bot.domain.audit import AuditEntry, AuditEvent, AuditKind
from bot.store.audit import StoredAudit
from bot.store.audit_reading import StoredAuditReader
from bot.store.audit_sinks import SinkCursors
from bot.store.database import Database
from bot.store.tables import audit_sinks
from tests.fixtures_database import database, database_url, other
from tests.held_connection import writing

__all__ = ["database", "database_url", "other"]


class Collector:
    """A sink that may be away."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.away = False

    async def __call__(self, entries: Sequence[AuditEntry]) -> None:
        if self.away:
            raise Unreachable("gone")
        self.seen += [each.seq for each in entries]


async def no_rest(_seconds: float) -> None:
    """Of one that no one waits for."""


def feed(database: Database, sink: Collector) -> EventFeed:
    sinks = {"http": Sink(sink)}
    return EventFeed(StoredAuditReader(database), SinkCursors(database), sinks, no_rest)


async def write(database: Database, count: int) -> None:
    for n in range(count):
        await StoredAudit(database).append(AuditEvent(AuditKind.TOOL_CALL, "U1", {"n": n}))


async def lapse(database: Database) -> None:
    """What waiting for the claim to run out would do."""
    async with writing(database) as connection:
        await connection.execute(sa.update(audit_sinks).values(claimed_until=audit_feed_epoch()))


def audit_feed_epoch() -> sa.ColumnElement[int]:
    return sa.type_coerce(sa.literal(0), sa.BigInteger())


async def test_every_row_arrives_once_and_in_order(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_feed, "BATCH_ROWS", 3)
    collector = Collector()
    await write(database, 7)
    serving = feed(database, collector)
    await serving.run()
    assert collector.seen == [1, 2, 3]  # a start waits for no more
    await serving.run()
    await write(database, 2)
    await serving.run()
    await serving.run()
    assert collector.seen == list(range(1, 10))


async def test_a_sink_misses_nothing_after_an_outage(database: Database) -> None:
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


@pytest.mark.parametrize("stall", ["hangs", "is away"])
async def test_a_stalled_sink_delays_no_other_and_resumes_where_it_stopped(
    database: Database, monkeypatch: pytest.MonkeyPatch, stall: str
) -> None:
    monkeypatch.setattr(audit_feed, "DELIVERY_S", 0.05)
    stalled, working, hangs = Collector(), Collector(), stall == "hangs"

    async def deliver(entries: Sequence[AuditEntry]) -> None:
        if hangs:
            await asyncio.Event().wait()
        await stalled(entries)

    stalled.away = stall == "is away"
    await write(database, 4)
    sinks = {"http": Sink(deliver), "nats": Sink(working)}
    serving = EventFeed(StoredAuditReader(database), SinkCursors(database), sinks, no_rest)
    with capture_logs() as said:
        await serving.run()
    await write(database, 1)
    hangs = stalled.away = False
    await lapse(database)
    await serving.run()

    assert [line["sink"] for line in said if line["event"] == "audit.sink.failed"] == ["http"]
    assert (stalled.seen, working.seen) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


async def test_one_malformed_chunk_from_a_collector_does_not_stop_delivery(
    database: Database,
) -> None:
    answers = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]
    batches = 0

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal batches
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(size)
                batches += 1
                writer.write(answers.pop() if answers else b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(collect, "127.0.0.1", 0)
    http = AuditHttp(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/events", Route())

    async def to_collector(entries: Sequence[AuditEntry]) -> None:
        await http.send_events([entry.as_json() for entry in entries])

    await write(database, 3)
    cursors = SinkCursors(database)
    serving = EventFeed(StoredAuditReader(database), cursors, {"http": Sink(to_collector)}, no_rest)
    async with server:
        await serving.run()
        stopped_at = await cursors.served("http")
        await lapse(database)
        await serving.run()
        await http.aclose()

    assert (stopped_at, batches, await cursors.served("http")) == (0, 2, 3)


class Burning:
    """A sink that takes the processor for a while, as the log does."""

    def __init__(self) -> None:
        self.pieces: list[int] = []
        self.rested: list[float] = []
        self.spent_s = 0.0

    async def __call__(self, entries: Sequence[AuditEntry]) -> None:
        self.pieces.append(len(entries))
        begun = time.thread_time()
        while time.thread_time() < begun + 0.002:
            pass
        self.spent_s += time.thread_time() - begun

    async def rest(self, seconds: float) -> None:
        self.rested.append(seconds)
        await asyncio.sleep(0)


async def test_other_tasks_run_between_two_batches(database: Database) -> None:
    burning = Burning()
    await write(database, 10)
    sinks = {"log": Sink(burning, 4)}
    serving = EventFeed(StoredAuditReader(database), SinkCursors(database), sinks, burning.rest)

    await serving.run()

    assert (burning.pieces, burning.rested) == ([4, 4, 2], [0, 0, 0])


async def test_a_sink_that_is_behind_uses_its_share_of_a_core_and_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_feed, "BATCH_ROWS", 10)
    burning = Burning()
    await write(database, 40)
    serving = EventFeed(
        StoredAuditReader(database), SinkCursors(database), {"log": Sink(burning, 4)}, burning.rest
    )

    await serving.run()
    await serving.run()

    assert burning.pieces == [4, 4, 2] * 4
    assert burning.spent_s / (burning.spent_s + sum(burning.rested)) < SHARE


async def test_every_sink_is_served_while_another_is_behind(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_feed, "BATCH_ROWS", 3)
    first, second = Collector(), Collector()
    sinks = {"log": Sink(first), "http": Sink(second)}
    await write(database, 7)

    await EventFeed(StoredAuditReader(database), SinkCursors(database), sinks, no_rest).run()

    assert (first.seen, second.seen) == ([1, 2, 3], [1, 2, 3])


async def test_a_pause_ends_at_shutdown_and_its_batch_is_repeated(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_feed, "BATCH_ROWS", 3)
    collector, rests = Collector(), asyncio.Event()

    async def for_ever(_seconds: float) -> None:
        rests.set()
        await asyncio.Event().wait()

    await write(database, 5)
    sinks = {"log": Sink(collector, 2)}
    ending = EventFeed(StoredAuditReader(database), SinkCursors(database), sinks, for_ever)
    running = asyncio.create_task(ending.run())
    await rests.wait()
    running.cancel()
    async with asyncio.timeout(0.1):
        await asyncio.gather(running, return_exceptions=True)
    await lapse(database)
    await feed(database, collector).run()

    assert collector.seen == [1, 2, 1, 2, 3]


async def test_a_backlog_is_logged_once_when_it_starts_and_once_when_it_ends(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_feed, "BATCH_ROWS", 3)
    monkeypatch.setattr(audit_feed, "FAR_ROWS", 5)
    collector = Collector()
    await write(database, 13)
    serving = feed(database, collector)

    with capture_logs() as said:
        await serving.run()
        await serving.run()

    assert collector.seen == list(range(1, 14))
    told = [(line["event"], line.get("rows")) for line in said]
    assert told == [("audit.sink.behind", 10), ("audit.sink.caught_up", None)]
