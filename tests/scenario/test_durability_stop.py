"""A stop that reaches another replica than the one that runs the turn."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.demo.workspace.seeds import RESPONDER
from bot.store import ledger_tables
from tests.scenario.durability.deliveries import ask_via, say_via
from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ASK,
    three_rounds,
)
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import TIMEOUT_S, Asked, World, world_on

# A second is promised; the rest is what a busy machine may add.
STOPPED_WITHIN_S = 5.0
Stop = Callable[[World, Replica, Asked], Awaitable[None]]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("postgresql", tmp_path) as made:
        three_rounds(made)
        yield made


async def _typed(world: World, replica: Replica, asked: Asked) -> None:
    await say_via(world, replica, "stop", asked.thread)


async def _pressed(world: World, replica: Replica, asked: Asked) -> None:
    (answer,) = world.answers(asked)
    with world.only(replica):
        assert (await world.workspace.click(RESPONDER, answer.ts, "turn:stop")).ok


async def _shows_stopped(world: World, asked: Asked) -> None:
    await world.workspace.wait_for(
        lambda: "Stopped" in str(world.answers(asked)[0].blocks), TIMEOUT_S
    )


@pytest.mark.parametrize("stop", [_typed, _pressed])
async def test_a_stop_reaches_the_replica_that_runs_the_turn(world: World, stop: Stop) -> None:
    first, second = await world.start(), await world.start()
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await ask_via(world, first, ASK)
    await hold.wait()
    await world.shows(asked, "The new")
    pressed_at = time.monotonic()
    await stop(world, second, asked)
    await _shows_stopped(world, asked)
    assert time.monotonic() - pressed_at < STOPPED_WITHIN_S
    await world.settled()
    (answer,) = world.answers(asked)
    assert "The new" in answer.text
    assert "turn:stop" not in answer.action_ids
    assert await world.turn_state(asked) == "stopped"
    assert world.rounds[ASK, 3] == 1
    assert len(await world.rows(sa.select(ledger_tables.spending))) == 3
