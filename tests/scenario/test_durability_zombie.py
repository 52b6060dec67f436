"""A replica that freezes past its lease and wakes up: its successor's text stays."""

import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.demo.workspace.seeds import RESPONDER
from bot.demo.workspace.timeline import Message
from bot.store import ledger_tables
from tests.fakes.model_server import Round
from tests.scenario.durability.deliveries import ask_via
from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ALL_READ,
    ASK,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.postgres import no_inserts, queued
from tests.scenario.durability.replica import TIMES, Replica
from tests.scenario.durability.world import Asked, World, world_on

QUICK = replace(TIMES, lease_s=0.5)  # pauses after three of them
CONFIRM = "proposal:confirm"
POST = "control POST restart"
ALIVE = "are you there"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("postgresql", tmp_path) as made:
        made.scripts[ALIVE] = [Round(text=("Yes, again.",))]
        yield made


async def _wake(world: World, zombie: Replica) -> None:
    """Let it run on; when this returns it has answered something new, so nothing old is left."""
    zombie.signal(signal.SIGCONT)
    world.open()
    fresh = await ask_via(world, zombie, ALIVE)
    await world.shows(fresh, "Yes, again.")
    await world.settled()
    del world.rounds[ALIVE, 1]


def _versions(world: World, message: Message) -> list[Message]:
    return list(world.workspace.timeline.versions(message.channel, message.ts))


async def test_a_frozen_replica_does_not_touch_the_answer_of_its_successor(world: World) -> None:
    three_rounds(world)
    await world.start(QUICK)
    await world.start(QUICK)
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    await world.shows(asked, "The new")
    await world.is_recorded(asked, ALL_READ)
    zombie = await world.runner_of(asked)
    zombie.signal(signal.SIGSTOP)
    await ended_well(world, asked, round_again=3)
    (answer,) = world.answers(asked)
    before = _versions(world, answer)
    await _wake(world, zombie)
    assert _versions(world, answer) == before
    assert [m.text for m in world.answers(asked)] == [answer.text]
    assert await _spending_of(world, asked) == 3


async def _spending_of(world: World, asked: Asked) -> int:
    mine = ledger_tables.spending.c.turn_id == world.turn_id(asked)
    return len(await world.rows(sa.select(ledger_tables.spending).where(mine)))


async def _confirm(world: World, asked: Asked) -> None:
    assert (await world.workspace.click(RESPONDER, world.card(asked).ts, CONFIRM)).ok


async def test_a_frozen_replica_does_not_dispatch_a_second_time(world: World) -> None:
    zombie = await world.start(QUICK)
    asked = await world.propose("restart it")
    await world.start(QUICK)
    hold = world.gates.hold(f"{POST} after")
    with world.only(zombie):
        await _confirm(world, asked)
        await hold.wait()
    zombie.signal(signal.SIGSTOP)
    await _ended_by_the_successor(world, asked, zombie, "succeeded", posts=1)


async def test_an_unfinished_intent_of_a_frozen_replica_belongs_to_its_successor(
    world: World,
) -> None:
    zombie = await world.start(QUICK)
    asked = await world.propose("restart it")
    await world.start(QUICK)
    hold = world.gates.hold("slack POST chat.update before", lambda sent: b"Confirmed" in sent)
    with world.only(zombie):
        await _confirm(world, asked)
    await hold.wait()
    async with no_inserts(world, "audit"):
        hold.release()
        await queued(world, 1)
        zombie.signal(signal.SIGSTOP)
    # Its transaction is left open, with locks that the successor needs, until the server ends it.
    await _ended_by_the_successor(world, asked, zombie, "succeeded", posts=1)


def _decision(row: sa.Row[Any]) -> dict[str, Any]:
    """What was decided and done; what its card shows by then catches up later."""
    return {name: row._mapping[name] for name in row._fields if not name.startswith("card_")}


async def _ended_by_the_successor(
    world: World, asked: Asked, zombie: Replica, state: str, *, posts: int
) -> None:
    row = await world.decided(asked, state)
    await world.settled()
    card = world.card(asked)
    before = _versions(world, card)
    await _wake(world, zombie)
    assert _versions(world, card) == before
    assert world.gates.passed[f"{POST} before"] == posts
    assert len(world.from_bot(asked, "kortex_note")) == 1
    assert _decision(await world.decided(asked, state)) == _decision(row)
    audit = await world.audit()
    assert audit["dispatch.intent"] == audit["dispatch.outcome"] == 1
