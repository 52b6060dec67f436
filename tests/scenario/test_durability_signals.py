"""SIGHUP and SIGTERM in every phase of a process: none kills it."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ASK,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.world import World, world_on

PHASES = ("slack GET auth.test before", "slack POST apps.connections.open before")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("sqlite", tmp_path) as made:
        three_rounds(made)
        yield made


async def test_a_hangup_is_survived_in_every_phase_and_so_is_a_second_stop(world: World) -> None:
    reached = [world.gates.hold(phase) for phase in PHASES]
    replica = await world.launch()
    for each in reached:
        await each.wait()
        replica.signal(signal.SIGHUP)
        each.release()
    await world.serves(replica)
    replica.signal(signal.SIGHUP)
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    replica.signal(signal.SIGTERM)
    await world.workspace.wait_for(lambda: not world.workspace.sockets.connections, 10.0)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        replica.signal(number)
    world.open()

    assert await replica.ended() == 0
    assert (await world.audit())["config.reloaded"] >= 1
    await ended_well(world, asked)


@pytest.mark.parametrize("phase", PHASES)
async def test_a_stop_during_the_start_ends_it_at_once(world: World, phase: str) -> None:
    hold = world.gates.hold(phase)
    replica = await world.launch()
    await hold.wait()
    replica.signal(signal.SIGTERM)

    assert await replica.ended() == 0
    log = world.config.with_suffix(".log").read_text()
    assert "stopped before it served" in log
    assert "Traceback" not in log


async def test_a_stop_right_after_the_start_drains(world: World) -> None:
    replica = await world.launch()
    await replica.serves()
    replica.signal(signal.SIGTERM)

    assert await replica.ended() == 0
    assert (await world.audit())["process.started"] == 1
