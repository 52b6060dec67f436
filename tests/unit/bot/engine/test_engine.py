"""The engine itself, on both databases: accepted work continues, in order, on another replica."""

import asyncio
import gc
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa
from dbos._sys_db import SystemDatabase
from dbos._utils import INTERNAL_QUEUE_NAME
from pydantic import TypeAdapter

from bot.domain.session import Ask, TurnState
from bot.engine.config import EARLIER_VERSIONS
from bot.ports.failures import StorageUnavailable
from bot.store.replicas import Replicas
from bot.store.sessions import StoredSessions
from bot.store.tables import accepted, tickets
from bot.store.tickets import NO_OWNER, Attempt, Tickets, workflow_status
from tests.fixtures_engine import STEPS, Lives, ask, lives
from tests.held_connection import reading, writing

__all__ = ["lives"]


class SlowFirst(Tickets):
    """The first message's workflow comes late to its thread."""

    may_enter = asyncio.Event()

    async def try_enter(self, ticket: str, thread: str, ts: str, owner: str) -> Attempt:
        if ticket == ask(1).turn_id:
            await self.may_enter.wait()
        return await super().try_enter(ticket, thread, ts, owner)


async def test_a_message_is_acknowledged_once_no_later_one_can_overtake_it(lives: Lives) -> None:
    lives.tickets = SlowFirst
    SlowFirst.may_enter = asyncio.Event()
    async with lives.life() as engine:
        first = asyncio.create_task(engine.start_turn(ask(1)))
        await lives.until(lambda: runs(lives, ask(1)))
        assert not first.done()
        SlowFirst.may_enter.set()
        await first
        await engine.start_turn(ask(2))
        await lives.over()
    assert lives.ended == ["question 1", "question 2"]


async def runs(lives: Lives, asked: Ask) -> bool:
    """Whether its workflow is on record."""
    return await Tickets(lives.database).is_started(asked.turn_id)


async def test_a_redelivered_message_is_one_turn(lives: Lives) -> None:
    async with lives.life() as engine:
        await asyncio.gather(*[engine.start_turn(ask(1)) for _ in range(5)])
        await engine.start_turn(ask(1))
        await lives.over()
        await engine.start_turn(ask(1))
    assert lives.ended == ["question 1"]
    assert set(lives.ran.values()) == {1}


async def accept(lives: Lives, asked: Ask, state: str) -> None:
    """As an earlier release did, and died before it started the workflow."""
    place = {"id": asked.turn_id, "thread": asked.place.key, "ts": asked.ts, "owner": NO_OWNER}
    kept = TypeAdapter(Ask).dump_json(asked).decode()
    async with writing(lives.database) as connection:
        await connection.execute(accepted.insert(), {"id": asked.turn_id, "ask": kept})
        await connection.execute(tickets.insert(), place | {"state": state})


async def test_a_turn_accepted_by_an_earlier_release_starts_after_six_kills(
    lives: Lives,
) -> None:
    await accept(lives, ask(1), "running")
    await accept(lives, ask(2), "waiting")
    lives.die(ask(1), 0)
    for _ in range(6):
        async with lives.life():
            await asyncio.wait_for(lives.died.wait(), 10)
        lives.die(ask(1), 0)
    lives.die(None)
    async with lives.life() as engine:
        await lives.over()
        await engine.look_after_threads()
    assert lives.ended == ["question 1", "question 2"]
    async with reading(lives.database) as connection:
        assert (await connection.execute(sa.select(accepted))).all() == []


async def test_a_turn_left_by_an_earlier_release_starts_at_the_second_check(
    lives: Lives,
) -> None:
    async with lives.life() as engine:
        await accept(lives, ask(1), "running")
        await engine.look_after_threads()
        assert not engine.live
        await engine.look_after_threads()
        await lives.over()
    assert lives.ended == ["question 1"]


async def test_a_stopping_process_starts_nothing(lives: Lives) -> None:
    async with lives.life() as engine:
        await engine.stop(0)
        with pytest.raises(StorageUnavailable, match="nothing was started"):
            await engine.start_turn(ask(1))
    assert lives.ended == []


async def test_six_kills_at_six_boundaries_lose_neither_the_turn_nor_its_successors(
    lives: Lives,
) -> None:
    first, waits = ask(1), ask(2)
    for boundary in (0, 1, 2, 3, 4, 4):
        lives.die(first, boundary)
        async with lives.life() as engine:
            await engine.start_turn(first)
            await engine.start_turn(waits)
            await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(None)
    async with lives.life():
        await lives.over()
    assert lives.ended == ["question 1", "question 2"]
    assert set(lives.ran.values()) == {1}
    assert lives.given_up == []


async def test_a_step_that_killed_its_process_four_times_is_abandoned_by_name(lives: Lives) -> None:
    lives.die(ask(1), 1)
    for _ in range(4):
        lives.died.clear()
        async with lives.life() as engine:
            await engine.start_turn(ask(1))
            await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(ask(1), 2)
    async with lives.life():
        await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(None)
    async with lives.life() as engine:
        await engine.start_turn(ask(2))
        await lives.over()
    assert lives.given_up == ["question 1: round:1"] * 2  # and again by the replay
    assert lives.ran["question 1", "round:1"] == 0
    assert lives.ended == ["question 1", "question 2"]


