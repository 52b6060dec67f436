"""Several turns in flight when their process crashes again and again: only the cause is given up."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.fakes.model_server import Round
from tests.scenario.durability.gates import Hold
from tests.scenario.durability.replica import Replica
from tests.scenario.durability.world import RESTART, Asked, World, logs_of, world_on

POISON = "poison"
LONG = "everything"
POSTS = ("update", "postMessage", "stopStream")
MOST_CRASHES = 10  # on a machine that is slow to kill a process, not each of them counts
INNOCENT = ("first", "second", "third", "fourth")
EVERY = (*INNOCENT[:2], POISON, *INNOCENT[2:])
POISONS = (POISON, INNOCENT[3])


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    kind, _, stream = request.param.partition(" ")
    async with world_on(kind, tmp_path, stream=stream or "edit") as made:
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


async def crashes_again(world: World, poisons: Mapping[str, Asked]) -> bool:
    """Start a process, which dies as a poison is asked. False when their turns end instead."""
    holds = [world.hold_round(name, 1, at=-1) for name in poisons]
    process = await world.start()
    asked = [asyncio.ensure_future(hold.reached.wait()) for hold in holds]
    ends = (world.shows(each, "could not be finished") for each in poisons.values())
    ended = asyncio.ensure_future(asyncio.wait_for(asyncio.gather(*ends), 60))
    await asyncio.wait((*asked, ended), return_when=asyncio.FIRST_COMPLETED)
    if crashed := any(each.done() for each in asked):
        await world.kill(process)
    for each in (*asked, ended):
        each.cancel()
    await asyncio.gather(*asked, ended, return_exceptions=True)
    world.open()
    return crashed


@pytest.mark.parametrize(
    ("world", "poisons"),
    [("sqlite", POISONS), ("postgresql", POISONS[:1])],
    indirect=["world"],
    ids=["two", "one"],
)
async def test_only_a_turn_that_crashes_alone_is_abandoned(
    world: World, poisons: Sequence[str]
) -> None:
    asked = await crash_with_all_in_flight(world)
    # How often depends on how soon it is killed: its trial must not be over by then.
    while await crashes_again(world, {name: asked[name] for name in poisons}):
        assert max(world.rounds[name, 1] for name in poisons) < MOST_CRASHES
    await world.settled()

    for name in set(EVERY).difference(poisons):
        is_answered(world, asked[name], name)
    assert min(world.rounds[name, 1] for name in poisons) >= 3


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
    whole = await world.whole_answer(asked)
    assert shown.startswith(lines[0])
    assert [line for line in lines if line not in whole] == []
    assert "could not be finished" not in shown
    assert await world.turn_state(asked) == "answered"


SHORT = "in a word"
FENCED = "as code"
READ = "from the logs"
CARD = "with a card"
DELIVERED = {
    CARD: [
        Round(text=("Proposing.",), calls=(RESTART,)),
        Round(text=("A restart is proposed.",)),
    ],
    SHORT: [Round(text=("The pool is full.",))],
    FENCED: [
        Round(
            text=("```\n", *(f"echo {number:04} of a script\n" for number in range(300)), "```\n")
        )
    ],
    READ: [
        Round(text=("Looking.",), calls=(logs_of("checkout"),)),
        Round(text=("Its log says that checkout is slow [E1].",)),
    ],
}


@pytest.mark.parametrize(
    ("world", "name", "said"),
    [
        ("sqlite native", SHORT, ["The pool is full."]),
        ("sqlite", CARD, ["A restart is proposed."]),
        ("sqlite", FENCED, [f"echo {number:04} of a script" for number in range(300)]),
        ("postgresql native", FENCED, [f"echo {number:04} of a script" for number in range(300)]),
        ("postgresql", READ, ["Its log says that checkout is slow"]),
    ],
    indirect=["world"],
    ids=["native", "card", "long", "long-native", "logs"],
)
async def test_three_crashes_after_an_answer_was_shown_keep_it(
    world: World, name: str, said: Sequence[str]
) -> None:
    world.scripts |= DELIVERED
    process = await world.start()
    asked = await world.ask(name)
    await dies_as_it_is_shown(world, process)
    for _ in range(3):
        await world.kill(await world.start())
    await world.start()
    await world.settled()

    shown = "".join(message.text for message in world.answers(asked))
    whole = await world.whole_answer(asked) or shown
    assert [whole.count(each) for each in said] == [1] * len(said)
    assert len(world.from_bot(asked, "kortex_card")) == (name == CARD)
    assert world.grows(asked) == []
    assert "could not be finished" not in shown
    assert await world.turn_state(asked) == "answered"


async def killed_as_one_is_asked(world: World, names: Sequence[str]) -> None:
    """A process starts, and is killed as the model has been asked the first of the questions."""
    holds = [world.hold_round(name, 1, at=-1) for name in names]
    process = await world.start()
    waits = [asyncio.ensure_future(hold.reached.wait()) for hold in holds]
    done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert done
    await world.kill(process)
    world.open()
    for each in waits:
        each.cancel()


def is_answered(world: World, asked: Asked, name: str) -> None:
    (answer,) = world.answers(asked)
    assert f"Answer to {name}." in answer.text


async def test_six_kills_with_turns_in_flight_abandon_none(world: World) -> None:
    asked = await crash_with_all_in_flight(world)
    for _ in range(5):
        await killed_as_one_is_asked(world, EVERY)
    await world.start()
    await world.settled()

    for name in EVERY:
        is_answered(world, asked[name], name)


async def test_three_kills_of_the_only_turn_in_flight_do_not_abandon_it(world: World) -> None:
    hold = world.hold_round("first", 1, at=-1)
    process = await world.start()
    asked = await world.ask("first")
    await hold.wait()
    await world.kill(process)
    world.open()
    for _ in range(2):
        await killed_as_one_is_asked(world, ["first"])
    await world.start()
    await world.settled()

    is_answered(world, asked, "first")


async def test_a_turn_is_kept_while_new_questions_crash_the_process(world: World) -> None:
    hold = world.hold_round("first", 1, at=-1)
    process = await world.start()
    asked = await world.ask("first")
    await hold.wait()
    await world.kill(process)
    world.open()

    holds = [world.hold_round(name, 1, at=-1) for name in ("first", POISON)]
    process = await world.start()
    await holds[0].wait()
    poison = await world.ask(POISON)  # begins when the trial of the first is over
    await holds[1].wait()
    await world.kill(process)
    world.open()
    while await crashes_again(world, {POISON: poison}):
        assert world.rounds[POISON, 1] < MOST_CRASHES
    await world.settled()

    is_answered(world, asked, "first")
