"""Leases: the database's clock decides which replicas are alive."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import sqlalchemy as sa

from bot.ports.failures import StorageUnavailable
from bot.store.columns import Instant
from bot.store.database import POSTGRESQL_CONNECTIONS, Database
from bot.store.dialect import seconds_ago
from bot.store.replicas import Presence, Replicas
from bot.store.tables import replicas
from bot.store.tickets import workflow_status
from tests.fixtures_database import database, database_url, other, postgres_url
from tests.held_connection import reading, writing

__all__ = ["database", "database_url", "other", "postgres_url"]

_CUT_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)

_LOCK = sa.text("SELECT pg_advisory_xact_lock(7)")

LEASE_S = 6.0


async def silent_for(database: Database, replica: str, seconds: float) -> None:
    async with writing(database) as connection:
        await connection.execute(
            replicas.update()
            .where(replicas.c.id == replica)
            .values(beat=sa.type_coerce(seconds_ago(seconds), Instant()))
        )


async def test_the_first_heartbeat_has_no_predecessor(database: Database) -> None:
    assert await Replicas(database).beat("a") is None


async def test_a_heartbeat_returns_the_age_of_the_last_one(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    await silent_for(database, "a", 100)
    overslept_s = await leases.beat("a")
    assert overslept_s is not None
    assert 100 <= overslept_s < 130
    again_s = await leases.beat("a")
    assert again_s is not None
    assert 0 <= again_s < 30


async def test_a_replica_with_a_heartbeat_is_not_stale(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert [*await leases.silent(LEASE_S)] == []


async def test_silent_replicas_are_stale_longest_first(database: Database) -> None:
    leases = Replicas(database)
    for name, silence_s in (("a", 7), ("b", 70), ("c", 0)):
        await leases.beat(name)
        await silent_for(database, name, silence_s)
    assert [*await leases.silent(LEASE_S)] == ["b", "a"]


async def test_a_replica_with_a_new_heartbeat_is_alive_again(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    await silent_for(database, "a", 70)
    await leases.beat("a")
    assert [*await leases.silent(LEASE_S)] == []


async def test_a_replica_is_forgotten_once(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert await leases.forget("a")
    assert not await leases.forget("a")
    assert await leases.beat("a") is None


async def test_a_replica_that_woke_up_is_neither_claimed_again_nor_removed(
    database: Database,
) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert await leases.claim("a", LEASE_S) is None
    await silent_for(database, "a", 7)
    claimed = await leases.claim("a", LEASE_S)
    assert claimed is not None
    again = await leases.claim_again("a", claimed)
    assert again is not None
    await silent_for(database, "a", -1)  # it beats
    assert await leases.claim_again("a", again) is None
    assert not await leases.bury("a", again)


async def test_a_dead_replica_is_claimed_by_one_and_by_the_next_when_that_one_dies(
    database: Database, other: Database
) -> None:
    leases = [Replicas(each) for each in (database, other)]
    await leases[0].beat("a")
    await silent_for(database, "a", 7)
    claims = await asyncio.gather(*(each.claim("a", LEASE_S) for each in leases))
    assert sum(claim is not None for claim in claims) == 1
    await silent_for(database, "a", 7)
    assert await leases[1].claim("a", LEASE_S) is not None


async def test_a_dead_replica_without_work_is_removed_by_its_claim(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    await silent_for(database, "a", 7)
    claimed = await leases.claim("a", LEASE_S)
    assert claimed is not None
    assert await leases.bury("a", claimed)
    assert [*await leases.silent(0)] == []


@pytest.fixture
async def present(postgres_url: str) -> AsyncIterator[tuple[Database, Presence]]:
    opened = await Database.open(postgres_url)
    presence = Replicas(opened).presence("slow", 5.0)
    assert not await presence.beat()
    yield opened, presence
    await presence.close()
    await opened.close()


@pytest.mark.parametrize(("silence_s", "taken"), [(7, False), (17, False), (19, True)])
async def test_a_slow_replica_with_a_connection_is_alive_until_it_must_freeze(
    present: tuple[Database, Presence], silence_s: float, taken: bool
) -> None:
    opened, presence = present
    assert await presence.beat()
    await silent_for(opened, "slow", silence_s)
    assert (await Replicas(opened).claim("slow", LEASE_S) is not None) == taken


async def test_a_replica_without_a_connection_is_dead_after_its_lease(
    present: tuple[Database, Presence],
) -> None:
    opened, _ = present
    async with writing(opened) as connection:
        await connection.execute(sa.text(_CUT_OTHERS))
    await silent_for(opened, "slow", 7)
    assert await Replicas(opened).claim("slow", LEASE_S) is not None


async def test_a_disconnected_replica_notices_and_is_alive_again(
    present: tuple[Database, Presence],
) -> None:
    opened, presence = present
    async with writing(opened) as connection:
        await connection.execute(sa.text(_CUT_OTHERS))
    with pytest.raises(StorageUnavailable):
        await presence.beat()
    assert not await presence.beat()
    assert await presence.beat()
    await silent_for(opened, "slow", 7)
    assert await Replicas(opened).claim("slow", LEASE_S) is None


async def test_a_heartbeat_does_not_wait_for_busy_connections(
    present: tuple[Database, Presence],
) -> None:
    opened, presence = present
    async with AsyncExitStack() as stack:
        for _ in range(POSTGRESQL_CONNECTIONS):
            await stack.enter_async_context(writing(opened))
        assert await presence.beat()


async def test_simultaneous_heartbeats_do_not_collide(database: Database) -> None:
    leases = Replicas(database)
    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(leases.beat("ab"[n % 2]))
    async with reading(database) as connection:
        found = await connection.scalars(sa.select(replicas.c.id).order_by(replicas.c.id))
        assert list(found) == ["a", "b"]


async def test_live_replicas_list_their_step_versions(database: Database) -> None:
    for name, version in (("a", "1"), ("b", "2"), ("c", "2"), ("d", None), ("e", "3")):
        await Replicas(database, version).beat(name)
    replicas = Replicas(database)
    await replicas.give_up("d")
    await replicas.give_up("e")
    assert set(await replicas.versions(60)) == {"1", "2"}
    await replicas.beat("d")
    assert set(await replicas.versions(60)) == {"1", "2", None}


@pytest.fixture
async def heir(postgres_url: str) -> AsyncIterator[Database]:
    opened = await Database.open(postgres_url)
    yield opened
    await opened.close()


async def _holds(database: Database, ready: asyncio.Event, go_on: asyncio.Event) -> None:
    async with writing(database) as connection:
        await connection.execute(_LOCK)
        ready.set()
        await go_on.wait()
        await connection.execute(sa.text("SELECT 1"))


async def test_only_a_frozen_replicas_open_transactions_are_ended(
    present: tuple[Database, Presence], heir: Database
) -> None:
    frozen, presence = present
    ready, go_on = asyncio.Event(), asyncio.Event()
    held = asyncio.create_task(_holds(frozen, ready, go_on))
    await ready.wait()
    assert await Replicas(heir).end_transactions("somebody else") == 0
    assert await Replicas(heir).end_transactions("slow") == 1
    async with asyncio.timeout(5), writing(heir) as connection:
        await connection.execute(_LOCK)  # it is free
    go_on.set()
    with pytest.raises(StorageUnavailable):
        await held
    assert await presence.beat()


async def test_no_transaction_of_a_removed_replica_is_ended(database: Database) -> None:
    leases = Replicas(database)
    await leases.beat("a")
    assert await leases.end_transactions("a") == 0


async def test_a_replica_that_leaves_with_late_work_is_not_forgotten(database: Database) -> None:
    leases, workflows = Replicas(database), workflow_status(database.dialect)
    await leases.beat("a")
    async with writing(database) as connection:
        late = {"workflow_uuid": "turn:late", "executor_id": "a", "status": "PENDING"}
        await connection.execute(workflows.insert().values(late))

    assert not await leases.forget("a")
    await leases.give_up("a")
    assert await leases.silent(LEASE_S) == ["a"]

    async with writing(database) as connection:
        await connection.execute(workflows.update().values(status="SUCCESS"))
    assert await leases.forget("a")