async def test_a_turn_that_starts_during_a_stop_goes_to_the_successor(lives: Lives) -> None:
    for number in range(1, 4):
        async with lives.life() as engine:
            await engine.start_turn(ask(number))
    gc.collect()  # a turn left behind would be destroyed in its midst, and say so
    async with lives.life():
        await lives.over()
    assert lives.ended == ["question 1", "question 2", "question 3"]
    assert set(lives.ran.values()) == {1}


@pytest.mark.parametrize("lives", ["sqlite"], indirect=True)
async def test_a_handed_over_turn_is_not_abandoned(lives: Lives) -> None:
    for _ in range(4):
        lives.reached.clear()
        async with lives.life() as engine:
            lives.hold(ask(1), 1)
            await engine.start_turn(ask(1))
            await asyncio.wait_for(lives.reached.wait(), 10)
    lives.hold(None)
    async with lives.life():
        await lives.over()
    assert (lives.given_up, lives.ended) == ([], ["question 1"])


async def die_with_one_waiting(lives: Lives, version: str) -> None:
    """A process of that version dies in the midst of a turn; another of the thread waits."""
    lives.die(ask(1), 2)
    async with lives.life(version) as engine:
        await engine.start_turn(ask(1))
        await engine.start_turn(ask(2))
        await asyncio.wait_for(lives.died.wait(), 10)
    lives.die(None)


@pytest.mark.parametrize(("before", "after"), [("1", "2"), ("2", "1")], ids=["up", "back"])
async def test_turns_of_an_unknown_version_are_ended_with_a_message(
    lives: Lives, before: str, after: str
) -> None:
    await die_with_one_waiting(lives, before)
    async with lives.life(after) as engine:
        await engine.start_turn(ask(3))
        await engine.look_after_threads()
        assert lives.lost == []  # it may have been an outage
        await engine.look_after_threads()
        await lives.over()
        await lives.until(lambda: two_of(lives.lost))
    assert sorted(lives.lost) == [("question 1", False), ("question 2", False)]
    assert lives.ended == ["question 3"]


async def two_of(found: list[tuple[str, bool]]) -> bool:
    return len(found) == 2


@pytest.mark.parametrize("lives", ["postgresql"], indirect=True)
@pytest.mark.parametrize("known", ["1", None], ids=["the-same", "not-said"])
async def test_turns_of_another_version_are_left_to_a_process_of_that_version(
    lives: Lives, known: str | None
) -> None:
    await die_with_one_waiting(lives, "1")
    async with lives.life("2") as engine:
        await Replicas(lives.database, known).beat("old")
        await engine._failover.look(())
        for _ in range(3):
            await engine.look_after_threads()
    async with lives.life("1"):
        await lives.over()
    assert (lives.lost, lives.ended) == ([], ["question 1", "question 2"])


@pytest.mark.parametrize("state", ["PENDING", "ENQUEUED"], ids=["dead", "handed-on"])
@pytest.mark.parametrize("version", EARLIER_VERSIONS)
async def test_turns_of_earlier_releases_are_continued(
    lives: Lives, version: str, state: str
) -> None:
    await die_with_one_waiting(lives, version)
    table = workflow_status(lives.database.dialect).fullname
    queued = sa.text(f"UPDATE {table} SET status = :state, queue_name = :queue")  # noqa: S608 - ours
    async with writing(lives.database) as connection:
        await connection.execute(queued, {"state": state, "queue": INTERNAL_QUEUE_NAME})
    async with lives.life() as engine:
        await engine.look_after_threads()
        await lives.over()
    assert (lives.lost, lives.ended) == ([], ["question 1", "question 2"])
    assert lives.ran["question 1", "open"] == 1


@pytest.mark.parametrize("lives", ["sqlite"], indirect=True)
async def test_a_turn_that_left_its_thread_during_a_crash_is_over(lives: Lives) -> None:
    sessions, at = StoredSessions(lives.database), datetime(2026, 11, 23, tzinfo=UTC)
    lives.die(ask(1), len(STEPS))
    async with lives.life() as engine:
        await engine.start_turn(ask(1))
        await asyncio.wait_for(lives.died.wait(), 10)
    await sessions.begin_turn(ask(1), "incident", at)
    await sessions.finish_turn(ask(1).turn_id, TurnState.ANSWERED, (), (), at)
    assert await Tickets(lives.database).leave(ask(1).turn_id, "local")

    workflows = workflow_status(lives.database.dialect)

    async def ended() -> bool:
        async with reading(lives.database) as connection:
            return bool(await connection.scalar(sa.select(workflows.c.status)) == "SUCCESS")

    async with lives.life():
        await lives.until(ended)
    assert lives.ran == {("question 1", step): 1 for step in STEPS}


@pytest.mark.parametrize("lives", ["sqlite"], indirect=True)
async def test_ended_turns_are_recorded_before_their_process_leaves(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = SystemDatabase.update_workflow_outcome

    def slowly(self: SystemDatabase, *args: Any, **options: Any) -> bool:
        threading.Event().wait(0.3)
        return record(self, *args, **options)

    monkeypatch.setattr(SystemDatabase, "update_workflow_outcome", slowly)
    async with lives.life() as engine:
        await engine.start_turn(ask(1))
        await lives.over()
    workflows = workflow_status(lives.database.dialect)
    async with reading(lives.database) as connection:
        states = (await connection.execute(sa.select(workflows.c.status))).scalars().all()
    assert states == ["SUCCESS"]
