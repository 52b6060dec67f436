"""Two replicas hear the same, or of one thread at once: one turn each, one at a time, in order."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.store import tables
from tests.fakes.model_server import Round
from tests.scenario.durability.deliveries import Remembering, ask_via, deliver_to_every
from tests.scenario.durability.investigation import ASK, ended_well, three_rounds
from tests.scenario.durability.postgres import no_inserts, queued
from tests.scenario.durability.world import Asked, World, world_on

FOLLOW_UP, ELSEWHERE = "and the cart", "how is search"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("postgresql", tmp_path) as made:
        yield made


async def test_an_event_delivered_to_two_replicas_starts_one_turn(world: World) -> None:
    three_rounds(world)
    await world.start()
    await world.start()
    deliver_to_every(world)
    async with no_inserts(world, "dbos.workflow_status"):
        asked = await world.ask(ASK)
        # A mention is delivered as two events; each replica joins them into one start.
        await queued(world, 2)
    await ended_well(world, asked)
    await world.workspace.settled()
    assert world.workspace.outbox.undelivered == []


async def test_an_event_redelivered_after_its_turn_does_nothing(world: World) -> None:
    three_rounds(world)
    first, second = await world.start(), await world.start()
    world.workspace.outbox.transport = slack = Remembering(world.workspace.sockets)
    asked = await ask_via(world, first, ASK)
    await ended_well(world, asked)
    with world.only(second):
        acks = await slack.again(asked)
    assert [ack.ok for ack in acks] == [True, True]
    await ended_well(world, asked)


async def _is_waiting(world: World, asked: Asked) -> bool:
    mine = tables.tickets.c.id == world.turn_id(asked)
    found = await world.rows(sa.select(tables.tickets.c.state).where(mine))
    return [row.state for row in found] == ["waiting"]


async def test_turns_of_a_thread_over_two_replicas_run_one_after_the_other(world: World) -> None:
    three_rounds(world)
    world.scripts[FOLLOW_UP] = [Round(text=("The cart is fine.",))]
    world.scripts[ELSEWHERE] = [Round(text=("So is search.",))]
    first, second = await world.start(), await world.start()
    hold = world.hold_round(ASK, 1, at=0)
    asked = await ask_via(world, first, ASK)
    await hold.wait()
    then = await ask_via(world, second, FOLLOW_UP, asked.thread)
    await world.until(lambda: _is_waiting(world, then))
    # A turn that does not wait ends before a whole turn of another thread.
    elsewhere = await ask_via(world, second, ELSEWHERE)
    await world.shows(elsewhere, "So is search.")
    await world.shows(then, "Queued: I answer the question before yours")
    world.open()
    await world.shows(then, "The cart is fine.")
    await world.settled()
    assert world.order == [(ASK, 1), (ELSEWHERE, 1), (ASK, 2), (ASK, 3), (FOLLOW_UP, 1)]
    (before, after) = world.from_bot(asked)
    assert float(before.ts) < float(after.ts)


async def test_messages_that_reach_two_replicas_at_once_are_answered_one_at_a_time(
    world: World,
) -> None:
    asks = ["what is one", "what is two", "what is three"]
    for each in asks:
        world.scripts[each] = [Round(text=(f"{each}: a number.",))]
    replicas = [await world.start(), await world.start()]
    root = await ask_via(world, replicas[0], asks[0])
    await world.shows(root, "one: a number.")
    await world.settled()
    later = []
    async with no_inserts(world, "tickets"):
        for replica, text in zip(replicas, asks[1:], strict=True):
            with world.only(replica):
                later.append(await world.ask(text, root.thread))
                await queued(world, len(later))
    for late, text in zip(later, asks[1:], strict=True):
        await world.shows(late, f"{text}: a number.")
    await world.settled()
    assert world.most_active == 1
    assert sorted(world.order) == sorted((each, 1) for each in asks)
    assert [len(world.answers(each)) for each in later] == [1, 1]
