"""PostgreSQL drops every connection in the middle: the work ends well, nothing is done twice."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.demo.workspace.seeds import RESPONDER
from tests.scenario.durability.gates import Hold
from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ASK,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.postgres import cut_connections
from tests.scenario.durability.world import World, world_on

POST = "control POST restart"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("postgresql", tmp_path) as made:
        three_rounds(made)
        yield made


def _in_a_round(world: World) -> Hold:
    return world.hold_round(ASK, 1, at=AFTER_FIRST_TEXT)


def _in_a_tool(world: World) -> Hold:
    return world.gates.hold("loki GET query_range before")


def _before_the_final_text(world: World) -> Hold:
    return world.gates.hold("slack POST chat.update before", lambda sent: b"turn:stop" not in sent)


@pytest.mark.parametrize("hold_at", [_in_a_round, _in_a_tool, _before_the_final_text])
async def test_a_turn_survives_lost_connections(world: World, hold_at) -> None:  # type: ignore[no-untyped-def]
    await world.start()
    await world.start()
    hold = hold_at(world)
    asked = await world.ask(ASK)
    await hold.wait()
    await cut_connections(world)
    world.open()
    await ended_well(world, asked)


async def test_a_dispatch_survives_lost_connections(world: World) -> None:
    await world.start()
    await world.start()
    asked = await world.propose("restart it")
    hold = world.gates.hold(f"{POST} after")
    assert (await world.workspace.click(RESPONDER, world.card(asked).ts, "proposal:confirm")).ok
    await hold.wait()
    await cut_connections(world)
    world.open()
    await world.decided(asked, "succeeded")
    await world.settled()
    assert world.gates.passed[f"{POST} before"] == 1
    assert len(world.from_bot(asked, "kortex_note")) == 1
    audit = await world.audit()
    assert audit["dispatch.intent"] == audit["dispatch.outcome"] == 1
