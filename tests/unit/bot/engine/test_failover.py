"""Failover: which turns are taken over, how many at once, and its end. The clock is set."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import sqlalchemy as sa

from bot.engine.lease import AT_ONCE, DbosRecords, Failover, Lease, UnfinishedWork
from bot.ports.failures import StorageUnavailable
from bot.store.columns import Instant
from bot.store.database import Database
from bot.store.dialect import seconds_ago
from bot.store.replicas import Replicas
from bot.store.tables import replicas
from tests.fixtures_database import postgres_url
from tests.held_connection import writing

__all__ = ["postgres_url"]

LEASE_S = 6.0
TURNS = 160


@dataclass
class MemoryRecords(DbosRecords):
    by: dict[str, list[str]]
    waiting: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)

    async def left_by(self, executor: str) -> UnfinishedWork:
        return UnfinishedWork(list(self.by.get(executor, [])), self.unknown.get(executor, 0))

    async def hand_on(self, workflows: Sequence[str]) -> None:
        self.batches.append(len(workflows))
        for each in self.by.values():
            each[:] = [name for name in each if name not in workflows]
        self.waiting.extend(workflows)

    def taken(self, executor: str) -> None:
        self.by.setdefault(executor, []).extend(self.waiting)
        self.waiting.clear()


@dataclass
class Site:
    """Replicas on one database: `slow` with all the work, `a` and `b` without."""

    database: Database
    leases: Replicas
    records: MemoryRecords
    spared: list[str] = field(default_factory=list)

    def survivor(self, name: str) -> Failover:
        return Failover(self.leases, self.records, name, LEASE_S, self._no_death)

    async def _no_death(self, replica: str) -> None:
        self.spared.append(replica)

    async def silent(self, replica: str, seconds: float) -> None:
        at = sa.type_coerce(seconds_ago(seconds), Instant())
        async with writing(self.database) as connection:
            await connection.execute(
                replicas.update().where(replicas.c.id == replica).values(beat=at)
            )


@asynccontextmanager
async def site_of(url: str) -> AsyncIterator[Site]:
    database = await Database.open(url)
    leases = Replicas(database)
    for name in ("slow", "a", "b"):
        await leases.beat(name)
    yield Site(database, leases, MemoryRecords({"slow": [f"turn:{n}" for n in range(TURNS)]}))
    await database.close()


@pytest.fixture
async def site(postgres_url: str) -> AsyncIterator[Site]:
    async with site_of(postgres_url) as made:
        yield made


async def test_a_late_heartbeat_of_a_live_process_moves_nothing(site: Site) -> None:
    presence = site.leases.presence("slow", 5.0)
    await presence.beat()
    survivors = [site.survivor("a"), site.survivor("b")]
    for late_s in (7.0, 12.0, 17.0):
        await site.silent("slow", late_s)
        for each in survivors:
            await each.look(())
    await presence.close()

    assert site.records.batches == []
    assert len(site.records.by["slow"]) == TURNS


async def test_the_work_of_a_dead_replica_is_taken_over_in_small_batches(site: Site) -> None:
    survivors = {"a": site.survivor("a"), "b": site.survivor("b")}
    await site.silent("slow", 7)

    for _ in range(TURNS // AT_ONCE + 1):
        for name, each in survivors.items():
            await each.look(())
            site.records.taken(name)

    assert max(site.records.batches) <= AT_ONCE
    assert site.records.by["slow"] == []
    assert [*(await site.leases.silent(-1))] == ["a", "b"]


async def test_a_replica_that_wakes_up_keeps_its_remaining_work(site: Site) -> None:
    survivor = site.survivor("a")
    await site.silent("slow", 19)
    await survivor.look(())
    await site.leases.beat("slow")
    for _ in range(5):
        await survivor.look(())

    assert site.records.batches == [AT_ONCE]
    assert len(site.records.by["slow"]) == TURNS - AT_ONCE


async def test_when_the_successor_dies_the_next_one_takes_over(site: Site) -> None:
    await site.silent("slow", 7)
    await site.survivor("a").look(())
    await site.survivor("b").look(())
    assert len(site.records.batches) == 1

    await site.silent("slow", 7)
    await site.survivor("b").look(())

    assert len(site.records.batches) == 2


async def test_unclaimed_own_work_returns_in_small_batches(site: Site) -> None:
    mine = site.survivor("slow")
    turns = list(site.records.by["slow"])
    taken, running = turns[:40], turns[40:50]
    site.records.by["a"] = taken
    del site.records.by["slow"][:40]
    mine.let_go(turns)

    for _ in range(20):
        await mine.look(running)

    assert max(site.records.batches) == AT_ONCE
    assert sorted(site.records.waiting) == sorted(turns[50:])
    assert site.records.by["a"] == taken
    assert set(site.spared) == {"slow"}


async def test_work_of_an_unknown_version_is_left_alone(site: Site) -> None:
    site.records.by, site.records.unknown = {}, {"slow": 3}
    await site.silent("slow", 7)
    await site.survivor("a").look(())

    assert site.records.batches == []
    assert [*(await site.leases.silent(LEASE_S))] == ["slow"]


async def test_work_of_other_replicas_is_reported_as_lost(site: Site) -> None:
    mine = site.survivor("slow")

    assert await mine.lost(["turn:1", "turn:2", "taken"]) == {"taken"}


class _Away(MemoryRecords):
    async def left_by(self, executor: str) -> UnfinishedWork:
        raise StorageUnavailable("gone")


async def test_unreadable_records_end_no_watch_and_take_nothing(site: Site) -> None:
    site.records = _Away({})
    await site.silent("slow", 7)
    survivor = site.survivor("a")
    survivor.let_go(["turn:1"])

    async with asyncio.timeout(5):
        await survivor.look(())

    assert await survivor.lost(["turn:1"]) == ()


async def test_a_replica_behind_pgbouncer_drops_its_turns_after_one_lease(
    postgres_url: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    database = await Database.open(f"{postgres_url}&pgbouncer=true")
    presence = Replicas(database).presence("frozen", timeout_s=5)
    let_go = asyncio.Event()

    async def nothing() -> None:
        pass

    held = Lease(presence, 1.0).hold(nothing, let_go.set, nothing)
    holding = asyncio.create_task(held)
    await asyncio.sleep(0)
    time.sleep(1.1)  # noqa: ASYNC251 - the process is frozen
    async with asyncio.timeout(10):
        await let_go.wait()

    holding.cancel()
    await asyncio.wait({holding})
    await presence.close()
    await database.close()
