"""Transactions, the clock, and the errors without a database."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from bot.app import rules
from bot.ports.failures import StorageUnavailable
from bot.store import schema
from bot.store.database import Database
from bot.store.dialect import ConnectionLost
from bot.store.tables import replicas
from tests.fixtures_database import (
    database,
    database_url,
    empty_url,
    kill_other_connections,
    other,
    postgres_url,
    sqlite_url,
)
from tests.held_connection import reading, writing

__all__ = ["database", "database_url", "empty_url", "other", "postgres_url", "sqlite_url"]

NOWHERE = "postgresql+asyncpg://u:p@/none?host=/nonexistent"
NOW = datetime.now(UTC)


async def insert(connection: AsyncConnection, name: str) -> None:
    await connection.execute(replicas.insert().values(id=name, beat=NOW, started_at=NOW))


async def names(database: Database) -> list[str]:
    async with reading(database) as connection:
        return list(await connection.scalars(sa.select(replicas.c.id).order_by(replicas.c.id)))


async def test_a_committed_write_is_visible_to_everyone(
    database: Database, other: Database
) -> None:
    async with writing(database) as connection:
        await insert(connection, "a")
        assert await names(other) == []
    assert await names(other) == ["a"]


async def test_an_exception_rolls_the_transaction_back(database: Database) -> None:
    async def broken(connection: AsyncConnection) -> None:
        await insert(connection, "a")
        raise KeyError

    with pytest.raises(KeyError):
        await database.transact(broken)
    assert await names(database) == []


async def test_a_cancelled_transaction_is_rolled_back_and_blocks_no_one(database: Database) -> None:
    inside = asyncio.Event()

    async def hang() -> None:
        async with writing(database) as connection:
            await insert(connection, "a")
            inside.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(hang())
        await inside.wait()
        task.cancel()
    async with asyncio.timeout(5), writing(database) as connection:
        await insert(connection, "b")
    assert await names(database) == ["b"]


# Both keep the driver busy for longer than a caller may wait.
SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000000)"
    " SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(60)",
}


async def insert_slowly(connection: AsyncConnection, begun: asyncio.Event) -> None:
    await insert(connection, "slow")
    begun.set()
    await connection.execute(sa.text(SLOW[connection.dialect.name]))


async def test_a_transaction_cancelled_during_a_statement_is_rolled_back(
    database: Database,
) -> None:
    begun = asyncio.Event()
    task = asyncio.create_task(database.transact(partial(insert_slowly, begun=begun)))
    await begun.wait()
    task.cancel()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(10):
        for name in "abc":
            await database.transact(partial(insert, name=name))
    assert await names(database) == ["a", "b", "c"]


async def test_a_cancelled_read_leaves_the_pool_usable(database: Database) -> None:
    async def slowly(connection: AsyncConnection) -> None:
        begun.set()
        await connection.execute(sa.text(SLOW[connection.dialect.name]))

    for _ in range(3):
        begun = asyncio.Event()
        task = asyncio.create_task(database.fetch(slowly))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(names(database))


async def test_a_started_commit_completes_when_its_caller_is_cancelled(
    database: Database,
) -> None:
    task = asyncio.create_task(database.transact(partial(insert, name="a")))
    sa.event.listen(database._engine.sync_engine, "commit", lambda _: task.cancel())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(database) == ["a"]


async def test_a_started_commit_of_a_held_connection_completes(database: Database) -> None:
    async def hold() -> None:
        async with writing(database) as connection:
            await insert(connection, "a")

    task = asyncio.create_task(hold())
    sa.event.listen(database._engine.sync_engine, "commit", lambda _: task.cancel())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(database) == ["a"]


async def test_a_cancellation_swallowed_by_a_library_still_rolls_back(
    database: Database,
) -> None:
    inside = asyncio.Event()

    async def swallow(connection: AsyncConnection) -> None:
        await insert(connection, "a")
        inside.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    task = asyncio.create_task(database.transact(swallow))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(database) == []


async def test_a_slow_statement_delays_no_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as impatient:
        impatient.setattr("bot.store.database.TRANSACTION_TIMEOUT_S", 0.05)
        async with asyncio.timeout(1):
            with pytest.raises(StorageUnavailable, match="in time"):
                await database.transact(partial(insert_slowly, begun=asyncio.Event()))
    async with asyncio.timeout(10):
        await database.transact(partial(insert, name="a"))
    assert await names(database) == ["a"]


async def test_waiting_writers_may_be_cancelled(database: Database) -> None:
    async def write(name: str) -> None:
        async with writing(database) as connection:
            await insert(connection, name)

    async with asyncio.TaskGroup() as group:
        waiting = []
        async with writing(database) as connection:
            await insert(connection, "first")
            waiting = [group.create_task(write(f"w{n}")) for n in range(10)]
            await asyncio.sleep(0)
            for task in waiting[:9]:
                task.cancel()
    assert await names(database) == ["first", "w9"]


async def test_two_hundred_transactions_that_read_and_then_write_all_succeed(
    database: Database, other: Database
) -> None:
    async def work(connection: AsyncConnection) -> None:
        count = await connection.scalar(sa.select(sa.func.count()).select_from(replicas))
        assert count is not None
        await connection.execute(replicas.update().values(beat=NOW))

    async with writing(database) as connection:
        await insert(connection, "a")
    async with asyncio.TaskGroup() as group:
        for n in range(200):
            group.create_task((database, other)[n % 2].transact(work))
    assert await names(database) == ["a"]


async def test_the_databases_clock_is_utc_and_finer_than_a_second(database: Database) -> None:
    at = await database.now()
    assert at.utcoffset() == timedelta(0)
    assert abs(at - datetime.now(UTC)) < timedelta(seconds=30)
    instants = {await database.now() for _ in range(5)} | {at}
    assert any(instant.microsecond for instant in instants)


async def test_instants_are_read_back_to_the_microsecond(database: Database) -> None:
    at = datetime(2026, 4, 7, 23, 59, 59, 999999, tzinfo=UTC)
    async with writing(database) as connection:
        await connection.execute(replicas.insert().values(id="a", beat=at, started_at=at))
        found = await connection.execute(sa.select(replicas.c.beat))
        assert found.scalar_one() == at


async def test_a_naive_instant_is_refused(database: Database) -> None:
    at = datetime(2026, 4, 7)  # noqa: DTZ001 - the point of the test
    with pytest.raises(sa.exc.StatementError, match="time zone"):
        async with writing(database) as connection:
            await connection.execute(replicas.insert().values(id="a", beat=at, started_at=NOW))


async def test_text_is_ordered_by_code_point_on_both(database: Database) -> None:
    async with writing(database) as connection:
        for name in ("b", "B", "a.1", "a1", "é", "a-2"):
            await insert(connection, name)
    assert await names(database) == ["B", "a-2", "a.1", "a1", "b", "é"]


async def test_a_violated_constraint_is_a_bug_and_not_an_outage(database: Database) -> None:
    async def twice(connection: AsyncConnection) -> None:
        await insert(connection, "a")
        await insert(connection, "a")

    with pytest.raises(sa.exc.IntegrityError):
        await database.transact(twice)


async def test_a_commit_that_fails_leaves_no_transaction_open(sqlite_url: str) -> None:
    opened = await Database.open(sqlite_url)

    async def without_session(connection: AsyncConnection) -> None:
        await connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        await connection.exec_driver_sql("CREATE TABLE a (id INTEGER PRIMARY KEY)")
        await connection.exec_driver_sql("CREATE TABLE b (a INTEGER REFERENCES a)")
        await connection.exec_driver_sql("INSERT INTO b VALUES (1)")

    with pytest.raises(sa.exc.IntegrityError):  # from the commit
        await opened.transact(without_session)
    await opened.transact(partial(insert, name="after"))
    assert await names(opened) == ["after"]
    await opened.close()


async def test_errors_do_not_contain_the_values(database: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError) as raised:
        async with writing(database) as connection:
            await connection.execute(
                replicas.insert(), [{"id": "canary", "beat": None, "started_at": NOW}]
            )
    assert "canary" not in str(raised.value).split("DETAIL")[0]


async def test_ping_succeeds(database: Database) -> None:
    await database.ping()


async def test_the_schema_head_is_read(database: Database) -> None:
    assert await database.schema_head() == schema.head()


async def test_an_empty_database_has_no_head(empty_url: str) -> None:
    empty = await Database.open(empty_url)
    assert await empty.schema_head() is None
    await empty.close()


async def test_a_closed_database_can_be_opened_again(database_url: str) -> None:
    for name in ("a", "b"):
        opened = await Database.open(database_url)
        async with writing(opened) as connection:
            await insert(connection, name)
        await opened.close()
    again = await Database.open(database_url)
    assert await names(again) == ["a", "b"]
    await again.close()


@pytest.mark.parametrize(
    "url", ["sqlite+aiosqlite://", "sqlite:///:memory:", "sqlite+other:///x", "mysql://h/d"]
)
async def test_another_kind_of_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="database url"):
        await Database.open(url)


async def test_a_missing_folder_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="unable to open"):
        await Database.open(f"sqlite+aiosqlite:///{tmp_path / 'no' / 'x.db'}")


async def test_a_file_that_is_not_a_database_is_an_outage(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_text("no database " * 100)
    with pytest.raises(StorageUnavailable, match="not a database"):
        await Database.open(f"sqlite+aiosqlite:///{path}")


async def test_sqlite_uses_a_write_ahead_log_and_syncs_every_commit(sqlite_url: str) -> None:
    opened = await Database.open(sqlite_url)
    async with writing(opened) as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        found = [await connection.scalar(sa.text(f"PRAGMA {each}")) for each in pragmas]
    assert found == ["wal", 2, 1, 30_000]
    await opened.close()


async def test_a_fresh_sqlite_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'new.db'}"
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(Database.open(url)) for _ in range(8)]
    for task in tasks:
        await task.result().close()


async def test_a_full_disk_is_an_outage_and_nothing_is_half_done(sqlite_url: str) -> None:
    opened = await Database.open(sqlite_url)
    async with writing(opened) as connection:
        pages = await connection.scalar(sa.text("PRAGMA page_count"))

    async def fill(connection: AsyncConnection) -> None:
        await connection.execute(sa.text(f"PRAGMA max_page_count = {pages}"))
        for n in range(100):
            await insert(connection, f"{n}" * 4000)

    with pytest.raises(StorageUnavailable, match="full"):
        await opened.transact(fill)
    assert await names(opened) == []
    await opened.close()


async def test_a_locked_file_is_an_outage(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.engines.SQLITE_BUSY_S", 0.05)
    holder, waiter = await Database.open(sqlite_url), await Database.open(sqlite_url)
    async with writing(holder) as connection:
        await insert(connection, "a")
        with pytest.raises(StorageUnavailable, match="locked"):
            async with writing(waiter):
                pass
    await holder.close()
    await waiter.close()


async def test_a_transaction_has_a_time_limit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> None:
        async with writing(database) as connection:
            await insert(connection, "a")
            await asyncio.Event().wait()

    monkeypatch.setattr("bot.store.database.TRANSACTION_TIMEOUT_S", 0.05)
    with pytest.raises(StorageUnavailable, match="in time"):
        await hang()
    monkeypatch.undo()
    assert await names(database) == []


async def beat_and_insert(connection: AsyncConnection, name: str) -> None:
    await insert(connection, name)
    await connection.execute(replicas.update().where(replicas.c.id == "a").values(beat=NOW))


async def test_an_abandoned_transaction_leaves_nothing(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.transact(partial(insert, name="a"))
    async with writing(other) as connection:
        await connection.execute(
            replicas.update().values(beat=NOW)
        )  # the row, or the file, is held
        monkeypatch.setattr("bot.store.database.TRANSACTION_TIMEOUT_S", 0.05)
        monkeypatch.setattr("bot.store.database.QUEUE_TIMEOUT_S", 0.05)
        with pytest.raises(StorageUnavailable, match=r"in time|too busy"):
            await database.transact(partial(beat_and_insert, name="late"))
        monkeypatch.undo()
    await database.transact(partial(beat_and_insert, name="b"))
    assert await names(database) == ["a", "b"]


async def test_a_cancelled_queued_transaction_is_never_run(
    sqlite_url: str,
) -> None:
    opened, other = await Database.open(sqlite_url), await Database.open(sqlite_url)
    ran: list[str] = []

    async def work(connection: AsyncConnection, name: str) -> None:
        ran.append(name)
        await insert(connection, name)

    async with asyncio.TaskGroup() as group, writing(other):
        first, second, third = (
            group.create_task(opened.transact(partial(work, name=name))) for name in "abc"
        )
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait({second})  # before the file is free
    assert (first.done(), third.done(), ran) == (True, True, ["a", "c"])
    assert await names(opened) == ["a", "c"]
    await opened.close()
    await other.close()


async def test_an_unreachable_server_is_a_lost_connection(tmp_path: Path) -> None:
    nowhere = await Database.open(NOWHERE)
    with pytest.raises(ConnectionLost, match="cannot be reached"):
        await nowhere.ping()
    await nowhere.close()


async def test_a_lost_connection_is_retried_where_that_is_safe(postgres_url: str) -> None:
    opened = await Database.open(postgres_url)
    calls = []

    async def work(connection: AsyncConnection) -> None:
        calls.append(1)
        await insert(connection, "a")
        kill_other_connections(postgres_url) if len(calls) == 1 else None
        await connection.execute(sa.select(1))

    await opened.transact(work)
    assert len(calls) == 2
    assert await names(opened) == ["a"]
    await opened.close()


async def test_connections_that_died_in_the_pool_are_harmless(postgres_url: str) -> None:
    opened = await Database.open(postgres_url)

    async def count(connection: AsyncConnection) -> int | None:
        found: int | None = await connection.scalar(
            sa.select(sa.func.count()).select_from(replicas)
        )
        return found

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(opened.fetch(count))
    kill_other_connections(postgres_url)
    assert await opened.fetch(count) == 0
    await opened.close()


async def test_a_lost_connection_is_reported_where_no_retry_is_safe(
    postgres_url: str,
) -> None:
    opened = await Database.open(postgres_url, patience_s=())

    async def work(connection: AsyncConnection) -> None:
        await insert(connection, "a")
        kill_other_connections(postgres_url)
        await connection.execute(sa.select(1))

    with pytest.raises(ConnectionLost):
        await opened.transact(work)
    async with writing(opened) as connection:
        await insert(connection, "b")
    assert await names(opened) == ["b"]
    await opened.close()


async def test_an_idle_transaction_is_ended_and_frees_its_locks(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.engines.IDLE_IN_TRANSACTION_S", 0.1)
    frozen = await Database.open(postgres_url, patience_s=())
    successor = await Database.open(postgres_url)

    async def same_row(connection: AsyncConnection) -> None:
        await insert(connection, "a")

    async def stand_still() -> None:
        async with writing(frozen) as connection:
            await insert(connection, "a")
            await successor.transact(same_row)  # waits for the lock until the server frees it
            await connection.execute(sa.select(1))

    with pytest.raises(ConnectionLost):
        await stand_still()
    assert await names(successor) == ["a"]
    await frozen.close()
    await successor.close()


async def test_the_workflow_engines_idle_transaction_is_ended_too(postgres_url: str) -> None:
    url = rules.engine_database(postgres_url)
    opened = create_async_engine(url)
    async with opened.connect() as connection:
        shown = await connection.scalar(sa.text("SHOW idle_in_transaction_session_timeout"))
    await opened.dispose()
    assert shown == "6s"


async def test_retries_end() -> None:
    nowhere = await Database.open(NOWHERE, patience_s=(0.0, 0.0, 0.0))
    calls = []

    async def work(connection: AsyncConnection) -> None:
        calls.append(connection)

    with pytest.raises(ConnectionLost):
        await nowhere.transact(work)
    assert calls == []
    await nowhere.close()
