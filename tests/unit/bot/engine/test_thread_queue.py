"""A turn that was promised waits for a database that is busy; it is not lost."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.engine import queue
from bot.engine.queue import ThreadQueue
from bot.store.database import Database
from bot.store.sessions import StoredSessions
from bot.store.tickets import Attempt, Superseded, Tickets, workflow_status
from tests.fixtures_database import database as both
from tests.fixtures_database import database_url, sqlite_url
from tests.held_connection import writing
from tools.redactor import Redacted

__all__ = ["both", "database_url", "sqlite_url"]

TS = MessageTs("1700000000.000100")
PERSON = Person(TeamId("T1"), UserId("U1"))
ASK = Ask(Place(TeamId("T1"), ChannelId("C1"), TS), TS, PERSON, Redacted("why?"))


@pytest.fixture
async def database(sqlite_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(sqlite_url)
    yield opened
    await opened.close()


async def run_by(database: Database, owner: str, ask: Ask = ASK) -> None:
    row = {"workflow_uuid": ask.turn_id, "executor_id": owner, "status": "PENDING"}
    async with writing(database) as connection:
        await connection.execute(workflow_status(database.dialect).insert().values(row))


@asynccontextmanager
async def watching(order: ThreadQueue) -> AsyncIterator[None]:
    watch = asyncio.create_task(order.watch())
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.wait({watch})


class Counted(Tickets):
    """Knows how often it was asked; `looked` is set at the fifth look."""

    tries = 0
    looks = 0

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.looked = asyncio.Event()
        self.all_tried = asyncio.Event()

    async def try_enter(self, ticket: str, thread: str, ts: str, owner: str) -> Attempt:
        entered = await super().try_enter(ticket, thread, ts, owner)
        self.tries += 1
        if self.tries > WAITING:
            self.all_tried.set()
        return entered

    async def blocked(self, owner: str) -> Collection[str]:
        found = await super().blocked(owner)
        self.looks += 1
        if self.looks == 5:
            self.looked.set()
        return found


WAITING = 20


async def line_of(database: Database, order: ThreadQueue, number: int) -> list[Ask]:
    """So many messages of one thread; the first one runs."""
    asks = [replace(ASK, ts=MessageTs(f"1700000000.{n:06}")) for n in range(number)]
    for each in asks:
        await run_by(database, "here", each)
    await order.enter(asks[0])
    return asks


async def test_waiting_turns_write_nothing_and_share_one_read(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "LOOK_AGAIN_S", 0.001)
    tickets = Counted(both)
    order = ThreadQueue(tickets, "here")
    asks = await line_of(both, order, WAITING + 1)
    async with asyncio.TaskGroup() as group:
        entering = [group.create_task(order.enter(each)) for each in asks[1:]]
        await asyncio.wait_for(tickets.all_tried.wait(), 10)
        async with watching(order):
            await asyncio.wait_for(tickets.looked.wait(), 10)
        for each in entering:
            each.cancel()
    assert tickets.tries == WAITING + 1


async def test_a_leaving_turn_wakes_only_the_next_one(both: Database) -> None:
    tickets = Counted(both)
    order = ThreadQueue(tickets, "here")
    asks = await line_of(both, order, WAITING + 1)
    async with asyncio.TaskGroup() as group:  # no one watches: to be woken is enough
        entering = [group.create_task(order.enter(each)) for each in asks[1:]]
        await asyncio.wait_for(tickets.all_tried.wait(), 10)
        await order.leave(asks[0])
        await asyncio.wait_for(entering[0], 10)
        assert not any(each.done() for each in entering[1:])
        for each in entering:
            each.cancel()
    assert tickets.tries == WAITING + 2


async def test_a_turn_that_leaves_on_another_replica_is_noticed(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "LOOK_AGAIN_S", 0.001)
    seen = Counted(both)
    there, here = ThreadQueue(Tickets(both), "there"), ThreadQueue(seen, "here")
    first, second = ASK, replace(ASK, ts=MessageTs("1700000000.000200"))
    for each, owner in ((first, "there"), (second, "here")):
        await run_by(both, owner, each)
    await there.enter(first)
    async with watching(here):
        entering = asyncio.create_task(here.enter(second))
        await asyncio.wait_for(seen.looked.wait(), 10)
        assert not entering.done()
        await there.leave(first)
        await asyncio.wait_for(entering, 10)


async def test_an_empty_queue_is_not_polled(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "LOOK_AGAIN_S", 0.0)
    tickets = Counted(both)
    order = ThreadQueue(tickets, "here")
    async with watching(order):
        asks = await line_of(both, order, 1)
        await order.leave(asks[0])
    assert tickets.looks == 0


async def test_a_turn_enters_once_the_database_has_time_for_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()
    monkeypatch.setattr(queue, "RETRY_S", 0.0)
    monkeypatch.setattr(queue.log, "warning", lambda *_, **__: refused.set())
    order = ThreadQueue(Tickets(database), "here")
    await run_by(database, "here")
    async with writing(database):
        monkeypatch.setattr("bot.store.database.QUEUE_TIMEOUT_S", 0.01)
        entering = asyncio.create_task(order.enter(ASK))
        await asyncio.wait_for(refused.wait(), 10)
        monkeypatch.setattr("bot.store.database.QUEUE_TIMEOUT_S", 60.0)
    await asyncio.wait_for(entering, 10)
    assert order.take_first_look(ASK)


async def test_an_attempt_after_the_first_may_have_been_seen(database: Database) -> None:
    order = ThreadQueue(Tickets(database), "here")
    await run_by(database, "here")
    await order.enter(ASK)
    again = ThreadQueue(Tickets(database), "here")
    await again.enter(ASK)
    await StoredSessions(database).begin_turn(ASK, "incident", datetime(2026, 11, 23, tzinfo=UTC))
    await again.leave(ASK)
    gone = ThreadQueue(Tickets(database), "here")
    await gone.enter(ASK)
    looks = [each.take_first_look(ASK) for each in (order, again, gone)]
    assert looks == [True, False, False]


async def test_a_place_is_awaited_until_the_ticket_is_there(both: Database) -> None:
    order = ThreadQueue(Tickets(both), "here")
    await run_by(both, "here")
    with order.expected(ASK.turn_id) as placed:
        waiting = asyncio.create_task(order.has_place(ASK.turn_id, placed))
        await asyncio.sleep(0)
        assert not waiting.done()
        await order.enter(ASK)
        await asyncio.wait_for(waiting, 0.2)


async def test_a_place_taken_by_another_replica_is_noticed(both: Database) -> None:
    here, there = ThreadQueue(Tickets(both), "here"), ThreadQueue(Tickets(both), "there")
    await run_by(both, "there")
    with here.expected(ASK.turn_id) as placed:
        waiting = asyncio.create_task(here.has_place(ASK.turn_id, placed))
        await there.enter(ASK)
        await asyncio.wait_for(waiting, 1.5)


async def test_a_place_is_not_awaited_forever(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "PLACED_S", 0.05)
    order = ThreadQueue(Tickets(both), "here")
    await run_by(both, "here")
    with order.expected(ASK.turn_id) as placed:
        await asyncio.wait_for(order.has_place(ASK.turn_id, placed), 5)


async def test_a_turn_of_another_owner_does_not_wait(database: Database) -> None:
    await run_by(database, "there")
    with pytest.raises(Superseded):
        await ThreadQueue(Tickets(database), "here").enter(ASK)
