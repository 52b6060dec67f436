"""kill -9 while an answer grows in Slack's own stream: one whole answer, and nothing grows on."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.scenario.durability.investigation import (
    ALL_READ,
    ASK,
    FINAL,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.world import Asked, World, world_on

Reach = Callable[[World], Awaitable[Asked]]


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(getattr(request, "param", "sqlite"), tmp_path, stream="native") as made:
        yield made


def at(point: str, *, lost: bool = False, wanted: bytes = b"") -> Reach:
    """Ask, and return once that call is held there; `lost`: it never gets there."""

    async def reach(world: World) -> Asked:
        hold = world.gates.hold(f"slack POST {point}", lambda sent: wanted in sent)
        asked = await world.ask(ASK)
        await hold.wait()
        hold.lost = lost
        return asked

    return reach


def appending(point: str, *, lost: bool = False) -> Reach:
    """The same for an append of the last round, in which the model then pauses."""
    reach = at(point, lost=lost, wanted=b"Looking at web")

    async def last(world: World) -> Asked:
        hold = world.hold_round(ASK, 3, at=5)
        asked = await reach(world)
        await hold.wait()
        await world.is_recorded(asked, ALL_READ)
        return asked

    return last


async def in_the_last_round(world: World) -> Asked:
    """Its cards and its first words are there."""
    hold = world.hold_round(ASK, 3, at=5)
    asked = await world.ask(ASK)
    await hold.wait()
    await world.workspace.wait_for(lambda: "Looking at web and cart." in world.said(asked)[-1].text)
    await world.is_recorded(asked, ALL_READ)
    return asked


POINTS = {
    "not begun": (at("chat.startStream before", lost=True), 0),
    "begun, not recorded": (at("chat.startStream after"), 0),
    "an append under way": (appending("chat.appendStream before", lost=True), 3),
    "an append perhaps taken": (appending("chat.appendStream after"), 3),
    "in the last round": (in_the_last_round, 3),
    "not ended": (at("chat.stopStream before", lost=True), 0),
    "ended, not recorded": (at("chat.stopStream after", wanted=FINAL.encode()), 0),
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_killed_process_continues_after_its_restart(world: World, point: str) -> None:
    reach, round_again = POINTS[point]
    three_rounds(world)
    first = await world.start()
    asked = await reach(world)
    await world.kill(first)
    world.open()
    await world.start()
    await ended_well(world, asked, round_again=round_again)
    assert (len(world.said(asked)), world.grows(asked)) == (1, [])


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
async def test_a_replica_takes_over_a_growing_answer(world: World) -> None:
    three_rounds(world)
    await world.start()
    await world.start()
    asked = await in_the_last_round(world)
    await world.kill(await world.runner_of(asked))
    world.open()
    await ended_well(world, asked, round_again=3)
    assert (len(world.said(asked)), world.grows(asked)) == (1, [])
