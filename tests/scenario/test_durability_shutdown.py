"""SIGTERM in the middle: work ends in time, or another process ends it; exit code 0."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.demo.workspace.seeds import RESPONDER
from tests.fixtures_service import Start, stage
from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ASK,
    ended_well,
    three_rounds,
)
from tests.scenario.durability.replica import TIMES, Replica
from tests.scenario.durability.world import TIMEOUT_S, World, world_on
from tests.stage import says

__all__ = ["stage"]

IMPATIENT = replace(TIMES, grace_s=0.2)
BOTH = pytest.mark.parametrize("world", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_on(request.param, tmp_path) as made:
        three_rounds(made)
        yield made


async def _terminate(world: World, replica: Replica) -> None:
    """SIGTERM; returns when it takes nothing new."""
    before = len(world.workspace.sockets.connections)
    replica.signal(signal.SIGTERM)
    await world.workspace.wait_for(
        lambda: len(world.workspace.sockets.connections) < before, TIMEOUT_S
    )


def _quietly(world: World) -> None:
    """An orderly shutdown is not reported as a failure."""
    log = world.config.with_suffix(".log").read_text()
    for words in ("Traceback", "cannot schedule new futures", "tool.internal_error", "[error"):
        assert words not in log, log


@BOTH
async def test_a_turn_ends_within_the_grace_period(world: World) -> None:
    replica = await world.start()
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    await _terminate(world, replica)
    world.open()
    assert await replica.ended() == 0
    _quietly(world)
    await ended_well(world, asked)


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_a_turn_longer_than_the_grace_period_continues_after_the_restart(
    world: World,
) -> None:
    replica = await world.start(IMPATIENT)
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    await _terminate(world, replica)
    assert await replica.ended() == 0
    _quietly(world)
    await world.start()
    await ended_well(world, asked, round_again=3)


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
async def test_a_round_longer_than_the_grace_period_is_handed_over(world: World) -> None:
    await world.start(IMPATIENT)
    await world.start(IMPATIENT)
    hold = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
    asked = await world.ask(ASK)
    await hold.wait()
    leaving = await world.runner_of(asked)
    await _terminate(world, leaving)
    assert await leaving.ended() == 0
    _quietly(world)
    await ended_well(world, asked, round_again=3)


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
async def test_a_tool_longer_than_the_grace_period_is_handed_over(world: World) -> None:
    await world.start(IMPATIENT)
    await world.start(IMPATIENT)
    hold = world.gates.hold("loki GET query_range before")
    asked = await world.ask(ASK)
    await hold.wait()
    hold.lost = True
    leaving = await world.runner_of(asked)
    await _terminate(world, leaving)
    assert await leaving.ended() == 0
    _quietly(world)
    await ended_well(world, asked, queries_again=1, calls_cancelled=1)


@pytest.mark.parametrize("world", ["postgresql"], indirect=True)
async def test_a_dispatch_longer_than_the_grace_period_is_not_sent_again(world: World) -> None:
    leaving = await world.start(IMPATIENT)
    asked = await world.propose("restart it")
    await world.start()
    hold = world.gates.hold("control POST restart after")
    with world.only(leaving):
        confirm = await world.workspace.click(RESPONDER, world.card(asked).ts, "proposal:confirm")
        assert confirm.ok
        await hold.wait()
        hold.lost = True
        leaving.signal(signal.SIGTERM)
        assert await leaving.ended() == 0
    _quietly(world)
    await world.decided(asked, "succeeded")
    await world.settled()
    assert world.gates.passed["control POST restart before"] == 1
    assert len(world.from_bot(asked, "kortex_note")) == 1


async def test_worker_threads_are_available_until_everything_is_closed(stage: Start) -> None:
    async with stage(says("All is well.")) as running:
        await running.answered("@kortex hello", RESPONDER)
        await running.stop_service()

        assert await asyncio.to_thread(lambda: "done") == "done"
        assert "cannot schedule new futures" not in running.log.getvalue()
