"""A lock of PostgreSQL that is held across awaits: alone, not for too long, and given back."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa

from bot.ports.failures import StorageUnavailable
from bot.store.database import Database
from bot.store.dialect import Connection, ConnectionLost
from bot.store.locked import locked
from tests.fixtures_database import kill_others, postgres_url

__all__ = ["postgres_url"]


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(postgres_url, patience_s=())
    yield opened
    await opened.close()


async def lock(connection: Connection) -> None:
    await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(7)))


async def test_one_at_a_time_has_it(database: Database) -> None:
    seen: list[str] = []

    async def take(name: str) -> None:
        async with locked(database, lock):
            seen.append(f"{name} in")
            await asyncio.sleep(0.02)
            seen.append(f"{name} out")

    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(take(name))

    assert seen in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])


async def test_the_bodys_error_is_raised_and_the_lock_given_back(database: Database) -> None:
    with pytest.raises(KeyError):
        async with locked(database, lock):
            raise KeyError
    async with asyncio.timeout(5), locked(database, lock):
        pass


async def test_who_gives_up_waiting_leaves_nothing_behind(database: Database) -> None:
    async with locked(database, lock):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), locked(database, lock):
                pytest.fail("two have it")
    async with asyncio.timeout(5), locked(database, lock):
        pass


async def test_a_lock_that_cannot_be_had_is_an_outage() -> None:
    nowhere = await Database.open("postgresql://u:p@/none?host=/nonexistent", patience_s=())
    with pytest.raises(ConnectionLost):
        async with locked(nowhere, lock):
            pytest.fail("nothing was locked")
    await nowhere.close()


async def test_a_body_that_takes_too_long_is_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.locked.TRANSACTION_TIMEOUT_S", 0.1)
    with pytest.raises(StorageUnavailable):
        async with locked(database, lock):
            await asyncio.Event().wait()


async def test_a_lock_that_was_lost_meanwhile_is_told(
    database: Database, postgres_url: str
) -> None:
    with pytest.raises(ConnectionLost):
        async with locked(database, lock):
            await asyncio.to_thread(kill_others, postgres_url)
