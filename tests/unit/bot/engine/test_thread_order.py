"""A turn that was promised waits for a database that is busy; it is not lost."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.engine import waiting
from bot.engine.waiting import Entered, ThreadOrder
from bot.store.accepted import Accepted
from bot.store.accepted_table import accepted
from bot.store.database import Database
from bot.store.tickets import Superseded, Tickets, workflow_status
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


async def accept(database: Database, ask: Ask) -> None:
    assert await Accepted(database).accept(ask.turn_id, ask.place.key, ask.ts, "{}")


async def nothing_asked(database: Database) -> None:
    """As the release before left its places."""
    async with writing(database) as connection:
        await connection.execute(accepted.delete())


async def run_by(database: Database, owner: str, ask: Ask = ASK) -> None:
    row = {"workflow_uuid": ask.turn_id, "executor_id": owner, "status": "PENDING"}
    async with writing(database) as connection:
        await connection.execute(workflow_status(database.dialect).insert().values(row))


@asynccontextmanager
async def watching(order: ThreadOrder) -> AsyncIterator[None]:
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

    async def try_enter(self, ticket: str, thread: str, ts: str, owner: str) -> bool:
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


async def line_of(database: Database, order: ThreadOrder, number: int) -> list[Ask]:
    """So many messages of one thread, the first of which is in."""
    asks = [replace(ASK, ts=MessageTs(f"1700000000.{n:06}")) for n in range(number)]
    for each in asks:
        await accept(database, each)
        await run_by(database, "here", each)
    await order.enter(asks[0])
    return asks


async def test_who_waits_writes_nothing_and_all_of_them_read_once(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_AGAIN_S", 0.001)
    tickets = Counted(both)
    order = ThreadOrder(tickets, "here")
    asks = await line_of(both, order, WAITING + 1)
    async with asyncio.TaskGroup() as group:
        entering = [group.create_task(order.enter(each)) for each in asks[1:]]
        await asyncio.wait_for(tickets.all_tried.wait(), 10)
        async with watching(order):
            await asyncio.wait_for(tickets.looked.wait(), 10)
        for each in entering:
            each.cancel()
    assert tickets.tries == WAITING + 1


async def test_who_leaves_wakes_the_next_and_nobody_else(both: Database) -> None:
    tickets = Counted(both)
    order = ThreadOrder(tickets, "here")
    asks = await line_of(both, order, WAITING + 1)
    async with asyncio.TaskGroup() as group:  # nobody watches: to be woken is enough
        entering = [group.create_task(order.enter(each)) for each in asks[1:]]
        await asyncio.wait_for(tickets.all_tried.wait(), 10)
        await order.leave(asks[0])
        await asyncio.wait_for(entering[0], 10)
        assert not any(each.done() for each in entering[1:])
        for each in entering:
            each.cancel()
    assert tickets.tries == WAITING + 2


async def test_who_leaves_on_another_replica_is_noticed(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_AGAIN_S", 0.001)
    seen = Counted(both)
    there, here = ThreadOrder(Tickets(both), "there"), ThreadOrder(seen, "here")
    first, second = ASK, replace(ASK, ts=MessageTs("1700000000.000200"))
    for each, owner in ((first, "there"), (second, "here")):
        await accept(both, each)
        await run_by(both, owner, each)
    await there.enter(first)
    async with watching(here):
        entering = asyncio.create_task(here.enter(second))
        await asyncio.wait_for(seen.looked.wait(), 10)
        assert not entering.done()
        await there.leave(first)
        await asyncio.wait_for(entering, 10)


async def test_nobody_is_looked_for_while_nobody_waits(
    both: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_AGAIN_S", 0.0)
    tickets = Counted(both)
    order = ThreadOrder(tickets, "here")
    async with watching(order):
        asks = await line_of(both, order, 1)
        await order.leave(asks[0])
    assert tickets.looks == 0


async def test_a_turn_enters_once_the_database_has_time_for_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()
    monkeypatch.setattr(waiting, "RETRY_S", 0.0)
    monkeypatch.setattr(waiting.log, "warning", lambda *_, **__: refused.set())
    order = ThreadOrder(Tickets(database), "here")
    await accept(database, ASK)
    await run_by(database, "here")
    async with writing(database):
        monkeypatch.setattr("bot.store.database.QUEUE_TIMEOUT_S", 0.01)
        entering = asyncio.create_task(order.enter(ASK))
        await asyncio.wait_for(refused.wait(), 10)
        monkeypatch.setattr("bot.store.database.QUEUE_TIMEOUT_S", 60.0)
    await asyncio.wait_for(entering, 10)
    assert order.take_first_look(ASK)


async def test_what_nobody_will_begin_frees_its_thread_when_it_is_looked_at_again(
    database: Database,
) -> None:
    order = ThreadOrder(Tickets(database), "here")
    await accept(database, replace(ASK, ts=MessageTs("1700000000.000099")))
    await nothing_asked(database)
    await accept(database, ASK)
    await run_by(database, "here")
    async with watching(order):
        entering = asyncio.create_task(order.enter(ASK))
        await order.drop_unstarted()
        assert not entering.done()
        await order.drop_unstarted()
        await asyncio.wait_for(entering, 10)


async def test_an_attempt_after_the_first_may_have_been_seen(database: Database) -> None:
    order = ThreadOrder(Tickets(database), "here")
    await accept(database, ASK)
    await run_by(database, "here")
    await order.enter(ASK)
    again = ThreadOrder(Tickets(database), "here")
    await again.enter(ASK)
    await again.leave(ASK)
    gone = ThreadOrder(Tickets(database), "here")
    await gone.enter(ASK)
    looks = [each.take_first_look(ASK) for each in (order, again, gone)]
    assert looks == [True, False, False]


async def test_a_turn_with_its_threads_slot_enters_by_itself_where_nothing_else_keeps_it(
    database: Database,
) -> None:
    order = ThreadOrder(Tickets(database), "here")
    order.expect(ASK, await Accepted(database).accept(ASK.turn_id, ASK.place.key, ASK.ts, "{}"))
    await run_by(database, "here")

    assert await order.enter(ASK, at_once=True) is Entered.WITH_FIRST_STEP
    assert order.take_first_look(ASK)

    assert await order.enter(ASK) is Entered.FRESH  # it waits for more: its place is on record
    assert await ThreadOrder(Tickets(database), "here").enter(ASK, at_once=True) is Entered.AGAIN


async def test_a_turn_that_is_somebody_elses_does_not_wait(database: Database) -> None:
    await run_by(database, "there")
    with pytest.raises(Superseded):
        await ThreadOrder(Tickets(database), "here").enter(ASK)
