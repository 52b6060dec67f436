"""A turn that was promised waits for a database that is busy; it is not lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.engine import thread_order
from bot.engine.thread_order import ThreadOrder
from bot.store.engine import Database
from bot.store.tickets import Superseded, Tickets, workflow_status
from tests.fixtures_database import sqlite_url

__all__ = ["sqlite_url"]

TS = MessageTs("1700000000.000100")
PERSON = Person(TeamId("T1"), UserId("U1"))
ASK = Ask(Place(TeamId("T1"), ChannelId("C1"), TS), TS, PERSON, "why?")


@pytest.fixture
async def database(sqlite_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(sqlite_url)
    yield opened
    await opened.close()


async def at_once() -> None:
    """No starts to wait for."""


async def run_by(database: Database, owner: str) -> None:
    row = {"workflow_uuid": ASK.turn_id, "executor_id": owner, "status": "PENDING"}
    async with database.write() as connection:
        await connection.execute(workflow_status(database.dialect).insert().values(row))


async def test_a_turn_enters_once_the_database_has_time_for_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()
    monkeypatch.setattr(thread_order, "RETRY_S", 0.0)
    monkeypatch.setattr(thread_order.log, "warning", lambda *_, **__: refused.set())
    order = ThreadOrder(Tickets(database), "here", at_once)
    await order.announce(ASK)
    await run_by(database, "here")
    async with database.write():
        monkeypatch.setattr("bot.store.engine.QUEUE_TIMEOUT_S", 0.01)
        entering = asyncio.create_task(order.enter(ASK))
        await asyncio.wait_for(refused.wait(), 10)
        monkeypatch.setattr("bot.store.engine.QUEUE_TIMEOUT_S", 60.0)
    await asyncio.wait_for(entering, 10)
    assert order.is_first_look(ASK)


async def test_a_turn_does_not_enter_while_starts_go_first(database: Database) -> None:
    calm = asyncio.Event()

    async def wait_for_starts() -> None:
        await calm.wait()

    tickets = Tickets(database)
    order = ThreadOrder(tickets, "here", wait_for_starts)
    await order.announce(ASK)
    await run_by(database, "here")
    entering = asyncio.create_task(order.enter(ASK))
    await asyncio.sleep(0)
    assert await tickets.is_fresh(ASK.turn_id)
    calm.set()
    await asyncio.wait_for(entering, 10)
    assert not await tickets.is_fresh(ASK.turn_id)


async def test_what_never_began_frees_its_thread_when_it_is_looked_at_again(
    database: Database,
) -> None:
    order = ThreadOrder(Tickets(database), "here", at_once)
    await order.announce(replace(ASK, ts=MessageTs("1700000000.000099")))
    await order.announce(ASK)
    await run_by(database, "here")
    entering = asyncio.create_task(order.enter(ASK))
    await order.drop_unstarted()
    assert not entering.done()
    await order.drop_unstarted()
    await asyncio.wait_for(entering, 10)


async def test_an_attempt_after_the_first_may_have_been_seen(database: Database) -> None:
    order = ThreadOrder(Tickets(database), "here", at_once)
    await order.announce(ASK)
    await run_by(database, "here")
    await order.enter(ASK)
    again = ThreadOrder(Tickets(database), "here", at_once)
    await again.enter(ASK)
    await again.leave(ASK)
    gone = ThreadOrder(Tickets(database), "here", at_once)
    await gone.enter(ASK)
    looks = [each.is_first_look(ASK) for each in (order, again, gone)]
    assert looks == [True, False, False]


async def test_a_turn_that_is_somebody_elses_does_not_wait(database: Database) -> None:
    await run_by(database, "there")
    with pytest.raises(Superseded):
        await ThreadOrder(Tickets(database), "here", at_once).enter(ASK)
