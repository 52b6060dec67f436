"""kill -9 within a round, over the true wire of every provider: the answer comes once."""

from pathlib import Path

import pytest

from tests.fixtures_providers import WIRES
from tests.scenario.durability.investigation import ASK, FIRST_READ, ended_well, three_rounds
from tests.scenario.durability.world import world_on


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "anthropic"])
async def test_a_killed_process_repeats_only_the_current_round(wire: str, tmp_path: Path) -> None:
    async with world_on("sqlite", tmp_path, wire) as world:
        three_rounds(world)
        first = await world.start()
        hold = world.hold_round(ASK, 2, at=-1)
        asked = await world.ask(ASK)
        await hold.wait()
        await world.is_recorded(asked, FIRST_READ)
        await world.kill(first)
        world.open()
        await world.start()
        await ended_well(world, asked, round_again=2)
