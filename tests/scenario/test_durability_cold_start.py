"""A process that has imported nothing resumes a hundred turns at once, and answers each of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.demo.workspace.people import User
from bot.demo.workspace.seeds import CHECKOUT
from tests.fakes.model_server import Round
from tests.scenario.durability.world import TIMEOUT_S, World, logs_of, world_on

TURNS = 100
PEOPLE = 10  # a person may ask twenty times a minute
# SQLite runs fifty turns at once; the rest wait for a slot.
LIVE = {"sqlite": 50, "postgresql": TURNS}
NAMES = [f"question {number:03}" for number in range(TURNS)]


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(request.param, tmp_path) as made:
        answered = [Round(calls=(logs_of("checkout"),))]
        made.scripts |= {name: [*answered, Round(text=(f"Answer to {name}.",))] for name in NAMES}
        yield made


def people(world: World) -> list[str]:
    names = [f"U0PERSON{number}" for number in range(PEOPLE)]
    team, roster = world.workspace.app.team_id, world.workspace.roster
    roster.users |= {name: User(name, name.lower(), name, team) for name in names}
    roster.set_members(CHECKOUT, roster.channel(CHECKOUT).members | set(names))
    return names


async def test_a_cold_start_resumes_a_hundred_turns(world: World) -> None:
    holds = [world.hold_round(name, 1, at=-1) for name in NAMES]
    process = await world.start()
    persons = people(world)
    asked = {name: await world.ask(name, user=persons[n % PEOPLE]) for n, name in enumerate(NAMES)}

    async def all_run() -> bool:
        return sum(hold.reached.is_set() for hold in holds) == LIVE[world.database.dialect]

    await world.until(all_run, timeout_s=2 * TIMEOUT_S)
    await world.kill(process)
    world.open()
    await world.serves(await world.launch(cold=True))
    for name in NAMES:
        await world.shows(asked[name], f"Answer to {name}.")
    await world.settled()

    for name in NAMES:
        (answer,) = world.answers(asked[name])
        assert f"Answer to {name}." in answer.text
