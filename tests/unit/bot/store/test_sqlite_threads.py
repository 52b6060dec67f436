"""SQLite's one writer: what waits for it, what shares a transaction, and who is told what."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import NoReturn, cast

import pytest
import sqlalchemy as sa

from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.failures import StorageUnavailable
from bot.store.audit import append_audit
from bot.store.database import Database
from bot.store.dialect import Connection
from bot.store.sqlite_threads import GatedConnection, SqliteThreads, _gates, urgent
from bot.store.tables import audit
from tests.arriving import Arriving
from tests.fixtures_database import sqlite_url

__all__ = ["sqlite_url"]


@pytest.fixture
async def database(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    monkeypatch.setattr("bot.store.sqlite_threads.SHARED_S", 60.0)
    opened = await Database.open(sqlite_url)
    yield opened
    await opened.close()


@asynccontextmanager
async def file_held(database: Database) -> AsyncIterator[None]:
    """Somebody else writes: whoever comes waits at the gate."""
    connection = await asyncio.to_thread(_begun, _file_of(database))
    try:
        yield
    finally:
        await asyncio.to_thread(connection.close)


def _file_of(database: Database) -> str:
    return str(cast("SqliteThreads", database._threads)._writer.url.database)


def _begun(file: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        file, factory=GatedConnection, isolation_level=None, check_same_thread=False
    )
    connection.cursor().execute("BEGIN IMMEDIATE")
    return connection


async def append(connection: Connection, actor: str) -> int:
    return await append_audit(connection, AuditEvent(AuditKind.STARTED, actor, {}))


async def added(database: Database, actor: str) -> None:
    await database.transact(partial(append, actor=actor))


async def fail(connection: Connection) -> NoReturn:
    await append(connection, "failed")
    raise KeyError("its own")


async def actors(database: Database) -> list[str]:
    async def work(connection: Connection) -> list[str]:
        return list(await connection.scalars(sa.select(audit.c.actor).order_by(audit.c.seq)))

    return await database.fetch(work)


def before_commits(monkeypatch: pytest.MonkeyPatch, told: Callable[[], object]) -> None:
    """Of the thread that writes."""
    commit = GatedConnection.commit

    def committed(connection: GatedConnection) -> None:
        if threading.current_thread().name == "sqlite-writer":
            told()
        commit(connection)

    monkeypatch.setattr(GatedConnection, "commit", committed)


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    seen: list[None] = []
    before_commits(monkeypatch, lambda: seen.append(None))
    return seen


async def test_waiting_for_the_file_is_no_part_of_the_transactions_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with file_held(database):
        monkeypatch.setattr("bot.store.database.TRANSACTION_TIMEOUT_S", 0.01)
        waiting = asyncio.create_task(database.transact(partial(append, actor="patient")))
        ended, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not ended
        waiting.cancel()


async def test_who_waits_for_too_long_is_told_so_and_nothing_is_written(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with file_held(database):
        monkeypatch.setattr("bot.store.database.QUEUE_TIMEOUT_S", 0.01)
        with pytest.raises(StorageUnavailable, match=r"too busy for 0\.01 s; nothing was begun"):
            await database.transact(partial(append, actor="late"))
    monkeypatch.undo()
    await database.transact(partial(append, actor="next"))
    assert await actors(database) == ["next"]


async def test_a_transaction_that_stands_still_is_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    async def stands_still(connection: Connection) -> None:
        await append(connection, "late")
        go_on.wait(10)

    monkeypatch.setattr("bot.store.database.TRANSACTION_TIMEOUT_S", 0.01)
    with pytest.raises(StorageUnavailable, match="in time"):
        await database.transact(stands_still)
    monkeypatch.undo()
    go_on.set()
    assert await actors(database) == []


async def test_writers_that_wait_share_a_transaction_in_their_order(
    database: Database, commits: list[None]
) -> None:
    async with asyncio.TaskGroup() as group, file_held(database):
        tasks = [
            group.create_task(database.transact(partial(append, actor=f"a{n}"))) for n in range(20)
        ]
        await asyncio.sleep(0)
    assert [task.result() for task in tasks] == list(range(1, 21))
    assert await actors(database) == [f"a{n}" for n in range(20)]
    assert len(commits) == 1


async def test_the_urgent_go_first_and_in_a_transaction_of_their_own(
    database: Database, commits: list[None]
) -> None:
    async with asyncio.TaskGroup() as group, file_held(database):
        for each in ("a", "b"):
            group.create_task(added(database, each))
        with urgent():
            for each in ("urgent", "urgent too"):
                group.create_task(added(database, each))
        await asyncio.sleep(0)

    assert await actors(database) == ["urgent", "urgent too", "a", "b"]
    assert len(commits) == 2


async def test_urgent_work_takes_its_writer_past_who_waits_at_the_gate(
    database: Database,
) -> None:
    waiting = Arriving()
    _gates[_file_of(database)]._waiting = waiting
    seen_by_other: list[int] = []

    def other() -> None:
        with closing(sqlite3.connect(_file_of(database), factory=GatedConnection)) as connection:
            cursor = connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
            seen_by_other.extend(*cursor.execute("SELECT count(*) FROM audit"))

    thread = threading.Thread(target=other)
    async with asyncio.TaskGroup() as group, file_held(database):
        for begin in (thread.start, lambda: group.create_task(added(database, "a"))):
            begin()
            await asyncio.to_thread(waiting.one.acquire, timeout=10)
        with urgent():
            group.create_task(added(database, "urgent"))
        await asyncio.sleep(0)
    thread.join(10)
    assert seen_by_other == [1]
    assert await actors(database) == ["urgent", "a"]


async def test_one_that_fails_takes_nobody_along(database: Database) -> None:
    async with file_held(database):
        before = asyncio.create_task(database.transact(partial(append, actor="before")))
        failing = asyncio.create_task(database.transact(fail))
        after = asyncio.create_task(database.transact(partial(append, actor="after")))
        await asyncio.sleep(0)
    assert (await before, await after) == (1, 2)
    with pytest.raises(KeyError, match="its own"):
        await failing
    assert await actors(database) == ["before", "after"]


async def test_all_who_share_a_commit_that_fails_are_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> NoReturn:
        raise sqlite3.OperationalError("disk is full")

    before_commits(monkeypatch, full)
    async with file_held(database):
        tasks = [
            asyncio.create_task(database.transact(partial(append, actor=f"a{n}"))) for n in range(3)
        ]
        await asyncio.sleep(0)
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in told] == ["the database failed: disk is full"] * 3
    assert await actors(database) == []


async def test_who_gives_up_while_others_share_its_transaction_leaves_nothing(
    database: Database,
) -> None:
    loop = asyncio.get_running_loop()
    gone = threading.Event()

    async def see_it_go(connection: Connection) -> None:
        loop.call_soon_threadsafe(first.cancel)
        gone.wait(10)
        await append(connection, "second")

    async with file_held(database):
        first = asyncio.create_task(database.transact(partial(append, actor="first")))
        first.add_done_callback(lambda _task: gone.set())
        second = asyncio.create_task(database.transact(see_it_go))
        await asyncio.sleep(0)
    await second
    assert first.cancelled()
    assert await actors(database) == ["second"]
