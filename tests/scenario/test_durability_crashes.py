"""Several turns in flight when their process crashes again and again: only the cause is given up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.model_server import Round
from tests.scenario.durability.gates import Hold
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import Asked, World, world_on

POISON = "poison"
LONG = "everything"
POSTS = ("update", "postMessage")
MOST_CRASHES = 7
INNOCENT = ("first", "second", "third", "fourth")
EVERY = (*INNOCENT[:2], POISON, *INNOCENT[2:])


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(request.param, tmp_path) as made:
        made.scripts |= {name: [Round(text=(f"Answer to {name}.",))] for name in EVERY}
        yield made


def hold_all(world: World) -> list[Hold]:
    return [world.hold_round(name, 1, at=-1) for name in EVERY]


async def crash_with_all_in_flight(world: World) -> dict[str, Asked]:
    """The first process dies as the model has been asked every question."""
    holds = hold_all(world)
    process = await world.start()
    asked = {name: await world.ask(name) for name in EVERY}
    for hold in holds:
        await hold.wait()
    await world.kill(process)
    world.open()
    return asked


async def crashes_again(world: World, poison: Asked) -> bool:
    """Start a process, which dies as the poison is asked. False when its turn ends instead."""
    hold = world.hold_round(POISON, 1, at=-1)
    process = await world.start()
    asked = asyncio.ensure_future(hold.wait())
    ended = asyncio.ensure_future(world.shows(poison, "could not be finished"))
    await asyncio.wait((asked, ended), return_when=asyncio.FIRST_COMPLETED)
    if crashed := asked.done():
        await world.kill(process)
    for each in (asked, ended):
        each.cancel()
    world.open()
    return crashed


async def test_only_the_turn_that_crashes_alone_is_given_up(world: World) -> None:
    asked = await crash_with_all_in_flight(world)
    # How often depends on how soon it is killed: its trial must not be over by then.
    while await crashes_again(world, asked[POISON]):
        assert world.rounds[POISON, 1] < MOST_CRASHES
    await world.settled()

    for name in INNOCENT:
        (answer,) = world.answers(asked[name])
        assert f"Answer to {name}." in answer.text
    assert world.rounds[POISON, 1] >= 3


def has_opinions(sent: bytes) -> bool:
    """The last message of a whole answer asks for an opinion."""
    return b"answer%3Afeedback" in sent or b"answer:feedback" in sent


async def dies_as_it_is_shown(world: World, process: Replica) -> None:
    """The process dies as Slack has the last message of the answer, and nothing is recorded."""
    posts = [world.gates.hold(f"slack POST chat.{name} after", has_opinions) for name in POSTS]
    waits = [asyncio.ensure_future(post.reached.wait()) for post in posts]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    await world.kill(process)
    world.open()
    for each in waits:
        each.cancel()


async def test_crashes_while_an_answer_is_shown_keep_all_of_it(world: World) -> None:
    lines = [f"line {number:04} of a long answer" for number in range(400)]
    world.scripts[LONG] = [Round(text=("\n".join(lines),))]
    process = await world.start()
    asked = await world.ask(LONG)
    await dies_as_it_is_shown(world, process)
    for _ in range(3):
        process = await world.start()
        await world.kill(process)
    await world.start()
    await world.settled()

    shown = "".join(message.text for message in world.answers(asked))
    assert [line for line in lines if line not in shown] == []
    assert "could not be finished" not in shown
    assert await world.turn_state(asked) == "answered"


async def test_three_crashes_within_one_round_give_up_no_turn(world: World) -> None:
    asked = await crash_with_all_in_flight(world)
    for _ in range(2):
        holds = hold_all(world)
        process = await world.start()
        waits = [asyncio.ensure_future(hold.wait()) for hold in holds]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        await world.kill(process)
        world.open()
        for each in waits:
            each.cancel()
    await world.start()
    await world.settled()

    for name in EVERY:
        (answer,) = world.answers(asked[name])
        assert f"Answer to {name}." in answer.text
