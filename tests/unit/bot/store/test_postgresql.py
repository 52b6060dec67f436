"""PostgreSQL: callers that give up, lost connections, a frozen server, keepalives."""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.failures import StorageUnavailable
from bot.store.audit import append_audits
from bot.store.database import Database
from bot.store.dialect import ConnectionLost
from bot.store.tables import audit, replicas
from bot.store.turn_steps import _HELD
from tests.fixtures_database import kill_other_connections, other, postgres_server, postgres_url
from tests.held_connection import reading, writing

__all__ = ["other", "postgres_url"]

AT = datetime(2026, 11, 23, tzinfo=UTC)
_HERE = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
WAITING = f"{_HERE} AND wait_event_type = 'Lock'"
SLEEPING = f"{_HERE} AND wait_event = 'PgSleep'"


@pytest.fixture
def database_url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
async def database(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    """Two connections: one that is lost to the pool would be missed soon."""
    with monkeypatch.context() as small:
        small.setattr("bot.store.database.POSTGRESQL_CONNECTIONS", 2)
        opened = await Database.open(postgres_url, patience_s=())
    async with writing(opened) as connection:
        rows = [{"id": name, "beat": AT, "started_at": AT} for name in "ab"]
        await connection.execute(replicas.insert(), rows)
    yield opened
    await opened.close()


async def touch(connection: AsyncConnection, names: Sequence[str]) -> None:
    for name in names:
        await connection.execute(replicas.update().where(replicas.c.id == name).values(version="1"))


async def sleep(connection: AsyncConnection, seconds: float) -> None:
    await connection.execute(sa.select(sa.func.pg_sleep(seconds)))


async def until(database: Database, question: str, wanted: int) -> None:
    """The server answers that. Raises TimeoutError."""
    async with asyncio.timeout(5), reading(database) as connection:
        while await connection.scalar(sa.text(question)) != wanted:  # noqa: ASYNC110 - a server's
            await asyncio.sleep(0.01)


async def test_a_caller_cancelled_while_it_waits_for_a_row_releases_its_rows(
    database: Database, other: Database
) -> None:
    async with writing(other) as holding:
        await touch(holding, "b")
        waiting = asyncio.create_task(database.transact(partial(touch, names=("a", "b"))))
        await until(other, WAITING, 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(5):
            await other.transact(partial(touch, names=("a",)))


SLOW_COMMIT = (
    "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$",
    "CREATE CONSTRAINT TRIGGER slowly AFTER UPDATE ON replicas DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION slowly()",
)


async def test_a_commit_in_progress_completes_when_its_caller_is_cancelled(
    database: Database, other: Database
) -> None:
    async with writing(database) as connection:
        for statement in SLOW_COMMIT:
            await connection.execute(sa.text(statement))
    committing = asyncio.create_task(database.transact(partial(touch, names=["a"])))
    await until(other, SLEEPING, 1)
    committing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await committing
    await until(other, SLEEPING, 0)
    async with reading(database) as connection:
        found = await connection.scalars(sa.select(replicas.c.version).order_by(replicas.c.id))
        assert list(found) == ["1", None]


async def test_a_slow_transaction_fails_and_delays_no_later_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.transact(partial(touch, names=("a",)))
    monkeypatch.setattr("bot.store.database.TRANSACTION_TIMEOUT_S", 0.05)
    with pytest.raises(StorageUnavailable, match="in time"):
        await database.transact(partial(sleep, seconds=60.0))
    monkeypatch.undo()
    async with asyncio.timeout(5):
        await database.transact(partial(touch, names=("b",)))
    await until(database, SLEEPING, 0)


async def test_a_caller_that_leaves_a_frozen_server_blocks_no_other(database: Database) -> None:
    waiting = asyncio.create_task(database.transact(partial(sleep, seconds=60.0)))
    await until(database, SLEEPING, 1)
    server = int((postgres_server().home / "postmaster.pid").read_text().split()[0])
    # From outside: who waits for a frozen server might hold up all of this process.
    thaw = await asyncio.create_subprocess_exec("sh", "-c", f"sleep 2; kill -CONT {server}")
    os.kill(server, signal.SIGSTOP)
    began = time.monotonic()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.1)
    took_s = time.monotonic() - began
    await thaw.wait()
    assert took_s < 1.5
    await until(database, SLEEPING, 0)  # it was asked to stop all the same


async def test_closing_waits_only_briefly_for_statements(
    database: Database, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.database.CLOSE_S", 0.3)
    monkeypatch.setattr("bot.store.database.POSTGRESQL_CONNECTIONS", 1)
    opened = await Database.open(postgres_url, patience_s=())
    jobs = [
        asyncio.create_task(opened.transact(partial(sleep, seconds=60.0)))
        for _ in range(3)  # the first of them runs
    ]
    await until(database, SLEEPING, 1)
    async with asyncio.timeout(5):
        await opened.close()
        for ended in await asyncio.gather(*jobs, return_exceptions=True):
            assert isinstance(ended, StorageUnavailable)
    await until(database, SLEEPING, 0)


async def test_one_lost_connection_discards_all_of_its_age(
    postgres_url: str,
) -> None:
    opened = await Database.open(postgres_url, patience_s=())
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(opened.transact(partial(sleep, seconds=0.1)))
    await asyncio.to_thread(kill_other_connections, postgres_url)
    with pytest.raises(ConnectionLost):
        await opened.transact(partial(sleep, seconds=0.0), again=False)
    for _ in range(20):
        await opened.transact(partial(sleep, seconds=0.0), again=False)
    await opened.close()


async def test_a_connection_lost_at_its_commit_is_reported_as_that(
    postgres_url: str,
) -> None:
    opened = await Database.open(postgres_url, patience_s=())

    async def work(connection: AsyncConnection) -> None:
        await sleep(connection, 0.0)
        kill_other_connections(postgres_url)

    with pytest.raises(ConnectionLost):
        await opened.transact(work)
    await opened.close()


async def test_an_unreachable_server_is_named_without_the_password() -> None:
    nowhere = await Database.open(
        "postgresql+asyncpg://kortex:secret-pw@127.0.0.1:9/none", patience_s=()
    )
    with pytest.raises(ConnectionLost, match="cannot be reached") as raised:
        await nowhere.transact(partial(sleep, seconds=0.0))
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    await nowhere.close()


def started(n: int) -> AuditEvent:
    return AuditEvent(AuditKind.STARTED, f"{n}", {}, key=f"{n}")


async def test_audit_rows_and_later_statements_are_written_together(
    database: Database,
) -> None:
    async def work(connection: AsyncConnection) -> tuple[Sequence[int], int, Sequence[int]]:
        first = await append_audits(connection, [started(n) for n in range(20)])
        touched = await connection.execute(replicas.update().values(version="2"))
        async with connection.begin_nested():
            again = await append_audits(connection, [started(n) for n in (19, 20)])
        return first, touched.rowcount, again

    first, touched, again = await database.transact(work)
    assert touched == 2
    assert again == [first[-1], first[-1] + 1]
    found = await database.fetch(lambda connection: connection.scalars(sa.select(audit.c.actor)))
    assert sorted(map(int, found)) == list(range(21))


async def test_a_refused_audit_row_rolls_back_the_earlier_writes(
    database: Database,
) -> None:
    async def work(connection: AsyncConnection) -> None:
        await touch(connection, ["a"])
        await append_audits(connection, [AuditEvent(AuditKind.STARTED, "1", {})])

    async with writing(database) as connection:
        await connection.execute(sa.text("ALTER TABLE audit ALTER COLUMN key SET NOT NULL"))
    with pytest.raises(sa.exc.IntegrityError):
        await database.transact(work)
    async with writing(database) as connection:
        assert list(await connection.scalars(sa.select(replicas.c.version))) == [None, None]
    await database.transact(partial(touch, names=("a",)))


async def test_a_lost_connection_is_logged_once_for_all_callers(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened = await Database.open(postgres_url, patience_s=())

    async def work(connection: AsyncConnection) -> None:
        await append_audits(connection, [started(1)])

    await opened.transact(work)
    await asyncio.to_thread(kill_other_connections, postgres_url)
    with pytest.raises(ConnectionLost):
        await opened.transact(work)
    await opened.close()
    told = [each for each in caplog.records if each.name.startswith("sqlalchemy")]
    assert [each.getMessage() for each in told if each.levelno > logging.INFO] == []


async def driver_of(connection: AsyncConnection) -> "psycopg.AsyncConnection[Any]":
    raw = await connection.get_raw_connection()
    return cast("psycopg.AsyncConnection[Any]", raw.driver_connection)


async def cut(connection: AsyncConnection) -> None:
    driver = await driver_of(connection)
    with socket.socket(fileno=os.dup(driver.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "asked",
    [
        lambda connection: append_audits(connection, [started(1)]),
        lambda connection: connection.execute(_HELD, {"turn": "t", "owner": "o"}),
        lambda connection: touch(connection, ["a"]),
        lambda connection: connection.scalar(sa.select(1)),
    ],
    ids=["sent", "prepared", "written", "read"],
)
async def test_a_cut_connection_is_lost_for_any_statement(
    database: Database, asked: Callable[[AsyncConnection], Coroutine[Any, Any, object]]
) -> None:
    async def work(connection: AsyncConnection) -> None:
        await cut(connection)
        await asked(connection)

    with pytest.raises(ConnectionLost):
        await database.transact(work)
    with pytest.raises(ConnectionLost):
        await database.fetch(work)
    await database.transact(partial(touch, names=("a",)))


async def test_a_connection_cut_before_the_commit_is_lost(database: Database) -> None:
    async def work(connection: AsyncConnection) -> None:
        await append_audits(connection, [started(1)])
        await cut(connection)

    with pytest.raises(ConnectionLost):
        await database.transact(work)
    await database.transact(partial(touch, names=("a",)))


@pytest.mark.parametrize(("option", "idle_s"), [("", "60"), ("&keepalives_idle=5", "5")])
async def test_an_idle_connection_is_kept_alive(
    postgres_url: str, option: str, idle_s: str
) -> None:
    opened = await Database.open(postgres_url + option)

    async def parameters(connection: AsyncConnection) -> dict[str, str]:
        return (await driver_of(connection)).info.get_parameters()

    asked = await opened.fetch(parameters)
    await opened.close()

    assert asked["keepalives_idle"] == idle_s
    assert (asked["keepalives_interval"], asked["keepalives_count"]) == ("15", "3")
