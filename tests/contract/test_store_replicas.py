"""Leases: who is alive is what the database's clock says."""

import asyncio

import sqlalchemy as sa

from bot.store.columns import Instant
from bot.store.dialect import seconds_ago
from bot.store.engine import Database
from bot.store.replicas import Replicas
from bot.store.tables import replicas
from tests.fixtures_database import database, database_url

__all__ = ["database", "database_url"]

LEASE_S = 6.0


async def silent_for(database: Database, replica: str, seconds: float) -> None:
    async with database.write() as connection:
        await connection.execute(
            replicas.update()
            .where(replicas.c.id == replica)
            .values(beat=sa.type_coerce(seconds_ago(seconds), Instant()))
        )


async def test_the_first_beat_has_none_before_it(database: Database) -> None:
    assert await Replicas(database).beat("a") is None


async def test_a_beat_says_how_long_ago_the_last_one_was(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    await silent_for(database, "a", 100)
    overslept_s = await leases.beat("a")
    assert overslept_s is not None
    assert 100 <= overslept_s < 130
    again_s = await leases.beat("a")
    assert again_s is not None
    assert 0 <= again_s < 30


async def test_who_beats_is_not_stale(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert list(await leases.stale(LEASE_S)) == []


async def test_the_silent_are_stale_longest_first(database: Database) -> None:
    leases = Replicas(database)
    for name, silence_s in (("a", 7), ("b", 70), ("c", 0)):
        await leases.beat(name)
        await silent_for(database, name, silence_s)
    assert list(await leases.stale(LEASE_S)) == ["b", "a"]


async def test_who_beats_again_is_alive_again(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    await silent_for(database, "a", 70)
    await leases.beat("a")
    assert list(await leases.stale(LEASE_S)) == []


async def test_a_replica_is_forgotten_once(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert await leases.forget("a")
    assert not await leases.forget("a")
    assert await leases.beat("a") is None


async def test_one_that_woke_up_is_not_forgotten_as_dead(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert not await leases.forget("a", LEASE_S)
    await silent_for(database, "a", 7)
    assert await leases.forget("a", LEASE_S)


async def test_beats_at_once_do_not_collide(database: Database) -> None:
    leases = Replicas(database)
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(leases.beat("ab"[n % 2]))
    async with database.read() as connection:
        found = await connection.scalars(sa.select(replicas.c.id).order_by(replicas.c.id))
        assert list(found) == ["a", "b"]


async def test_who_is_alive_says_which_steps_it_knows(database: Database) -> None:
    for name, version in (("a", "1"), ("b", "2"), ("c", "2"), ("d", None), ("e", "3")):
        await Replicas(database, version).beat(name)
    replicas = Replicas(database)
    await replicas.give_up("d")
    await replicas.give_up("e")
    assert set(await replicas.versions(60)) == {"1", "2"}
    await replicas.beat("d")
    assert set(await replicas.versions(60)) == {"1", "2", None}
